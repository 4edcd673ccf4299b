"""Pictures of the worst flips, for tasks whose predictions can be drawn.

What is needed is kept while a sample is processed: both predictions, and the image as each stack
decoded it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from simulator.contract import U8, Frame
from simulator.contract.recipe import Chain
from simulator.errors import SampleError
from simulator.experiments.pictures.decoded import decoding, painter, turns
from simulator.experiments.pictures.pictures import Finished, Pictures, ShownPair
from simulator.experiments.summary import WORST as FLIPS
from simulator.modalities.image.orientation import UPRIGHT, stored
from simulator.pipeline.walk import Walk
from simulator.results.layout import PICTURES
from simulator.tasks.task import Task


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
        found, task, flips = painter(), self.task, finished.summary["worst_flips"]
        if found is None or not flips:
            return
        finished.session.show.say("drawing the worst flips")

        def both(flip_seen: FlipSeen | None) -> tuple[bytes, bytes] | None:
            if flip_seen is None:
                return None
            panels = task.view().panels(
                task, flip_seen.images, flip_seen.before, flip_seen.after, flip_seen.truth
            )
            return found.png(panels), found.jpeg(panels)

        with ThreadPoolExecutor(finished.session.workers) as pool:
            drawn = list(pool.map(both, [finished.seen.get(flip["sample"]) for flip in flips]))
        for number, (flip, content) in enumerate(zip(flips, drawn, strict=True), start=1):
            if content is not None:
                stem = flip["sample"].rpartition("/")[2].rpartition(".")[0]
                names = {"picture": f"{stem}.png", "preview": f"{stem}.jpg"}
                flip |= {key: f"{PICTURES}/{number:02}-{name}" for key, name in names.items()}
                for key, data in zip(names, content, strict=True):
                    finished.run.write_file(flip[key], data)


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
