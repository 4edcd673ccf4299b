"""Files that lie beside the profile that names them, and the model file that a profile brings."""

from __future__ import annotations

import copy
import os
from pathlib import Path

from simulator import registry
from simulator.command import allowed
from simulator.contract import File
from simulator.errors import ModelError, ProfileError
from simulator.profile import artifact, modality
from simulator.profile.document import Document, Values, inside
from simulator.profile.lookup import find, name_of
from simulator.profile.merged import Merged, merged_of, modality_of


def movable(document: Document) -> Values:
    """Return the values of a document with whole paths, so that it can be written elsewhere.

    Raises:
        ProfileError: it is not valid.
    """
    own, whole = Merged(), merged_of(document)
    own.values, own.origins[()] = copy.deepcopy(document.values), document.where(())
    find_files(own, modality_of(whole), whole.values)
    file, precision = inside(own.values, artifact.PLACE), own.values.get("precision")
    if isinstance(file, str) and isinstance(precision, dict):
        precision["artifact"] = str(_beside(document.where(artifact.PLACE), file))
    if parent := document.values.get("extends"):
        place = find(str(parent), document.path.parent)
        own.values["extends"] = name_of(place) or str(place.resolve())
    return own.values


def find_files(merged: Merged, kind: str, whole: Values | None = None) -> None:
    """Write the whole path of each file that lies beside the document which names it.

    Args:
        merged: the values, of which some may be left to the profile that they extend.
        kind: the modality.
        whole: these values and that profile's.
    """
    for spec in modality.filled(kind):
        section = inside(merged.values, spec.section)
        if not isinstance(section, dict):
            continue
        backend = inside(whole or merged.values, (*spec.section, "backend"))
        for name, value in section.items():
            if isinstance(value, str):
                path = str(_beside(merged.where((*spec.section, name)), value))
                if os.path.isfile(path) and _is_file(spec.name, backend, name):
                    section[name] = path


def settle_artifact(merged: Merged, keep_runtime: bool) -> None:
    """Find the profile's own model file, its types, and a runtime that opens it.

    Raises:
        ProfileError: there is no such file, or it cannot be read.
    """
    written = inside(merged.values, artifact.PLACE)
    if not isinstance(written, str):
        merged.notes.clear()
        return
    where = merged.where(artifact.PLACE)
    try:
        found = artifact.read(_beside(where, written))
    except ModelError as error:
        raise ProfileError([f"{where}: precision.artifact: {error}"]) from error
    if found.format.native and not allowed.may(merged.origins[artifact.PLACE]):
        raise ProfileError(
            [f"{where}: precision.artifact: {found.format.about} holds code that runs here; where "
             "you trust it, add --allow-code, or name it with --deploy-artifact"]
        )  # fmt: skip
    name, precision = found.path.name, merged.values["precision"]
    assert isinstance(precision, dict)
    precision["artifact"] = str(found.path)
    merged.notes[:] = [f"{name} takes the place of {part}" for part in merged.notes]
    named = merged.names_runtime or keep_runtime
    own = inside(merged.values, ("runtime",))
    if not named and (section := artifact.runtime_for(found, own)):
        merged.notes.append(
            f"{name} is {found.format.about}, which {inside(own, ('backend',))} does not open: "
            f"runtime {section['backend']} takes its place"
        )
        merged.values["runtime"] = {}
        merged.forget(("runtime",))
        merged.take({"runtime": section}, lambda _: f"{where}: the runtime of {name}")
    for kind, value in artifact.types_of(found, inside(merged.values, ("runtime",))).items():
        if kind not in precision:
            precision[kind] = value
            merged.origins["precision", kind] = f"{where}: read from {name}"
    for kind, (value, place) in merged.types.items():  # a file that does not say its types
        if kind not in precision:
            precision[kind] = value
            merged.origins["precision", kind] = place


def _beside(where: str, written: str) -> Path:
    """Return the whole path of a file that is named relative to the document at a place."""
    folder = os.path.dirname(where.rpartition(":")[0])
    return Path(os.path.abspath(os.path.join(folder, os.path.expanduser(written))))


def _is_file(stage: str, backend: object, name: str) -> bool:
    """Whether a backend takes a field for the path of a file."""
    if not isinstance(backend, str) or backend not in registry.BACKENDS.points:
        return False
    offers = registry.backend(backend).of(stage)
    return any(isinstance(offer.options.get(name), File) for offer in offers)
