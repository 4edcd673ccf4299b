"""A job of Acme's own: on how many samples do several stacks agree? ``simulate acme_agree``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from simulator.command.experiment import Experiment
from simulator.command.options import Gate, OneModel, Stacks, Under
from simulator.report.verdicts.told import Told
from simulator.results.shared import ModelSummary
from simulator.typed import About, Interval, ResultModel, Unit


@dataclass(frozen=True, kw_only=True)
class AgreeOptions(Stacks, OneModel, Under, Gate):
    """What ``simulate acme_agree`` takes."""


class Agreement(ResultModel):
    """Samples on which all stacks give one answer."""

    count: int
    rate: Annotated[float, About(Unit.SHARE, better=1)]
    ci95: Interval = Field(description="of the rate (Wilson)")


class AgreeSummary(ModelSummary):
    """What a run leaves in ``summary.json``."""

    command: Literal["acme_agree"] = "acme_agree"
    stacks: list[str]
    agreement: Agreement


def run(experiment: Experiment[Any], asked: AgreeOptions) -> Any:
    """Run every stack over the same samples, and count those with one answer."""
    from simulator.analysis import gate
    from simulator.experiments import common, running
    from simulator.experiments.job import Job, Result, judged
    from simulator.statistics.paired import wilson

    job, rules = Job(experiment, asked), gate.read(asked.fail_on, asked.allow_failed)
    sides = common.load_stacks(asked.profiles, asked.train, asked.deploy, asked.overrides)
    common.refuse_missing(sides.values())
    folder = job.folder("agree", sides)
    job.refuse_taken(folder)
    with job.session() as session:
        card, names = session.card, list(sides)
        gate.check(rules, AgreeSummary, {**card.task.vocabulary(), "stack": names})
        stacks = session.stacks(common.variants(sides).values())
        start = common.manifest(stacks, session, asked.overrides) | {"request": job.request()}
        with job.writer(folder, start, session) as writer:
            done = running.run_and_keep(session, session.plan(stacks), writer, timed=False)
            first, *others = map(done.records, names)
            agreed = sum(
                not any(card.task.flipped(one, other) for other in rest)
                for one, *rest in zip(first, *others, strict=True)
            )
            count = len(done.ran)
            summary = AgreeSummary(
                model=card.spec.name, task=card.task.name, metric=card.task.headline,
                samples=count, sample_unit=card.modality.unit, skipped=len(done.skipped),
                **done.failures(names, None), warnings=session.notes, stacks=names,
                agreement=Agreement(
                    count=agreed, rate=agreed / count, ci95=[*wilson(agreed, count)]
                ),
            )  # fmt: skip
            last = {"seconds": job.seconds(), "under": session.condition}
            summary = judged(summary, rules, last, asked.undecided)
            writer.finish(summary, session.ran())
    return Result(summary, folder)


def told(summary: AgreeSummary) -> Told:
    """Return the sentences of the verdict."""
    found, unit = summary.agreement, summary.sample_unit
    return Told([f"All stacks agree on {found.count} of {summary.samples} {unit}s."])


def screen(summary: AgreeSummary, folder: str, console: Any) -> None:
    """Print what stands below the verdict."""
    from simulator.report.terminal import gate

    console.print(f"{', '.join(summary.stacks)}: {summary.agreement.rate:.2%}", markup=False)
    gate(summary, console)
    console.print(f"run: {folder}", markup=False, soft_wrap=True)


class Agree(Experiment[AgreeOptions]):
    """On how many samples do several stacks agree?

    simulate acme_agree --profile pillow_fp32 --profile opencv_fp32 --fail-on "agreement < 99%"
    """

    name = "acme_agree"
    about = "count the samples on which several stacks agree"
    Options = AgreeOptions
    runs = "acme_npu.agree:run"
    summary = "acme_npu.agree:AgreeSummary"
    screen = "acme_npu.agree:screen"
    verdict = "acme_npu.agree:told"

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return two stacks, on four built-in images."""
        return {"profiles": ["pillow_fp32", "opencv_fp32"], "limit": 4}
