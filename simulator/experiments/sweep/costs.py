"""What the stacks of a sweep cost: the size of their model files, and the time of an inference."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from simulator.contract.model_format import MODEL_FORMATS, ONNX
from simulator.experiments.search.evaluate import Evaluation
from simulator.experiments.session import Session
from simulator.model.onnxfile import structure
from simulator.model.store import Artifact
from simulator.pipeline.stack import Stack
from simulator.results.suites import Costs


def costs(stacks: Sequence[Stack], found: Evaluation, session: Session) -> dict[str, Costs]:
    """Return what stacks cost that have answered a sample, by their names."""
    source, count = session.source, 0
    if source.format == ONNX:
        count = sum(prod(one.dims) for one in structure(source.path)[0].graph.initializer)
    tokens, told = session.card.task.fed, {}
    for stack in stacks:
        ns = found.records.records(stack.side).ns().get("infer")
        if ns is None or not len(ns):
            continue
        size = _size(stack.artifact)
        ms = float(np.median(ns)) / 1e6
        told[stack.side] = Costs(
            mib=size / 2**20,
            bits=8 * size / count if count else None,
            ms=ms,
            tokens_per_second=1000 * tokens / ms if tokens and ms else None,
        )
    return told


def _size(artifact: Artifact) -> int:
    """Return the bytes of the files that a model consists of; of a compiled one before that."""
    if artifact.format == "compiled" and artifact.made_of:
        return _size(artifact.made_of)
    return sum(file.stat().st_size for file in MODEL_FORMATS[artifact.format].files(artifact.path))
