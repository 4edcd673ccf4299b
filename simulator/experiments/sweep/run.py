"""Sweep a suite: every option of every axis against the training stack, for any models."""

from __future__ import annotations

import math
import statistics as st
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.analysis.gate import Rule
from simulator.command.experiment import Experiment
from simulator.command.options import Progress
from simulator.errors import ModelError, ProfileError, UserError, one_line
from simulator.experiments.answers import Answers
from simulator.experiments.common import (
    COMBINED,
    TRAIN,
    chosen,
    manifest,
    refuse_missing,
    stacks_of,
)
from simulator.experiments.guessing import doubt
from simulator.experiments.inapplicable import inapplicable
from simulator.experiments.job import Job, Result, safe_name
from simulator.experiments.race import QUESTIONS, Race, race, rules_of
from simulator.experiments.racing import ended, lanes_of, run_race
from simulator.experiments.record_store import RecordStore
from simulator.experiments.running import run_and_keep
from simulator.experiments.session import Session, Variant
from simulator.experiments.several import checked
from simulator.experiments.sweep.experiment import SweepOptions
from simulator.notices import merged
from simulator.pipeline.stack import Pair, ResolvedProfile, Stack
from simulator.profile import axes
from simulator.profile.suite import Suite, load_suite
from simulator.profile.suite import overrides as flattened
from simulator.report.command import Asked
from simulator.report.verdict import concluded
from simulator.results.manifest import Request
from simulator.results.shared import Profile
from simulator.results.suites import Column, OptionFigures, SweepSummary, Systematic
from simulator.spent import Work, spending
from simulator.statistics.bootstrap import Resamples

Key = tuple[str, str]
"""Column and option of a suite."""


def sweep(experiment: Experiment[Any], asked: SweepOptions) -> list[Result[SweepSummary]]:
    """Run a suite for one or more models, each in one pass over the images.

    Examples:
        >>> (result,) = sweep("robustmq-s", limit=2)
        >>> list(result.summary.columns)
        ['resize', 'decode']
    """
    rules = _rules(asked)
    loaded = load_suite(asked.suite)
    against = asked.train or loaded.spec.train
    base = stacks_of({TRAIN: against}, asked.overrides)[TRAIN]
    axes.refuse_recorded(base[0])
    tried, refused = _tried(loaded, against, asked.overrides)
    refuse_missing([base, *tried.values()])
    results: list[Result[SweepSummary]] = []
    show, sides = asked.progress or Progress(), {"train": base, "deploy": base}
    models = asked.models or [None]
    checked(experiment, asked, models, sides)
    for number, model in enumerate(models, 1):
        show.stage(number, len(models), Path(model).stem if model else "built-in model")
        job = Job(experiment, asked, model)
        with job.session() as session:
            name = session.card.spec.name
            folder = job.folder(f"{loaded.spec.name}-{name}", sides, below=safe_name(name))
            job.refuse_taken(folder)
            session.require_truth()
            request = job.request(suite=str(loaded.path.resolve()))
            measured = session.shuffled() if asked.until_decided else session
            one = _Sweep(job, measured, loaded, base, tried, refused, request, rules)
            results.append(one.run(folder))
    return results


def _rules(asked: SweepOptions) -> list[Rule]:
    """The rules of each option; refused before anything is loaded where nobody asks for them."""
    if asked.fail_on and asked.until_decided is None:
        raise UserError(
            "--fail-on judges each option of a sweep with --until-decided; or judge the finished "
            "run: simulate gate RUN --fail-on RULE"
        )
    return rules_of(asked.fail_on, asked.until_decided, asked.allow_failed)


def _tried(
    suite: Suite, against: str, overrides: Sequence[str]
) -> tuple[dict[Key, ResolvedProfile], dict[Key, str]]:
    """Return the stack of every option, and why others cannot be run with the overrides."""
    options = {(column, name): changes for column, name, changes in suite.options()}
    if suite.spec.combined:
        options[COMBINED, COMBINED] = flattened(suite.spec.combined)
    own = [one.partition(".")[2] for one in overrides]
    tried, refused = {}, {}
    for key, changes in options.items():
        try:
            tried[key] = chosen(against, [*own, *changes])
        except ProfileError as error:
            if not own:
                raise
            refused[key] = one_line(error)
    if not tried:
        raise UserError(f"no option of {suite.spec.name} can be run with --set: "
                        f"{next(iter(refused.values()))}")  # fmt: skip
    return tried, refused


@dataclass(frozen=True, slots=True)
class _Sweep:
    """One model's part of a sweep."""

    job: Job
    session: Session
    suite: Suite
    base: ResolvedProfile
    options: Mapping[Key, ResolvedProfile]
    refused: Mapping[Key, str]
    request: Request
    rules: Sequence[Rule]

    @property
    def question(self) -> str | None:
        """By which options are dropped early."""
        question: str | None = self.job.asked.until_decided
        return question

    def run(self, folder: Path) -> Result[SweepSummary]:
        left_out = inapplicable(self.session, self.base, self.options) | dict(self.refused)
        self.session.show.say("preparing the stacks")
        stacks = [self.session.stack(Variant(TRAIN, self.base, self._pair(self.base)))]
        kept: list[Key] = []
        for key, option in self.options.items():
            if key == (COMBINED, COMBINED) and self.question in QUESTIONS[1:]:
                left_out[key] = "a combination of options; the question is of one"
            if key in left_out:
                continue
            try:
                variant = Variant("/".join(key), option, self._pair(option))
                stacks.append(self.session.stack(variant))
            except ModelError as error:
                left_out[key] = str(error)
            else:
                kept.append(key)
        show = self.session.show
        one_race = self._race(stacks[1:])
        whole = self.session.plan(stacks)
        start = manifest(stacks, self.session, []) | {"request": self.request}
        with self.job.writer(folder, start, self.session) as run:
            lanes = lanes_of(self.session, stacks)
            done = (
                run_race(self.session, run, lanes, one_race)
                if one_race
                else run_and_keep(self.session, whole, run, timed=False)
            )
            show.say("computing the figures")
            card = self.session.card.spec.name
            notices = [
                *merged(notice for stack in stacks for notice in stack.labelled_notices),
                *self.session.notes,
            ]
            with spending(Work.STATISTICS):
                names = [stack.side for stack in stacks]
                if one_race:
                    found = done.answers(TRAIN)
                    figures = raced_table(done, kept, self.session.seed)
                    figures |= done.failures(names, TRAIN)
                else:
                    found = done.answers(*names)
                    figures = table(found, kept, self.session.seed)
                notices += doubt(self.session, found.score(TRAIN))
            figures |= {"unit": self.session.card.unit}
            samples = len(self.session.dataset.items)
            told = ended(one_race, samples, self.job.asked.undecided, notices) if one_race else {}
            summary = SweepSummary(
                **figures,
                suite=self.suite.spec.name,
                model=card,
                train=Profile(profile=self.base[0].name),
                order=list(dict.fromkeys(column for column, _ in (*self.options, *self.refused))),
                left_out={"/".join(key): why for key, why in left_out.items()},
                warnings=[*notices, *told.pop("warnings", [])],
                unique_steps=len(whole.nodes),
                seconds=self.job.seconds(),
                under=self.session.condition,
                sample_unit=self.session.card.modality.unit,
                **told,
            )
            summary = concluded(summary, Asked(self.request["arguments"], folder))
            took = {"seconds": summary.seconds, "workers": self.session.workers}
            run.finish(summary, took | self.session.ran())
        return Result(summary, folder)

    def _race(self, options: Sequence[Stack]) -> Race | None:
        if self.question is None:
            return None
        names = [stack.side for stack in options]
        if not names:
            raise UserError(f"no option of {self.suite.spec.name} applies to this model")
        return race(self.question, names, self.rules, self.session.card.task)

    def _pair(self, option: ResolvedProfile) -> Pair:
        return {"train": self.base, "deploy": option}


def raced_table(done: RecordStore, keys: Sequence[Key], seed: int = 0) -> dict[str, Any]:
    """Compute the figures of a sweep that dropped options; see :func:`table`.

    Each option is held against the training stack on the samples that it was run on; what follows
    from several options, which would be of different samples, is left out.
    """
    of = {name: done.answers(TRAIN, name) for name in map("/".join, keys)}
    found = table(done.answers(TRAIN), keys, seed, of)
    return found | {"systematic": Systematic(mean_SR=None, SNI=None, std=None, ACC_of=TRAIN)}


def table(
    found: Answers, keys: Sequence[Key], seed: int = 0, of: Mapping[str, Answers] | None = None
) -> dict[str, Any]:
    """Compute every figure of a sweep.

    Args:
        found: the records; the first stack is the training stack.
        keys: (column, option) of the other stacks, in order.
        seed: of the bootstrap, where the task needs one.
        of: records of each option and of the training stack on the same samples, where options
            have samples of their own; None: all are in *found*.

    Returns:
        ``metric``, the task's headline, and under its name the training stack's value; per
        column its options with that metric, ``drop`` (trained minus option, as SysNoise's Δ), its
        interval, and flips; ``mean_drop`` and ``max_drop`` of a column; and RobustMQ's systematic
        metrics over all options: ``SR`` each option's metric, ``SNI`` = (ACC - mean SR) / ACC,
        ``std`` with ddof = 1.

    Raises:
        UserError: the samples have no labels.
    """
    task, failed = found.task, found.failures()
    metric = task.headline
    columns: dict[str, dict[str, OptionFigures]] = {}
    draws = Resamples(len(found.items), seed, task.resamples)
    train = found.score(TRAIN)
    trained = train.metrics[metric]
    if trained is None:
        raise UserError(f"a sweep measures {metric}; give data with labels")
    for key in keys:
        column, option = key
        name = "/".join(key)
        if of is None:
            entry = option_figures(task.compare(train, found.score(name), draws), metric)
        else:
            own, count = of[name], len(of[name].items)
            drawn = Resamples(count, seed, task.resamples)
            compared = task.compare(own.score(TRAIN), own.score(name), drawn)
            entry = option_figures(compared, metric).model_copy(update={"samples": count})
        columns.setdefault(column, {})[option] = entry
    return {
        "samples": len(found.items),
        "skipped": found.skipped,
        **failed,
        "task": task.name,
        "metric": metric,
        "unit": task.unit,
        metric: trained,
        "columns": {name: _column(of) for name, of in columns.items()},
        "systematic": _systematic(trained, columns, metric),
    }


def _column(options: Mapping[str, OptionFigures]) -> Column:
    drops = [entry.drop for entry in options.values()]
    rates = [entry.flip_rate for entry in options.values()]
    return Column(
        options=dict(options),
        mean_drop=st.fmean(drops),
        max_drop=max(drops),
        mean_flip_rate=st.fmean(rates),
        max_flip_rate=max(rates),
    )


def option_figures(compared: Mapping[str, Any], metric: str) -> OptionFigures:
    """Return an option's figures.

    Args:
        compared: the comparison with what it is held against, of :meth:`Task.compare`.
        metric: the task's headline.
    """
    delta, flips = compared["delta"][metric], dict(compared["flips"])
    low, high = delta["ci95"]
    return OptionFigures(
        **compared["deploy"]["metric"],
        drop=0.0 - delta["value"],
        drop_ci95=[0.0 - high, 0.0 - low],
        p=delta["p"],
        flips=flips.pop("count"),
        units=flips.pop("units"),
        flip_rate=_known(flips.pop("rate")),
        flip_ci95=flips.pop("ci95"),
        **flips,
    )


def _known(rate: float) -> float:
    """A rate; 0 where it is NaN because nothing can flip."""
    return 0.0 if math.isnan(rate) else rate


def _systematic(
    trained: float, columns: Mapping[str, Mapping[str, OptionFigures]], metric: str
) -> Systematic:
    rates = [
        float(entry[metric])
        for column, options in columns.items()
        if column != COMBINED
        for entry in options.values()
    ]
    mean = st.fmean(rates) if rates else None
    return Systematic(
        mean_SR=mean,
        SNI=(trained - mean) / trained if trained and mean is not None else None,
        std=st.stdev(rates) if len(rates) > 1 else None,
        ACC_of=TRAIN,
    )
