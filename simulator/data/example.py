"""The built-in model and images, used without ``--model`` and ``--data``."""

from __future__ import annotations

from pathlib import Path

from simulator import cache, registry
from simulator.contract import Backend, ExampleImages, ExampleModel, Stage
from simulator.data.folder import Dataset, Item
from simulator.errors import MissingLibrary


def model_card() -> Path:
    """Return the card of the example model, exported into the user's cache on first use.

    Raises:
        MissingLibrary: the extra ``demo`` is not installed.
    """
    backend = _only(Stage.EXAMPLE_MODEL)
    model: ExampleModel = backend.of(Stage.EXAMPLE_MODEL)[0].make({})
    versions = "-".join(str(library.version) for library in (*backend.libraries, *model.also))
    return cache.entry(f"example/{backend.name}-{versions}", model.export) / "model.yaml"


def images() -> Dataset:
    """Return the example images with their labels.

    Raises:
        MissingLibrary: the extra ``demo`` is not installed.
    """
    source: ExampleImages = _only(Stage.EXAMPLE_IMAGES).of(Stage.EXAMPLE_IMAGES)[0].make({})
    items = tuple(Item(path.name, path, label) for path, label in source.files())
    return Dataset(items[0].path.parent, items)


def _only(stage: str) -> Backend:
    backend = next(b for b in registry.backends() if b.of(stage))
    missing = [lib.distribution for lib in backend.libraries if lib.version is None]
    if missing:
        raise MissingLibrary(
            f"the built-in example, used without --model or --data, needs "
            f"{', '.join(missing)}; try: pip install 'pipeline-simulator[demo]'"
        )
    return backend
