"""Passes that turn the model card's file into the file that a runtime opens.

They run in four phases, in this order:

``graph``      rewrites of the ONNX graph, each requested by ``graph.NAME`` in a profile
``export``     conversion to another format: the exporters of backends
``precision``  weights stored in another type, or quantized: the casts and quantizers of backends
``after``      changes to the final file, before the runtime compiles or opens it

Passes of the first and the last phase are found by entry point.
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
    """A rewrite of the ONNX graph; it is one axis of a profile.

    Attributes:
        name: the name of the axis; a profile writes ``graph.NAME``.
        order: passes are applied in ascending order; ours are multiples of 100.
        schema: the type of ``graph.NAME``: a section, or a ``Literal`` of strings.
        keep: the value of ``graph.NAME`` that changes nothing.
        apply: changes a model in place according to a value of ``graph.NAME``, and returns a
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
    """A change to the file that a runtime opens.

    Attributes:
        name: the name used in a :class:`Request`.
        formats: the file formats that it can change.
        Options: the schema of its options.
        Report: the schema of its report.
        apply: writes a changed copy of a file according to the options, and returns its report.
            The two files are in different folders; other files that the copy needs go beside it.
    """

    phase: ClassVar[str] = "after"
    name: str
    formats: tuple[str, ...]
    Options: type[BaseModel]
    Report: type[BaseModel]
    apply: Callable[[Path, Path, Any], BaseModel]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to run one pass of the phase ``after``.

    Attributes:
        name: the name of the pass.
        options: plain data, checked by the pass.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


PASSES: Table[GraphPass | AfterPass] = Table(
    "simulator.graph_passes", "graph pass", lambda found: isinstance(found, GraphPass | AfterPass)
)
