"""Parts that the summaries of several commands share.

Everywhere: metrics, rates and shares are fractions, times are milliseconds unless their name says
otherwise, and None is a figure that could not be worked out; ``missing`` says why, where it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from simulator.notices import Notice
from simulator.typed import About, Interval, Keys, Ms, Probability, ResultModel, Share, Unit

SCHEMA: Literal[2] = 2
"""Version of the shape of every ``summary.json``; 1 had warnings as plain text."""

Metrics = Annotated[dict[str, float | None], Keys("metric"), About(Unit.SHARE, better=1)]
"""Fractions by the name of the metric; None where it cannot be measured."""


def _of_older_files(unit: Any) -> Any:
    """A unit as it is written now; files once called shares and points fractions alike."""
    return Unit.SHARE if unit == "fraction" else unit


class RuleOutcome(ResultModel):
    """What came of one gate rule."""

    rule: str = Field(description="as it was written")
    value: float | int | None = Field(description="the figure; None where it cannot be judged")
    limit: float = Field(description="in the unit of the figure")
    unit: Annotated[Unit, BeforeValidator(_of_older_files)] = Field(
        description="of the figure; empty: it has none"
    )
    failed: bool = Field(description="true where the condition holds, or cannot be judged")
    reason: str | None = Field(description="why there is no figure; None where there is one")
    undecided: bool = Field(default=False, description="whether the samples do not give the figure")
    judged: bool = Field(
        default=True,
        description="false: the training stack is no better than guessing, so that no rule can say "
        "anything of the deployment",
    )
    chance: bool | None = Field(
        default=None,
        description="whether the limit lies in the figure's 95 % interval; None: it has none",
    )
    ci95: Interval | None = Field(default=None, description="of the figure; None: it has none")
    more: int | None = Field(
        default=None,
        description="how many more samples would decide it, if the figure stays as it is; "
        "None: it is decided, or no number would",
    )
    more_of: str = Field(default="sample", description="what these are: image, question, fault")


class Gate(ResultModel):
    """The verdict of the release gate."""

    passed: bool = Field(default=True, description="whether no rule failed")
    rules: list[RuleOutcome] = Field(default_factory=list, description="every rule, in order")

    @classmethod
    def of(cls, rules: Sequence[RuleOutcome]) -> Gate:
        """Return the gate of some outcomes: one that failed fails it."""
        return cls(passed=not any(rule.failed for rule in rules), rules=list(rules))


class Bound(ResultModel):
    """Where a figure lies, after some of the samples; fractions."""

    samples: int
    value: float = Field(description="of these samples")
    low: float = Field(description="the true figure is not below this")
    high: float = Field(description="nor above this")


STOPPED = (
    "the run stopped when its gate was decided: but for those of flips and deltas, intervals and "
    "p-values are those of a fixed number of samples, and too short"
)
"""What is said of figures of a run that was stopped by its gate."""


class Decided(ResultModel):
    """A run that stopped when its gate was decided."""

    samples: int = Field(description="that were looked at, in a random order")
    of: int = Field(description="that there were")
    alpha: Probability = Field(description="the probability of a wrong decision, at most")
    decided: bool = Field(description="false: all samples did not decide it")
    bounds: dict[str, list[Bound]] = Field(
        description="by rule: how the bound closed in; all of a rule's bounds hold at once"
    )


class Verdict(ResultModel):
    """The answer of a run in a few sentences: may I ship, what do I lose, because of what."""

    decision: Literal["ok", "not ok", "undecided", "not judged"] | None = Field(
        description="of the gate; None where no rule was given. not judged, with rules or without: "
        "the training stack is no better than guessing"
    )
    lost: list[str] = Field(description="what changes, a sentence each, the answer first")
    cause: str | None = Field(default=None, description="which step costs most; None: not known")
    next: str | None = Field(default=None, description="what to do now")


class Skipped(ResultModel):
    """A sample that could not go through."""

    sample: str
    why: str


class Failed(ResultModel):
    """Samples that a stack cannot answer, while what it is compared with can."""

    count: int = Field(description="samples that it cannot answer")
    of: int = Field(description="samples that it, or what it is compared with, has answered")
    rate: Share | None = Field(description="count by of; None of no samples")
    ci95: Interval | None = Field(description="95 % interval of the rate (Clopper-Pearson)")
    reference: bool = Field(
        description="whether the others are compared with it; its failures fail no gate"
    )


class Failure(ResultModel):
    """Why a stack failed on some samples."""

    stack: str
    why: str = Field(description="the stage, and what it said")
    count: int = Field(description="samples")
    samples: list[str] = Field(description="the names of the first ones")


class Profile(ResultModel):
    """A stack, by its document."""

    profile: str = Field(description="name of the profile")
    overrides: list[str] = Field(default_factory=list, description="KEY=VALUE, as overridden")


class Running(Profile):
    """A stack that ran."""

    effective: Annotated[dict[str, Any], About(hidden=True)] = Field(
        description="what the runtime says is in force: compute, threads, device, ..."
    )


class Latency(ResultModel):
    """Milliseconds; a percentile that so few samples cannot carry is None."""

    p50: Ms | None = None
    p90: Ms | None = None
    p95: Ms | None = None
    p97: Ms | None = None
    p99: Ms | None = None
    p99_9: Ms | None = Field(default=None, alias="p99.9")
    mean: Ms | None = None
    min: Ms | None = None
    max: Ms | None = None


Stages = Annotated[dict[str, Latency], Keys("stage", usual="total")]
"""By stage, and ``total`` for all of them together."""
Missing = dict[str, str]
"""Why a figure is None, by its dotted path in the summary."""


class ConditionDescription(ResultModel):
    """What happened to the world or the machine, for every stack alike."""

    text: str = Field(description="as it was asked for")
    name: str
    summary: str = Field(description="what it does, in words")
    acts_on: str
    parameters: dict[str, Any]
    trial: int | None = Field(description="which draw; None where there is no chance in it")


class Summary(ResultModel):
    """What every ``summary.json`` has."""

    schema_: Literal[2] = Field(default=SCHEMA, alias="schema", description="of this document")
    command: str = Field(description="which command left it")
    verdict: Verdict | None = Field(default=None, description="the run in a few sentences")
    gate: Gate = Field(default_factory=Gate)
    seconds: Annotated[float | None, About(Unit.SECONDS, hidden=True)] = Field(
        default=None, description="that the run took"
    )
    under: ConditionDescription | None = Field(
        default=None, description="the condition that every stack was under; None: there was none"
    )

    of_runs: ClassVar[bool] = False
    """Whether its figures are those of runs in folders below its own, which has no records."""

    @property
    def facts(self) -> list[str]:
        """A line each on what was compared, where no section of its page tells it."""
        return []

    @property
    def notices(self) -> list[Notice]:
        """What the person should know, with kinds."""
        return list(self.get("warnings", ()))


class ModelSummary(Summary):
    """What the summary of one model on one data set has."""

    model: str = Field(description="name of the model card")
    task: str = Field(description="what the model does")
    metric: str = Field(description="the task's headline metric")
    samples: int = Field(description="that went through every stack")
    sample_unit: str = Field(default="image", description="one sample, in the singular")
    skipped: int = Field(description="samples that no stack could answer")
    failed: Annotated[dict[str, Failed], Keys("stack")] = Field(
        default_factory=dict,
        description="by stack: samples that it cannot answer while others can; they are in no "
        "other figure",
    )
    failures: list[Failure] = Field(
        default_factory=list, description="their reasons, that of most samples first"
    )
    warnings: list[Notice] = Field(
        default_factory=list, description="what the person should know, with kinds"
    )
