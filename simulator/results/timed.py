"""``summary.json`` of ``simulate latency``, and what every run with times has."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from simulator.results.shared import Latency, Missing, ModelSummary, Running, Skipped, Stages
from simulator.typed import (
    About,
    Keys,
    Known,
    Ms,
    Named,
    PerSecond,
    Probability,
    ResultModel,
    Seconds,
    Share,
    Unit,
)
from simulator.typed import Ratio as Quotient


class TimedStack(Running):
    """A stack whose rounds were measured here, or recorded on a device."""

    times: Literal["measured", "recorded"]
    source: str | None = Field(description="of recorded times; None where they were measured")
    rounds: int
    queries: int = Field(description="latencies in all rounds; samples that are together have one")
    failed: int = Field(description="samples without an answer, in all rounds")
    together: int = Field(
        default=1, description="samples that have one latency, that of their query or batch"
    )


class Machine(ResultModel):
    """What the latencies were measured on."""

    cpu: str
    cores: int | None
    usable_cores: list[int]
    platform: str


class Protocol(ResultModel):
    """How the rounds went."""

    warm_up: int = Field(description="untimed samples of each stack before the first round")
    turn: int | None = Field(description="samples before the next stack's turn; None: one stack")
    interleaved: list[str] = Field(description="stacks that took turns")


class Percentile(ResultModel):
    """What can be known of one percentile of the total time."""

    ms: Ms | None = Field(description="None where the samples cannot carry it")
    ci95: Known | None = Field(description="ms, from order statistics; None: not possible")
    early_stopping_ms: Ms | None = Field(
        description="LoadGen's estimate, above the true percentile with 99 % confidence"
    )
    needs: int = Field(description="further samples that it takes to carry it")


class Ratio(ResultModel):
    """The time that a stack takes by that of the first stack, in the same rounds."""

    to: str = Field(description="the first stack")
    value: Quotient = Field(description="geometric mean over rounds")
    ci95: Known | None = Field(description="95 % interval; None with one round")
    rounds: int


class Tokens(ResultModel):
    """When the tokens of texts were there, counted from the beginning of each sample."""

    first: Latency
    each: Latency = Field(description="from each token to the next")
    per_second: PerSecond = Field(description="all tokens by the time until the last one")


class Spread(ResultModel):
    """How far the rounds of a stack differ."""

    medians_ms: list[float]
    range: Quotient | None = Field(
        description="largest less least median, by the median of them; None with one round"
    )


class Collections(ResultModel):
    """Pauses of Python's garbage collector."""

    count: int
    ms: Ms
    samples: int = Field(description="timed inferences that a pause fell into")
    longest_ms: Ms


class Conditions(ResultModel):
    """What may have disturbed the rounds."""

    collections: Collections
    preempted: int = Field(description="how often another program took our processor")
    load: Known = Field(description="least and largest load average")
    mhz: Annotated[Known | None, About(Unit.MHZ)] = Field(
        description="least and largest frequency; None: not told"
    )


class SizeEffect(ResultModel):
    """A line through the samples' median times over their sizes."""

    ms_per_megapixel: Annotated[float, About(Unit.PER_MEGAPIXEL)]
    ci95: Known = Field(description="95 % interval of the slope")
    intercept_ms: Ms
    r2: Share = Field(description="share of the variance that the size explains")
    p: Probability


class TallEffect(ResultModel):
    """How much longer images take that are taller than wide, at an equal number of pixels."""

    ms: Ms = Field(description="tall less wide, from a fit to size and shape together")
    ci95: Known = Field(description="95 % interval")
    p: Probability
    tall: int = Field(description="images that are taller than wide")
    others: int


class LengthEffect(ResultModel):
    """A line through the samples' times over their lengths."""

    unit: str = Field(description="what lengths are counted in, in the plural")
    ms_per_thousand: Ms = Field(description="slope, for 1,000 of these units")
    ci95: Known = Field(description="95 % interval of the slope")
    intercept_ms: Ms
    r2: Share = Field(description="share of the variance that the length explains")
    p: Probability


class EqualSize(ResultModel):
    """Median times of the samples of the most frequent size."""

    width: int
    height: int
    instances: int
    min_ms: Ms
    median_ms: Ms
    max_ms: Ms


class Instances(ResultModel):
    """How far the distributions of single samples are apart, two by two."""

    samples: list[str]
    rjsd: list[list[float | None]] = Field(
        description="root Jensen-Shannon divergence, 0 equal to 1 apart"
    )


class InputEffect(ResultModel):
    """What the input does to the latency of a stack."""

    size: SizeEffect | None = Field(description="None where all images have one size")
    length: LengthEffect | None = Field(
        default=None, description="of texts and sounds; None where all have one length"
    )
    tall: TallEffect | None = Field(
        default=None, description="None without both tall and other images of several sizes"
    )
    network: LengthEffect | None = Field(
        default=None,
        description="mean time of the network alone, over what it is fed: tokens of a text; None "
        "where all samples are fed alike",
    )
    equal_size: EqualSize | None = Field(description="None where no two images have one size")
    instances: Instances | None = Field(description="None with fewer than 5 rounds")


class _Timed(ModelSummary):
    skipped_samples: list[Skipped] = Field(description="the first of those that were skipped")
    machine: Machine
    latency_ms: Annotated[dict[str, Stages], Keys("stack"), Named("latency", behind=True)]
    missing: Missing
    workers: Annotated[int | None, About(Unit.COUNT, hidden=True)] = Field(
        default=None, description="samples in flight, untimed"
    )

    @property
    def facts(self) -> list[str]:
        """A line about each stack: its profile, and where its times are from."""
        return [_told(side, stack) for side, stack in self["stacks"].items()]


def _told(side: str, stack: Running) -> str:
    name = side if side == stack.profile else f"{side}, {stack.profile}"
    name += "".join(f" +{override}" for override in stack.overrides)
    if not isinstance(stack, TimedStack):
        return name
    source = "measured here" if stack.times == "measured" else f"recorded, {stack.source}"
    failed = f", {stack.failed:,} failed" if stack.failed else ""
    rounds = f"{stack.rounds:,} round{'' if stack.rounds == 1 else 's'}"
    queries = f"{stack.queries:,} inference{'' if stack.queries == 1 else 's'}"
    return f"{name}: {source}, {rounds}, {queries}{failed}"


class LatencySummary(_Timed):
    """Rounds in SingleStream."""

    command: Literal["latency"] = "latency"
    scenario: Literal["SingleStream"] = "SingleStream"
    stacks: Annotated[dict[str, TimedStack], Keys("stack")]
    protocol: Protocol
    percentiles: Annotated[
        dict[str, Annotated[dict[str, Percentile], Keys("percentile")]], Keys("stack")
    ]
    ratio: Annotated[dict[str, Ratio], Keys("other stack")] = Field(
        description="of every stack but the first"
    )
    spread: Annotated[dict[str, Spread], Keys("stack")]
    tokens: Annotated[dict[str, Tokens], Keys("stack")] = Field(
        default={}, description="of texts that are written"
    )
    conditions: Conditions | None = Field(description="None where nothing was measured here")
    inputs: dict[str, InputEffect]


class LoadSettings(ResultModel):
    """What LoadGen was asked for."""

    scenario: Literal["Offline", "Server"]
    samples: int
    queries: int
    seconds: Seconds
    seed: int
    qps: PerSecond | None = Field(
        default=None, description="arrivals a second, or the expected rate"
    )
    deadline_ns: int | None = Field(default=None, description="that a percentile must not exceed")
    percentile: Share | None = Field(default=None, description="which one")
    trace: bool | None = Field(default=None, description="whether every query is logged")


class Served(ResultModel):
    """What LoadGen found of one stack."""

    valid: bool = Field(description="LoadGen's verdict")
    why: list[str] = Field(description="what LoadGen says about it")
    failed: int
    first_failed: str | None
    workers: int = Field(description="threads that answered")
    batch: int = Field(default=1, description="samples of an inference")
    queries: int = Field(description="samples that were asked for")
    qps: PerSecond = Field(description="answers a second")
    figures: dict[str, Any] = Field(description="LoadGen's own figures by their names")
    loadgen: str = Field(description="version")


class LoadSummary(_Timed):
    """Offline or Server, under LoadGen's load."""

    command: Literal["latency"] = "latency"
    scenario: Literal["Offline", "Server"]
    stacks: Annotated[dict[str, Running], Keys("stack")]
    load: LoadSettings
    served: Annotated[dict[str, Served], Keys("stack"), Named()]
