"""Passes that turn the model card's file into the file that a runtime opens.

They run in four phases, in this order:

``graph``      rewrites of the ONNX graph, each requested by ``graph.NAME`` in a profile
``export``     conversion to another format: the exporters of backends
``precision``  weights stored in another type, or quantized: the casts and quantizers of backends
``after``      changes to the final file, before the runtime compiles or opens it

Passes of the first and the last phase are found by entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from simulator.contract.frame import Array
from simulator.entry_points import Table

if TYPE_CHECKING:
    import onnx

Feeds = Mapping[str, Array]
"""Arrays by the names of a network's inputs or outputs."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The samples that a pass is fitted to.

    Attributes:
        samples: how many.
        source: ``data``: drawn from the evaluated samples; otherwise what ``--data`` takes.
        through: the stacks whose preprocessing they go through: ``train``, ``deploy`` or both.
    """

    samples: int
    source: str
    through: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fitting:
    """What a pass computes its constants from.

    Attributes:
        identity: what the samples, their preprocessing and *run* depend on, as JSON.
        samples: yields for each sample the network's inputs, one for each of ``Wanted.through``.
        run: opens an FP32 model for as long as the context lasts; its function takes the inputs
            and returns the outputs by name.
        remarks: on the samples, known once they were read; kept with what is fitted.
    """

    identity: Any
    samples: Callable[[], Iterator[tuple[Feeds, ...]]]
    run: Callable[[onnx.ModelProto], AbstractContextManager[Callable[[Feeds], Feeds]]]
    remarks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fit:
    """How the constants of a pass are computed from samples.

    Attributes:
        wanted: tells for a value of ``graph.NAME`` which samples are needed; None: it needs none.
        constants: computes from a model, a value and a fitting what ``GraphPass.apply`` takes as
            its third argument.
    """

    wanted: Callable[[Any], Wanted | None]
    constants: Callable[[onnx.ModelProto, Any, Fitting], Any]


@dataclass(frozen=True, slots=True)
class GraphPass:
    """A rewrite of the ONNX graph; it is one axis of a profile.

    Attributes:
        name: the name of the axis; a profile writes ``graph.NAME``.
        order: passes are applied in ascending order; ours are multiples of 100.
        schema: the type of ``graph.NAME``: a section, or a ``Literal`` of strings.
        keep: the value of ``graph.NAME`` that changes nothing.
        apply: changes a model in place according to a value of ``graph.NAME``, and returns a
            :class:`simulator.model.passes.graph.change.Change`. With *fit*, a third argument is
            what was fitted; without it, apply tells only which nodes it would change.
        examples: values for the conformance suite to try, besides the single words of the schema.
        fit: how its constants are computed from samples; None for a pass without any.
    """

    phase: ClassVar[str] = "graph"
    name: str
    order: int
    schema: Any
    keep: Any
    apply: Callable[..., Any]
    examples: tuple[Any, ...] = ()
    fit: Fit | None = None

    def wanted(self, value: Any) -> Wanted | None:
        """Return the samples that a value of ``graph.NAME`` needs; None: it needs none."""
        return self.fit.wanted(value) if self.fit else None

    def change(self, model: onnx.ModelProto, value: Any, fitting: Fitting | None) -> Any:
        """Fit the constants where there is something to fit them to, and apply the pass."""
        if self.fit and fitting and self.wanted(value):
            return self.apply(model, value, self.fit.constants(model, value, fitting))
        return self.apply(model, value)


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
    options: Mapping[str, object] = field(default_factory=dict)


PASSES: Table[GraphPass | AfterPass] = Table(
    "simulator.graph_passes", "graph pass", lambda found: isinstance(found, GraphPass | AfterPass)
)
