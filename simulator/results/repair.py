"""``summary.json`` of ``simulate repair``: the cheapest stack that passes, and what it costs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, create_model

from simulator.results.shared import Failed, Metrics, ModelSummary, Profile, RuleOutcome
from simulator.results.suites import Early, Effect
from simulator.tasks.figures import Delta, Flips
from simulator.typed import About, Keys, Ms, Probability, ResultModel, Share, Unit


class Cost(ResultModel):
    """What a stack or an option costs more than the deployment as it is."""

    ms: Ms = Field(description="a sample")
    measured: bool = Field(description="whether some of the milliseconds were measured here")
    hours: Annotated[float, About(Unit.HOURS)] = Field(description="of a person")
    memory_mib: Annotated[float, About(Unit.MIB)] = Field(description="memory")
    work: list[str] = Field(description="what a person has to do, in words")


class Repaired(ResultModel):
    """What a change gives back of a figure; positive is good."""

    alone: Effect | None = Field(
        description="it alone, in the deployment as it is; None where it is not possible alone"
    )
    last: Effect | None = Field(
        description="what is lost again without it, where all others are made; None where these "
        "are not possible without it"
    )
    share: Effect | None = Field(
        description="Shapley value; None where there are too many changes, or some of them are "
        "possible only together"
    )


class Change(ResultModel):
    """One change of the answer."""

    axis: str
    option: str
    set_: dict[str, Any] = Field(alias="set", description="dotted fields of the profile")
    why: str
    cost: Cost
    repaired: Annotated[dict[str, Repaired], Keys("repaired")] = Field(
        description="by figure: flip_rate and the headline metric, on the confirmation half; "
        "empty with early"
    )


class Judged(ResultModel):
    """The figures that gate rules may name: of one stack against training, on unseen samples."""

    samples: int
    labelled: int = Field(description="samples that somebody has annotated")
    delta: Annotated[dict[str, Delta | None], Keys("delta")] = Field(
        description="this stack less training; None where a metric cannot be measured"
    )
    flips: SerializeAsAny[Flips] = Field(
        description="ci95: simultaneous for all of the family, 1 - 0.05 / family"
    )
    failed: Annotated[dict[str, Failed], Keys("stack")] = Field(
        default_factory=dict, description="samples that this stack, or training, alone cannot do"
    )


class Confirmation(Judged):
    """A finalist on the samples that the search has not seen."""

    metric: Metrics
    passes: bool = Field(description="whether no rule of the gate failed")
    rules: list[RuleOutcome]
    p: Probability | None = Field(
        description="exact binomial p-value against a flip rate at the gate's limit; None without "
        "such a rule, or where one sample has several answers"
    )
    p_holm: Probability | None = Field(description="p after Holm's correction over the family")
    delta_p_holm: Probability | None = Field(
        description="p of the headline's delta after Holm's correction over the family"
    )


class Tried(ResultModel):
    """A stack as the search saw it."""

    name: str = Field(description="its changes; deploy: the deployment as it is")
    changes: list[str] = Field(description="as AXIS/OPTION")
    cost: Cost
    samples: int = Field(description="of the search half, with early of all, that it ran on")
    flip_rate: Share | None
    value: Share | None = Field(description="the headline metric")
    front: bool = Field(description="whether no other is cheaper and flips less: Pareto's front")


class Finalist(Tried):
    """A stack that was confirmed; with early one of those that may be the answer."""

    passed: bool = Field(description="the gate, in the search; with early for certain")
    confirmed: Confirmation


class Rung(ResultModel):
    """One round of the search."""

    samples: int = Field(description="that every stack has run on at its end")
    stacks: int = Field(description="that ran")
    dropped: int = Field(description="after it")


class Difference(ResultModel):
    """A field of the profile that the answer changes, as ``profiles diff`` shows it."""

    axis: str
    key: str
    deploy: Any
    repaired: Any


class RepairSummary(ModelSummary):
    """What to change; ``delta`` and ``flips`` are those of the answer, on unseen samples."""

    command: Literal["repair"] = "repair"
    unit: str = Field(description="what flips are counted in, in the singular")
    train: Profile
    deploy: Profile
    rules: list[str] = Field(description="the gate: what must hold")
    options: str = Field(description="name of the document of options")
    order: list[str] = Field(description="what cheap means: the first measure counts most")
    axes: dict[str, list[str]] = Field(description="the options by axis")
    combinations: int = Field(description="stacks that could be built, the deployment included")
    left_out: dict[str, str] = Field(description="combinations that cannot run, and why")
    exact: bool = Field(description="whether every stack ran on every sample of the search half")
    bound: int = Field(description="up to so many combinations a search is exact")
    early: Early | None = Field(
        default=None,
        description="with until_decided: which stacks were dropped when; there is then no search "
        "half, and each stack has figures of its own samples; None: a search and a confirmation",
    )
    rungs: list[Rung] = Field(description="of the search; empty with early")
    searched: int = Field(description="samples of the search half; 0 with early")
    skipped_in_search: int = Field(description="of the skipped samples those of the search half")
    labelled: int = Field(description="samples of the confirmation half that are annotated")
    chosen: str | None = Field(description="the cheapest finalist that passes; None: none does")
    nearest: str = Field(description="the same; where none passes that with the fewest flips")
    family: int = Field(
        description="stacks that intervals and Holm's correction are over: the finalists and the "
        "deployment as it is; with early all stacks"
    )
    finalists: list[Finalist] = Field(description="the cheapest first")
    before: Confirmation = Field(
        description="the deployment as it is, on the same samples; with early on its own"
    )
    tried: list[Tried] = Field(
        description="stacks of the last round, with early all of them, the cheapest first"
    )
    delta: Annotated[dict[str, Delta | None], Keys("delta")]
    flips: SerializeAsAny[Flips]
    latency_ms: dict[str, Ms] = Field(
        description="median latency of a sample here, of training, deploy and the finalists"
    )
    changes: list[Change] = Field(description="of the answer; empty where nothing must change")
    difference: list[Difference]
    remains: list[str] = Field(description="axes on which the answer differs from training")
    profile: str = Field(description="the answer as a profile, a file of the run")


def judged(flips: type[Flips]) -> type[Judged]:
    """Return the figures of a stack whose flips are those of one task."""
    return create_model("Judged", __base__=Judged, flips=(flips, ...))
