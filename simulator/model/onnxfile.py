"""The file that a card names: loading and checking."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper

from simulator.contract import Port
from simulator.contract.model import shape_words
from simulator.contract.model_format import Contents
from simulator.errors import ModelError, first_line, shortened
from simulator.files import LARGE, check_file, read_file
from simulator.modalities.modality import Feed
from simulator.model.card import Card
from simulator.model.passes.graph import edit
from simulator.model.passes.pooling import POOLS

MANY = 8
"""More names are not told one by one."""
PROTOBUF = 2**31
"""Bytes of a model without its external data; Protocol Buffers know no more."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that passed the checks.

    What only the runtime can read takes and gives what the runtime says; there ``inputs`` are the
    card's, and ``outputs`` is empty.

    Attributes:
        path: where it is.
        digest: SHA-256 of all files of the format that the card names, with their external data.
        inputs: the inputs that must be fed, in the file's order.
        outputs: the shape of each output, in the file's order; None for a free dimension.
        pools: the number of MaxPool and AveragePool nodes; 0 for another file than ONNX.
        format: the name of a model format.
        second: the file of the card's second network; None where it has one only.
    """

    path: Path
    digest: str
    inputs: Mapping[str, Port]
    outputs: Mapping[str, tuple[int | None, ...]]
    pools: int
    format: str = "onnx"
    second: ModelFile | None = None

    @property
    def networks(self) -> tuple[ModelFile, ...]:
        """The file, and that of the second network."""
        return (self, self.second) if self.second else (self,)

    @property
    def input(self) -> str:
        """The name of its one input.

        Raises:
            ModelError: it has several.
        """
        if len(self.inputs) != 1:
            raise ModelError(f"{self.path}: one input expected, got {_several(self.inputs)}")
        return next(iter(self.inputs))

    def wanted(self, card: Card) -> dict[str, tuple[int | None, ...]]:
        """Return the outputs that a card needs, with their shapes.

        Raises:
            ModelError: the file has no such output, or does not say what it gives.
        """
        if not self.outputs:
            raise ModelError(f"{card.path}: recorded outputs need model: FILE.onnx in the card")
        names = (*(card.outputs or (next(iter(self.outputs)),)), *card.carried.values())
        for name in names:
            if name not in self.outputs:
                got = ", ".join(f"{n} {shape_words(s)}" for n, s in self.outputs.items())
                raise ModelError(
                    f"{card.path}: output: {self.path.name} has no output {name!r}; it has {got}"
                )
        return {name: self.outputs[name] for name in names}


def load(path: Path) -> onnx.ModelProto:
    """Load a model with its external data, which must be inside the model's folder.

    Raises:
        ModelError: the file is not an ONNX model, or names data outside its folder.
    """
    return _load(path)[0]


def structure(path: Path) -> tuple[onnx.ModelProto, list[Path]]:
    """Load a model without its external data, and find the files of that data.

    Raises:
        ModelError: as for :func:`load`, or a file of external data is missing.
    """
    try:
        model = onnx.load_model_from_string(read_file(path, PROTOBUF))
    except DecodeError as error:
        raise ModelError(f"{path}: not an ONNX model, or only a part of one") from error
    except (ValueError, OSError) as error:
        raise ModelError(f"{path}: not an ONNX model: {first_line(error)}") from error
    if not model.graph.node:
        raise ModelError(f"{path}: not an ONNX model, or an empty one: it has no nodes")
    files = sorted(set(_external_files(path, model)))
    for file in files:
        try:
            check_file(file, LARGE)
        except FileNotFoundError as error:
            name = shortened(file.name)
            raise ModelError(f"{path}: its external data {name} is missing; copy it too") from error
        except OSError as error:
            name = shortened(file.name)
            raise ModelError(
                f"{path}: its external data {name} cannot be read: {error.strerror}"
            ) from error
    return model, files


def _load(path: Path) -> tuple[onnx.ModelProto, list[Path]]:
    """Return a model and the files of its external data; loading the data removes their names."""
    model, files = structure(path)
    try:
        onnx.load_external_data_for_model(model, str(path.parent))
    except (onnx.checker.ValidationError, ValueError, OSError) as error:
        raise ModelError(
            f"{path}: its external data cannot be used: {first_line(error)}"
        ) from error
    return model, files


def contents(path: Path) -> Contents:
    """Check that an ONNX file is valid, and read what it takes and gives.

    Raises:
        ModelError: it is not; the message says what is wrong.
    """
    model, files = _load(path)
    try:
        onnx.checker.check_model(str(path))
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        raise ModelError(f"{path}: not a valid ONNX model: {first_line(error)}") from error
    if not model.graph.output:
        raise ModelError(f"{path}: the model has no output")
    outputs = {value.name: dims(value) for value in model.graph.output}
    return Contents(_inputs(path, model), outputs, (path, *files), model.graph)


def check(card: Card) -> ModelFile:
    """Check that a card's model is valid and fits the card.

    Raises:
        ModelError: it does not; the message says what was expected and what was found.
    """
    path, format = card.model, card.format
    found = format.read(path)
    try:
        named = [file for one in card.networks for file in one.named[format.name].values()]
        digest = format.digest(named, None if card.second else found)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    if found is None:
        ports = (
            Port(feed.name or "input", np.dtype(feed.dtype), feed.shape) for feed in card.feeds
        )
        return ModelFile(path, digest, {port.name: port for port in ports}, {}, 0, format.name)
    _check_inputs(card, found.inputs)
    nodes = found.graph.node if found.graph else ()
    pools = sum(node.op_type in POOLS for node in nodes)
    own = found.graph and card.is_first
    if own and (problem := card.modality.problem(card.spec, found.graph)):
        raise ModelError(f"{card.path}: {path.name}: {problem}")
    second = check(card.second) if card.second else None
    made = ModelFile(path, digest, found.inputs, found.outputs, pools, format.name, second)
    shapes = made.wanted(card)
    try:
        if second is None:
            card.task.check(shapes)
        else:
            assert card.second is not None
            card.task.check_handed(shapes, second.inputs, second.wanted(card.second))
    except ModelError as error:
        raise ModelError(f"{card.path}: {path.name}: {error}") from error
    return made


def named(feeds: Sequence[Feed], inputs: Sequence[str]) -> dict[str, Feed]:
    """Return feeds by input name; a feed without a name belongs to the only input."""
    if len(feeds) == len(inputs) == 1 and feeds[0].name is None:
        return {inputs[0]: feeds[0]}
    return {feed.name: feed for feed in feeds if feed.name is not None}


def _inputs(path: Path, model: onnx.ModelProto) -> dict[str, Port]:
    found = {}
    for value in edit.inputs_of(model):
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            what = str(kind).removesuffix("_type")
            raise ModelError(f"{path}: input {value.name!r} is a {what}; a tensor expected")
        number = value.type.tensor_type.elem_type
        try:
            dtype = helper.tensor_dtype_to_np_dtype(number)
        except KeyError:
            raise ModelError(f"{path}: input {value.name!r} has no type") from None
        found[value.name] = Port(value.name, np.dtype(dtype), dims(value))
    return found


def _check_inputs(card: Card, inputs: Mapping[str, Port]) -> None:
    feeds = card.feeds
    fed = named(feeds, list(inputs))
    if len(feeds) != len(inputs) or set(fed) != set(inputs):
        wanted = ", ".join(feed.name or "one input" for feed in feeds)
        if max(len(fed), len(inputs)) > MANY:
            more, missing = (
                [a for a in one if a not in two] for one, two in ((inputs, fed), (fed, inputs))
            )
            raise ModelError(
                f"{card.model}: it takes {_several(more)} that the card does not name, and lacks "
                f"{_several(missing)} of the card's inputs"
            )
        raise ModelError(f"{card.model}: {wanted} expected, got {_several(inputs)}")
    for name, port in inputs.items():
        feed = fed[name]
        rounded = port.dtype == np.float16 and feed.dtype == np.float32
        if port.dtype != feed.dtype and not rounded:
            raise ModelError(
                f"{card.model}: input {name!r} is {port.dtype.name}; {feed.dtype.name} expected"
            )
        fits = len(port.shape) == len(feed.shape) and all(
            got is None or want is None or got == want
            for got, want in zip(port.shape, feed.shape, strict=True)
        )
        if not fits:
            raise ModelError(
                f"{card.model}: input {name!r} is {shape_words(port.shape)}, the card "
                f"{card.path.name} makes {shape_words(feed.shape)}"
                + (f" ({feed.axes})" if feed.axes else "")
            )


def _several(names: Collection[str]) -> str:
    first = list(islice(names, MANY)) + ["…"] * (len(names) > MANY)
    return f"{len(names)} ({', '.join(first) or 'none'})"


def dims(value: onnx.ValueInfoProto) -> tuple[int | None, ...]:
    """Return the shape of an input or output; None for a free dimension."""
    found = value.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") else None for d in found)


def _external_files(path: Path, model: onnx.ModelProto) -> list[Path]:
    folder = path.parent.resolve()
    files = []
    for tensor in tensors(model.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        location = next((e.value for e in tensor.external_data if e.key == "location"), "")
        told = f"{path}: tensor {shortened(tensor.name)!r} keeps its data in "
        try:
            file = (folder / location).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # too long, a NUL, links in a circle
            raise ModelError(f"{told}{shortened(location)!r}, which is no file's name") from error
        if not location or not file.is_relative_to(folder):
            raise ModelError(
                f"{told}{shortened(location)!r}, outside the model's folder; this is refused"
            )
        files.append(file)
    return files


def tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield every constant, including those in attributes and in the bodies of If and Loop."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        for inner in (attribute.g, *attribute.graphs):
            yield from tensors(inner)
