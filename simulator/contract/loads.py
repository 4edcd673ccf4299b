"""Load generators: they send samples to a system under test on a schedule."""

from __future__ import annotations

import math
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, final

from simulator.contract.backend import Implementation
from simulator.errors import RunError, UserError

Submit = Callable[[int, Callable[[], None]], None]
"""Takes the index of a sample and a callback, to be called when the sample is answered or failed.

It queues the sample and returns. The callback may be called from any thread, even before submit
has returned; a second call has no effect. A thread that calls it should live until the load ends:
LoadGen may crash when such a thread ends earlier.
"""


class Scenario(StrEnum):
    """When samples are sent.

    Source:
        MLPerf Inference Rules, section "Scenarios".
    """

    SINGLE_STREAM = "SingleStream"
    """Each sample as soon as the previous one is answered."""
    OFFLINE = "Offline"
    """All samples at once."""
    SERVER = "Server"
    """At the times of a Poisson process, whether or not earlier samples are answered."""


@dataclass(frozen=True, slots=True)
class Load:
    """How many samples are sent, and how fast.

    Attributes:
        scenario: when samples are sent.
        samples: how many different samples to draw from, at random with repetition.
        queries: the minimum number of samples to send.
        seconds: the minimum duration of the load.
        seed: for the choice of samples and the arrival times; equal seeds give equal loads.
        qps: samples per second. In Server, the arrival rate. Otherwise the expected rate of
            answers, which decides how many samples fill ``seconds``; if it is too low, the load
            ends early and ``why`` says so. Required in Server, and whenever ``seconds`` is set.
        deadline_ns: Server: the limit for the percentile of the latency.
        percentile: Server: the fraction of answers that must meet the deadline. SingleStream: the
            percentile that early stopping estimates. Between 0 and 1.
        trace: whether to log the times of each sample too.

    Raises:
        UserError: invalid values; one line names them all.
    """

    scenario: Scenario
    samples: int
    queries: int
    seconds: float
    seed: int
    qps: float | None = None
    deadline_ns: int | None = None
    percentile: float = 0.99
    trace: bool = False

    def __post_init__(self) -> None:
        if problems := self._problems():
            raise UserError(f"{self.scenario}: {'; '.join(problems)}")

    def _problems(self) -> list[str]:
        server = self.scenario is Scenario.SERVER
        found = []
        if self.samples < 1:
            found.append(f"samples: at least 1 expected, got {self.samples}")
        if self.queries < 1:
            found.append(f"queries: at least 1 expected, got {self.queries}")
        if not 0 <= self.seconds < math.inf:
            found.append(f"seconds: 0 or more expected, got {self.seconds}")
        if self.seed < 0:
            found.append(f"seed: 0 or more expected, got {self.seed}")
        if not 0 < self.percentile < 1:
            found.append(f"percentile: a fraction between 0 and 1 expected, got {self.percentile}")
        if self.qps is None and (server or self.seconds):
            what = "samples per second that arrive" if server else "expected answers per second"
            found.append(f"qps: required ({what})")
        if self.qps is not None and not 0 < self.qps < math.inf:
            found.append(f"qps: samples per second above 0 expected, got {self.qps}")
        if server and (self.deadline_ns is None or self.deadline_ns < 1):
            found.append(f"deadline_ns: at least 1 expected, got {self.deadline_ns}")
        return found


@dataclass(frozen=True, slots=True)
class Served:
    """The result of a load.

    Attributes:
        valid: whether the generator's own rules were met: enough samples, enough time, and in
            Server the deadline.
        why: the generator's own text about each rule that was not met, one line each.
        figures: the generator's own results, by the keys of LoadGen's log:
            ``result_samples_per_second`` (Offline), ``result_scheduled_samples_per_sec`` and
            ``result_completed_samples_per_sec`` (Server), ``result_mean_latency_ns``,
            ``result_99.90_percentile_latency_ns`` and so on. Figures that cannot be estimated
            are missing.
        version: of the generator.
    """

    valid: bool
    why: tuple[str, ...]
    figures: Mapping[str, Any]
    version: str


class LoadGenerator(Implementation):
    """Sends samples to a system under test, on the schedule of a scenario."""

    @final
    def run(self, load: Load, submit: Submit, folder: Path) -> Served:
        """Put a system under load until every sample is answered.

        Latency counts from the time when a sample was due, so it includes waiting in a queue.
        Ctrl-C, or an exception of submit, ends the load within seconds; samples that are not
        answered by then are abandoned.

        Args:
            load: how many samples to send, and how fast.
            submit: gives a sample to the system under test and returns; called from a thread of the
                generator.
            folder: the folder for its logs; created if it does not exist.

        Raises:
            RunError: the folder is not writable.
            UserError: the generator cannot run now; the message gives the reason.
            BaseException: any exception of submit.
        """
        _check_writable(folder)
        return self._run(load, submit, folder)

    @abstractmethod
    def _run(self, load: Load, submit: Submit, folder: Path) -> Served:
        """Run the load; the folder is writable, and submit may raise."""


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {error.strerror}") from error
