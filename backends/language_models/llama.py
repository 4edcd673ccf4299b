"""Llama as an ONNX graph, from the weights of a GGUF file.

Source: transformers 5.23.0, models/llama/modeling_llama.py, with eager attention; rotary positions
by halves. The tied embedding is stored once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import onnx
from onnx import TensorProto

from backends.onnx_nodes import MASKED, Nodes, ids_and_mask, port
from simulator.contract import Array

ABOUT = "language_model"
"""The key of a file's metadata with the sizes of the network, as JSON."""
Weights = Callable[[str], Array]
"""Returns a weight by its name in GGUF, float32, linear ones (out, in), rotary by halves."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What decides the graph of a Llama.

    Attributes:
        layers: blocks.
        width: of the embedding.
        heads: of queries.
        kv_heads: of keys and values; several heads of queries share one.
        head_width: of a head; even.
        inner: width of the feed-forward part.
        vocabulary: ids.
        context: positions.
        epsilon: of the normalization.
        theta: base of the rotary frequencies.
        tied: whether the head is the embedding.
        cache: whether keys and values of earlier tokens are inputs, and all of them outputs.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    inner: int
    vocabulary: int
    context: int
    epsilon: float
    theta: float
    tied: bool
    cache: bool = False


def model(sizes: Sizes, weights: Weights) -> onnx.ModelProto:
    """Return the network: ids and mask (batch, seq) int64 to ``logits`` (batch, seq, ids) float32.

    Positions follow from the mask, so padding may be on either side. With ``cache`` it also takes
    ``past_key_values.N.key`` and ``.value`` (batch, kv_heads, past, head_width), the mask covers
    them, and ``present.N.key`` and ``.value`` come out.

    Raises:
        ModelError: the file would be larger than 2 GB.
    """
    return _Llama(sizes, weights).build()


def rotary(sizes: Sizes) -> tuple[Array, Array]:
    """Return cosines and sines of every position, (context, head_width) float32."""
    half = np.arange(0, sizes.head_width, 2, dtype=np.float32) / np.float32(sizes.head_width)
    inverse = np.float32(1) / np.float32(sizes.theta) ** half
    angles = np.arange(sizes.context, dtype=np.float32)[:, None] * inverse
    both = np.concatenate([angles, angles], 1)
    return np.cos(both), np.sin(both)


class _Llama:
    def __init__(self, sizes: Sizes, weights: Weights) -> None:
        self._sizes, self._weights, self._nodes = sizes, weights, Nodes()
        self._outputs: list[onnx.ValueInfoProto] = []
        self._inputs = ids_and_mask()
        if sizes.cache:
            self._inputs[1] = port("attention_mask", TensorProto.INT64, "batch", "total")

    def build(self) -> onnx.ModelProto:
        nodes, sizes = self._nodes, self._sizes
        nodes.constant("embedding.weight", self._weights("token_embd.weight"))
        self._cos, self._sin, self._mask = self._places()
        value = nodes.add("Gather", ["embedding.weight", "input_ids"], "embedding")
        for layer in range(sizes.layers):
            value = self._block(value, layer)
        value = self._norm(value, "norm", "output_norm.weight")
        if sizes.tied:
            head = nodes.add("Transpose", ["embedding.weight"], "head.weight", perm=[1, 0])
            nodes.add("MatMul", [value, head], "logits")
        else:
            nodes.linear(value, "head", self._weights("output.weight"))
            nodes.add("Identity", ["head"], "logits")
        logits = port("logits", TensorProto.FLOAT, "batch", "seq", sizes.vocabulary)
        about = {ABOUT: json.dumps({"kind": "llama", **asdict(sizes)})}
        return nodes.model("llama", self._inputs, [logits, *self._outputs], about)

    def _places(self) -> tuple[str, str, str]:
        """Rotary factors (batch, 1, 1, seq, width), and the mask (batch, 1, 1, seq, total)."""
        nodes, add = self._nodes, self._nodes.add
        one, zero = nodes.constant("one", np.array([1])), nodes.constant("zero", np.array([0]))
        axis = nodes.constant("last", np.array(-1))
        counted = add("CumSum", ["attention_mask", axis], "counted")
        total = nodes.size("attention_mask", 1, "total")
        past = zero
        if self._sizes.cache:
            past = add("Sub", [total, nodes.size("input_ids", 1, "seq")], "past")
            last = nodes.constant("axis", np.array([1]))
            counted = add("Slice", [counted, past, total, last], "counted.new")
        positions = add("Max", [add("Sub", [counted, one], "behind"), zero], "positions")
        tables = []
        for name, table in zip(("cos", "sin"), rotary(self._sizes), strict=True):
            found = add("Gather", [nodes.constant(f"{name}.table", table), positions], name)
            around = nodes.constant("heads", np.array([1, 2]))
            tables.append(add("Unsqueeze", [found, around], f"{name}.wide"))
        squeeze = [add("Squeeze", [end, zero], f"{end}.scalar") for end in (past, total)]
        start, end = nodes.constant("start", np.array(0)), squeeze[1]
        by = nodes.constant("by", np.array(1))
        column = add("Range", [start, end, by], "columns")
        row = add("Range", [squeeze[0], end, by], "rows")
        row = add("Unsqueeze", [row, nodes.constant("axis", np.array([1]))], "rows.down")
        causal = add("LessOrEqual", [column, row], "causal")
        counts = add("Greater", ["attention_mask", zero], "counts")
        counts = add("Unsqueeze", [counts, nodes.constant("middle", np.array([1, 2, 3]))], "seen")
        kept = add("And", [causal, counts], "kept")
        free = nodes.constant("free", np.float32(0))
        mask = add("Where", [kept, free, nodes.constant("masked", np.float32(MASKED))], "mask")
        return tables[0], tables[1], mask

    def _block(self, value: str, layer: int) -> str:
        nodes, name, stored = self._nodes, f"layers.{layer}", f"blk.{layer}"
        normed = self._norm(value, f"{name}.norm", f"{stored}.attn_norm.weight")
        seen = self._attention(normed, f"{name}.attention", stored, layer)
        value = nodes.add("Add", [value, seen], f"{name}.seen")
        normed = self._norm(value, f"{name}.second_norm", f"{stored}.ffn_norm.weight")
        gate = self._linear(normed, f"{name}.gate", f"{stored}.ffn_gate")
        up = self._linear(normed, f"{name}.up", f"{stored}.ffn_up")
        open_ = nodes.add("Sigmoid", [gate], f"{name}.sigmoid")
        open_ = nodes.add("Mul", [gate, open_], f"{name}.silu")
        inner = nodes.add("Mul", [open_, up], f"{name}.inner")
        down = self._linear(inner, f"{name}.down", f"{stored}.ffn_down")
        return nodes.add("Add", [value, down], f"{name}.out")

    def _attention(self, value: str, name: str, stored: str, layer: int) -> str:
        """Heads are (batch, kv_heads, queries of one, seq, width); keys have one of these."""
        nodes, add, sizes = self._nodes, self._nodes.add, self._sizes
        shared = sizes.heads // sizes.kv_heads
        query = self._linear(value, f"{name}.q", f"{stored}.attn_q")
        query = self._rotated(self._heads(query, shared), f"{name}.q")
        key = self._linear(value, f"{name}.k", f"{stored}.attn_k")
        key = self._rotated(self._heads(key, 1), f"{name}.k")
        worth = self._heads(self._linear(value, f"{name}.v", f"{stored}.attn_v"), 1)
        if sizes.cache:
            key, worth = (self._kept(v, layer, w) for v, w in ((key, "key"), (worth, "value")))
        across = add("Transpose", [key], f"{name}.across", perm=[0, 1, 2, 4, 3])
        score = add("MatMul", [query, across], f"{name}.scores")
        scale = nodes.constant("scale", np.float32(sizes.head_width**-0.5))
        score = add("Mul", [score, scale], f"{name}.scaled")
        score = add("Add", [score, self._mask], f"{name}.masked")
        share = add("Softmax", [score], f"{name}.shares", axis=-1)
        seen = add("MatMul", [share, worth], f"{name}.mixed")
        seen = add("Transpose", [seen], f"{name}.back", perm=[0, 3, 1, 2, 4])
        seen = nodes.reshape(seen, f"{name}.joined", 0, 0, sizes.heads * sizes.head_width)
        return self._linear(seen, f"{name}.o", f"{stored}.attn_output")

    def _heads(self, value: str, shared: int) -> str:
        kv, width = self._sizes.kv_heads, self._sizes.head_width
        parted = self._nodes.reshape(value, f"{value}.parted", 0, 0, kv, shared, width)
        return self._nodes.add("Transpose", [parted], f"{value}.heads", perm=[0, 2, 3, 1, 4])

    def _kept(self, value: str, layer: int, word: str) -> str:
        """Append to what earlier calls gave; the result is an output of the network."""
        nodes, sizes = self._nodes, self._sizes
        shape = ("batch", sizes.kv_heads, "past", sizes.head_width)
        before, after = f"past_key_values.{layer}.{word}", f"present.{layer}.{word}"
        self._inputs.append(port(before, TensorProto.FLOAT, *shape))
        whole = (*shape[:2], "total", shape[3])
        self._outputs.append(port(after, TensorProto.FLOAT, *whole))
        axis = nodes.constant("shared", np.array([2]))
        flat = nodes.add("Squeeze", [value, axis], f"{value}.flat")
        nodes.add("Concat", [before, flat], after, axis=2)
        return nodes.add("Unsqueeze", [after, axis], f"{after}.heads")

    def _rotated(self, value: str, name: str) -> str:
        add, half = self._nodes.add, self._sizes.head_width // 2
        sizes = self._nodes.constant("halves", np.array([half, half]))
        parts = [f"{name}.first", f"{name}.second"]
        self._nodes.split(value, sizes, parts)
        turned = add("Concat", [add("Neg", [parts[1]], f"{name}.neg"), parts[0]], f"{name}.turned",
                     axis=-1)  # fmt: skip
        straight = add("Mul", [value, self._cos], f"{name}.cos")
        turned = add("Mul", [turned, self._sin], f"{name}.sin")
        return add("Add", [straight, turned], f"{name}.rotated")

    def _linear(self, value: str, name: str, stored: str) -> str:
        return self._nodes.linear(value, name, self._weights(f"{stored}.weight"))

    def _norm(self, value: str, name: str, stored: str) -> str:
        """Root mean square normalization."""
        nodes, add = self._nodes, self._nodes.add
        square = add("Mul", [value, value], f"{name}.square")
        axis = nodes.constant("lasts", np.array([-1]))
        mean = add("ReduceMean", [square, axis], f"{name}.mean", keepdims=1)
        safe = nodes.constant("epsilon", np.float32(self._sizes.epsilon))
        root = add("Sqrt", [add("Add", [mean, safe], f"{name}.safe")], f"{name}.root")
        unit = add("Div", [value, root], f"{name}.unit")
        return add("Mul", [unit, nodes.constant(f"{name}.weight", self._weights(stored))], name)
