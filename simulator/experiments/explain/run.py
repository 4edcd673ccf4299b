"""Explain a pair: run every mixture of its two stacks, and say what each axis costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import eq
from typing import Any

import numpy as np
import pyarrow as pa

from simulator.analysis import attribute
from simulator.analysis.attribute import Game, Subset
from simulator.command.experiment import Experiment
from simulator.errors import MissingLibrary, ModelError, ProfileError, UserError, one_line
from simulator.experiments.alone import groupings
from simulator.experiments.answers import Answers
from simulator.experiments.common import manifest, named, pair_of, refuse_missing, unasked_notices
from simulator.experiments.explain.experiment import ExplainOptions
from simulator.experiments.guessing import doubt
from simulator.experiments.job import Job, Result
from simulator.experiments.search.evaluate import Evaluation, arms_of
from simulator.experiments.search.policy import Policy
from simulator.experiments.session import Session, Variant
from simulator.experiments.summary import SIDES
from simulator.notices import Kind, Notice, merged
from simulator.pipeline.stack import Pair, ResolvedProfile, Stack
from simulator.profile import axes
from simulator.profile.axes import swap
from simulator.report.verdict import concluded
from simulator.results.json_text import finite
from simulator.results.suites import Blame, ExplainSummary
from simulator.statistics.bootstrap import (
    DIFFERENCE,
    INTERACTION,
    RATE,
    ROUNDING,
    Bounds,
    Floats,
    Resamples,
    effect,
)
from simulator.tasks.score import each

BLAME = "blame.parquet"
Told = Callable[[Floats, Bounds], dict[str, Any]]


def explain(experiment: Experiment[Any], asked: ExplainOptions) -> Result[ExplainSummary]:
    """Say what each axis of a pair costs: alone, repaired, in order, and as a Shapley value.

    Examples:
        >>> box = ["deploy.resize=pil-box"]
        >>> result = explain("pillow_fp32", "nv12_fp32", overrides=box, limit=4)
        >>> result.summary.axes
        ['color', 'resize']
        >>> list(result.summary.blame["flip_rate"].shapley)
        ['color', 'resize']
    """
    job = Job(experiment, asked)
    pair = pair_of(asked.train, asked.deploy, asked.changes, asked.pixels)
    refuse_missing(pair.values())
    separate = _differing(pair)
    folder = job.folder("explain", pair)
    job.refuse_taken(folder)
    with job.session() as session:
        session.notes.extend(unasked_notices(pair))
        names, stacks = _stacks(session, pair, separate)
        labels = [stack.side for stack in stacks]
        done = Evaluation(
            session, arms_of(session, stacks), Policy(dict.fromkeys(labels[1:], labels[0]))
        )
        start = manifest(stacks, session, asked.changes) | {"request": job.request()}
        with job.writer(folder, start, session) as run:
            done.run(run)
            session.show.say("attribution")
            found = done.shared
            blame = _blamed(names, found, session.seed)
            notices = [*session.notes, *doubt(session, done.reference)]
            sides = [s for s in stacks if s.side in SIDES]
            run.write_table(BLAME, _blame_table(names, found))
            summary = ExplainSummary(
                model=session.card.spec.name,
                task=found.task.name,
                metric=found.task.headline,
                unit=session.card.unit,
                train=named(pair["train"]),
                deploy=named(pair["deploy"]),
                samples=len(found.items),
                sample_unit=session.card.modality.unit,
                **done.failures(),
                axes=names,
                null=[name for name in names if _same(found, name, names)],
                blame=blame,
                stacks=len(stacks),
                unique_steps=len(done.plan.nodes),
                warnings=[
                    *merged(notice for s in sides for notice in s.labelled_notices),
                    *notices,
                ],
                seconds=job.seconds(),
                under=session.condition,
            )
            summary = concluded(summary)
            took = {"seconds": summary.seconds, "workers": session.workers}
            run.finish(summary, took | session.ran())
    return Result(summary, folder)


def _differing(pair: Pair) -> list[str]:
    axes.refuse_recorded(*(profile for profile, _ in pair.values()))
    separate = axes.differing(pair["train"], pair["deploy"])
    if not separate:
        raise UserError("the two profiles describe the same stack; there is nothing to explain")
    return separate


def _stacks(session: Session, pair: Pair, separate: list[str]) -> tuple[list[str], list[Stack]]:
    """Build every mixture; where one cannot run, axes are swapped together, as few as will do."""
    first: UserError | None = None
    for groups in groupings(separate):
        names = ["+".join(group) for group in groups]
        try:
            mixtures = _swapped(pair, groups)
            refuse_missing(mixtures.values())
            variants = [Variant(_label(s, names), chosen, pair) for s, chosen in mixtures.items()]
            stacks = session.stacks(variants)
        except (ProfileError, ModelError, MissingLibrary) as error:
            first = first or error
            continue
        if first:
            joined = " and ".join(name for name in names if "+" in name)
            why = f"{joined} are swapped together; apart, a mixture does not run: {one_line(first)}"
            session.notes.append(Notice(Kind.FINDING, why))
        return names, stacks
    assert first is not None
    raise first


def _swapped(pair: Pair, groups: Sequence[Sequence[str]]) -> dict[Subset, ResolvedProfile]:
    named = {"+".join(group): group for group in groups}
    mixtures: dict[Subset, ResolvedProfile] = {}
    for chosen in attribute.subsets(list(named)):
        members = [axis for name in named if name in chosen for axis in named[name]]
        if not members:
            mixtures[chosen] = pair["train"]
        elif len(chosen) == len(named):
            mixtures[chosen] = pair["deploy"]
        else:
            mixtures[chosen] = swap(pair["train"][0], pair["deploy"][0], members)
    return mixtures


def _label(chosen: Subset, names: Sequence[str]) -> str:
    if not chosen:
        return "train"
    if len(chosen) == len(names):
        return "deploy"
    return "train with " + " ".join(name for name in names if name in chosen)


def _blamed(names: Sequence[str], found: Answers, seed: int) -> dict[str, Blame]:
    """Split the change of the flip rate and of the metric among the axes."""
    task = found.task
    draws = Resamples(len(found.items), seed, task.resamples)

    games = found.games(lambda chosen: _label(chosen, names), draws)
    if np.isnan(games["flip_rate"](frozenset())[0]):
        del games["flip_rate"]
    judged = {"flip_rate": len(found.items), task.headline: found.score("train").labelled}

    def told(metric: str) -> Told:
        return lambda figure, bounds: effect(figure, draws.number, bounds, judged[metric]).told()

    # The training stack changes no answer of its own, so what is measured from it is a rate.
    whole = {"flip_rate": RATE, task.headline: DIFFERENCE}
    return {
        metric: _blame(names, game, seed, told(metric), whole[metric])
        for metric, game in games.items()
    }


def _same(found: Answers, name: str, names: Sequence[str]) -> bool:
    """Whether an axis alone changes no bit of any output and no prediction."""
    alone = _label(frozenset({name}), names)
    train = found.digests[found.row("train")]
    same = (found.digests[found.row(alone)] == train).all()
    return bool(same) and all(map(eq, found.of(alone), found.of("train")))


def _blame(names: Sequence[str], game: Game, seed: int, told: Told, whole: Bounds) -> Blame:
    """The figures of one metric, each as it is *told*; *whole* bounds what is lost from train."""
    shares = attribute.shapley(names, game, seed=seed)
    pairs = attribute.interactions(names, game)
    total = game(frozenset(names)) - game(frozenset())
    residual = float(np.nanmax(abs(shares.values.sum(axis=0) - total)))
    if residual > 1e-9:
        raise AssertionError(f"Shapley values miss the total by {residual}")
    blocks = {
        "swap_in": attribute.swap_in(names, game),
        "swap_out": attribute.swap_out(names, game),
        "waterfall": attribute.waterfall(names, game),
        "shapley": shares.values,
    }
    result: dict[str, Any] = {"total": told(total, whole)}
    for block, rows in blocks.items():
        bounds = whole if block == "swap_in" else DIFFERENCE
        result[block] = {name: told(row, bounds) for name, row in zip(names, rows, strict=True)}
    adjusted = attribute.holm({name: result["shapley"][name]["p"] for name in names})
    for name in names:
        result["shapley"][name]["p_holm"] = adjusted[name]
    found = {pair: told(figure, INTERACTION) for pair, figure in pairs.items()}
    claims = attribute.holm({" x ".join(pair): effect["p"] for pair, effect in found.items()})
    result["interactions"] = [
        {"axes": list(pair), **effect, "p_holm": claims[" x ".join(pair)]}
        for pair, effect in found.items()
    ]
    result["family"] = len(names)
    result["sampling_error"] = shares.error
    result["residual"] = residual if residual > ROUNDING else 0.0
    return Blame.model_validate(finite(result))


def _blame_table(names: Sequence[str], found: Answers) -> pa.Table:
    flipped = np.flatnonzero(found.changed("deploy"))
    alone = {name: found.changed(_label(frozenset({name}), names)) for name in names}
    deploy = {name: list(each(found.of("deploy"), name)) for name in ("changed", "units")}
    return pa.table(
        {
            "sample": [found.items[i].name for i in flipped],
            **{
                name: pa.array([values[i] for i in flipped], pa.int64())
                for name, values in deploy.items()
            },
            "alone": pa.array(
                [[name for name in names if alone[name][i]] for i in flipped], pa.list_(pa.string())
            ),
        }
    )
