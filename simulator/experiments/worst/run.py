"""The worst case of a suite: the combination of options that loses most."""

from __future__ import annotations

import itertools
import math
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from simulator.command.experiment import Experiment
from simulator.errors import RunError, UserError
from simulator.experiments.answers import Answers
from simulator.experiments.common import TRAIN, chosen, manifest, refuse_missing
from simulator.experiments.decision import ALPHA
from simulator.experiments.failures import LISTED
from simulator.experiments.guessing import doubt
from simulator.experiments.inapplicable import inapplicable
from simulator.experiments.job import Job, Result
from simulator.experiments.race import Worst
from simulator.experiments.racing import STOPPED, lanes_of, run_race
from simulator.experiments.running import run_and_keep
from simulator.experiments.session import Session, Variant
from simulator.experiments.sweep.run import option_figures
from simulator.experiments.worst.experiment import WorstOptions
from simulator.notices import Kind, Notice, merged
from simulator.pipeline.stack import Stack
from simulator.profile import axes
from simulator.profile.suite import load_suite
from simulator.report.verdict import concluded
from simulator.results.json_text import write_json
from simulator.results.layout import MANIFEST, RECORDS, SUMMARY
from simulator.results.lock import locked
from simulator.results.manifest import RunManifest
from simulator.results.read import read_manifest
from simulator.results.shared import Profile, Summary
from simulator.results.store import RunWriter
from simulator.results.suites import Combination, Early, PathStep, StepSummary, WorstSummary
from simulator.statistics.bootstrap import Resamples
from simulator.typed import plain

EXHAUSTIVE = 64
"""Up to this many combinations, all are tried; beyond it, only the greedy path is."""

Pick = tuple[str, str]
"""A column, and one of its options."""
Picks = tuple[Pick, ...]
"""In the order in which they were combined."""


def worst(experiment: Experiment[Any], asked: WorstOptions) -> Result[WorstSummary]:
    """Combine a suite's options step by step, each time the one that loses most.

    Examples:
        >>> result = worst("robustmq-s", limit=2)
        >>> result.summary.path[0].added    # nothing loses more, on two images
        'resize/pil-bilinear'
    """
    job = Job(experiment, asked)
    loaded = load_suite(asked.suite)
    base = asked.train or loaded.spec.train
    every = {(column, option): changes for column, option, changes in loaded.options()}
    with ExitStack() as held:
        with job.session() as session:
            first = chosen(base, ())
            folder = job.folder(f"worst-{loaded.spec.name}", {"train": first, "deploy": first})
            request = job.request(suite=str(loaded.path.resolve()))
            job.refuse_taken(folder)
            held.enter_context(locked(folder, session.show.note))
            mark(folder, {"request": request}, "running")
            session.require_truth()
            tried = {pick: chosen(base, changes) for pick, changes in every.items()}
            left_out = inapplicable(session, first, tried)
            options = {pick: every[pick] for pick in every if pick not in left_out}
            measured = session.shuffled() if asked.until_decided else session
            search = _Search(job, measured, base, options, folder, asked.until_decided)
            path = search.greedy()
            best = search.exhaustive() if search.combinations <= EXHAUSTIVE else None
        task = session.card.task
        summary = WorstSummary(
            suite=loaded.spec.name,
            model=session.card.spec.name,
            train=Profile(profile=first[0].name),
            samples=search.samples,
            sample_unit=session.card.modality.unit,
            task=session.card.spec.task,
            metric=task.headline,
            **{task.headline: search.trained},
            path=path,
            combinations=search.combinations,
            exhaustive=best,
            left_out={"/".join(pick): why for pick, why in left_out.items()},
            warnings=[
                *merged(search.notices),
                *session.notes,
                *search.doubt,
                *search.stopped(),
            ],
            early=search.early or None,
            skipped=search.skipped,
            failed=search.failed,
            failures=search.failures[:LISTED],
            seconds=job.seconds(),
            under=session.condition,
        )
        summary = concluded(summary)
        alone = folder / "step-1"
        whole = RunManifest.model_validate(read_manifest(alone) | {"request": request})
        mark(folder, plain(whole), "reporting", summary, alone / RECORDS)
        if job.report:
            job.report(folder)
        mark(folder, plain(whole), "complete")
    return Result(summary, folder)


def mark(
    folder: Path,
    start: dict[str, Any],
    status: str,
    summary: Summary | None = None,
    records: Path | None = None,
) -> None:
    """Write the manifest of a run of several passes; at the end the summary, and records of one.

    Args:
        folder: of the run.
        start: the manifest, without its status.
        status: of the run.
        summary: at the end.
        records: of the pass whose records are the run's, at the end.

    Raises:
        RunError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if summary is not None and records is not None:
            shutil.copyfile(records, folder / RECORDS)
            write_json(folder / SUMMARY, summary)
        write_json(folder / MANIFEST, {**start, "status": status})
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror}") from error


class _Search:
    def __init__(
        self,
        job: Job,
        session: Session,
        base: str,
        options: Mapping[Pick, Sequence[str]],
        folder: Path,
        until_decided: bool,
    ) -> None:
        self.sizes = [*Counter(column for column, _ in options).values()]
        """How many options each column has."""
        self.combinations = math.prod(size + 1 for size in self.sizes)
        self.passes = len(self.sizes) + (self.combinations <= EXHAUSTIVE)
        self.until_decided = until_decided
        self.early: list[Early] = []
        self.job, self.session, self.folder = job, session, folder
        self.base, self.options = base, options
        self.runs = 0
        self.samples = 0
        self.trained = 0.0
        self.skipped = 0
        self.failed: dict[str, Any] = {}
        self.failures: list[dict[str, Any]] = []
        self.notices: list[Notice] = []
        self.doubt: list[Notice] = []

    def greedy(self) -> list[PathStep]:
        taken: Picks = ()
        path = []
        while candidates := [
            (*taken, pick) for pick in self.options if self._compatible((*taken, pick))
        ]:
            ways = ways_to(len(taken), self.sizes)
            found = self._values(candidates, ALPHA / self.passes / ways)
            taken = min(found, key=lambda picks: found[picks][self._metric])
            path.append(PathStep(added="/".join(taken[-1]), **found[taken]))
        return path

    def exhaustive(self) -> Combination:
        of = itertools.groupby(self.options, lambda pick: pick[0])
        choices = [[None, *picks] for _, picks in of]
        combinations = [
            tuple(pick for pick in picks if pick is not None)
            for picks in itertools.product(*choices)
        ]
        tried = [p for p in combinations if p and self._compatible(p)]
        found = self._values(tried, ALPHA / self.passes)
        worst = min(found, key=lambda picks: found[picks][self._metric])
        picks = ["/".join(pick) for pick in worst]
        return Combination(picks=picks, added=picks[-1], **found[worst])

    def stopped(self) -> list[Notice]:
        """What users should know of combinations that were dropped."""
        dropped = any(one.dropped for one in self.early)
        return [Notice(Kind.FEW_SAMPLES, STOPPED)] if dropped else []

    def _compatible(self, picks: Picks) -> bool:
        """Whether no two options write the same axis of the profile."""
        written = [
            {axes.axis_of(change.partition("=")[0]) for change in self.options[pick]}
            for pick in picks
        ]
        return sum(map(len, written)) == len(set().union(*written))

    @property
    def _metric(self) -> str:
        return self.session.card.task.headline

    def _values(self, candidates: Sequence[Picks], alpha: float) -> dict[Picks, dict[str, Any]]:
        """Run the training stack and all candidates in one plan.

        Args:
            candidates: the combinations.
            alpha: where combinations are dropped, the probability of dropping the worst, at most.

        Returns:
            The metric and the drop of each; only of those that may be the worst, where others were
            dropped.
        """
        self.session.show.stage(self.runs + 1, self.passes, "combinations")
        every = [
            chosen(self.base, [change for pick in picks for change in self.options[pick]])
            for picks in ((), *candidates)
        ]
        train = every[0]
        refuse_missing(every)
        names = [TRAIN, *(" ".join("/".join(p) for p in picks) for picks in candidates)]
        variants = [
            Variant(name, stack, {"train": train, "deploy": stack})
            for name, stack in zip(names, every, strict=True)
        ]
        stacks = self.session.stacks(variants)
        self.runs += 1
        folder = self.folder / f"step-{self.runs}"
        start, task = manifest(stacks, self.session, []), self.session.card.task
        with self.job.writer(folder, start, self.session, whole=False) as run:
            if self.until_decided:
                race = Worst("worst-drop", names[1:], task, alpha)
                of = self._raced(run, stacks, race)
                left = race.answer()
            else:
                done = run_and_keep(self.session, self.session.plan(stacks), run, timed=False)
                of = dict.fromkeys(names, done.answers(*names))
                self._tell_failing(of[TRAIN].failures())
                left = names[1:]
            values = {name: self._headline(of[name], name) for name in names}
            run.finish(StepSummary(metric=task.headline, values=values), {})
        self.notices += [notice for stack in stacks for notice in stack.labelled_notices]
        longest = max(of.values(), key=lambda found: len(found.items))
        self.skipped = max(self.skipped, longest.skipped)
        if not self.until_decided or len(longest.items) > self.samples:
            self.samples, self.trained = len(longest.items), self._headline(longest, TRAIN)
            self.doubt = doubt(self.session, longest.score(TRAIN))
        by_name = dict(zip(names[1:], candidates, strict=True))
        return {by_name[name]: self._figures(of[name], name, len(left)) for name in left}

    def _raced(self, run: RunWriter, stacks: Sequence[Stack], race: Worst) -> dict[str, Answers]:
        """Run the candidates while they may be the worst; return the records of each."""
        lanes = lanes_of(self.session, stacks)
        ran = run_race(self.session, run, lanes, race)
        self._tell_failing(ran.failures([*lanes], TRAIN))
        self.early.append(race.early(len(self.session.dataset.items)))
        return {name: ran.answers(TRAIN, name) for name in lanes}

    def _tell_failing(self, step: Mapping[str, Any]) -> None:
        """Keep which combinations of a step fail on samples; a later step has others."""
        broken = {name: one for name, one in step["failed"].items() if one["count"]}
        self.failures += [one for one in step["failures"] if one["stack"] not in self.failed]
        self.failed = broken | self.failed

    def _figures(self, found: Answers, name: str, family: int) -> dict[str, Any]:
        task = found.task
        draws = Resamples(len(found.items), self.session.seed, task.resamples)
        compared = task.compare(found.score(TRAIN), found.score(name), draws)
        one = option_figures(compared, self._metric)
        own = {"samples": len(found.items)} if self.until_decided else {}
        return {
            self._metric: self._headline(found, name), "drop": one.drop,
            "drop_ci95": one.drop_ci95, "p": one.p, "family": family, **own,
        }  # fmt: skip

    @staticmethod
    def _headline(found: Answers, name: str) -> float:
        value = found.score(name).metrics[found.task.headline]
        if value is None:
            raise UserError(
                f"the worst case is the largest loss of {found.task.headline}; give data with "
                "labels"
            )
        return value


def ways_to(taken: int, options: Sequence[int]) -> int:
    """Return how many sets of so many options there are, no two of a column; at least as many.

    Which options were taken follows from the same samples that judge the next ones. So the next
    step's bound must hold after each of these sets.

    Args:
        taken: how many options the set has.
        options: how many options each column has.
    """
    ways = [1] + [0] * len(options)
    for count in options:
        ways = [1, *(more + count * fewer for fewer, more in itertools.pairwise(ways))]
    return ways[taken]
