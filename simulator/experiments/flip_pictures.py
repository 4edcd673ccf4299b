"""Pictures of the worst flips, for tasks whose answers can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from simulator import registry
from simulator.contract import U8, Decoder, Encoded, Painter, Stage
from simulator.data.folder import Item, read
from simulator.errors import SampleError
from simulator.experiments.session import Session
from simulator.modalities.image.orientation import UPRIGHT, stored
from simulator.pipeline import recorded
from simulator.pipeline.executor import ends
from simulator.pipeline.plan import Plan
from simulator.pipeline.stack import Stack
from simulator.results.store import PICTURES, RunWriter
from simulator.tasks.task import Task

RECORDED = (Stage.DECODE, Stage.RUNTIME)


def draw(
    session: Session, stacks: Sequence[Stack], merged: Plan, summary: dict[str, Any], run: RunWriter
) -> None:
    """Draw each worst flip of a summary into the run, and say there where it is.

    Without a backend that paints, the summary says so.

    Args:
        session: the model and the images.
        stacks: train and deploy.
        merged: their plan; the images are run once more.
        summary: gets ``picture``, a path below the run folder, in each of ``worst_flips``.
        run: where the pictures go.
    """
    task, flips = session.card.task, summary["worst_flips"]
    if not flips or not task.view().drawn:
        return
    painter, decoders = _painter(), [d for d in map(decoder, stacks) if d]
    if painter is None or not decoders:
        why = "no installed backend paints" if decoders else "both stacks were recorded"
        summary["warnings"].append(f"the worst flips are not drawn: {why}")
        return
    session.show.say("drawing the worst flips")
    items = {item.name: item for item in session.dataset.items}
    chosen = [items[flip["sample"]] for flip in flips]
    with ThreadPoolExecutor(session.workers) as pool:
        drawn = list(pool.map(partial(_drawn, task, merged, decoders, painter), chosen))
    for number, (flip, png) in enumerate(zip(flips, drawn, strict=True), start=1):
        if png is not None:
            stem = flip["sample"].rpartition("/")[2].rpartition(".")[0]
            flip["picture"] = f"{PICTURES}/{number:02}-{stem}.png"
            run.write_file(flip["picture"], png)


def _drawn(
    task: Task, merged: Plan, decoders: Sequence[Decoder], painter: Painter, item: Item
) -> bytes | None:
    """The picture of one flip; None where the image cannot be run again."""
    found = ends(merged, item)
    if found is None:
        return None
    (_, before), (_, after) = found
    try:
        image = read(item)
        images = _stored(decoders[0], image), _stored(decoders[-1], image)
        truth = task.opened(item.truth, image)
        return painter.png(task.view().panels(task, images, before, after, truth))
    except SampleError:
        return None


def _stored(decoder: Decoder, image: Encoded) -> U8:
    """The pixels as they are stored: what answers are about."""
    turned = image.orientation if decoder.options.get("exif") == "apply" else UPRIGHT
    return stored(decoder.rgb(image).rgb, turned)


def _painter() -> Painter | None:
    for backend in registry.backends():
        offers = backend.of(Stage.DRAW)
        if offers and all(library.version for library in backend.libraries):
            painter: Painter = offers[0].make({})
            return painter
    return None


def decoder(stack: Stack) -> Decoder | None:
    """Return a stack's decoder; None where the device had it."""
    if any(recorded.recording(stack.profile, stack.choices, stage) for stage in RECORDED):
        return None
    made: Decoder = stack.choices[Stage.DECODE].make()
    return made
