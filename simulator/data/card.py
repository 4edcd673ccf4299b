"""Data cards: where annotated samples are, and what their annotations mean."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from simulator.data.address import Root, bare
from simulator.data.format import DataCard, DataFormat
from simulator.data.label_kind import LABELS
from simulator.data.source import SOURCES, labelled_sources
from simulator.entry_points import of_group
from simulator.errors import DataError, ProfileError, unknown
from simulator.profile import messages
from simulator.profile.document import Document, read

FILE = "data.yaml"
"""What a card is called in a folder that is given for it."""
ENDINGS = frozenset({".yaml", ".yml"})


def find_card(path: Root) -> Path | None:
    """Return the card that a path stands for: the file itself, or ``data.yaml`` in the folder.

    Raises:
        DataError: it is the URL of a card.
    """
    if isinstance(path, str):
        if PurePosixPath(bare(path)).suffix.lower() in ENDINGS:
            raise DataError(f"{path}: copy the data card here; its `files` may be a URL")
        return None
    if path.suffix.lower() in ENDINGS:
        return path
    return path / FILE if (path / FILE).is_file() else None


def read_card(path: Path) -> DataCard:
    """Read a data card; neither samples nor annotations are opened.

    Args:
        path: the YAML document.

    Raises:
        DataError: each problem as ``file:line: key: what``.
    """
    try:
        document = read(path)
        task = _choose(document, "task", {point.name for point in of_group("simulator.tasks")})
        chosen = _format_of(task, _choose(document, "format", _formats_of(task)))
        spec = messages.checked(chosen.Spec, document.values, document.where, "card")
    except ProfileError as error:
        raise DataError(str(error)) from error
    return DataCard(path, spec, chosen)


def _formats_of(task: str) -> tuple[str, ...]:
    """Return the words that cards of a task may have as their ``format``."""
    kinds = [name.removeprefix(f"{task}.") for name in LABELS.names]
    return tuple({*(kind for kind in kinds if "." not in kind), *labelled_sources()})


def _format_of(task: str, word: str) -> DataFormat:
    """Return what a word of :func:`_formats_of` names."""
    known = next((name for name in (f"{task}.{word}", word) if name in LABELS), None)
    return LABELS[known] if known else SOURCES[word]


def _choose(document: Document, key: str, offered: Iterable[str]) -> str:
    got = document.values.get(key)
    if isinstance(got, str) and got in offered:
        return got
    problem = "required, and not written" if got is None else unknown("value", got, offered)
    raise DataError(f"{document.where((key,))}: {key}: {problem}")
