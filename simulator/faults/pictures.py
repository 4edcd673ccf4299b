"""Drawings of what faults do at their worst: single answers, and a clip over a video."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.analysis.persistence import Rule
from simulator.contract import U8, Key, Panel
from simulator.experiments.pictures.decoded import painter
from simulator.experiments.pictures.pictures import canvas
from simulator.experiments.session import Session
from simulator.faults.on_stack import OnStack
from simulator.faults.persistence import Shot, shots
from simulator.results.faults import FaultEvent, FaultsSummary
from simulator.results.layout import CLIPS, EVENTS
from simulator.results.store import RunWriter
from simulator.tasks.impact import WITH, WITHOUT

DRAWN = 6
"""So many of each stack are drawn."""
FRAMES = 30
"""So many frames are shown at most: those around the largest areas."""
EACH = 250
"""Milliseconds of each."""
_FALSE, _MISSED = (240, 228, 66), (0, 114, 178)
_PALETTE = np.array([(0, 0, 0, 0), (*_FALSE, 120), (*_MISSED, 120)], np.uint8)
_LEGEND = (
    Key(WITHOUT, "box without the fault"),
    Key(WITH, "box with it"),
    Key(_FALSE, "false and stays"),
    Key(_MISSED, "missed and stays"),
)


def with_pictures(
    session: Session, every: Sequence[OnStack], summary: FaultsSummary, run: RunWriter
) -> FaultsSummary:
    """Run the worst silent corruptions of each stack again, say both answers, and draw them.

    Args:
        session: decodes the samples.
        every: the stacks; they put the faults in again.
        summary: names the corruptions.
        run: a PNG and a smaller JPEG of each are written to it, where the samples are images and a
            backend can draw.

    Returns:
        The summary with the answers in words and the names of the files.
    """
    stacks = dict(summary.stacks)
    for number, stack in enumerate(every):
        side = stack.stack.side
        worst = stacks[side].worst
        if not worst:
            continue
        session.show.say(f"{side}: drawing the worst faults")
        shown = [
            _shown(session, stack, event, run, f"{EVENTS}/{number:02}-{rank:02}")
            for rank, event in enumerate(worst[:DRAWN], start=1)
        ]
        told = {"worst": [*shown, *worst[DRAWN:]]}
        stacks[side] = stacks[side].model_copy(update=told)
    return summary.model_copy(update={"stacks": stacks})


def _shown(
    session: Session, found: OnStack, event: FaultEvent, run: RunWriter, stem: str
) -> FaultEvent:
    at = next(at for at, item in enumerate(found.items) if item.name == event.sample)
    both = found.again(event.fault, at)
    if both is None:
        return event
    impact, faulty = both
    told = {"without": impact.said(impact.golden), "under": impact.said(faulty)}
    images = canvas(session, found.stack, [found.items[at]])
    draws = painter()
    if images is not None and draws is not None:
        panels = impact.panels(next(images), faulty)
        files = {"picture": (".png", draws.png), "preview": (".jpg", draws.jpeg)}
        for key, (suffix, drawn) in files.items():
            told[key] = f"{stem}-fault-{event.fault}{suffix}"
            run.write_file(told[key], drawn(panels))
    return event.model_copy(update=told)


def with_clips(
    session: Session, every: Sequence[OnStack], summary: FaultsSummary, run: RunWriter
) -> FaultsSummary:
    """Draw the worst fault of each stack, where one leaves something and a backend can draw.

    Args:
        session: for its task, and to decode frames.
        every: the stacks.
        summary: names the worst faults.
        run: a GIF a stack is written to it.

    Returns:
        The summary with the names of the files.
    """
    stacks = dict(summary.stacks)
    for number, stack in enumerate(every):
        side = stack.stack.side
        seen = stacks[side].persistence
        draws = painter()
        if seen is None or seen.worst is None or draws is None:
            continue
        session.show.say(f"{side}: drawing the worst fault")
        rule = Rule(seen.window, seen.least, seen.radius)
        chosen = _stretch(list(shots(stack, session.card.task, seen.worst, rule)))
        images = canvas(session, stack.stack, [stack.items[shot.at] for shot in chosen])
        if images is None:
            continue
        panels = [_panel(stack, seen.worst, *both) for both in zip(chosen, images, strict=True)]
        name = f"{CLIPS}/{number:02}-fault-{seen.worst}.gif"
        run.write_file(name, draws.gif(panels, EACH))
        told = seen.model_copy(update={"clip": name})
        stacks[side] = stacks[side].model_copy(update={"persistence": told})
    return summary.model_copy(update={"stacks": stacks})


def _stretch(every: Sequence[Shot]) -> Sequence[Shot]:
    """The successive frames with the largest areas together."""
    areas = [shot.frame.false + (shot.frame.missed or 0) for shot in every]
    totals = np.convolve(areas, np.ones(min(FRAMES, len(areas))), "valid")
    start = int(np.argmax(totals))
    return every[start : start + FRAMES]


def _panel(found: OnStack, fault: int, shot: Shot, image: U8) -> Panel:
    told = ": NaN or Inf, detected" if shot.detected else ""
    overlay = np.where(shot.false, 1, np.where(shot.missed, 2, 0)).astype(np.uint8)
    return Panel(
        image,
        f"fault {fault}, {found.items[shot.at].name}{told}",
        shot.impact.marks(shot.answer),
        overlay,
        _PALETTE,
        _LEGEND,
    )
