"""OpenVINO's IR: the layers and edges of an ``.xml``, and small constants of its ``.bin``.

Source: OpenVINO documentation, "Operation Specifications", "IR format".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from simulator.errors import ProfileError, harmless
from simulator.files import LARGE, open_file
from simulator.markup import Node, NotXmlError, parse

_TYPES = {"f32": "<f4", "f16": "<f2", "f64": "<f8", "i32": "<i4", "i64": "<i8"}
_MOST = 1024
"""Bytes of a constant; a mean is 12."""


@dataclass(slots=True)
class Layer:
    """One operation.

    Attributes:
        kind: its type, for example ``Convert``.
        name: its name.
        line: of the file.
        data: its attributes.
        marked: whether OpenVINO's PrePostProcessor marked it as its own.
        inputs: the element types of its input ports, in their order.
        dims: the sides of each output port; -1 for one that varies.
        gives: the element type of each output port.
        names: of the tensor of its first output port; empty: it has none.
    """

    kind: str
    name: str
    line: int
    data: dict[str, str]
    marked: bool
    inputs: list[str]
    dims: list[list[int]]
    gives: list[str]
    names: str


@dataclass(slots=True)
class Graph:
    """The layers of a file by their ids.

    Attributes:
        path: the ``.xml``.
        layers: by id.
        sources: of each layer, the layer that feeds each of its input ports.
        users: of each layer, those that it feeds.
        said: the values of ``rt_info`` of the model, by dotted names.
    """

    path: Path
    layers: dict[str, Layer]
    sources: dict[str, dict[int, str]] = field(default_factory=dict)
    users: dict[str, list[str]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def constant(self, layer: str, port: int) -> NDArray[np.float64] | None:
        """Return the values of a constant that a layer takes; None if it takes none there.

        Raises:
            ProfileError: the ``.bin`` beside the file is missing or too short.
        """
        source = self.sources.get(layer, {}).get(port, "")
        found = self.layers.get(source)
        if found and found.kind == "Convert":  # constants of a file compressed to FP16
            found = self.layers.get(self.sources.get(source, {}).get(0, ""))
        if found is None or found.kind != "Const":
            return None
        try:
            kind = np.dtype(_TYPES[found.data["element_type"]])
            start, size = int(found.data["offset"]), int(found.data["size"])
        except (KeyError, ValueError):
            return None
        if not 0 <= start <= LARGE or not 0 < size <= _MOST or size % kind.itemsize:
            return None
        return np.frombuffer(self._bytes(start, size), kind).astype(np.float64)

    def _bytes(self, start: int, size: int) -> bytes:
        weights = self.path.with_suffix(".bin")
        try:
            with open_file(weights, LARGE) as file:
                file.seek(start)
                found = file.read(size)
        except OSError as error:
            why = error.strerror or error
            said = f"it has the numbers of mean and scale, and cannot be read: {why}"
            raise ProfileError([f"{weights}: {said}"]) from error
        if len(found) != size:
            raise ProfileError([f"{weights}: too short for {self.path.name}"])
        return found


def graph_of(path: Path, raw: str) -> Graph:
    """Return the graph of a file.

    Args:
        path: the ``.xml``; constants are read from the ``.bin`` beside it.
        raw: its text.

    Raises:
        ProfileError: it is no XML, or not an IR.
    """
    try:
        root = parse(raw)
    except NotXmlError as error:
        raise ProfileError([f"{path}:{error.line}: {harmless(str(error))}"]) from error
    graph = Graph(path, {one.get("id", ""): _layer(one) for one in root.findall("layers/layer")})
    for edge in root.findall("edges/edge"):
        source, layer = edge.get("from-layer", ""), edge.get("to-layer", "")
        port = edge.get("to-port", "")
        graph.sources.setdefault(layer, {})[int(port) if port.isdecimal() else -1] = source
        graph.users.setdefault(source, []).append(layer)
    graph.said.update(_said(root.find("rt_info"), ()))
    if not any(layer.kind == "Parameter" for layer in graph.layers.values()):
        raise ProfileError([f"{path}: not an OpenVINO model: no layer of type Parameter"])
    return graph


def _said(found: Element | None, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for one in () if found is None else found:
        name = (*above, one.get("name") or one.tag)
        if (value := one.get("value")) is not None:
            yield ".".join(name), value
        yield from _said(one, name)


def _layer(found: Element) -> Layer:
    data = found.find("data")
    return Layer(
        found.get("type", ""),
        found.get("name", ""),
        found.line if isinstance(found, Node) else 0,
        {} if data is None else data.attrib,
        any(one.get("name") == "preprocessing" for one in found.findall("rt_info/attribute")),
        [port.get("precision", "") for port in found.findall("input/port")],
        [[_side(dim) for dim in port.findall("dim")] for port in found.findall("output/port")],
        [port.get("precision", "") for port in found.findall("output/port")],
        next((port.get("names", "") for port in found.findall("output/port")), ""),
    )


def _side(dim: Element) -> int:
    said = (dim.text or "").strip()
    return int(said) if said.isdecimal() and len(said) < 10 else -1
