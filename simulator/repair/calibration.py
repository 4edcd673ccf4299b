"""Calibration images of a repair: none of them is of the confirmation half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.data.folder import Files, Item, load_unlabelled, may_equal
from simulator.digests import Digests, sha256
from simulator.errors import UserError
from simulator.modalities.modality import Modality
from simulator.pipeline.stack import Chosen


def folders(stacks: Sequence[Chosen]) -> list[str]:
    """Return the folders that stacks calibrate on, each once."""
    found = (one for profile, _ in stacks for one in _sources(profile.spec.model_dump()))
    return list(dict.fromkeys(one for one in found if one != "data"))


def _sources(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        return
    if isinstance(value.get("source"), str) and "samples" in value:
        yield value["source"]
    for inside in value.values():
        yield from _sources(inside)


def refuse_shared(
    sources: Sequence[str], unseen: Sequence[Item], digests: Digests, modality: Modality
) -> None:
    """Refuse folders that hold samples of the confirmation, by the bytes of their files.

    Args:
        sources: the folders.
        unseen: the samples of the confirmation.
        digests: the SHA-256 of their files.
        modality: of the samples.

    Raises:
        UserError: a folder holds some.
        DataError: a folder cannot be read.
    """
    held = {digests[item.path] for item in unseen} if sources else set()
    for source in sources:
        items = load_unlabelled(Path(source), Files.of(modality)).items
        some = may_equal([item.path for item in unseen], items)
        shared = [item for item in some if sha256(item.path) in held]
        if shared:
            raise UserError(
                f"calibration.source {source}: {len(shared):,} of its {len(items):,} images, such "
                f"as {shared[0].name}, are in the half that confirms a repair; calibrate on "
                "other images, or on source: data"
            )
