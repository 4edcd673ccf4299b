"""The samples and the model with which the conformance suite tests the modality ``text``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from simulator.contract import Array
from simulator.modalities.specimen import Specimen
from simulator.testing import vocabularies

LAYERS, WIDTH, HEADS, INNER = 2, 32, 2, 48
EPSILON, FAR = 1e-5, -1e4
QUESTIONS = (
    ("The water is", (" in the can", " on a wet day in 2026")),
    ("Two and 2 are", (" 4", " a tree", " in")),
)
CARD = """\
schema: 1
name: small_llama
task: {task}
model: model.onnx
input:
  kind: text
  tokenizer: {{tokenizers: tokenizer.json, sentencepiece: small.model, gguf: small.gguf}}
  vocabulary: {vocabulary}
  max_length: 64
  pad: 2
  prefix: 1
  names: {{ids: input_ids, mask: attention_mask}}
output: {output}
"""


def write(folder: Path, task: str = "multiple_choice", output: str = "{}") -> Specimen:
    """Write two questions, a Llama of two layers with random weights, and its vocabularies."""
    files = []
    for number, (context, choices) in enumerate(QUESTIONS):
        requests = [
            {"context": context, "continuation": choice, "length": len(choice)}
            for choice in choices
        ]
        files.append(folder / f"{number}.json")
        files[-1].write_text(json.dumps({"requests": requests}))
    for format in vocabularies.WRITERS:
        vocabularies.write(folder, format)
    vocabulary = 448
    onnx.save(llama(vocabulary), folder / "model.onnx")
    text = CARD.format(task=task, vocabulary=vocabulary, output=output)
    (folder / "card.yaml").write_text(text)
    return Specimen((files[0], files[1]), folder / "card.yaml", "text_fp32")


def llama(vocabulary: int) -> onnx.ModelProto:
    """Return a Llama with random weights: (batch, length) ids and mask to logits.

    Positions are counted from the first token of each row; what the mask hides is not seen.
    """
    graph = _Graph(np.random.default_rng(0))
    embedding = graph.weight((vocabulary, WIDTH), 1.0)
    x = graph("Gather", embedding, "input_ids")
    cos, sin = _rotations(graph)
    hidden = _hidden(graph)
    for _ in range(LAYERS):
        x = graph("Add", x, _attention(graph, _normed(graph, x), cos, sin, hidden))
        x = graph("Add", x, _gated(graph, _normed(graph, x)))
    head = graph("Transpose", embedding, perm=[1, 0])
    graph("MatMul", _normed(graph, x), head, output="logits")
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "attention_mask")
    )
    shape: list[str | int | None] = ["batch", "length", vocabulary]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)
    made = helper.make_graph(graph.nodes, "llama", [ids, mask], [logits], graph.weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class _Graph:
    """Nodes and weights; calling it adds a node and returns the name of its result."""

    def __init__(self, random: np.random.Generator) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = random

    def __call__(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def weight(self, shape: tuple[int, ...], scale: float) -> str:
        found: Array = self._random.standard_normal(shape) * scale
        return self.constant(found)

    def linear(self, x: str, inner: int, outer: int) -> str:
        return self("MatMul", x, self.weight((inner, outer), inner**-0.5))


def _normed(graph: _Graph, x: str) -> str:
    """RMSNorm."""
    mean = graph("ReduceMean", graph("Mul", x, x), axes=[-1], keepdims=1)
    root = graph("Sqrt", graph("Add", mean, graph.constant(EPSILON)))
    return graph("Mul", graph("Div", x, root), graph.weight((WIDTH,), 1.0))


def _rotations(graph: _Graph) -> tuple[str, str]:
    """Cosine and sine of the rotary embedding, (batch, 1, length, head)."""
    half = WIDTH // HEADS // 2
    axis = graph.constant(1, np.int64)
    counted = graph("CumSum", "attention_mask", axis)
    before = graph("Sub", counted, graph.constant(1, np.int64))
    position = graph(
        "Cast", graph("Max", before, graph.constant(0, np.int64)), to=TensorProto.FLOAT
    )
    column = graph("Unsqueeze", position, graph.constant([1, 3], np.int64))
    frequencies = graph.constant(100.0 ** -(np.arange(half) / half))
    angle = graph("Mul", column, frequencies)
    both = graph("Concat", angle, angle, axis=-1)
    return graph("Cos", both), graph("Sin", both)


def _hidden(graph: _Graph) -> str:
    """What is added to scores: 0 where a token is seen, else a large negative number."""
    length = graph("Gather", graph("Shape", "attention_mask"), graph.constant([1], np.int64))
    square = graph("Concat", length, length, axis=0)
    ones = graph("Expand", graph.constant(1.0), square)
    later = graph("Trilu", ones, graph.constant(1, np.int64), upper=1)
    seen = graph("Cast", "attention_mask", to=TensorProto.FLOAT)
    absent = graph("Sub", graph.constant(1.0), seen)
    row = graph("Unsqueeze", absent, graph.constant([1, 2], np.int64))
    return graph("Mul", graph("Max", later, row), graph.constant(FAR))


def _attention(graph: _Graph, x: str, cos: str, sin: str, hidden: str) -> str:
    size = WIDTH // HEADS
    shape = graph.constant([0, 0, HEADS, size], np.int64)

    def heads(rotated: bool) -> str:
        flat = graph("Reshape", graph.linear(x, WIDTH, WIDTH), shape)
        found = graph("Transpose", flat, perm=[0, 2, 1, 3])
        return _rotated(graph, found, cos, sin) if rotated else found

    q, k, v = heads(True), heads(True), heads(False)
    scores = graph("MatMul", q, graph("Transpose", k, perm=[0, 1, 3, 2]))
    scaled = graph("Mul", scores, graph.constant(size**-0.5))
    weights = graph("Softmax", graph("Add", scaled, hidden), axis=-1)
    mixed = graph("Transpose", graph("MatMul", weights, v), perm=[0, 2, 1, 3])
    flat = graph("Reshape", mixed, graph.constant([0, 0, WIDTH], np.int64))
    return graph.linear(flat, WIDTH, WIDTH)


def _rotated(graph: _Graph, x: str, cos: str, sin: str) -> str:
    half = WIDTH // HEADS // 2
    parts = []
    for start, end in ((0, half), (half, 2 * half)):
        bounds = (graph.constant([at], np.int64) for at in (start, end, 3))
        parts.append(graph("Slice", x, *bounds))
    turned = graph("Concat", graph("Neg", parts[1]), parts[0], axis=-1)
    return graph("Add", graph("Mul", x, cos), graph("Mul", turned, sin))


def _gated(graph: _Graph, x: str) -> str:
    """SwiGLU."""
    gate = graph.linear(x, WIDTH, INNER)
    opened = graph("Mul", gate, graph("Sigmoid", gate))
    return graph.linear(graph("Mul", opened, graph.linear(x, WIDTH, INNER)), INNER, WIDTH)
