"""The worst case of a suite: the combination of options that loses most."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from simulator.command.experiment import Experiment
from simulator.errors import UserError
from simulator.experiments.common import TRAIN, refuse_missing
from simulator.experiments.failures import LISTED
from simulator.experiments.guessing import doubt
from simulator.experiments.job import Job, Result
from simulator.experiments.search.evaluate import Evaluation
from simulator.experiments.search.policy import Policy
from simulator.experiments.search.questions import WorstOption
from simulator.experiments.search.space import Pick, Picks, Space, inapplicable
from simulator.experiments.search.steps import Steps
from simulator.experiments.search.stopping import ALPHA
from simulator.experiments.session import Session, Variant
from simulator.experiments.sweep.run import option_figures
from simulator.experiments.worst.experiment import WorstOptions
from simulator.notices import Notice, merged
from simulator.profile import axes
from simulator.profile.suite import load_suite
from simulator.report.verdict import concluded
from simulator.results.shared import Profile
from simulator.results.suites import Combination, Early, PathStep, WorstSummary

EXHAUSTIVE = 64
"""Up to this many combinations, all are tried; beyond it, only the greedy path is."""
Figures = dict[str, Any]
"""The fields of :class:`PathStep`, but for what was added."""


def worst(experiment: Experiment[Any], asked: WorstOptions) -> Result[WorstSummary]:
    """Combine a suite's options step by step, each time the one that loses most.

    Examples:
        >>> result = worst("robustmq-s", limit=2)
        >>> result.summary.path[0].added    # nothing loses more, on two images
        'resize/pil-bilinear'
    """
    job = Job(experiment, asked)
    loaded = load_suite(asked.suite)
    whole = Space(asked.train or loaded.spec.train, loaded.spec.columns)
    with job.session() as session:
        first = whole.stack(())
        folder = job.folder(f"worst-{loaded.spec.name}", {"train": first, "deploy": first})
        request = job.request(suite=str(loaded.path.resolve()))
        job.refuse_taken(folder)
        steps = Steps(job, folder, request, session.card.task.headline, _headline)
        with steps.writing(session):
            session.require_truth()
            tried, refused = whole.alone()
            left_out = {**refused, **inapplicable(session, first, tried)}
            measured = session.shuffled() if asked.until_decided else session
            search = _Search(steps, measured, whole.without(left_out), asked.until_decided)
            path = search.greedy()
            best = search.exhaustive() if search.space.size <= EXHAUSTIVE else None
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
                combinations=search.space.size,
                exhaustive=best,
                left_out={"/".join(pick): why for pick, why in left_out.items()},
                warnings=[*merged(search.notices), *session.notes, *search.doubt, *search.stopped],
                early=search.early or None,
                skipped=search.skipped,
                failed=search.failed,
                failures=search.failures[:LISTED],
                seconds=job.seconds(),
                under=session.condition,
            )
            summary = concluded(summary)
            steps.finish(summary, "step-1")
    return Result(summary, folder)


@dataclass(slots=True)
class _Search:
    """The steps so far.

    Attributes:
        steps: of the run.
        session: the model and the samples.
        space: of the options that apply to the model.
        until_decided: whether combinations are dropped that cannot be the worst.
        runs: how many steps there were.
        alone: what each option loses by itself; empty where options may be dropped.
    """

    steps: Steps
    session: Session
    space: Space
    until_decided: bool
    early: list[Early] = field(default_factory=list)
    runs: int = 0
    samples: int = 0
    trained: float = 0.0
    skipped: int = 0
    failed: dict[str, Any] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    doubt: list[Notice] = field(default_factory=list)
    alone: dict[Pick, float] = field(default_factory=dict)
    stopped: list[Notice] = field(default_factory=list)

    @property
    def passes(self) -> int:
        """How many steps there are at most."""
        return len(self.space.axes) + (self.space.size <= EXHAUSTIVE)

    def greedy(self) -> list[PathStep]:
        """Add one option after the other, each time the one that loses most."""
        taken: Picks = ()
        path = []
        sizes = [len(options) for options in self.space.axes.values()]
        while candidates := [
            (*taken, pick) for pick in self.space.picks if self._compatible((*taken, pick))
        ]:
            ways = ways_to(len(taken), sizes)
            taken, figures = self._worst(candidates, ALPHA / self.passes / ways)
            figures |= {"alone": self.alone.get(taken[-1])}
            path.append(PathStep(added="/".join(taken[-1]), **figures))
        return path

    def exhaustive(self) -> Combination:
        """Try every combination."""
        tried = [some for some in self.space.combinations() if some and self._compatible(some)]
        taken, figures = self._worst(tried, ALPHA / self.passes)
        picks = ["/".join(pick) for pick in taken]
        return Combination(picks=picks, added=picks[-1], **figures)

    def _compatible(self, picks: Picks) -> bool:
        """Whether no two options are of one column or write the same axis of the profile."""
        written = [
            {axes.axis_of(key) for key in self.space.axes[column][name]} for column, name in picks
        ]
        apart = sum(map(len, written)) == len(set().union(*written))
        return apart and len(dict(picks)) == len(picks)

    def _worst(self, candidates: Sequence[Picks], alpha: float) -> tuple[Picks, Figures]:
        """Run the training stack and all candidates in one plan; return the worst.

        Args:
            candidates: the combinations.
            alpha: where combinations are dropped, the probability of dropping the worst, at most.
        """
        self.session.show.stage(self.runs + 1, self.passes, "combinations")
        by_name = {" ".join("/".join(pick) for pick in picks): picks for picks in candidates}
        train = self.space.stack(())
        chosen = {TRAIN: train} | {name: self.space.stack(one) for name, one in by_name.items()}
        refuse_missing(chosen.values())
        stacks = self.session.stacks(
            Variant(name, stack, {"train": train, "deploy": stack})
            for name, stack in chosen.items()
        )
        task, options = self.session.card.task, dict.fromkeys(by_name, TRAIN)
        policy = (
            WorstOption("worst-drop", options, task, alpha)
            if self.until_decided
            else Policy(options)
        )
        self.runs += 1
        found = self.steps.evaluate(f"step-{self.runs}", self.session, stacks, policy)
        self.notices += [notice for stack in stacks for notice in stack.labelled_notices]
        self._keep(found)
        left = policy.answer()
        if self.runs == 1 and not self.until_decided:
            trained = _headline(found, TRAIN)
            alone = {some[-1]: trained - _headline(found, name) for name, some in by_name.items()}
            self.alone = alone
        worst = min(left, key=lambda name: _headline(found, name))
        one = option_figures(found, worst, task.headline)
        own = {} if one.samples is None else {"samples": one.samples}
        return by_name[worst], {
            task.headline: _headline(found, worst), "drop": one.drop, "drop_ci95": one.drop_ci95,
            "p": one.p, "family": len(left), **own,
        }  # fmt: skip

    def _keep(self, found: Evaluation) -> None:
        """Keep what the summary says of all steps: samples, failures, when options were dropped.

        A later step has other combinations, so that it may fail on other samples.
        """
        told = found.failures()
        self.skipped = max(self.skipped, told["skipped"])
        self.failures += [one for one in told["failures"] if one["stack"] not in self.failed]
        broken = {name: one for name, one in told["failed"].items() if one["count"]}
        self.failed = broken | self.failed
        early = found.policy.early(len(self.session.dataset.items))
        self.early += [early] if early else []
        self.stopped = self.stopped or found.policy.notices()
        samples = len(found.shared.items)
        if not self.until_decided or samples > self.samples:
            self.samples, self.trained = samples, _headline(found, TRAIN)
            self.doubt = doubt(self.session, found.reference)


def _headline(found: Evaluation, name: str) -> float:
    task = found.shared.task
    score = found.reference if name == TRAIN else found.of(name).score(name)
    value = score.metrics[task.headline]
    if value is None:
        raise UserError(
            f"the worst case is the largest loss of {task.headline}; give data with labels"
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
