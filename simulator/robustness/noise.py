"""System noise of a suite: other decoders and resizers on clean samples, for every stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.analysis import robustness as analysis
from simulator.errors import ProfileError, UserError, one_line
from simulator.experiments.common import pair_for, stacks_of
from simulator.experiments.search.space import Pick, applying
from simulator.experiments.session import Session, Variant
from simulator.pipeline.stack import Pair, ResolvedProfile, Stack
from simulator.profile import axes
from simulator.profile.suite import Suite
from simulator.results.robustness import StackNoise
from simulator.results.robustness import SystemNoise as SystemNoiseSummary
from simulator.robustness.comparisons import figured
from simulator.robustness.figures import Measured
from simulator.robustness.nc import blanked
from simulator.robustness.records import CLEAN
from simulator.statistics.bootstrap import RATE


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one stack.

    Attributes:
        stacks: by option, each with the name of its arm in records.
        same: the options that are the stack itself.
        left_out: the options that cannot be run, and why.
    """

    stacks: Mapping[str, Stack]
    same: list[str]
    left_out: dict[str, str]


class SystemNoise:
    """The options of a suite on every stack of a run.

    Args:
        suite: of ``sweep``; its training stack and its ``combined`` are not used.
        profiles: by the names of the stacks.
        overrides: ``STACK.KEY=VALUE`` of the stacks.
    """

    def __init__(self, suite: Suite, profiles: Mapping[str, str], overrides: Sequence[str]) -> None:
        self.suite = suite
        self.chosen: dict[str, dict[Pick, ResolvedProfile]] = {side: {} for side in profiles}
        self._refused: dict[str, dict[str, str]] = {side: {} for side in profiles}
        for column, option, changes in suite.options():
            for side, reference in profiles.items():
                own = [override for override in overrides if override.startswith(f"{side}.")]
                more = [f"{side}.{change}" for change in changes]
                try:
                    found = stacks_of({side: reference}, [*own, *more])[side]
                except ProfileError as error:
                    self._refused[side][name_of((column, option))] = one_line(error)
                else:
                    self.chosen[side][column, option] = found

    def every(self) -> list[ResolvedProfile]:
        """Return all option stacks."""
        return [chosen for by in self.chosen.values() for chosen in by.values()]

    def fitted(self, session: Session, sides: Mapping[str, ResolvedProfile]) -> dict[str, Options]:
        """Build the options of every stack.

        Those of one stack share its artifact, which is calibrated once, through the stack itself.

        Raises:
            UserError: no option of a stack applies to the model.
        """
        return {
            side: self._fitted(session, side, base, pair_for(sides, base))
            for side, base in sides.items()
        }

    def _fitted(self, session: Session, side: str, base: ResolvedProfile, pair: Pair) -> Options:
        by = self.chosen[side]

        def variant(pick: Pick) -> Variant:
            return Variant(arm(side, name_of(pick)), by[pick], pair)

        stacks, unfit = applying(session, base, by, variant) if by else ({}, {})
        left_out = self._refused[side] | {name_of(pick): why for pick, why in unfit.items()}
        if not stacks:
            why = "; ".join(dict.fromkeys(left_out.values()))
            raise UserError(f"{side}: no option of {self.suite.spec.name} can be run: {why}")
        same = [name_of(pick) for pick in stacks if not axes.differing(base, by[pick])]
        return Options({name_of(pick): stack for pick, stack in stacks.items()}, same, left_out)


def name_of(key: Pick) -> str:
    """Return the name of an option in results."""
    return ".".join(key)


def arm(side: str, option: str) -> str:
    """Return the name, in records, of a stack with an option."""
    return f"{side}/{option}"


def figures(
    suite: Suite, options: Mapping[str, Options], found: Measured, nc: Mapping[str, str]
) -> SystemNoiseSummary:
    """Return the ``system_noise`` of the summary.

    Args:
        suite: of the options.
        options: by stack.
        found: the metrics of the arms of all options, and of the stacks themselves.
        nc: stacks that did not converge; they have no figures.
    """
    stacks = {side: _stack(side, own, found) for side, own in options.items()}
    return SystemNoiseSummary(suite=suite.spec.name, stacks=blanked(stacks, nc))


def _stack(side: str, own: Options, found: Measured) -> StackNoise:
    metrics, number = found.metrics, found.resamples
    by = {name: metrics[arm(side, name), CLEAN] for name in own.stacks}
    mean = analysis.mean_over(by)
    deviation = analysis.sample_deviation(np.stack(list(by.values())))
    return StackNoise(
        SR={name: figured(one, number, RATE) for name, one in by.items()},
        mean_SR=figured(mean, number, RATE),
        SNI=figured(analysis.impact(metrics[side, CLEAN], mean), number, None),
        std=figured(deviation, number, None),
        same=own.same,
        left_out=own.left_out,
    )
