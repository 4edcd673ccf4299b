"""Passes over a model on its way from the card's file to the file that a runtime opens.

The way has four phases, in this order:

``graph``      rewrites of the ONNX graph, each named by a profile's ``graph.NAME``
``export``     to another format: the exporters of backends
``precision``  weights stored in another type, or quantized: the casts and quantizers of backends
``after``      changes of the very file that the runtime opens, before the runtime compiles it

Passes of the first and of the last phase are found by entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from simulator.entry_points import Table

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True)
class GraphPass:
    """A rewrite of the ONNX graph: one axis of a profile.

    Attributes:
        name: of the axis: ``graph.NAME`` in a profile.
        order: passes are applied by rising order; ours are multiples of 100.
        schema: the type of ``graph.NAME``: a section, or a ``Literal`` of words.
        keep: the value of ``graph.NAME`` that changes nothing.
        apply: changes a model in place, as a value of ``graph.NAME`` asks, and returns a
            :class:`simulator.model.passes.graph.change.Change`.
        examples: values for the conformance suite to try, besides the single words of the schema.
    """

    phase: ClassVar[str] = "graph"
    name: str
    order: int
    schema: Any
    keep: Any
    apply: Callable[[onnx.ModelProto, Any], Any]
    examples: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class AfterPass:
    """A change of the file that a runtime opens.

    Attributes:
        name: as a :class:`Request` writes it.
        formats: of the files that it can change.
        Options: the schema of its options.
        Report: the schema of what it tells of its work.
        apply: writes a changed copy of a file, as the options ask, and returns its report. The
            two files lie in different folders; whatever else the copy needs lies in the second.
    """

    phase: ClassVar[str] = "after"
    name: str
    formats: tuple[str, ...]
    Options: type[BaseModel]
    Report: type[BaseModel]
    apply: Callable[[Path, Path, Any], BaseModel]


@dataclass(frozen=True, slots=True)
class Request:
    """One pass of the phase ``after``, asked for.

    Attributes:
        name: of the pass.
        options: plain data; the pass checks them.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


PASSES: Table[GraphPass | AfterPass] = Table(
    "simulator.graph_passes", "graph pass", lambda found: isinstance(found, GraphPass | AfterPass)
)
