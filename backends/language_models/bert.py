"""BERT with mean pooling as an ONNX graph: a sentence becomes a vector of length 1.

Source: transformers 5.23.0, models/bert/modeling_bert.py, eager attention; sentence-transformers,
models/Pooling.py (mean of the tokens that count) and models/Normalize.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from backends.language_models.llama import ABOUT
from backends.onnx_nodes import MASKED, Nodes, ids_and_mask, port
from simulator.contract import Array, ModelError


@dataclass(frozen=True, slots=True)
class Sizes:
    """What decides the graph of a BERT.

    Attributes:
        layers: blocks.
        width: of the embedding.
        heads: of attention.
        inner: width of the feed-forward part.
        vocabulary: ids.
        context: positions.
        epsilon: of the normalization.
    """

    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int
    context: int
    epsilon: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Sizes:
        """Read the ``config.json`` of a checkpoint.

        Raises:
            ModelError: it is of another network.
        """
        kind, act = config.get("model_type"), config.get("hidden_act")
        if kind != "bert" or act != "gelu":
            raise ModelError(f"config.json: bert with gelu expected, got {kind} with {act}")
        return cls(
            config["num_hidden_layers"], config["hidden_size"], config["num_attention_heads"],
            config["intermediate_size"], config["vocab_size"], config["max_position_embeddings"],
            config["layer_norm_eps"],
        )  # fmt: skip


def model(sizes: Sizes, weights: Mapping[str, Array]) -> onnx.ModelProto:
    """Return the network: ids and mask (batch, seq) int64 to ``embedding`` (batch, width) float32.

    Token types are 0, those of the first sentence.
    """
    return _Bert(sizes, weights).build()


class _Bert:
    def __init__(self, sizes: Sizes, weights: Mapping[str, Array]) -> None:
        self._sizes, self._weights, self._nodes = sizes, weights, Nodes()

    def build(self) -> onnx.ModelProto:
        nodes, add, sizes = self._nodes, self._nodes.add, self._sizes
        zero = nodes.constant("zero", np.array([0]))
        words = self._stored("embeddings.word_embeddings.weight")
        value = add("Gather", [words, "input_ids"], "words")
        length = add("Squeeze", [nodes.size("input_ids", 1, "seq"), zero], "length")
        ends = [nodes.constant("start", np.array(0)), length, nodes.constant("by", np.array(1))]
        places = self._weights["embeddings.position_embeddings.weight"]
        types = self._weights["embeddings.token_type_embeddings.weight"]
        value = add("Add", [value, nodes.constant("types", types[0])], "typed")
        found = add("Gather", [nodes.constant("places", places), add("Range", ends, "range")], "at")
        value = add("Add", [value, found], "placed")
        value = self._norm(value, "embeddings.LayerNorm")
        counts = add("Greater", ["attention_mask", zero], "counts")
        wide = add("Unsqueeze", [counts, nodes.constant("around", np.array([1, 2]))], "counts.wide")
        free, off = nodes.constant("free", np.float32(0)), nodes.constant("off", np.float32(MASKED))
        self._mask = add("Where", [wide, free, off], "mask")
        for layer in range(sizes.layers):
            value = self._block(value, f"encoder.layer.{layer}")
        self._pooled(value, counts, free)
        about = {ABOUT: json.dumps({"kind": "bert", **asdict(sizes)})}
        result = port("embedding", TensorProto.FLOAT, "batch", sizes.width)
        return nodes.model("bert", ids_and_mask(), [result], about)

    def _pooled(self, value: str, counts: str, free: str) -> None:
        """The mean of the tokens that count, divided by its length."""
        nodes, add = self._nodes, self._nodes.add
        last = nodes.constant("last", np.array([-1]))
        one = nodes.constant("one", np.float32(1))
        share = add("Where", [add("Unsqueeze", [counts, last], "down"), one, free], "share")
        middle = nodes.constant("middle", np.array([1]))
        total = add("ReduceSum", [add("Mul", [value, share], "counted"), middle], "sum", keepdims=0)
        number = add("ReduceSum", [share, middle], "number", keepdims=0)
        mean = add("Div", [total, add("Max", [number, one], "some")], "mean")
        length = add("ReduceL2", [mean, last], "norm", keepdims=1)
        tiny = nodes.constant("tiny", np.float32(1e-12))
        add("Div", [mean, add("Max", [length, tiny], "positive")], "embedding")

    def _block(self, value: str, name: str) -> str:
        add, sizes = self._nodes.add, self._sizes
        width = sizes.width // sizes.heads
        heads = []
        for word, order in (
            ("query", (0, 2, 1, 3)),
            ("key", (0, 2, 3, 1)),
            ("value", (0, 2, 1, 3)),
        ):
            part = self._linear(value, f"{name}.attention.self.{word}")
            part = self._nodes.reshape(part, f"{part}.parted", 0, 0, sizes.heads, width)
            heads.append(add("Transpose", [part], f"{part}.heads", perm=order))
        query, key, worth = heads
        name_ = f"{name}.attention"
        score = add("MatMul", [query, key], f"{name_}.scores")
        scale = self._nodes.constant("scale", np.float32(width**-0.5))
        score = add("Mul", [score, scale], f"{name_}.scaled")
        share = add("Add", [score, self._mask], f"{name_}.masked")
        share = add("Softmax", [share], f"{name_}.shares", axis=-1)
        seen = add("MatMul", [share, worth], f"{name_}.mixed")
        seen = add("Transpose", [seen], f"{name_}.back", perm=[0, 2, 1, 3])
        seen = self._nodes.reshape(seen, f"{name_}.joined", 0, 0, sizes.width)
        seen = self._linear(seen, f"{name_}.output.dense")
        value = self._norm(add("Add", [seen, value], f"{name_}.sum"), f"{name_}.output.LayerNorm")
        inner = self._gelu(self._linear(value, f"{name}.intermediate.dense"))
        inner = self._linear(inner, f"{name}.output.dense")
        return self._norm(add("Add", [inner, value], f"{name}.sum"), f"{name}.output.LayerNorm")

    def _gelu(self, value: str) -> str:
        add, constant = self._nodes.add, self._nodes.constant
        root, one = constant("root2", np.float32(np.sqrt(2))), constant("one", np.float32(1))
        share = add("Erf", [add("Div", [value, root], f"{value}.div")], f"{value}.erf")
        both = add("Mul", [value, add("Add", [share, one], f"{value}.share")], f"{value}.both")
        return add("Mul", [both, constant("half", np.float32(0.5))], f"{value}.gelu")

    def _linear(self, value: str, name: str) -> str:
        bias = self._weights[f"{name}.bias"]
        return self._nodes.linear(value, name, self._weights[f"{name}.weight"], bias)

    def _norm(self, value: str, name: str) -> str:
        inputs = [value, self._stored(f"{name}.weight"), self._stored(f"{name}.bias")]
        epsilon = self._sizes.epsilon
        return self._nodes.add("LayerNormalization", inputs, name, axis=-1, epsilon=epsilon)

    def _stored(self, name: str) -> str:
        return self._nodes.constant(name, self._weights[name])
