"""Pictures of the worst flips, for tasks whose predictions can be drawn.

What is needed is kept while a sample is processed: both predictions, and the image as each stack
decoded it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import sub
from typing import Any

import numpy as np

from simulator.contract import U8, Frame, Panel
from simulator.contract.recipe import Chain
from simulator.errors import SampleError
from simulator.experiments.moments import WORST as FLIPS
from simulator.experiments.pictures.decoded import decoding, painter, turns
from simulator.experiments.pictures.looks import stem_of
from simulator.experiments.pictures.pictures import Finished, Pictures, ShownPair
from simulator.modalities.image.orientation import UPRIGHT, stored
from simulator.pipeline.walk import Walk
from simulator.results.layout import PICTURES
from simulator.tasks.task import Task
from simulator.tasks.view import Told


@dataclass(frozen=True, slots=True)
class FlipSeen:
    """The data for a picture of a flip.

    Attributes:
        images: (H, W, 3) uint8, as each stack decoded it, in the orientation of the file.
        before: the prediction of the training stack.
        after: the prediction of the deployment stack.
        truth: the loaded ground truth.
    """

    images: tuple[U8, U8]
    before: Any
    after: Any
    truth: Any


@dataclass(frozen=True, slots=True)
class FlipPictures(Pictures):
    """The chains that the pictures of a pair need besides its arms.

    Attributes:
        task: of the model.
        chains: from the file to RGB, of the first and the last stack that were not recorded.
        applied: for each chain, whether its decoder applies the EXIF orientation.
        arms: indices of train and deploy.
        prefix: of the chains' names in the plan.
    """

    task: Task
    chains: tuple[Chain, ...]
    applied: tuple[bool, ...]
    arms: tuple[int, int]
    prefix: str
    name = "flip"
    worst = FLIPS
    strips = True

    def asides(self) -> dict[str, Chain]:
        """Return the chains by their names in the plan."""
        return {f"{self.prefix}flip {at}": chain for at, chain in enumerate(self.chains)}

    def see(self, walk: Walk) -> FlipSeen | None:
        """Return the data for a picture of this sample; None where it cannot be decoded."""
        answers = walk.answers()
        try:
            images = [self._stored(walk, at) for at in range(len(self.chains))]
            source = walk.context.source
            truth = self.task.opened(walk.context.truth, source)
        except SampleError:
            return None
        before, after = (answers[arm].prediction for arm in self.arms)
        return FlipSeen((images[0], images[-1]), before, after, truth)

    def _stored(self, walk: Walk, at: int) -> U8:
        """The pixels in the orientation of the file, which predictions refer to."""
        frame: Frame = walk.aside(f"{self.prefix}flip {at}")
        turned = walk.context.source.orientation if self.applied[at] else UPRIGHT
        return stored(frame.rgb, turned)

    def draw(self, finished: Finished) -> None:
        """Write each worst flip to the run: a ``picture``, and a ``preview`` for the page."""
        found, flips = painter(), finished.summary["worst_flips"]
        if found is None or not flips:
            return
        finished.session.show.say("drawing the worst flips")

        def both(flip: Told) -> tuple[bytes, bytes] | None:
            panels = self._panels(flip, finished.seen)
            return (found.png(panels), found.jpeg(panels)) if panels else None

        with ThreadPoolExecutor(finished.session.workers) as pool:
            drawn = list(pool.map(both, flips))
        for number, (flip, content) in enumerate(zip(flips, drawn, strict=True), start=1):
            if content is not None:
                moment = flip.get("moment")
                stem = f"{moment['worst']:.3f}s" if moment else stem_of(flip["sample"], "image")
                names = {"picture": f"{stem}.png", "preview": f"{stem}.jpg"}
                flip |= {key: f"{PICTURES}/{number:02}-{name}" for key, name in names.items()}
                for key, data in zip(names, content, strict=True):
                    finished.run.write_file(flip[key], data)

    def _panels(self, flip: Told, seen: Mapping[str, FlipSeen]) -> list[Panel]:
        """What a flip's picture shows; of a moment the frames around it, deploy below train."""
        strip = flip["moment"]["strip"] if "moment" in flip else {flip["sample"]: None}
        view, found = self.task.view(), []
        for name, time in strip.items():
            if one := seen.get(name):
                panels = view.panels(self.task, one.images, one.before, one.after, one.truth)
                when = f"{time or 0:.2f} s{', worst' * (name == flip['sample'])}"
                found.append(panels if time is None else [_timed(p, when) for p in panels[:2]])
        panels = [panel for row in zip(*found, strict=True) for panel in row]
        return panels if len(found) <= 1 else _zoomed(panels)


def _timed(panel: Panel, when: str) -> Panel:
    """A panel of a strip: with its time, and a legend that holds for all of them."""
    legend = tuple(replace(key, words=key.words.partition(":")[0]) for key in panel.legend)
    return replace(panel, title=f"{when}, {panel.title.partition(' (')[0]}", legend=legend)


def _zoomed(panels: Sequence[Panel]) -> list[Panel]:
    """Cut all to the same part, with each box that has a caption; at least a third each way."""
    size = np.array(panels[0].image.shape[1::-1], float)
    boxes = [r.box for panel in panels for r in panel.rectangles if r.caption]
    if not boxes or len({panel.image.shape for panel in panels}) > 1:
        return [*panels]
    corners = np.clip(np.reshape(boxes, (-1, 2)), 0, size)
    low, high = corners.min(axis=0), corners.max(axis=0)
    part = min(1.0, max(1 / 3, 1.25 * float(((high - low) / size).max())))
    left, top = np.clip((low + high - part * size) / 2, 0, (1 - part) * size).astype(int).tolist()
    wide, tall = np.ceil(part * size).astype(int).tolist()

    def cut(panel: Panel) -> Panel:
        boxes = [tuple(map(sub, r.box, (left, top) * 2)) for r in panel.rectangles]
        moved = tuple(replace(r, box=box) for r, box in zip(panel.rectangles, boxes, strict=True))
        image = panel.image[top : top + tall, left : left + wide]
        return replace(panel, image=image, rectangles=moved)

    return [cut(panel) for panel in panels]


@dataclass(frozen=True, slots=True)
class Undrawn(Pictures):
    """No pictures of flips, and why; nothing is kept of any sample."""

    why: str
    name = "flip"

    def see(self, walk: Walk) -> None:
        """Return nothing."""

    def draw(self, finished: Finished) -> None:
        """Warn, if there are flips."""
        if finished.summary["worst_flips"]:
            finished.warn(f"the worst flips are not drawn: {self.why}")


def flips(pair: ShownPair) -> Pictures | None:
    """Plan the pictures; None where the task draws no flips."""
    task = pair.session.card.task
    if not task.view().drawn:
        return None
    drawn = [(stack, chain) for stack in pair.stacks if (chain := decoding(stack))]
    if painter() is None or not drawn:
        return Undrawn("no installed backend can draw" if drawn else "both stacks were recorded")
    ends = (drawn[0], drawn[-1])
    return FlipPictures(
        task,
        tuple(chain for _, chain in ends),
        tuple(turns(stack) for stack, _ in ends),
        pair.arms,
        pair.prefix,
    )
