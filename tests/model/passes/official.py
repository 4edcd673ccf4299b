"""ONNX's official node test models, and two ways to run any model."""

from __future__ import annotations

import functools
import importlib
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx.backend.test.case import node as cases
from onnx.reference import ReferenceEvaluator

MODULES = ("batch_normalization", "conv", "exp", "gelu", "gemm", "hardswish", "matmul", "resize",
           "sigmoid", "softmax", "swish")  # fmt: skip
POOLS = ("averagepool", "maxpool")
"""ONNX computes what it expects of them as they are imported, in Python's loops: seconds."""


@functools.cache
def _cases(modules=MODULES):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in modules:
            importlib.import_module(f"onnx.backend.test.case.node.{module}")
    return {case.name: case for case in cases._NodeTestCases}


def names(*starts, without=(), modules=MODULES):
    """The official tests whose names start so."""
    known = _cases(modules)
    found = [n for n in known if n.startswith(starts) and not any(w in n for w in without)]
    assert found
    return found


def case(name, modules=MODULES):
    """A copy of the model, its inputs by name, and the output that ONNX expects."""
    found = _cases(modules)[name]
    model = copied(found.model)
    inputs, outputs = found.data_sets[0]
    feeds = dict(zip((value.name for value in model.graph.input), inputs, strict=True))
    return model, feeds, outputs[0]


def copied(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def runtime(model, feeds, optimised=True):
    """The first output that ONNX Runtime computes."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)[0]


def reference(model, feeds):
    """The first output that ONNX's reference computes."""
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, feeds)[0]
