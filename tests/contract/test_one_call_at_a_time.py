"""The contract of runtimes, on one that computes nothing."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from simulator.contract import Effective, Port, Runtime

PORT = Port("x", np.dtype(np.float32), (1,))


class Counts(Runtime):
    """Gives the number of calls that are inside of the library."""

    def _open(self, artifact):
        self.inside = 0
        return (PORT,), (PORT,)

    def _run(self, feeds):
        self.inside += 1
        time.sleep(0.02)
        found = np.array([self.inside], np.float32)
        self.inside -= 1
        return self._named([found])

    def effective(self, feeds):
        return Effective({}, {})


class CountsAlone(Counts):
    one_at_a_time = True


@pytest.mark.parametrize(("make", "alone"), [(Counts, False), (CountsAlone, True)])
def test_calls_wait_where_the_library_takes_one_at_a_time(make, alone):
    runtime = make(Path(), {})

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: runtime.run({"x": np.zeros(1, np.float32)}), range(8)))

    most = max(int(one["x"][0]) for one in found)
    assert most == 1 if alone else most > 1
