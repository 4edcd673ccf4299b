"""A stack's own model file, ``precision.artifact``: which it is, and what it says of itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import get_args

from simulator import registry
from simulator.contract import Offer, Stage
from simulator.contract.description import Description
from simulator.contract.model_format import MODEL_FORMATS, ModelFormat, format_of, refusal
from simulator.errors import ModelError, UserError
from simulator.profile.document import Values
from simulator.profile.fit import admitted, only
from simulator.profile.precision import Precision
from simulator.profile.profile import Profile

PLACE = ("precision", "artifact")
MAKERS = (("precision", "cast"), ("precision", "quantizer"), ("runtime", "exporter"))
"""What makes a model file; an artifact takes its place."""
REPLACED = (*MAKERS, ("precision", "storage"), ("precision", "compute"))
"""What is not inherited beside an artifact."""


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A model file that was made elsewhere.

    Attributes:
        path: where it is; a folder, where its format is one.
        format: of it.
        digest: SHA-256 of all its files.
        description: what it says of itself.
    """

    path: Path
    format: ModelFormat
    digest: str
    description: Description

    @property
    def words(self) -> str:
        """Its name, and by which bytes it is known."""
        return f"{self.path.name} (SHA-256 {self.digest[:16]})"


def own_file(profile: Profile) -> OwnFile | None:
    """Return a profile's own model file; None if the simulator makes it from the card's.

    Raises:
        ModelError: as for :func:`read`.
    """
    named = profile.spec.precision.artifact
    return read(Path(named)) if named else None


def read(path: Path) -> OwnFile:
    """Read what a model file says of itself; an unchanged one is read once.

    Raises:
        ModelError: there is none, its format is not known, it is damaged or refused.
    """
    path = _graph_beside(path)
    if not os.path.exists(path):
        raise ModelError(f"{path}: there is no such file")
    if said := refusal(path):
        raise ModelError(f"{path}: {said}")
    format = format_of(path)
    if format is None:
        known = ", ".join(sorted({one.suffix for one in MODEL_FORMATS}))
        raise ModelError(f"{path}: no format of model files is known by this name; known: {known}")
    stamps = []
    for file in format.files(path):
        try:
            found = file.stat()
        except OSError as error:
            raise ModelError(f"{file}: cannot be read: {error.strerror}") from error
        stamps.append((file, found.st_size, found.st_mtime_ns))
    return _read(path, format, tuple(stamps))


def _graph_beside(path: Path) -> Path:
    """The graph of a file of weights, where a format keeps both under one stem."""
    formats = (one for one in MODEL_FORMATS if one.weights and one.weights == path.suffix)
    graphs = (path.with_suffix(one.suffix) for one in formats)
    return next((graph for graph in graphs if os.path.isfile(graph)), path)


@lru_cache(maxsize=32)
def _read(path: Path, format: ModelFormat, stamps: object) -> OwnFile:
    description = format.describe(path)
    try:
        return OwnFile(path, format, format.digest([path]), description)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error


def types_of(found: OwnFile, runtime: object) -> Values:
    """Return ``storage`` and ``compute`` as the file says, in a pair that the runtime offers.

    A runtime that does not compute in the file's type is asked for FP32: what it then does is read
    back from it.

    Args:
        found: the file.
        runtime: the section ``runtime`` of a profile, as written.
    """
    said = {"storage": found.description.storage, "compute": found.description.compute}
    fields = Precision.model_fields
    types: Values = {
        name: kind for name, kind in said.items() if kind in get_args(fields[name].annotation)
    }
    if said["compute"] and "compute" not in types:
        types["compute"] = "fp32"
    for pair in (types, {**types, "compute": "fp32"}):
        for offer in _chosen(runtime):
            if all(kind in _words(offer.options.get(name)) for name, kind in pair.items()):
                return pair if types.keys() == said.keys() else types
    return types


def _words(admits: object) -> tuple[object, ...]:
    return admits if isinstance(admits, tuple) else ()


def _offers(runtime: object) -> list[Offer]:
    backend = runtime.get("backend") if isinstance(runtime, Mapping) else None
    if not isinstance(backend, str):
        return []
    try:
        return list(registry.backend(backend).of(Stage.RUNTIME))
    except UserError:  # reported with the section
        return []


def _chosen(runtime: object) -> list[Offer]:
    """The offers of what a section chooses, whatever the types: its device, and its provider."""
    written = runtime if isinstance(runtime, Mapping) else {}
    able = [
        offer for offer in _offers(runtime)
        if all(admitted(written[name], admits) for name, admits in offer.options.items()
               if name in written)
    ]  # fmt: skip
    silent = registry.backend(str(written["backend"])).may_be_left_out if able else ()
    first = {name: only(able[0].options[name]) for name in silent if name in able[0].options}
    return [one for one in able if all(only(one.options[n]) == v for n, v in first.items())]


def runtime_for(found: OwnFile, runtime: object) -> Values | None:
    """Return the section of the runtime of the file's format, where the stack's own takes none.

    Args:
        found: the file.
        runtime: the section ``runtime`` of a profile, as written; its threads are kept.

    Returns:
        None: the runtime opens the file, or there is none here of its format.
    """
    offers = _offers(runtime)
    if not offers or any(registry.opens(offer, found.format.name) for offer in offers):
        return None
    if not found.format.runtime:
        return None
    assert isinstance(runtime, Mapping)
    kept = {name: runtime[name] for name in ("threads", "resources") if name in runtime}
    return {**kept, **found.format.runtime}
