"""Images as stacks decode them, and the installed libraries that draw and write pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from simulator import registry
from simulator.contract import U8, ImageWriter, Painter, Stage
from simulator.contract.raw import DEVELOP
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.experiments.session import Session
from simulator.modalities.image.orientation import UPRIGHT, stored
from simulator.modalities.image.sections import image_spec
from simulator.modalities.image.steps import Decode
from simulator.pipeline import recorded
from simulator.pipeline.extra import with_extras
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import Stack
from simulator.profile.implementations import Choice, extra_stages, implementation


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
    applied = turns(stack)

    def one(item: Item) -> U8:
        context = executor.context(item)
        (frame,) = opened.walk(context).answers()
        return stored(frame.rgb, context.source.orientation if applied else UPRIGHT)

    return map(one, items)


def decoding(stack: Stack) -> Chain | None:
    """Return a stack's chain from the file to RGB; None where the stack was recorded.

    A raw plane is developed. Where it is code, the files are decoded by the reference decoder.
    """
    if recorded.recordings(stack.profile, stack.choices):
        return None
    decoder = _decoder(stack)
    file = Chain((Decode(decoder, planes=False, video=stack.choices.get(Stage.VIDEO)),))
    if decoder.offer.make.gives_raw:
        extras = extra_stages(stack.profile, stack.choices)
        file = with_extras(file, [one for one in extras if one[0] is DEVELOP])
    return Chain(file.recipes, stack.chain.network)


def turns(stack: Stack) -> bool:
    """Whether a stack's decoder applies the EXIF orientation."""
    return _decoder(stack).options.get("exif") == "apply"


def _decoder(stack: Stack) -> Choice:
    if Stage.DECODE in stack.choices:
        return stack.choices[Stage.DECODE]
    exif = image_spec(stack.profile).decode.exif or "ignore"
    return implementation(Stage.DECODE, registry.reference(Stage.DECODE), {"exif": exif})
