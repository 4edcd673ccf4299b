"""What the tests of the timed jobs share: small runs, progress that interferes, recorded times."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import tiny
from PIL import Image

from simulator import latency, tail
from simulator.command.options import Progress
from simulator.typed import ResultModel

IMAGES = 6
ROUNDS = 5
"""Of six images each job goes through five rounds."""
JOBS = {
    "latency": (latency, {"queries": IMAGES * ROUNDS, "limit": IMAGES}),
    "tail": (tail, {"rounds": ROUNDS}),
}
MEASURED = {
    "seconds", "workers", "latency_ms", "percentiles", "ratio", "spread", "conditions", "inputs",
    "tail", "better",
}  # fmt: skip
"""Parts of a summary that differ from run to run; their shape does not."""


def timed(command, profiles=("pillow_fp32",), **options):
    """Run a timed job over six images, five times."""
    job, own = JOBS[command]
    return job(list(profiles), **{**own, **options})


class Meanwhile(Progress):
    """Does something once, when so many samples are through."""

    def __init__(self, count, act):
        self.count, self.act, self.acted = count, act, False

    def advance(self, done, total):
        if done == self.count and not self.acted:
            self.acted = True
            self.act()


def shape(value):
    """What a summary looks like: its keys, and of what kind its values are."""
    if isinstance(value, dict | ResultModel):
        return {key: shape(value[key]) for key in value}
    return "list" if isinstance(value, list) else value is None


def kept(folder):
    """The files of the finished rounds."""
    return {place.name: place.read_bytes() for place in sorted(folder.glob("rounds/*.parquet"))}


def one_line(result):
    """The one line of an error of the user's."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", err), err
    return err.removeprefix("error: ").rstrip("\n")


def written(folder):
    """The summary of a run."""
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def names(data):
    return sorted(str(path.relative_to(data)) for path in data.rglob("*.jpg"))


def log(path, data, rounds, column="total_ns"):
    """A device's log; *rounds* is a list of {image: ms} with None for all others."""
    lines = [f"image,round,{column}"]
    for number, one in enumerate(rounds):
        lines += [
            f"{name},{number},{round(one.get(name, one[None]) * 1e6)}" for name in names(data)
        ]
    path.write_text("\n".join(lines) + "\n")
    return path


def board(folder, card, data, latency=None):
    """The profile of a recorded stack, with the latencies *latency* (ms) or without any."""
    import onnxruntime

    model = card.parent / "model.onnx"
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    dump = {}
    for name in names(data):
        pixels = np.asarray(Image.open(data / name).convert("RGB").resize((32, 32)), np.float32)
        tensor = ((pixels - 127) / 64).transpose(2, 0, 1)[None]
        dump[name] = session.run(None, {"x": tensor})[0]
    np.savez(folder / "dump.npz", **dump)
    spec = {
        "schema": 1, "name": "board", "device": "Board 7", "kind": "outputs", "file": "dump.npz",
        "match": "name", "model": hashlib.sha256(model.read_bytes()).hexdigest(),
    }  # fmt: skip
    if latency is not None:
        lines = [f"{name},{round(ms * 1e6)}" for name, ms in zip(names(data), latency, strict=True)]
        (folder / "latency.csv").write_text("\n".join(["image,infer_ns", *lines]) + "\n")
        spec["latency"] = "latency.csv"
    (folder / "recording.yaml").write_text(json.dumps(spec))
    path = folder / "board.yaml"
    path.write_text(
        "schema: 1\nname: board\nsummary: what the board said\nextends: pillow_fp32\n"
        "runtime: {backend: recorded, recording: recording.yaml, graph_optimization_level: null}\n"
    )
    return path


def profile(folder, name, extends="pillow_fp32"):
    """A profile in a file of that name."""
    path = folder / f"{name}.yaml"
    path.write_text(f"schema: 1\nname: mine\nsummary: s\nextends: {extends}\n")
    return path


def flat(folder, count=2):
    """Images that nobody has labelled."""
    folder.mkdir()
    for number in range(count):
        pixels = tiny.picture(tiny.COLORS["red"], seed=number)
        (folder / f"{number}.jpg").write_bytes(tiny.encoded(pixels))
    return folder


FOUR = [
    {None: 4.0},
    {None: 4.0, "red/red0.jpg": 10.000001},
    {None: 4.0, "red/red0.jpg": 30.0, "red/red1.jpg": 11.0, "blue/blue0.jpg": 99.0},
    {None: 4.0, "green/green0.jpg": 10.0},
]
"""Of six images, all answered rightly. Later than 10 ms: none, one, three and none."""
AT_10 = {"best": 1, "worst": 1 / 2, "mean": (1 + 5 / 6 + 1 / 2 + 1) / 4}


def logged(folder, card, data, rounds=FOUR, times=None, profiles=("pillow_fp32",), **options):
    """The summary of a run over a device's log."""
    table = times or log(folder / "log.csv", data, rounds)
    return tail(
        list(profiles), model=card, data=data, times=[str(table)], out=folder / "run", **options
    ).summary


def figures(found, name, side="deploy"):
    """Best, worst and mean over the rounds under a threshold."""
    one = found["tail"][side]["thresholds"][name]
    return {key: one[key] for key in AT_10}
