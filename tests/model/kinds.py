"""A modality for tests: token ids and a mask, of a length that each sample or the card decides."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Annotated, Any, Literal

import numpy as np
import tiny
from onnx import TensorProto, helper, numpy_helper
from pydantic import Field

from simulator.modalities.card import CardInput, CardSpec
from simulator.modalities.modality import MODALITIES, Feed, Modality
from simulator.profile.schema import ProfileSpec


class TokensInput(CardInput):
    kind: Literal["tokens"] = "tokens"
    length: Annotated[int, Field(ge=1)] | None = None


class TokensCard(CardSpec):
    input: TokensInput


class Tokens(Modality):
    name = "tokens"
    unit = "text"
    suffixes = (".txt",)
    Spec = ProfileSpec
    Card = TokensCard

    def read(self, name, path):
        raise NotImplementedError

    def feeds(self, card: Any):
        shape = (1, card.input.length)
        return Feed("ids", np.dtype(np.int64), shape), Feed("mask", np.dtype(np.bool_), shape)

    def front_end(self, profile, choices, card):
        raise NotImplementedError

    def placing(self, profile, card):
        raise NotImplementedError


class Plain(Tokens):
    """One input without a name, of the type and shape that the test asks for."""

    name = "plain"
    feed: Feed

    def feeds(self, card: Any):
        return (self.feed,)


class PlainInput(CardInput):
    kind: Literal["plain"] = "plain"


class PlainCard(CardSpec):
    input: PlainInput


Plain.Card = PlainCard


def install(monkeypatch, *modalities):
    """Add modalities to the table, as entry points would."""
    for one in modalities:
        point = EntryPoint(one.name, "kinds:ONE", "simulator.modalities")
        monkeypatch.setitem(MODALITIES.points, one.name, point)
        monkeypatch.setitem(MODALITIES._loaded, one.name, one)


def network(shape=("n", "length"), ids=TensorProto.INT64, mask=TensorProto.BOOL):
    """Three logits: the mean over the tokens under the mask of a table's rows, times a matrix."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("Cast", ["mask"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["kept", "last"], ["column"]),
        helper.make_node("Mul", ["rows", "column"], ["masked"]),
        helper.make_node("MatMul", ["masked", "w"], ["products"]),
        helper.make_node("ReduceMean", ["products"], ["y"], axes=[1], keepdims=0),
    ]
    rng = np.random.default_rng(0)
    constants = {
        "table": rng.normal(size=(10, 4)).astype(np.float32),
        "last": np.array([-1]),
        "w": rng.normal(size=(4, 3)).astype(np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "tokens",
        [
            helper.make_tensor_value_info("ids", ids, shape),
            helper.make_tensor_value_info("mask", mask, shape),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def card(folder, proto=None, **given):
    """A card for that network."""
    return tiny.card(folder, proto or network(), input={"kind": "tokens", **given}, geometry=None)
