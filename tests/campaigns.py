"""Campaigns of faults on tiny networks."""

import os
import signal
import subprocess
import sys

import numpy as np
import tiny
import yaml
from onnx import helper

from simulator import faults

NO_FUSION = ["deploy.runtime.graph_optimization_level=disable_all"]


def document(folder, **fields):
    spec = {"schema": 1, "name": "mine", "summary": "", "targets": ["weights"], "faults": 20}
    (folder / "mine.yaml").write_text(yaml.safe_dump(spec | fields))
    return str(folder / "mine.yaml")


def run(place, campaign, out, **options):
    given = {"profiles": ["pillow_fp32"], "model": place / "card.yaml", "data": place / "data"}
    return faults(campaign, **(given | {"out": out} | options))


def network():
    """Two convolutions whose weights are far from symmetric, and a product."""
    rng = np.random.default_rng(3)
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], name="first", strides=[4, 4]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], name="second"),
        helper.make_node("GlobalAveragePool", ["c2"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="third"),
    ]
    shapes = {"w1": (6, 3, 4, 4), "b1": (6,), "w2": (5, 6, 1, 1), "b2": (5,), "w3": (5, 3)}
    shapes |= {"b3": (3,)}
    held = {name: rng.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}
    return tiny.model(nodes, constants=held)


KILLED = """
import os, signal, sys
from simulator.faults import table
add, done = table.FaultTable.add, 0
def once(self, *given):
    global done
    add(self, *given)
    done += 1
    if done == 2:
        os.kill(os.getpid(), signal.SIGKILL)
table.FaultTable.add = once
from simulator import faults
faults(sys.argv[1], ["pillow_fp32"], model=sys.argv[2], data=sys.argv[3], out=sys.argv[4])
"""


def killed(campaign, place, out):
    """Run a campaign in a process of its own, which is killed behind its second part."""
    arguments = [campaign, place / "card.yaml", place / "data", out]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", KILLED, *map(str, arguments)]
    assert subprocess.run(command, env=env, check=False).returncode == -signal.SIGKILL
