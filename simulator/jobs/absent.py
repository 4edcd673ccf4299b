"""Options of a suite that a model has no use for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.errors import ModelError, UserError
from simulator.model.artifact import graph_difference, start
from simulator.profile import axes
from simulator.stack import Chosen
from simulator.study import Study

TRAIN, COMBINED = "train", "combined"


def absent_options(
    study: Study, base: Chosen, options: Mapping[tuple[str, str], Chosen]
) -> dict[tuple[str, str], str]:
    """Return the options that change nothing in this model, or cannot be run with it, and why.

    Args:
        study: the model.
        base: the training stack.
        options: by column and option.

    Raises:
        UserError: none is left.
    """
    absent = {}
    for key, own in options.items():
        differing = axes.differing(base, own)
        try:
            start(study.card, study.source, *own)
            why = _without_effect(study, differing, base, own)
            if key[0] != COMBINED and why:
                absent[key] = why
        except ModelError as error:
            absent[key] = str(error)
    if len(absent) == len(options):
        why = "; ".join(dict.fromkeys(absent.values()))
        raise UserError(f"{study.card.spec.name}: no option of this suite changes it: {why}")
    return absent


def _without_effect(
    study: Study, differing: Sequence[str], base: Chosen, own: Chosen
) -> str | None:
    """Why an option changes nothing in this model, where only the model can tell; else None."""
    if not differing or not set(differing) <= {*axes.GRAPH_AXES, *axes.POST_AXES}:
        return None
    post = [chosen[0].spec.postprocess for chosen in (base, own)]
    settings = [study.card.task.settings(asked).identity() for asked in post]
    found = [_effect_on(study, axis, base, own) for axis in differing if axis in axes.GRAPH_AXES]
    if settings[0] != settings[1] or any(changed for changed, _ in found):
        return None
    if set(differing) & set(axes.POST_AXES):
        found.append((0, f"no part of this model's {study.card.task.name}"))
    return "; ".join(words for _, words in found)


def _effect_on(study: Study, axis: str, base: Chosen, own: Chosen) -> tuple[int, str]:
    """How many nodes a graph axis changes in this model, and in words; none where it cannot be."""
    graphs = (chosen[0].spec.graph for chosen in (base, own))
    try:
        return graph_difference(study.card, study.source, axis, *graphs)
    except ModelError as error:
        return 0, str(error)
