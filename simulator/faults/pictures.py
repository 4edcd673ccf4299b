"""Drawings of the worst silent corruptions: the answer without the fault and with it."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.experiments.flip_pictures import painter, pictures
from simulator.experiments.session import Session
from simulator.faults.measured import Measured
from simulator.faults.on_stack import OnStack
from simulator.results.faults import FaultEvent, FaultsSummary
from simulator.results.layout import EVENTS
from simulator.results.store import RunWriter

DRAWN = 6
"""So many of each stack are drawn."""


def with_pictures(
    session: Session,
    every: Sequence[OnStack],
    found: Sequence[Measured],
    summary: FaultsSummary,
    run: RunWriter,
) -> FaultsSummary:
    """Run the worst silent corruptions of each stack again, say both answers, and draw them.

    Args:
        session: decodes the samples.
        every: the stacks; they put the faults in again.
        found: what the campaign did to each.
        summary: names the corruptions.
        run: a PNG and a smaller JPEG of each are written to it, where the samples are images and a
            backend can draw.

    Returns:
        The summary with the answers in words and the names of the files.
    """
    stacks = dict(summary.stacks)
    for number, (own, one) in enumerate(zip(every, found, strict=True)):
        side = one.stack.side
        worst = stacks[side].worst
        if not worst:
            continue
        session.show.say(f"{side}: drawing the worst faults")
        shown = [
            _shown(session, own, one, event, run, f"{EVENTS}/{number:02}-{rank:02}")
            for rank, event in enumerate(worst[:DRAWN], start=1)
        ]
        told = {"worst": [*shown, *worst[DRAWN:]]}
        stacks[side] = stacks[side].model_copy(update=told)
    return summary.model_copy(update={"stacks": stacks})


def _shown(
    session: Session, own: OnStack, found: Measured, event: FaultEvent, run: RunWriter, stem: str
) -> FaultEvent:
    at = next(at for at, item in enumerate(found.items) if item.name == event.sample)
    both = own.again(event.fault, at)
    if both is None:
        return event
    impact, faulty = both
    told = {"without": impact.said(impact.golden), "under": impact.said(faulty)}
    images = pictures(session, found.stack, [found.items[at]]) if found.sizes[at] else None
    draws = painter()
    if images is not None and draws is not None:
        panels = impact.panels(next(images), faulty)
        files = {"picture": (".png", draws.png), "preview": (".jpg", draws.jpeg)}
        for key, (suffix, drawn) in files.items():
            told[key] = f"{stem}-fault-{event.fault}{suffix}"
            run.write_file(told[key], drawn(panels))
    return event.model_copy(update=told)
