"""Calibration images of a repair: none of them is among those that judge its stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simulator.data.address import root_of
from simulator.data.folder import Files, Item, may_equal
from simulator.data.source import samples_of
from simulator.digests import Digests, sha256
from simulator.errors import UserError
from simulator.modalities.modality import Modality
from simulator.pipeline.stack import ResolvedProfile
from simulator.results.json_text import JsonObject


def folders(stacks: Sequence[ResolvedProfile]) -> list[str]:
    """Return the folders that stacks calibrate on, each once."""
    found = (one for profile, _ in stacks for one in _asking(profile.spec.model_dump()))
    sources = (str(one["source"]) for one in found)
    return list(dict.fromkeys(source for source in sources if source != "data"))


def _asking(value: Any) -> Iterator[JsonObject]:
    if not isinstance(value, Mapping):
        return
    if isinstance(value.get("source"), str) and "samples" in value:
        yield value
    for inside in value.values():
        yield from _asking(inside)


def drawn(stacks: Sequence[ResolvedProfile]) -> int:
    """Return how many samples the stacks calibrate on that are drawn from the data; 0: none."""
    found = (one for profile, _ in stacks for one in _asking(profile.spec.model_dump()))
    return max((int(one["samples"]) for one in found if one["source"] == "data"), default=0)


def refuse_shared(
    sources: Sequence[str], unseen: Sequence[Item], digests: Digests, modality: Modality
) -> None:
    """Refuse folders that hold samples by which stacks are judged, by the bytes of their files.

    Args:
        sources: the folders.
        unseen: the samples by which stacks are judged.
        digests: the SHA-256 of their files.
        modality: of the samples.

    Raises:
        UserError: a folder holds some.
        DataError: a folder cannot be read.
    """
    held = {digests[item.path] for item in unseen} if sources else set()
    for source in sources:
        items = samples_of(root_of(source), Files.of(modality)).items
        some = may_equal([item.path for item in unseen], items)
        shared = [item for item in some if sha256(item.path) in held]
        if shared:
            raise UserError(
                f"calibration.source {source}: {len(shared):,} of its {len(items):,} samples, such "
                f"as {shared[0].name}, are in the half that confirms a repair; calibrate on "
                "other samples, or on source: data"
            )
