"""The built-in models and their samples, used without ``--model`` and ``--data``."""

from __future__ import annotations

from pathlib import Path

from simulator import cache, registry
from simulator.contract import ExampleImages, ExampleModel, Stage
from simulator.data.card import FILE
from simulator.data.folder import Dataset, Item
from simulator.errors import UserError, unknown
from simulator.profile.document import inside, read

IMAGE = "image"
"""The example that is meant where none is named."""
FOLDER = "example"
"""Below the cache."""


def model_card(name: str = IMAGE) -> Path:
    """Return the card of an example's model, exported into the user's cache on first use.

    Args:
        name: of the example: ``image``, or the modality of another one.

    Raises:
        UserError: there is no such example.
        MissingLibrary: a library that it needs is not installed.
    """
    made: list[str] = []
    for backend in registry.serving(Stage.EXAMPLE_MODEL):
        made.append(backend.of(Stage.EXAMPLE_MODEL)[0].make.example)
        if made[-1] == name:
            break
    else:
        raise UserError(f"--example: {unknown('value', name, made)}")
    model: ExampleModel = backend.of(Stage.EXAMPLE_MODEL)[0].make({})
    use = "used without --model or --data" if name == IMAGE else f"--example {name}"
    registry.check_installed(backend, f"the built-in example, {use}, needs", model.remedy)
    versions = [str(library.version) for library in (*backend.libraries, *model.also)]
    parts = [part for part in (backend.name, *versions, model.identity()) if part]
    return cache.entry(f"{FOLDER}/{'-'.join(parts)}", model.export) / "model.yaml"


def name_of(card: Path) -> str | None:
    """Return the name of the example whose card this is; None of other cards."""
    if card.parent.parent != cache.folder() / FOLDER or not card.is_file():
        return None
    return str(inside(read(card).values, ("input", "kind")) or IMAGE)


def data_card(name: str) -> Path | None:
    """Return the data card of an example; None for the images, which are files without a card.

    Raises:
        UserError: there is no such example.
        MissingLibrary: a library that it needs is not installed.
    """
    found = model_card(name).parent / FILE
    return found if found.is_file() else None


def images() -> Dataset:
    """Return the example images with their labels.

    Raises:
        MissingLibrary: the extra ``demo`` is not installed.
    """
    backend = next(registry.serving(Stage.EXAMPLE_IMAGES))
    use = "the built-in example, used without --model or --data, needs"
    registry.check_installed(backend, use, ExampleModel.remedy)
    source: ExampleImages = backend.of(Stage.EXAMPLE_IMAGES)[0].make({})
    found = list(source.files())
    items = tuple(Item(path.name, path, label) for path, label in found)
    return Dataset(found[0][0].parent, items)
