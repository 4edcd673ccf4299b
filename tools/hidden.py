"""Hidden stacks: drawn from a space and recorded, to see whether a search names them.

The recorder runs a stack's own chain, cuts it itself and writes with the board's capture script, so
that it shares no code with the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simulator.contract import Frame
from simulator.contract.recipe import Boundary, Chain, generator
from simulator.data.capture import FILES, Capture
from simulator.errors import UserError
from simulator.experiments.session import Session
from simulator.identify.space import After, Kind, Space
from simulator.model.card import Card
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import ResolvedProfile
from simulator.pipeline.walk import StageError

FEWEST = 2
"""Images that a stack must be able to handle; one that handles fewer is drawn again."""


def draws(space: Space, card: Card, seed: int) -> Iterator[dict[str, str]]:
    """Yield random stacks of a space without end; the same for the same seed.

    Every option of an axis is equally likely, among the stacks that are possible for a model.
    """
    drawn = generator("hidden stack", seed)
    while True:
        picks = {axis: str(drawn.choice(sorted(options))) for axis, options in space.axes.items()}
        if space.fits(picks, card):
            yield picks


def record(
    session: Session, chosen: ResolvedProfile, kind: Kind, folder: Path, after: After | None = None
) -> Path | None:
    """Run a stack on a session's samples and record it as a board would.

    Args:
        session: the model and the samples; those that the stack cannot handle are left out.
        chosen: the stack.
        kind: of the recording.
        folder: for its files.
        after: the stage, for frames.

    Returns:
        The manifest; None where the stack cannot run the model, or handles too few samples.
    """
    try:
        chain = _chain(session, chosen, kind, after)
    except UserError:
        return None
    opened = session.executor.open(plan({Arm("board"): chain}))
    digest = session.source.digest
    count = 0
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    with Capture("board", kind, "hidden", digest, after=after, folder=str(folder)) as capture:
        for item in session.dataset.items:
            last: list[Any] = [None]

            def keep(_: Any, value: Any, last: list[Any] = last) -> None:
                last[0] = value

            try:
                opened.walk(session.executor.context(item), keep)
            except StageError:
                continue
            capture.add(item.name, _value(last[0], kind))
            count += 1
    return folder / "recording.yaml" if count >= FEWEST else None


def _chain(session: Session, chosen: ResolvedProfile, kind: Kind, after: After | None) -> Chain:
    """The steps up to what is recorded."""
    if kind in ("outputs", "predictions"):
        stack = session.builder.stack("board", chosen, {"train": chosen, "deploy": chosen})
        return stack.chain.until(Boundary.OUTPUTS) if kind == "outputs" else stack.chain
    recipes = session.builder.front_end(*chosen).recipes
    if kind == "tensors":
        return Chain(recipes)
    if after == "decode":
        return Chain(recipes[:1])
    stages = [recipe.stage for recipe in recipes]
    fit = len(stages) - 1 - stages[::-1].index("geometry")
    return Chain(recipes[: fit + 1] if after == "geometry" else recipes[:fit])


def _value(value: Any, kind: Kind) -> Any:
    if kind == "outputs":
        found = value.outputs
        return dict(found) if len(found) > 1 else next(iter(found.values()))
    if kind == "predictions":
        answer = value.prediction
        return answer.prediction, answer.score, answer.margin
    if not isinstance(value, Frame):
        return value
    if value.format == "rgb":
        return value.planes[0]
    return dict(zip("yuv", (value.planes[0], *value.chroma), strict=True))
