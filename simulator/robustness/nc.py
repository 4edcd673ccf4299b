"""NC: stacks whose network did not converge, which have no figures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from simulator.experiments.session import NC, Session
from simulator.profile.profile import Profile
from simulator.report.words import share, title
from simulator.results.robustness import Figure
from simulator.robustness.method import fine_tuned
from simulator.robustness.records import CLEAN, RunArm
from simulator.statistics.bootstrap import Floats
from simulator.typed import ResultModel

T = TypeVar("T", bound=ResultModel)


def not_converged(
    session: Session, metrics: Mapping[RunArm, Floats], stacks: Mapping[str, Profile]
) -> dict[str, str]:
    """Return the stacks that did not converge, and why it is said.

    It is all of them where the model card says so. Else it is those that simulate a bit-width, and
    whose clean metric is below what the task demands, see
    :meth:`simulator.tasks.task.Task.nc_below`. A stack that fails for another reason, as swapped
    channels, is a finding, and keeps its figures.
    """
    if not session.card.spec.converged:
        return dict.fromkeys(stacks, NC)
    task = session.card.task
    needed = task.nc_below(session.source.outputs)
    rounded = [side for side, profile in stacks.items() if simulates(profile)]
    clean = {side: float(metrics[side, CLEAN][0]) for side in rounded}
    return {
        side: f"clean {title(task.name, task.headline)} of {share(value, 1)} is below "
        f"{share(needed, 1)}, ten points above chance"
        for side, value in clean.items()
        if needed is not None and value < needed
    }


def simulates(profile: Profile) -> bool:
    """Whether a profile's network computes with a bit-width that is simulated."""
    if fine_tuned(profile):
        return True
    quantizer = getattr(getattr(profile.spec, "precision", None), "quantizer", None)
    return quantizer is not None and quantizer.bits is not None


def without_figures(part: Any) -> Any:
    """Return a part of a summary with None in the place of every figure."""
    if isinstance(part, Figure):
        return None
    if isinstance(part, ResultModel):
        names = type(part).model_fields
        return part.model_copy(
            update={name: without_figures(getattr(part, name)) for name in names}
        )
    if isinstance(part, Mapping):
        return {name: without_figures(one) for name, one in part.items()}
    return part


def blanked(stacks: Mapping[str, T], nc: Collection[str]) -> dict[str, T]:
    """Return the parts of stacks, those that did not converge without figures."""
    return {side: without_figures(stack) if side in nc else stack for side, stack in stacks.items()}
