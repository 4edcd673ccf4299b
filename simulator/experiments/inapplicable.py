"""Finds the options of a suite that do not apply to a model."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.errors import ModelError, UserError
from simulator.experiments.common import COMBINED
from simulator.experiments.session import Session
from simulator.model.artifact import graph_difference, start
from simulator.pipeline.inference import settings_of
from simulator.pipeline.stack import ResolvedProfile
from simulator.profile import axes
from simulator.profile.modality import graph_axes


def inapplicable(
    session: Session, base: ResolvedProfile, options: Mapping[tuple[str, str], ResolvedProfile]
) -> dict[tuple[str, str], str]:
    """Return the options that change nothing in this model or cannot be run with it, and why.

    Args:
        session: the model.
        base: the training stack.
        options: the stacks, by column and option.

    Raises:
        UserError: no option is left.
    """
    found = {}
    for key, chosen in options.items():
        try:
            start(session.card, session.source, *chosen)
            why = _without_effect(session, base, chosen)
        except ModelError as error:
            found[key] = str(error)
        else:
            if why and key[0] != COMBINED:
                found[key] = why
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
