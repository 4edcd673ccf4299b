"""OpenVINO's IR: the layers and edges of an ``.xml``, and small constants of its ``.bin``.

Source: OpenVINO documentation, "Operation Specifications", "IR format". The file is hostile input:
a document type, with which entities could expand, is refused, and only what is read is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from simulator.errors import ProfileError
from simulator.files import LARGE, open_file
from simulator.importers.values import plain

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
    """

    kind: str
    name: str
    line: int
    data: dict[str, str] = field(default_factory=dict)
    marked: bool = False
    inputs: list[str] = field(default_factory=list)
    dims: list[list[int]] = field(default_factory=list)


@dataclass(slots=True)
class Graph:
    """The layers of a file by their ids, and for each the sources and the users of its ports."""

    path: Path
    layers: dict[str, Layer] = field(default_factory=dict)
    sources: dict[str, dict[int, str]] = field(default_factory=dict)
    users: dict[str, list[str]] = field(default_factory=dict)

    def constant(self, layer: str, port: int) -> NDArray[np.float64] | None:
        """Return the values of a constant that a layer takes; None if it takes none there.

        Raises:
            ProfileError: the ``.bin`` beside the file is missing or too short.
        """
        found = self.layers.get(self.sources.get(layer, {}).get(port, ""))
        kind = _TYPES.get(found.data.get("element_type", "")) if found else None
        if found is None or found.kind != "Const" or kind is None:
            return None
        try:
            start, size = int(found.data["offset"]), int(found.data["size"])
        except (KeyError, ValueError):
            return None
        if not 0 <= start <= LARGE or not 0 < size <= _MOST:
            return None
        values = np.frombuffer(self._bytes(start, size), kind)
        return values.astype(np.float64)

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


class _Refused(Exception):
    """The file has what is not read."""


class _Reader:
    """Collects layers and edges; see the handlers of :mod:`xml.parsers.expat`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._document_type
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._open: list[str] = []
        self._layer: Layer | None = None
        self._chars = ""

    def _document_type(self, *_: object) -> None:
        raise _Refused("a document type, which OpenVINO never writes, is not read")

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if len(self._open) > 64:
            raise _Refused("nested too deeply")
        inside = self._open[1:2]
        self._open.append(name)
        self._chars = ""
        layer = self._layer
        if self._open == ["net", "layers", "layer"]:
            kind, title = attributes.get("type", ""), attributes.get("name", "")
            self._layer = Layer(kind, title, self.parser.CurrentLineNumber)
            self.graph.layers[attributes.get("id", "")] = self._layer
        elif inside == ["edges"]:
            self._edge(attributes)
        elif layer is not None and len(self._open) == 4 and name == "data":
            layer.data = dict(attributes)
        elif layer is not None and name == "port" and self._open[3:4] == ["input"]:
            layer.inputs.append(attributes.get("precision", ""))
        elif layer is not None and name == "port":
            layer.dims.append([])
        elif layer is not None and self._open[3:] == ["rt_info", "attribute"]:
            layer.marked |= attributes.get("name") == "preprocessing"

    def _edge(self, attributes: Mapping[str, str]) -> None:
        source, layer = attributes.get("from-layer", ""), attributes.get("to-layer", "")
        port = attributes.get("to-port", "")
        self.graph.sources.setdefault(layer, {})[int(port) if port.isdecimal() else -1] = source
        self.graph.users.setdefault(source, []).append(layer)

    def _text(self, text: str) -> None:
        self._chars += text[:32]

    def _end(self, name: str) -> None:
        layer = self._layer
        if layer is not None and name == "dim" and "output" in self._open and layer.dims:
            said = self._chars.strip()
            layer.dims[-1].append(int(said) if said.isdecimal() and len(said) < 10 else -1)
        self._open.pop()
        if len(self._open) < 3:
            self._layer = None


def graph_of(path: Path, raw: str) -> Graph:
    """Return the graph of a file.

    Args:
        path: the ``.xml``; constants are read from the ``.bin`` beside it.
        raw: its text.

    Raises:
        ProfileError: it is no XML, or not an IR.
    """
    graph = Graph(path)
    reader = _Reader(graph)
    try:
        reader.parser.Parse(raw, True)
    except expat.ExpatError as error:
        why = expat.ErrorString(error.code)
        raise ProfileError([f"{path}:{error.lineno}: not XML: {plain(why)}"]) from error
    except _Refused as error:
        line = reader.parser.CurrentLineNumber
        raise ProfileError([f"{path}:{line}: {error}"]) from error
    if not any(layer.kind == "Parameter" for layer in graph.layers.values()):
        raise ProfileError([f"{path}: not an OpenVINO model: no layer of type Parameter"])
    return graph
