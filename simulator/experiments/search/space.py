"""Spaces of stacks: options over one stack, and which of them fit a model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from simulator.errors import ModelError, ProfileError, UserError, one_line
from simulator.experiments.common import COMBINED, chosen
from simulator.experiments.session import Session, Variant
from simulator.model.artifact import start
from simulator.model.rewritten import graph_difference
from simulator.pipeline.inference import settings_of
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.profile import axes
from simulator.profile.modality import graph_axes
from simulator.profile.reference import read_reference
from simulator.profile.suite import Option, overrides

Pick = tuple[str, str]
"""An axis, which a suite calls a column, and one of its options."""
Picks = tuple[Pick, ...]
"""Of some axes one option each."""


@dataclass(frozen=True)
class Space:
    """Axes with options; a stack of the space has at most one option of each.

    Attributes:
        base: the stack that options change: a profile's path or name.
        axes: by name their options, each as dotted profile keys and values.
        changes: overrides of the base that every stack has, ``KEY=VALUE``.
    """

    base: str
    axes: Mapping[str, Mapping[str, Option]]
    changes: Sequence[str] = ()

    @property
    def picks(self) -> list[Pick]:
        """All options."""
        return [(axis, name) for axis, options in self.axes.items() for name in options]

    @property
    def size(self) -> int:
        """How many stacks there are, those that cannot run and the base included."""
        return math.prod(len(options) + 1 for options in self.axes.values())

    def stack(self, picks: Picks | Mapping[str, str]) -> ResolvedProfile:
        """Load one stack; its options are applied in the order of the axes.

        Args:
            picks: for some axes one option each; the others stay as in the base.

        Raises:
            ProfileError: with all problems of the profile.
        """
        taken = dict(picks)
        options = (some[taken[axis]] for axis, some in self.axes.items() if axis in taken)
        lines = [line for option in options for line in overrides(option)]
        return chosen(self.base, [*self.changes, *lines])

    def alone(self) -> tuple[dict[Pick, ResolvedProfile], dict[Pick, str]]:
        """Return the stack of every option alone, and why others have none.

        Raises:
            ProfileError: an option does not fit the base, where that is a profile as it is written.
        """
        found: dict[Pick, ResolvedProfile] = {}
        refused: dict[Pick, str] = {}
        lenient = bool(self.changes) or read_reference(self.base) is not None
        for pick in self.picks:
            try:
                found[pick] = self.stack((pick,))
            except ProfileError as error:
                if not lenient:
                    raise
                refused[pick] = one_line(error)
        return found, refused

    def combinations(self) -> Iterator[Picks]:
        """Yield the options of every stack; the base, which has none, comes first."""
        every = ([None, *((axis, name) for name in some)] for axis, some in self.axes.items())
        for picks in itertools.product(*every):
            yield tuple(pick for pick in picks if pick is not None)

    def without(self, left_out: Container[Pick]) -> Self:
        """Return the space without some options, and without the axes that had no others."""
        axes = {
            axis: {name: option for name, option in options.items() if (axis, name) not in left_out}
            for axis, options in self.axes.items()
        }
        return replace(self, axes={axis: some for axis, some in axes.items() if some})


def applying(
    session: Session,
    base: ResolvedProfile,
    options: Mapping[Pick, ResolvedProfile],
    variant: Callable[[Pick], Variant],
) -> tuple[dict[Pick, Stack], dict[Pick, str]]:
    """Build the options that change something in a model and can be run with it.

    Args:
        session: the model.
        base: what they are held against.
        options: their profiles.
        variant: returns one as the session builds it.

    Returns:
        Their stacks, and why the others are left out.

    Raises:
        UserError: no option is left.
    """
    left_out, stacks = inapplicable(session, base, options), {}
    session.show.say("preparing the stacks")
    for pick in options:
        try:
            if pick not in left_out:
                stacks[pick] = session.stack(variant(pick))
        except ModelError as error:
            left_out[pick] = one_line(error)
    return stacks, left_out


def inapplicable(
    session: Session, base: ResolvedProfile, options: Mapping[Pick, ResolvedProfile]
) -> dict[Pick, str]:
    """Return the options that change nothing in this model or cannot be run with it, and why.

    Args:
        session: the model.
        base: the training stack.
        options: the stacks, by column and option.

    Raises:
        UserError: no option is left.
    """
    found = {}
    for pick, option in options.items():
        try:
            start(session.card, session.source, *option)
            why = _without_effect(session, base, option)
        except ModelError as error:
            found[pick] = str(error)
        else:
            if why and pick[0] != COMBINED:
                found[pick] = why
    if len(found) == len(options):
        why = "; ".join(dict.fromkeys(found.values()))
        raise UserError(
            f"{session.card.spec.name}: no option of this suite applies to this model: {why}"
        )
    return found


def _without_effect(session: Session, base: ResolvedProfile, option: ResolvedProfile) -> str | None:
    """Why an option changes nothing in this model; None if it does, or may do.

    Only axes of the graph and of the postprocessing can be decided without running the model.

    Raises:
        ModelError: a graph axis does not fit the model.
    """
    differing = axes.differing(base, option)
    graphs = base[0].spec.graph, option[0].spec.graph
    changes = [
        graph_difference(session.card, session.source, axis, *graphs)
        for axis in differing
        if axis in graph_axes()
    ]
    settings = [settings_of(profile, session.card).identity() for profile, _ in (base, option)]
    others = set(differing) - {*graph_axes(), *axes.POST_AXES}
    if not differing or others or settings[0] != settings[1] or any(n for n, _ in changes):
        return None
    words = [words for _, words in changes]
    if set(differing) & set(axes.POST_AXES):
        words.append("changes nothing here: the model card has the same value or does not use it")
    return "; ".join(words)
