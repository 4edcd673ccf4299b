"""How a backend describes itself: its library and its offers."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from simulator.contract.library import Library
from simulator.errors import SampleError, SimulatorError, first_line

T = TypeVar("T")
V = TypeVar("V")
Options = Mapping[str, Any]
"""The checked fields of one profile section, without ``backend``."""


class Implementation(ABC):  # noqa: B024  each stage has abstract methods of its own
    """What an offer makes: one stage, done by one library.

    Args:
        options: as the offer admits them.
    """

    def __init__(self, options: Options) -> None:
        self.options = options

    def _ask(self, library: Callable[[V], T], given: V) -> T:
        """Return what a library makes of a sample; an error of its own fails that sample."""
        try:
            return library(given)
        except SimulatorError:
            raise
        except Exception as error:  # the library's own reason, whatever its type
            raise SampleError(f"{type(self).__name__}: {first_line(error)}") from error


class Stage:
    """The names of our own stages; a package may add others (:mod:`simulator.contract.stage`)."""

    FRONT_END = "front_end"
    DECODE = "decode"
    ENCODE = "encode"
    CONVERT = "convert"
    RESIZE = "resize"
    EXPORT = "export"
    CAST = "cast"
    QUANTIZE = "quantize"
    RUNTIME = "runtime"
    EXAMPLE_MODEL = "example_model"
    EXAMPLE_IMAGES = "example_images"
    MASK = "mask"
    DRAW = "draw"
    WRITE = "write"
    VIDEO = "video"
    TUNE = "tune"
    ADAPT = "adapt"
    NETWORK = "network"
    LOAD = "load"
    GRADIENT = "gradient"
    ATTACK = "attack"
    TRACK = "track"
    TRACK_METRICS = "track_metrics"
    READ = "read"
    RESAMPLE = "resample"
    STFT = "stft"
    MEL = "mel"
    VOCODE = "vocode"


class Evidence(StrEnum):
    """How we know that the stack really behaves this way; every report shows it."""

    NATIVE = "native"
    VENDOR_SIMULATOR = "vendor_simulator"
    EMULATED = "emulated"
    RECORDED = "recorded"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Any integer of at least *low*."""

    low: int

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= self.low

    def __str__(self) -> str:
        return f"an integer from {self.low} up"


@dataclass(frozen=True, slots=True)
class Above:
    """Any finite number above *low*."""

    low: float

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return self.low < value < math.inf

    def __str__(self) -> str:
        return f"a number above {self.low:g}"


@dataclass(frozen=True, slots=True)
class Subset:
    """A list of distinct names out of *names*, in any order."""

    names: tuple[str, ...]

    def __contains__(self, value: object) -> bool:
        return (
            isinstance(value, (list, tuple))
            and all(isinstance(name, str) for name in value)
            and len(set(value)) == len(value)
            and set(value) <= set(self.names)
        )

    def __str__(self) -> str:
        return f"a list with any of {', '.join(self.names)}"


class Pairs:
    """A mapping of names to strings that the library itself checks; empty by default."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Mapping) and all(
            isinstance(word, str) for pair in value.items() for word in pair
        )

    def __str__(self) -> str:
        return "a mapping of names to strings"


class Text:
    """Any words."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and bool(value.strip())

    def __str__(self) -> str:
        return "words"


@dataclass(frozen=True, slots=True)
class File:
    """The path of a file of the user's own; its content belongs to the stack's identity.

    A profile is refused if the file cannot be read. A relative path is beside the profile that
    writes it, or in the current folder; implementations get the whole path.

    Attributes:
        suffix: of the example's name.
        example: writes a small file to a path, for the conformance suite.
    """

    suffix: str
    example: Callable[[Path], None]

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and bool(value.strip())

    def __str__(self) -> str:
        return "the path of a file"


class KeepList:
    """Node names and operator types that keep their precision; none by default."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Mapping) and set(value) == {"op_types", "nodes", "reason"}

    def __str__(self) -> str:
        return "op_types, nodes and a reason"


@dataclass(frozen=True, slots=True)
class Implied:
    """A field that a profile may leave out.

    Attributes:
        admits: the values that it may have.
        value: that it has where it is left out.
    """

    admits: tuple[Any, ...] | AtLeast | Above | Text
    value: Any

    def __contains__(self, value: object) -> bool:
        return value in self.admits

    def __str__(self) -> str:
        admits = self.admits
        return ", ".join(map(str, admits)) if isinstance(admits, tuple) else str(admits)


Admits = tuple[Any, ...] | AtLeast | Above | Subset | Pairs | Text | File | KeepList | Implied
"""The values that an implementation supports for one field."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One implementation of one stage, with exactly the values that it supports.

    If the valid values of one field depend on another (Pillow antialiases everything except
    ``nearest``), the backend makes two offers.

    Attributes:
        stage: the name of the stage that it implements, as in the stage table.
        options: the supported values of each profile field of that stage. A profile may omit a
            field that has only one value; it must write every other field.
        make: builds the implementation from the checked options.
        evidence: how we know that the stack really behaves this way.
        source: where the behaviour is documented.
        present: raises MissingLibrary where the installed library cannot do this one here (a build
            without it, no device). None if the library is enough.
    """

    stage: str
    options: Mapping[str, Admits]
    make: type[Any]
    evidence: Evidence = Evidence.NATIVE
    source: str = ""
    present: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """A separate Python environment, for a library that cannot share ours.

    ``simulate backends install NAME`` creates it. The backend then runs there in a worker
    process; profiles stay the same.

    Attributes:
        requirements: pinned, in pip's syntax; the worker itself needs only numpy.
        no_deps: pinned packages that are installed without their dependencies.
        why: why the library cannot share our interpreter.
    """

    requirements: tuple[str, ...]
    why: str
    no_deps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Backend:
    """One third-party library (or one vendor's published arithmetic) and its offers.

    Attributes:
        name: the name that profiles use.
        summary: one line for ``simulate backends``.
        library: the library that must be installed; None for our own arithmetic.
        offers: every implementation, listed without importing the library.
        companions: other libraries that must be installed.
        environment: a separate Python environment for it; None if it has none.
        device: returns the name of the device that the library needs, or raises MissingLibrary with
            the exact reason why there is none. None if a CPU is enough.
        dies_of: formats of files, as :attr:`simulator.contract.Encoded.format` names them, of which
            its decoder was seen to end the whole process. These are decoded in a worker.
        may_be_left_out: fields that a profile may omit although offers differ in them; the
            first offer's value is then used.
        fields: a description of each field that only this library has, for editors and new
            profiles. The profile's schema describes the other fields.
    """

    name: str
    summary: str
    offers: tuple[Offer, ...]
    library: Library | None = None
    companions: tuple[Library, ...] = ()
    environment: Environment | None = None
    device: Callable[[], str] | None = None
    dies_of: tuple[str, ...] = ()
    may_be_left_out: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)

    def of(self, stage: str) -> tuple[Offer, ...]:
        """Return the offers for *stage*."""
        return tuple(offer for offer in self.offers if offer.stage == stage)

    def admitted(self, stage: str) -> dict[str, list[Admits]]:
        """Return what each of its offers for *stage* supports, by field."""
        found: dict[str, list[Admits]] = {}
        for offer in self.of(stage):
            for name, admits in offer.options.items():
                found.setdefault(name, []).append(admits)
        return found

    @property
    def libraries(self) -> tuple[Library, ...]:
        """All libraries that must be installed."""
        return (*((self.library,) if self.library else ()), *self.companions)
