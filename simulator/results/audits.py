"""``summary.json`` of ``simulate audit`` and ``replay``."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from simulator.notices import Notice
from simulator.results.shared import Failed, Failure, Profile, RuleOutcome, Summary
from simulator.tasks.figures import Delta
from simulator.typed import Interval, ResultModel


class AuditedStack(Profile):
    """One stack of an audit."""

    evidence: dict[str, str] = Field(description="kind of evidence, by axis")
    claimed: list[str] = Field(description="axes on which the profile claims its evidence")


class ShownLatency(ResultModel):
    """Milliseconds of the total; None where the samples cannot carry the percentile."""

    p50: float | None
    p90: float | None
    p99: float | None


class PairLatency(ResultModel):
    """Latency of both stacks."""

    train: ShownLatency
    deploy: ShownLatency


class PairFlips(ResultModel):
    """Answers that differ between the two stacks."""

    count: int
    units: int
    rate: float | None
    ci95: Interval | None


class AuditedPair(ResultModel):
    """One model on one deployment stack, against the training stack."""

    model: str = Field(description="name in the document")
    deploy: str = Field(description="name of the stack in the document")
    folder: str = Field(description="of the pair's own run, below this one")
    tail: str | None = Field(description="folder of its rounds; None: there are none")
    card: str = Field(description="name of the model card")
    task: str
    unit: str
    sample_unit: str = Field(default="image", description="one sample, in the singular")
    metric: str
    samples: int
    skipped: int
    failed: dict[str, Failed] = Field(
        default_factory=dict, description="samples that a stack alone cannot answer, by side"
    )
    failures: list[Failure] = Field(default_factory=list, description="their reasons")
    train: float | None = Field(description="headline metric of the training stack")
    value: float | None = Field(description="headline metric of the deployment stack")
    delta: Delta | None
    flips: PairFlips
    latency_ms: PairLatency
    differing: list[str] = Field(description="axes on which the two stacks differ")
    bit_equal: bool = Field(description="whether each stack against itself was bit-equal")
    seconds: float
    warnings: list[Notice]
    passed: bool = Field(description="whether no rule on it failed")


class AuditedRule(RuleOutcome):
    """What came of one rule of the document on one pair."""

    model: str
    deploy: str
    of: Literal["pair", "tail"] = Field(description="what it is about: answers or rounds")
    because: str = Field(description="why the team has this rule")


class AuditGate(ResultModel):
    """The verdict of an audit."""

    passed: bool
    rules: list[AuditedRule]


class AuditSummary(Summary):
    """Several stacks and models against rules with reasons."""

    command: Literal["audit"] = "audit"
    name: str
    summary: str = Field(description="the document's own sentence on itself")
    train: str = Field(description="profile of the training stack")
    stacks: dict[str, AuditedStack]
    pairs: list[AuditedPair]
    gate: AuditGate  # type: ignore[assignment]

    of_runs: ClassVar[bool] = True

    @property
    def notices(self) -> list[Notice]:
        """Those of all pairs; what several share is told once."""
        return list(dict.fromkeys(warning for pair in self.pairs for warning in pair.warnings))


class ReplayedSide(ResultModel):
    """How many samples of one stack came out the same."""

    samples: int = Field(description="of either run")
    matched: int = Field(description="that went through in both runs, or in neither")
    outputs: int = Field(description="whose outputs and records are bit-equal")
    answers: int = Field(description="whose answers are the same, as the task sees it")


class ReplayedFigure(ResultModel):
    """A recorded figure against the replayed one; fractions."""

    name: str
    recorded: Any = Field(description="as the bundle has it")
    ci95: Interval
    replayed: Any
    inside: bool = Field(description="whether the replayed one is within the recorded interval")


class Changed(ResultModel):
    """What changed since the audit was recorded, a line each."""

    inputs: list[str] = Field(description="model, images, labels, profiles, recordings")
    surroundings: list[str] = Field(description="versions, processor, artifacts")


class ReplayedPair(ResultModel):
    """One pair of the bundle, run again."""

    model: str
    deploy: str
    verdict: Literal["bit-equal", "equal within stated noise", "different"]
    reason: str = Field(description="the verdict in words")
    sides: dict[str, ReplayedSide]
    figures: list[ReplayedFigure]
    rules: list[str] = Field(description="rules with another outcome")
    changed: Changed


class Bundle(ResultModel):
    """The bundle that was replayed."""

    path: str
    sha256: str


class ReplaySummary(Summary):
    """The bundle of an audit, run again."""

    command: Literal["replay"] = "replay"
    of_runs: ClassVar[bool] = True
    name: str
    bundle: Bundle
    pairs: list[ReplayedPair]
    not_replayed: list[str] = Field(description="rules on rounds: latencies are the machine's")
    stated: list[str] = Field(
        default_factory=list,
        description="what the bundle states and no record of it can contradict: not verified",
    )
    contradictions: list[str] = Field(
        description="what the audit's summary says that its pairs and document do not"
    )
