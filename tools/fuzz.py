"""Give hostile inputs to our readers for some minutes; exit code 1 if one is not read or refused.

python tools/fuzz.py --minutes 30 --seed 1000

The inputs are those of the tests, from other seeds. A line for each that failed says how to see it
again: ``--kind KIND --seed SEED --count 1``.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "hostile")]

import fuzz as corpus  # noqa: E402  our own name is that of the module beside the tests


def main() -> int:
    """Run seeds one after the other until the time or the count is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1000, help="the first; the tests take 0 to 499")
    parser.add_argument("--kind", choices=[*corpus.KINDS], action="append")
    parser.add_argument("--count", type=int, help="inputs of each kind at most")
    options = parser.parse_args()
    end, failed, done = time.monotonic() + 60 * options.minutes, 0, 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        os.environ["PIPELINE_SIMULATOR_CACHE"] = f"{scratch}/cache"
        for seed in itertools.count(options.seed):
            for kind in options.kind or corpus.KINDS:
                if time.monotonic() > end or seed == options.seed + (options.count or 10**9):
                    print(f"{done} inputs from seed {options.seed}: {failed} failed")
                    return int(failed > 0)
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    failed += not _passes(kind, seed, Path(folder))
                done += 1
    return 0


def _passes(kind: str, seed: int, folder: Path) -> bool:
    print(f"\r{kind} {seed} ", end="", file=sys.stderr, flush=True)  # a crash leaves it there
    try:
        corpus.case(kind, seed, folder)
    except Exception as error:
        print(f"\n{kind} {seed}: {type(error).__name__}: {str(error)[:300]}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
