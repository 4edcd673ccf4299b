"""The stacks and the samples of a search: what is refused, divided, and copied to calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from simulator.contract.recipe import generator
from simulator.data.address import root_of
from simulator.data.folder import Files, Item
from simulator.data.source import samples_of
from simulator.digests import sha256
from simulator.errors import DataError, UserError
from simulator.experiments.session import Session
from simulator.files import LARGE, write_whole
from simulator.model.passes.rewrite import wanted
from simulator.model.store import digest
from simulator.pipeline.stack import ResolvedProfile
from simulator.places import read
from simulator.profile.precision import Calibration
from simulator.profile.profile import Profile
from simulator.profile.text import flow

CALIBRATION = "calibration"
SAMPLES = 16
"""Samples by which layers are put in order."""


class Parts(NamedTuple):
    """The samples, divided: to calibrate (none where the profile names a folder), and so on."""

    calibrate: Sequence[Item]
    search: Sequence[Item]
    confirm: Sequence[Item]


def calibration_of(profile: Profile) -> Calibration:
    """Return what the quantizer of a profile calibrates on; one that does not: what is compared.

    Raises:
        UserError: it has no quantizer, or one that does not calibrate on its own pixels.
    """
    quantizer = profile.spec.precision.quantizer
    if quantizer is None:
        raise UserError(f"{profile.name}: keep lists are found for a stack with a quantizer")
    own = Calibration(samples=SAMPLES, through="deploy", source="data")
    found: Calibration = quantizer.calibration or own
    if found.through != "deploy":
        raise UserError(f"{profile.name}: there is no other stack here: write through: deploy")
    return found


def refuse_fitted(profile: Profile) -> None:
    """Refuse what needs another stack here, or is fitted to samples that are searched.

    Raises:
        UserError: the graph is fitted so, or the network adapts while it runs.
    """
    for axis, given in wanted(profile.spec.graph).items():
        if "train" in given.through or given.source == "data":
            raise UserError(
                f"{profile.name}: graph.{axis} is fitted through the training stack or to "
                "evaluated samples, and there is no other stack here: leave it out"
            )
    if profile.spec.runtime.adaptation is not None:
        raise UserError(f"{profile.name}: runtime.adaptation changes the network: leave it out")
    if profile.spec.runtime.samples > 1:
        raise UserError(f"{profile.name}: runtime.batch: one sample runs at a time: leave it out")


def work_of(session: Session, base: ResolvedProfile) -> dict[str, object]:
    """Return all that the search depends on besides the options."""
    sources = [calibration_of(base[0]).source]
    sources += [one.source for one in wanted(base[0].spec.graph).values()]
    files = Files.of(session.card.modality)
    folders = {
        source: [sha256(item.path) for item in samples_of(root_of(source), files).items]
        for source in sources
        if source != "data"
    }
    return {
        "model": session.source.digest,
        "card": session.card.written.model_dump(mode="json", by_alias=True, exclude_none=True),
        "samples": digest([[item.name, sha256(item.path)] for item in session.dataset.items]),
        "profile": base[0].spec.model_dump(mode="json"),
        "choices": {stage: choice.identity() for stage, choice in base[1].items()},
        "calibration": digest(folders),
    }


def divided(items: Sequence[Item], given: Calibration, seed: int) -> Parts:
    """Divide samples at random.

    Raises:
        DataError: there are too few.
    """
    count = 0
    order = [items[at] for at in generator("sensitivity", seed).permutation(len(items))]
    if given.source == "data":
        count = min(given.samples, len(items) // 3)
    else:
        folder = Path(given.source).resolve()
        order = [
            item for item in order
            if not (isinstance(item.path, Path) and item.path.resolve().is_relative_to(folder))
        ]  # fmt: skip
    rest = order[count:]
    if len(rest) < 4 or (given.source == "data" and not count):
        raise DataError(f"{len(items)} samples are too few to calibrate, search and confirm")
    half = len(rest) // 2
    return Parts(tuple(order[:count]), tuple(rest[:half]), tuple(rest[half:]))


def calibrated(home: Path, items: Sequence[Item]) -> list[str]:
    """Copy samples to a folder; return the overrides by which a stack calibrates on them."""
    if not items:
        return []
    folder = home / CALIBRATION
    folder.mkdir(exist_ok=True)
    for number, item in enumerate(items):
        place = folder / f"{number:05}{item.path.suffix.lower() or '.bin'}"
        if not place.exists():
            write_whole(place, read(item.path, LARGE))
    here = "precision.quantizer.calibration"
    return [f"{here}.samples={len(items)}", f"{here}.source={flow(str(folder.resolve()))}"]
