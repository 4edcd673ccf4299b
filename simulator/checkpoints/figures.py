"""Every figure of a comparison of models, from their resampled figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain
from typing import Literal

import numpy as np

from simulator.analysis.attribute import holm
from simulator.analysis.gate import Borne
from simulator.analysis.outcomes import evaluate
from simulator.checkpoints.failed import failures
from simulator.checkpoints.measured import Key, Measured
from simulator.checkpoints.words import verdict
from simulator.errors import UserError
from simulator.results.checkpoints import (
    Checkpoint,
    CheckpointColumn,
    Checkpoints,
    Comparison,
    Recipe,
    Share,
    Tested,
)
from simulator.statistics.bootstrap import (
    DIFFERENCE,
    INTERACTION,
    RATE,
    Bounds,
    Floats,
    effect,
    interval,
    mixed,
)

Figure = Literal["drop", "flip_rate"]
FIGURES: tuple[Figure, ...] = ("drop", "flip_rate")


def compared(
    models: Sequence[Measured],
    groups: Mapping[str, Sequence[Measured]],
    keys: Sequence[Key],
    samples: int,
    number: int,
    rule: Borne,
) -> Checkpoints:
    """Return every figure.

    Args:
        models: in the order of the call.
        groups: of them, by recipe; the first one is what others are compared with.
        keys: the options that all of them ran.
        samples: how many there are.
        number: of resamples.
        rule: how many samples a model may fail on.
    """
    named = {id(model): name for name, group in groups.items() for model in group}
    ungrouped = [model.sweep.summary.model for model in models if id(model) not in named]
    models = [model for model in models if id(model) in named]
    options: dict[str, list[str]] = {}
    for column, option in keys:
        options.setdefault(column, []).append(option)
    summary = models[0].sweep.summary
    every = dict.fromkeys(key for model in models for key in model.sweep.keys)
    failed = failures([model.sweep for model in models], keys)
    found = Checkpoints(
        verdict=[],
        suite=summary.suite,
        train=summary.train,
        task=summary.task,
        metric=summary.metric,
        samples=samples,
        **failed,
        gate=evaluate([rule], failed, shape=Checkpoints),
        sample_unit=summary.sample_unit,
        options=options,
        left_out=["/".join(key) for key in every if key not in keys],
        ungrouped=ungrouped,
        first=next(iter(groups)),
        checkpoints=[_checkpoint(named[id(model)], model, options, number) for model in models],
        recipes={name: _recipe(group, options, number) for name, group in groups.items()},
        comparisons=[
            row for figure in FIGURES for row in _comparisons(groups, options, figure, number)
        ],
        tested=[
            row
            for column, of in options.items()
            if len(of) > 1
            for row in tested(groups, column, of, number)
        ],
    )
    return found.model_copy(update={"verdict": verdict(found)})


def recipe(measured: Measured) -> str:
    """Return the recipe that a model's card names; without one, the model's own name."""
    section = measured.sweep.manifest.model.spec.get("checkpoint") or {}
    return str(section.get("recipe") or measured.sweep.summary.model)


def by_recipe(models: Sequence[Measured]) -> dict[str, list[Measured]]:
    """Return models by the recipe that their cards name, in the order of the call."""
    found: dict[str, list[Measured]] = {}
    for model in models:
        found.setdefault(recipe(model), []).append(model)
    return found


def grouped(
    models: Sequence[Measured], patterns: Mapping[str, Sequence[str]]
) -> dict[str, list[Measured]]:
    """Return models by the first group that their recipe fits; by recipe where none is named.

    Args:
        models: in the order of the call.
        patterns: of recipes, such as ``resnet-*``, by the name of a group.

    Raises:
        UserError: no recipe fits a group.
    """
    recipes = by_recipe(models)
    if not patterns:
        return recipes
    found: dict[str, list[Measured]] = {name: [] for name in patterns}
    for model in models:
        for name, several in patterns.items():
            if any(fnmatchcase(recipe(model), one) for one in several):
                found[name].append(model)
                break
    for name, group in found.items():
        if not group:
            fits = ",".join(patterns[name])
            raise UserError(f"--group {name}: no recipe fits {fits}; of {', '.join(recipes)}")
    return found


def mean(measured: Measured, column: str, options: Sequence[str], figure: Figure) -> Floats:
    """Return the mean of a figure over the options of a column, resampled."""
    values = measured.drops if figure == "drop" else measured.flips
    found: Floats = np.mean([values[column, option] for option in options], axis=0)
    return found


def _share(figure: Floats, number: int, bounds: Bounds = RATE) -> Share:
    return Share(value=float(figure[0]), ci95=list(interval(figure, number, bounds)))


def _checkpoint(
    name: str, measured: Measured, options: Mapping[str, Sequence[str]], number: int
) -> Checkpoint:
    summary = measured.sweep.summary
    section = measured.sweep.manifest.model.spec.get("checkpoint") or {}
    return Checkpoint(
        model=summary.model,
        recipe=name,
        seed=section.get("seed"),
        run=str(measured.sweep.folder),
        trained=_share(measured.trained, number),
        columns={column: _column([measured], column, of, number) for column, of in options.items()},
    )


def _recipe(group: Sequence[Measured], options: Mapping[str, Sequence[str]], number: int) -> Recipe:
    trained: Floats = np.mean([measured.trained for measured in group], axis=0)
    columns = {name: _column(group, name, of, number) for name, of in options.items()}
    return Recipe(checkpoints=len(group), trained=_share(trained, number), columns=columns)


def _column(
    group: Sequence[Measured], name: str, options: Sequence[str], number: int
) -> CheckpointColumn:
    """A column's figures, the mean over checkpoints."""
    drops = [mean(measured, name, options, "drop") for measured in group]
    flips: Floats = np.mean(
        [mean(measured, name, options, "flip_rate") for measured in group], axis=0
    )
    whole: Floats = np.mean(drops, axis=0)
    most = [
        max((float(measured.drops[name, option][0]), option) for option in options)
        for measured in group
    ]
    return CheckpointColumn(
        drop=_share(whole, number, DIFFERENCE),
        max_drop=float(np.mean([value for value, _ in most])),
        worst=max(most)[1],
        flip_rate=_share(flips, number),
        std=float(np.std([drop[0] for drop in drops], ddof=1)) if len(drops) > 1 else None,
    )


def _comparisons(
    groups: Mapping[str, Sequence[Measured]],
    options: Mapping[str, Sequence[str]],
    figure: Figure,
    number: int,
) -> Iterator[Comparison]:
    """Each further recipe against the first one, in each column; one family of tests."""
    first, *others = groups
    pairs = [(name, column) for name in others for column in options]
    means = {
        (name, column): [
            [mean(measured, column, options[column], figure) for measured in same]
            for same in by_recipe(groups[name]).values()
        ]
        for name in groups
        for column in options
    }
    here, anywhere = {}, {}
    for name, column in pairs:
        two, one = means[name, column], means[first, column]
        here[name, column] = effect(
            np.mean([*chain(*two)], axis=0) - np.mean([*chain(*one)], axis=0), number, INTERACTION
        )
        if (
            drawn := mixed(two, one, number)
        ) is not None:  # never surer than of these very checkpoints
            surest = here[name, column].p
            anywhere[name, column] = replace(drawn, p=max(drawn.p, surest))
    holm_here = holm({pair: found.p for pair, found in here.items()})
    holm_anywhere = holm({pair: found.p for pair, found in anywhere.items()})
    for pair in pairs:
        found, drawn = here[pair], anywhere.get(pair)
        yield Comparison(
            recipe=pair[0],
            column=pair[1],
            figure=figure,
            value=found.value,
            ci95=list(found.ci95),
            p=found.p,
            p_holm=holm_here[pair],
            any_ci95=list(drawn.ci95) if drawn else None,
            any_p=drawn.p if drawn else None,
            any_p_holm=max(holm_anywhere[pair], holm_here[pair]) if drawn else None,
        )


def tested(
    groups: Mapping[str, Sequence[Measured]], column: str, options: Sequence[str], number: int
) -> Iterator[Tested]:
    """Yield each recipe on each option, and what it has more of mean and std than the first one."""
    first: tuple[Floats, Floats] | None = None
    for name, group in groups.items():
        values = np.array(
            [[one.trained - one.drops[column, option] for option in options] for one in group]
        )
        mean, spread = values.mean((0, 1)), values.std(1, ddof=1).mean(0)
        spread[1 + number :] = np.nan  # it is no mean over samples
        less_mean = less_std = None
        if first is None:
            first = mean, spread
        else:
            less_mean = _share(mean - first[0], number, DIFFERENCE)
            less_std = _share(spread - first[1], number, DIFFERENCE)
        yield Tested(
            recipe=name,
            column=column,
            options=dict(zip(options, map(float, values[..., 0].mean(0)), strict=True)),
            mean=float(mean[0]),
            std=float(spread[0]),
            less_mean=less_mean,
            less_std=less_std,
        )
