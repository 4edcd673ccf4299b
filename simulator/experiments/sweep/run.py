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
from simulator.errors import UserError
from simulator.experiments.common import COMBINED, TRAIN, manifest, refuse_missing, stacks_of
from simulator.experiments.guessing import doubt
from simulator.experiments.job import Job, Result, safe_name
from simulator.experiments.search.evaluate import Evaluation, arms_of
from simulator.experiments.search.questions import QUESTIONS, policy_of, rules_of
from simulator.experiments.search.space import Pick, Space, applying
from simulator.experiments.session import Session, Variant
from simulator.experiments.several import checked
from simulator.experiments.sweep.costs import costs
from simulator.experiments.sweep.experiment import SweepOptions
from simulator.notices import merged
from simulator.pipeline.stack import ResolvedProfile
from simulator.profile import axes
from simulator.profile.suite import Suite, load_suite
from simulator.report.command import Asked
from simulator.report.verdict import concluded
from simulator.results.manifest import Request
from simulator.results.shared import Profile
from simulator.results.suites import Column, OptionFigures, SweepSummary, Systematic
from simulator.spent import Work, spending
from simulator.tasks.task import Task


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
            sweep = _Sweep(job, measured, loaded, base, tried, refused, request, rules)
            results.append(sweep.run(folder))
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
) -> tuple[dict[Pick, ResolvedProfile], dict[Pick, str]]:
    """Return the stack of every option, and why others cannot be run with the overrides."""
    own = [override.partition(".")[2] for override in overrides]
    columns = dict(suite.spec.columns)
    if suite.spec.combined:
        columns[COMBINED] = {COMBINED: suite.spec.combined}
    space = Space(against, columns, own)
    tried, refused = space.alone()
    if not tried:
        raise UserError(f"no option of {suite.spec.name} can be run on {against}: "
                        f"{next(iter(refused.values()))}")  # fmt: skip
    return tried, refused


@dataclass(frozen=True, slots=True)
class _Sweep:
    """One model's part of a sweep."""

    job: Job
    session: Session
    suite: Suite
    base: ResolvedProfile
    options: Mapping[Pick, ResolvedProfile]
    refused: Mapping[Pick, str]
    request: Request
    rules: Sequence[Rule]

    def run(self, folder: Path) -> Result[SweepSummary]:
        question = self.job.asked.until_decided
        whole = (COMBINED, COMBINED)
        options = dict(self.options)
        of_one = question in QUESTIONS[1:] and options.pop(whole, None) is not None
        built, left_out = (
            applying(self.session, self.base, options, self._variant) if options else ({}, {})
        )
        if question is not None and not built:
            raise UserError(f"no option of {self.suite.spec.name} applies to this model")
        left_out |= self.refused
        if of_one:
            left_out[whole] = "a combination of options; the question is of one"
        base = Variant(TRAIN, self.base, {"train": self.base, "deploy": self.base})
        stacks = [self.session.stack(base), *built.values()]
        names = dict.fromkeys((stack.side for stack in built.values()), TRAIN)
        policy = policy_of(question, names, self.rules, self.session.card.task)
        found = Evaluation(self.session, arms_of(self.session, stacks), policy)
        start = manifest(stacks, self.session, []) | {"request": self.request}
        with self.job.writer(folder, start, self.session) as run:
            asks = self.job.asked.costs
            found.run(run, timed=asks)
            self.session.show.say("computing the figures")
            card = self.session.card.spec.name
            notices = [
                *merged(notice for stack in stacks for notice in stack.labelled_notices),
                *self.session.notes,
            ]
            with spending(Work.STATISTICS):
                figures = table(found, [*built], self.session.card.task)
                notices += doubt(self.session, found.reference)
            samples = len(self.session.dataset.items)
            told = policy.fields(samples, self.job.asked.undecided, notices)
            summary = SweepSummary(
                **figures,
                **found.failures(),
                costs=costs(stacks, found, self.session) if asks else {},
                unit=self.session.card.unit,
                suite=self.suite.spec.name,
                model=card,
                train=Profile(profile=self.base[0].name),
                order=list(dict.fromkeys(column for column, _ in (*self.options, *self.refused))),
                left_out={"/".join(key): why for key, why in left_out.items()},
                warnings=[*notices, *policy.notices()],
                unique_steps=len(found.plan.nodes),
                seconds=self.job.seconds(),
                under=self.session.condition,
                sample_unit=self.session.card.modality.unit,
                **told,
            )
            summary = concluded(summary, Asked(self.request["arguments"], folder))
            took = {"seconds": summary.seconds, "workers": self.session.workers}
            run.finish(summary, took | self.session.ran())
        return Result(summary, folder)

    def _variant(self, pick: Pick) -> Variant:
        option = self.options[pick]
        return Variant("/".join(pick), option, {"train": self.base, "deploy": option})


def table(found: Evaluation, keys: Sequence[Pick], task: Task) -> dict[str, Any]:
    """Compute every figure of a sweep.

    Args:
        found: the training stack, and every option.
        keys: (column, option) of the options, in order.
        task: of the model.

    Returns:
        ``metric``, the task's headline, and under its name the training stack's value; per
        column its options with that metric, ``drop`` (trained minus option, as SysNoise's Δ), its
        interval, and flips; ``mean_drop`` and ``max_drop`` of a column; and RobustMQ's systematic
        metrics over all options: ``SR`` each option's metric, ``SNI`` = (ACC - mean SR) / ACC,
        ``std`` with ddof = 1. These are left out where options were run on different samples.

    Raises:
        UserError: the samples have no labels.
    """
    metric = task.headline
    trained = found.reference.metrics[metric]
    if trained is None:
        raise UserError(f"a sweep measures {metric}; give data with labels")
    columns: dict[str, dict[str, OptionFigures]] = {}
    for column, option in keys:
        entry = option_figures(found, f"{column}/{option}", metric)
        columns.setdefault(column, {})[option] = entry
    return {
        "samples": len(found.shared.items),
        "task": task.name,
        "metric": metric,
        metric: trained,
        "columns": {name: _column(of) for name, of in columns.items()},
        "systematic": (
            Systematic(mean_SR=None, SNI=None, std=None, ACC_of=TRAIN)
            if found.policy.own_samples
            else _systematic(trained, columns, metric)
        ),
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


def option_figures(found: Evaluation, name: str, metric: str) -> OptionFigures:
    """Return an option's figures; with the number of its samples, where it has its own.

    Args:
        found: the options, and what they are held against.
        name: of the option.
        metric: the task's headline.
    """
    compared = found.compared(name)
    delta, flips = compared["delta"][metric], dict(compared["flips"])
    low, high = delta["ci95"]
    return OptionFigures(
        **compared["deploy"]["metric"],
        samples=len(found.of(name).items) if found.policy.own_samples else None,
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
