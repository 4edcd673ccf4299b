"""A plan is data: pickled, sent to a fresh process and run there, it gives the same answers."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import test_recording
import tiny
import tiny_tasks

from simulator.conditions.condition import under
from simulator.experiments.common import pair_of
from simulator.experiments.compare.run import differing
from simulator.experiments.session import Session, Variant
from simulator.experiments.watch import pair_watch

THERE = """
import json, pickle, sys
from pathlib import Path
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.runtimes import RuntimePool
plan, items, modality = pickle.loads(Path(sys.argv[1]).read_bytes())
with RuntimePool() as runtimes:
    done = list(LocalExecutor(modality, runtimes, 2).run(plan, items))
answers = [[[o.digest, repr(sorted(o.record.items()))] for o in one.outcomes] for one in done]
print(json.dumps([answers, [one.skipped for one in done]]))
"""


def answers_of(done):
    answers = [[[o.digest, repr(sorted(o.record.items()))] for o in one.outcomes] for one in done]
    return [answers, [one.skipped for one in done]]


def here_and_there(folder, card, data, overrides=(), deploy="pillow_fp32", condition=None):
    """Run the plan of a pair here and in a fresh process; both answers."""
    sides = pair_of("pillow_fp32", deploy, list(overrides))
    with Session.open(card, data, None, 0, 1, None, None, under(condition)) as session:
        stacks = session.stacks([Variant(side, own, sides) for side, own in sides.items()])
        watch = pair_watch(session, stacks, differing(stacks))
        with watch.opened:
            merged = session.plan(stacks, watch.asides())
            here = answers_of([*session.stream(merged, 0)])
            plan = folder / "plan.pickle"
            plan.write_bytes(pickle.dumps((merged, session.dataset.items, session.card.modality)))
            there = subprocess.run(
                [sys.executable, "-c", THERE, plan], check=True, capture_output=True, text=True
            )
    return here, json.loads(there.stdout)


@pytest.mark.parametrize(
    ("deploy", "overrides", "condition"),
    [
        ("opencv_fp32", [], None),
        ("nv12_fp32", ["train.color.order=bgr"], None),
        ("opencv_fp32", [], "jpeg:20"),
    ],
)
def test_a_pair_in_a_fresh_process(tmp_path, card, data, cache, deploy, overrides, condition):
    (data / "red" / "broken.jpg").write_bytes(b"no JPEG")

    here, there = here_and_there(tmp_path, card, data, overrides, deploy, condition)

    assert there == here
    assert len({digest for pair in here[0] for digest, _ in pair}) > 6
    assert [why is None for why in here[1]].count(False) == 1


def test_a_pair_with_feature_maps_in_a_fresh_process(tmp_path, data, cache):
    card = tiny.card(tmp_path / "pooled", tiny.pooled())

    here, there = here_and_there(tmp_path, card, data, ["train.graph.pooling.ceil_mode=ceil"])

    assert there == here
    assert all(train != deploy for (train, _), (deploy, _) in here[0])


@pytest.mark.parametrize("task", ["detection", "segmentation"])
def test_a_pair_of_another_task_in_a_fresh_process(tmp_path, cache, task):
    card, data = tiny_tasks.card(tmp_path / "model", task), tiny_tasks.data(tmp_path / "data", task)

    here, there = here_and_there(tmp_path, card, data, deploy="opencv_fp32")

    assert there == here and len(here[0]) == 4


@pytest.mark.parametrize("kind", ["outputs", "tensors"])
def test_a_recorded_stack_in_a_fresh_process(tmp_path, card, data, cache, kind):
    if kind == "outputs":
        rows = test_recording.logits(data)
        wanted = test_recording.RECORDED
    else:
        rows = {name: np.full((1, 3, 32, 32), at, np.float32)
                for at, name in enumerate(test_recording.names(data))}  # fmt: skip
        wanted = "deploy.front_end={{backend: recorded, recording: {}}}"
    np.savez(tmp_path / "dump.npz", **rows)
    manifest = test_recording.write(tmp_path, card, kind)

    here, there = here_and_there(tmp_path, card, data, [wanted.format(manifest)])

    assert there == here and len(here[0]) == 6
