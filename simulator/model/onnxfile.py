"""ONNX files: opened with suspicion."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from simulator.errors import ModelError
from simulator.model.card import Card, tensor_shape
from simulator.model.graph.pooling import POOLS


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """A file that passed the checks.

    Attributes:
        path: where it is.
        digest: SHA-256 of the file and of its external data.
        input: the name of its one input.
        outputs: the shape of each output, None where a dimension is free; in the file's order.
        pools: how many MaxPool and AveragePool nodes it has.
    """

    path: Path
    digest: str
    input: str
    outputs: Mapping[str, tuple[int | None, ...]]
    pools: int

    def wanted(self, card: Card) -> dict[str, tuple[int | None, ...]]:
        """Return the outputs that a card needs, with their shapes.

        Raises:
            ModelError: the file has no such output.
        """
        names = card.task.outputs() or (next(iter(self.outputs)),)
        for name in names:
            if name not in self.outputs:
                got = ", ".join(f"{n} {shape_words(s)}" for n, s in self.outputs.items())
                raise ModelError(
                    f"{card.path}: output: {self.path.name} has no output {name!r}; it has {got}"
                )
        return {name: self.outputs[name] for name in names}


def load(path: Path) -> onnx.ModelProto:
    """Load a model with its external data, which must lie inside the model's folder.

    Raises:
        ModelError: the file is no ONNX model, or names data outside its folder.
    """
    return _load(path)[0]


def _load(path: Path) -> tuple[onnx.ModelProto, list[Path]]:
    """A model, and the files of its external data; loading clears where they were."""
    try:
        model = onnx.load(str(path), format="protobuf", load_external_data=False)
    except (DecodeError, ValueError, OSError) as error:
        raise ModelError(f"{path}: not an ONNX model: {_line(error)}") from error
    if not model.graph.node:
        raise ModelError(f"{path}: not an ONNX model, or an empty one: it has no nodes")
    files = sorted(set(_external_files(path, model)))
    for file in files:
        if not file.is_file():
            raise ModelError(f"{path}: its external data {file.name} is missing; copy it along")
    try:
        onnx.load_external_data_for_model(model, str(path.parent))
    except (onnx.checker.ValidationError, ValueError, OSError) as error:
        raise ModelError(f"{path}: its external data cannot be used: {_line(error)}") from error
    return model, files


def check(card: Card) -> OnnxFile:
    """Check that a card's model is sound and fits the card.

    Raises:
        ModelError: saying which expectation does not hold, expected and got.
    """
    path = card.model
    model, files = _load(path)
    try:
        onnx.checker.check_model(str(path))
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        raise ModelError(f"{path}: not a valid ONNX model: {_line(error)}") from error
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != 1:
        names = ", ".join(value.name for value in inputs) or "none"
        raise ModelError(f"{path}: one input expected, got {len(inputs)} ({names})")
    if not graph.output:
        raise ModelError(f"{path}: the model has no output")
    _check_input(card, inputs[0])
    digest = hashlib.sha256(path.read_bytes())
    for file in files:
        digest.update(file.read_bytes())
    found = OnnxFile(
        path,
        digest.hexdigest(),
        inputs[0].name,
        {value.name: _dims(value) for value in graph.output},
        sum(node.op_type in POOLS for node in graph.node),
    )
    try:
        card.task.check(found.wanted(card))
    except ModelError as error:
        raise ModelError(f"{card.path}: {path.name}: {error}") from error
    return found


def _check_input(card: Card, value: onnx.ValueInfoProto) -> None:
    tensor = value.type.tensor_type
    if tensor.elem_type != onnx.TensorProto.FLOAT:
        got = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
        raise ModelError(f"{card.model}: input {value.name!r} is {got}; float32 expected")
    wanted = card.spec.input
    shape = tensor_shape(wanted)
    got_shape = _dims(value)
    fits = len(got_shape) == 4 and all(
        got in (None, want) for got, want in zip(got_shape, shape, strict=True)
    )
    if not fits:
        raise ModelError(
            f"{card.model}: input {value.name!r} is {shape_words(got_shape)}, "
            f"the card {card.path.name} makes {shape_words(shape)} ({wanted.layout})"
        )


def _dims(value: onnx.ValueInfoProto) -> tuple[int | None, ...]:
    dims = value.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") else None for d in dims)


def _external_files(path: Path, model: onnx.ModelProto) -> list[Path]:
    folder = path.parent.resolve()
    files = []
    for tensor in _tensors(model.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        location = next((e.value for e in tensor.external_data if e.key == "location"), "")
        file = (folder / location).resolve()
        if not location or not file.is_relative_to(folder):
            raise ModelError(
                f"{path}: tensor {tensor.name!r} keeps its data in {location!r}, outside the "
                "model's folder; refused"
            )
        files.append(file)
    return files


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Every constant, those in attributes and in branches of If and Loop included."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        for inner in (attribute.g, *attribute.graphs):
            yield from _tensors(inner)


def shape_words(dims: Sequence[int | None]) -> str:
    """Write a shape as 1x3x?x?."""
    return "x".join("?" if d is None else str(d) for d in dims) or "of no known shape"


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
