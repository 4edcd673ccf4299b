"""Recordings of known stacks, made by their own steps one after the other."""

import numpy as np
import yaml

from simulator.contract.recipe import Boundary
from simulator.experiments.common import chosen
from simulator.experiments.session import Session


def record(folder, kind, changes, base="pillow_fp32", images=4, after=None, **manifest):
    """Record the built-in model's images on a stack of the built-in libraries; return the path."""
    folder.mkdir(exist_ok=True)
    stack = chosen(base, changes)
    with Session.open(None, None, images, 0, 1, None, None) as session:
        chain = session.builder.stack("board", stack, {"train": stack, "deploy": stack}).chain
        steps = [(one, one.open(session.builder.runtimes)) for one in chain.recipes]
        arrays, rows = {}, ["image,prediction,score,margin"]
        for item in session.dataset.items:
            context = session.executor.context(item)
            value = context.source
            for step, apply in steps:
                value = apply(value, context)
                if kind == "frames" and step.stage == after:
                    arrays[item.name] = getattr(value, "planes", (value,))[0]
                if kind == "tensors" and step.gives is Boundary.INPUT:
                    arrays[item.name] = value
                if kind == "outputs" and step.gives is Boundary.OUTPUTS:
                    (arrays[item.name],) = value.outputs.values()
            answer = value.prediction
            rows.append(f"{item.name},{answer.prediction},{answer.score!r},{answer.margin!r}")
        digest = session.source.digest
    file = "board.csv" if kind == "predictions" else "board.npz"
    if kind == "predictions":
        (folder / file).write_text("\n".join(rows) + "\n")
    else:
        np.savez(folder / file, **arrays)
    spec = {
        "schema": 1, "name": "board", "device": "a board", "kind": kind, "file": file,
        "match": "name", "model": digest,
    } | ({"after": after} if after else {}) | manifest  # fmt: skip
    path = folder / "recording.yaml"
    path.write_text(yaml.safe_dump(spec))
    return path
