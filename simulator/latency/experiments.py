"""The experiments ``latency`` and ``tail``: stacks that are timed."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from simulator.command.experiment import Experiment
from simulator.command.options import Gate, OneModel, Option, Stacks, Under

if TYPE_CHECKING:
    from simulator.results.tail import TailSummary
    from simulator.results.timed import LatencySummary, LoadSummary

HERE = "times its stacks in turns, in its own process"
"""Why no executor runs what is timed."""


def _numbers(text: str) -> list[int]:
    try:
        return [int(one) for one in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"whole numbers with commas between them expected, got {text!r}"
        ) from None


def _rounds(text: str) -> int | Literal["auto"]:
    try:
        return "auto" if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"auto or a whole number expected, got {text!r}") from None


@dataclass(frozen=True, kw_only=True)
class TimedOptions(Stacks, OneModel, Under, Gate):
    """What every experiment takes that times its stacks."""


@dataclass(frozen=True, kw_only=True)
class LatencyOptions(TimedOptions):
    """What ``simulate latency`` takes."""

    scenario: Annotated[str, Option(
        "SingleStream (the default), Offline or Server", "NAME"
    )] = "SingleStream"  # fmt: skip
    queries: Annotated[int, Option(
        "at least this many inferences of each stack; default 1024, enough for a p99. Without "
        "--limit, a fifth as many samples are drawn, so that each is measured in five rounds", "N",
    )] = 1024  # fmt: skip
    seconds: Annotated[float, Option(
        "Offline, Server: the load lasts at least this long", "S"
    )] = 0.0  # fmt: skip
    qps: Annotated[float | None, Option(
        "Server: arrivals per second; Offline: the expected rate", "RATE"
    )] = None  # fmt: skip
    deadline_ms: Annotated[float | None, Option("Server: the limit of the p99", "MS")] = None
    batch: Annotated[Sequence[int], Option(
        "Offline: measure every stack with each of these batches", "N,...", parse=_numbers
    )] = ()  # fmt: skip


class Latency(Experiment[LatencyOptions]):
    """Measure stacks one sample at a time (MLPerf's SingleStream), in turns, and compare them.

    Offline (samples per second) and Server (arrivals at a given rate, with queueing) are driven by
    MLPerf's LoadGen:

    simulate latency --profile openvino_int8 --profile ort_int8 --data val/
    simulate latency --profile openvino_int8 --queries 6636 --fail-on "deploy.latency.p99 > 20ms"
    simulate latency --profile openvino_int8 --scenario Server --qps 50 --deadline-ms 30
    simulate latency --profile openvino_int8 --scenario Offline --batch 1,4,16,64
    """

    name = "latency"
    about = "time stacks one sample at a time, side by side"
    Options = LatencyOptions
    runs = "simulator.latency.measure:latency"
    summary = "simulator.results.timed:LatencySummary"
    screen = "simulator.latency.screen:latency"
    verdict = "simulator.latency.screen:latency_verdict"
    in_process = HERE

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return twenty inferences of three built-in images."""
        return {"profiles": ["pillow_fp32"], "queries": 20, "limit": 3}

    def question(self, summary: LatencySummary | LoadSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        names = " and ".join(summary.stacks)
        return (
            f"Latency: {summary.model}",
            f"How long {'do' if len(summary.stacks) > 1 else 'does'} {names} take for an answer of "
            f"{summary.model} ({summary.scenario})?",
        )


@dataclass(frozen=True, kw_only=True)
class TailOptions(TimedOptions):
    """What ``simulate tail`` takes."""

    scenario: Annotated[str | None, Option(
        "SingleStream (the default), MultiStream (the default of stacks with a batch) or Offline",
        "NAME",
    )] = None  # fmt: skip
    samples_per_query: Annotated[int | None, Option(
        "MultiStream: samples of a query; default: those of the stack's batch, or 8", "N"
    )] = None  # fmt: skip
    batch: Annotated[Sequence[int], Option(
        "measure every stack with each of these batches", "N,...", parse=_numbers
    )] = ()  # fmt: skip
    deadlines_ms: Annotated[Sequence[float], Option(
        "a deadline, in addition to the latencies' own p99, p95 and p90; repeatable", "MS",
        flag="deadline-ms",
    )] = ()  # fmt: skip
    rounds: Annotated[int | Literal["auto"], Option(
        "passes over the images; auto (the default): until all distributions are stable", "N",
        parse=_rounds,
    )] = "auto"  # fmt: skip
    max_rounds: Annotated[int, Option(
        "the largest number of rounds of auto; default 100", "N"
    )] = 100  # fmt: skip
    max_minutes: Annotated[float, Option(
        "minutes after which auto does not begin another round; default 60", "M"
    )] = 60.0  # fmt: skip
    times: Annotated[Sequence[str], Option(
        "a CSV or Parquet table of latencies logged on a device, instead of measuring",
        "[STACK=]FILE",
    )] = ()  # fmt: skip


class Tail(Experiment[TailOptions]):
    r"""How accurate is a stack when a late answer counts as a wrong one?

      simulate tail --profile openvino_int8 --data val/ --deadline-ms 12 --deadline-ms 20
      simulate tail --train pillow_fp32 --deploy openvino_int8 --data val/ \
               --fail-on "deploy.tail_quality@99 < 70%"
      simulate tail --profile npu --data val/ --times npu_log.csv        # logged on the device
      simulate tail --profile ort_int8 --data val/ --batch 1,16
      simulate tail --profile ort_int8 --data val/ --executor ray --workers 2

    With --rounds auto, rounds over the images are measured until every image's latency distribution
    is stable: Algorithm 1 of "Quality at the Tail of Machine Learning Inference", arXiv 2212.13925.
    """

    name = "tail"
    about = "measure accuracy when late answers count as wrong"
    Options = TailOptions
    runs = "simulator.latency.tail:tail"
    summary = "simulator.results.tail:TailSummary"
    on_servers = True
    tables: ClassVar[Mapping[str, str]] = {
        name: f"simulator.latency.printed:{name.replace('-', '_')}"
        for name in ("deadlines", "validation", "worst-cases", "inference-count", "input")
    }
    screen = "simulator.latency.screen:tail"
    verdict = "simulator.latency.screen:tail_verdict"
    in_process = HERE

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return two rounds over three built-in images."""
        return {"profiles": ["pillow_fp32"], "rounds": 2, "limit": 3}

    def question(self, summary: TailSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        names = " and ".join(summary.stacks)
        return (
            f"Quality at the tail: {summary.model}",
            f"How good {'are' if len(summary.stacks) > 1 else 'is'} {names} when an answer that "
            "comes too late is a wrong one?",
        )
