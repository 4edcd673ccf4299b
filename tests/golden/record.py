"""Write the files of the golden runs anew: ``python tests/golden/record.py [NAME ...]``.

Only where a run shall come out otherwise from now on, and the commit says why: a figure that was
wrong, or an input of the runs that is another one. Never to make a refactoring pass: then the code
is wrong. Look at the files' diff before it is committed.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import golden_inputs
import golden_runs

from simulator.cache import VARIABLE


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="golden-") as place:
        os.environ[VARIABLE] = str(Path(place, "cache"))
        golden_inputs.write(Path(place, "inputs"))
        os.chdir(Path(place, "inputs"))
        for name in sys.argv[1:] or golden_runs.RUNS:
            with contextlib.redirect_stdout(io.StringIO()):
                found = golden_runs.run(name)
            golden_runs.write(name, found)
            print(name, *(one["exit"] for one in found))
        os.chdir("/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
