"""What the executor ``ray`` costs, as ratios within one run.

  python tools/bench_scale.py [--samples N]

Efficiency is the time inside the libraries, each unique step counted once, over the clock times the
processes: 1 would be workers that do nothing else. The built-in model and images, each image under
many names; one thread a process.
"""

from __future__ import annotations

import argparse
import os
import pickle
import time
from dataclasses import replace
from statistics import median

from simulator.cluster.messages import sample_of
from simulator.experiments.common import pair_of, variants
from simulator.experiments.session import Session
from simulator.pipeline.executor import EXECUTORS, Executor, SampleResult
from simulator.pipeline.plan import Plan
from simulator.pipeline.walk import spent

PAIR = ("pillow_fp32", "opencv_fp32")
WARM = 20
"""Samples before the clock is started: workers have opened the plan by then."""


def main() -> None:
    """Run the pair with both executors, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    count = parser.parse_args().samples
    with Session.open(None, None, None, 0, 1, None, None) as session:
        stacks = session.stacks(variants(pair_of(*PAIR, [])).values())
        plan = session.plan(stacks)
        known = session.dataset.items
        items = [replace(known[at % len(known)], name=f"{at:05}") for at in range(count + WARM)]
        print(f"{count} samples, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        print("executor  processes  samples/s  efficiency  driver's processor time a sample")
        for name, workers in (("local", 1), ("ray", 1), ("local", 2), ("ray", 2)):
            executor = EXECUTORS[name](session.card.modality, session.builder.runtimes, workers)
            done, seconds, ours = timed(executor, plan, items)
            executor.close()
            share = sum(one.seen for one in done) / 1e9 / (workers * seconds)
            cost = f"{ours / len(done) * 1e3:.2f} ms" if name == "ray" else "(all of it)"
            print(f"{name:8}  {workers:9}  {len(done) / seconds:9.1f}  {share:10.3f}  {cost}")
        sent = median(len(pickle.dumps(sample_of(item))) for item in items)
        back = median(len(pickle.dumps((one.outcomes, None))) for one in done)
        files = median(item.path.stat().st_size for item in known)
        print(f"bytes a sample: {sent:.0f} to a worker, {back:.0f} back; its file has {files:.0f}")


def timed(executor: Executor, plan: Plan, items: list) -> tuple[list[SampleResult], float, float]:
    """Return what came after the warm-up, its seconds, and the processor time of this process."""
    results = executor.run(plan, items, spent)
    for _ in range(WARM):
        next(results)
    clock, ours = time.perf_counter(), time.process_time()
    done = list(results)
    return done, time.perf_counter() - clock, time.process_time() - ours


if __name__ == "__main__":
    main()
