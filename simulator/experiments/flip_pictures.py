"""Pictures of the worst flips, for tasks whose predictions can be drawn.

What is needed is kept while a sample is processed: both predictions, and the image as each stack
decoded it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from simulator import registry
from simulator.contract import U8, Frame, ImageWriter, Painter, Stage
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.errors import SampleError
from simulator.experiments.session import Session
from simulator.modalities.image.orientation import UPRIGHT, stored
from simulator.modalities.image.steps import Decode
from simulator.pipeline import recorded
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.results.layout import PICTURES
from simulator.results.store import RunWriter
from simulator.tasks.task import Task

RECORDED = (Stage.DECODE, Stage.RUNTIME)


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
class FlipPictures:
    """The chains that the pictures of a pair need besides its arms.

    Attributes:
        chains: from the file to RGB, of the first and the last stack that were not recorded.
        applied: for each chain, whether its decoder applies the EXIF orientation.
        arms: indices of train and deploy.
        prefix: of the chains' names in the plan.
    """

    chains: tuple[Chain, ...]
    applied: tuple[bool, ...]
    arms: tuple[int, int]
    prefix: str

    def asides(self) -> dict[str, Chain]:
        """Return the chains by their names in the plan."""
        return {f"{self.prefix}flip {at}": chain for at, chain in enumerate(self.chains)}

    def see(self, task: Task, walk: Walk) -> FlipSeen | None:
        """Return the data for a picture of this sample; None where it cannot be decoded."""
        answers = walk.answers()
        try:
            images = [self._stored(walk, at) for at in range(len(self.chains))]
            source = walk.context.source
            truth = task.opened(walk.context.truth, source)
        except SampleError:
            return None
        before, after = (answers[arm].prediction for arm in self.arms)
        return FlipSeen((images[0], images[-1]), before, after, truth)

    def _stored(self, walk: Walk, at: int) -> U8:
        """The pixels in the orientation of the file, which predictions refer to."""
        frame: Frame = walk.aside(f"{self.prefix}flip {at}")
        turned = walk.context.source.orientation if self.applied[at] else UPRIGHT
        return stored(frame.rgb, turned)


def flip_pictures(
    session: Session, stacks: Sequence[Stack], arms: tuple[int, int], prefix: str
) -> FlipPictures | str | None:
    """Plan the pictures.

    Returns:
        The plan; None where the task draws no flips; or the reason why they cannot be drawn.
    """
    if not session.card.task.view().drawn:
        return None
    drawn = [(stack, chain) for stack in stacks if (chain := decoding(stack))]
    if painter() is None or not drawn:
        return "no installed backend can draw" if drawn else "both stacks were recorded"
    ends = (drawn[0], drawn[-1])
    return FlipPictures(
        tuple(chain for _, chain in ends),
        tuple(stack.choices[Stage.DECODE].options.get("exif") == "apply" for stack, _ in ends),
        arms,
        prefix,
    )


def draw(
    session: Session,
    flips: Sequence[dict[str, Any]],
    seen: Mapping[str, FlipSeen],
    run: RunWriter,
) -> None:
    """Write each worst flip to the run: a ``picture``, and a ``preview`` for the page.

    Args:
        session: for its task.
        flips: the worst flips of a summary; changed in place.
        seen: the data for the pictures, by sample.
        run: the pictures are written to it.
    """
    found, task = painter(), session.card.task
    if found is None or not flips:
        return
    session.show.say("drawing the worst flips")

    def both(one: FlipSeen | None) -> tuple[bytes, bytes] | None:
        if one is None:
            return None
        panels = task.view().panels(task, one.images, one.before, one.after, one.truth)
        return found.png(panels), found.jpeg(panels)

    with ThreadPoolExecutor(session.workers) as pool:
        drawn = list(pool.map(both, [seen.get(flip["sample"]) for flip in flips]))
    for number, (flip, content) in enumerate(zip(flips, drawn, strict=True), start=1):
        if content is not None:
            stem = flip["sample"].rpartition("/")[2].rpartition(".")[0]
            names = {"picture": f"{stem}.png", "preview": f"{stem}.jpg"}
            flip |= {key: f"{PICTURES}/{number:02}-{name}" for key, name in names.items()}
            for key, data in zip(names, content, strict=True):
                run.write_file(flip[key], data)


def painter() -> Painter | None:
    """Return the drawing implementation of an installed backend; None if there is none."""
    found: Painter | None = _service(Stage.DRAW)
    return found


def _service(stage: str) -> Any:
    for backend in registry.serving(stage):
        if all(library.version for library in backend.libraries):
            return backend.of(stage)[0].make({})
    return None


def writer() -> ImageWriter | None:
    """Return the PNG writer of an installed backend; None if there is none."""
    found: ImageWriter | None = _service(Stage.WRITE)
    return found


def pictures(session: Session, stack: Stack, items: Iterable[Item]) -> Iterator[U8] | None:
    """Return images as a stack decodes them, one by one; None where the stack was recorded.

    They have the orientation of the file, which predictions refer to.
    """
    chain = decoding(stack)
    if chain is None:
        return None
    executor = session.executor
    opened = executor.open(plan({Arm(stack.side): chain}))
    applied = stack.choices[Stage.DECODE].options.get("exif") == "apply"

    def one(item: Item) -> U8:
        context = executor.context(item)
        (frame,) = opened.walk(context).answers()
        return stored(frame.rgb, context.source.orientation if applied else UPRIGHT)

    return map(one, items)


def decoding(stack: Stack) -> Chain | None:
    """Return a stack's chain from the file to RGB; None where the stack was recorded."""
    if any(recorded.recording(stack.profile, stack.choices, stage) for stage in RECORDED):
        return None
    return Chain((Decode(stack.choices[Stage.DECODE], planes=False),))
