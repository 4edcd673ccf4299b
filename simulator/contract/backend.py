"""What a backend says of itself: its library and its offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from simulator.contract.library import Library

Options = Mapping[str, Any]
"""The fields of one profile section, without ``backend``, after they were checked."""


class Stage:
    """The names of our own stages; a package may add others (:mod:`simulator.contract.stage`)."""

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
    LOAD = "load"


class Evidence(StrEnum):
    """How we know that this is what the stack does; it travels into every report."""

    NATIVE = "native"
    VENDOR_SIMULATOR = "vendor_simulator"
    EMULATED = "emulated"
    RECORDED = "recorded"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Any integer from *low* up."""

    low: int

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= self.low

    def __str__(self) -> str:
        return f"an integer from {self.low} up"


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
        return f"a list out of {', '.join(self.names)}"


class Pairs:
    """A mapping of names to strings that the library itself checks; empty if not written."""

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


class KeepList:
    """Node names and operator types that stay as they are; none if not written."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Mapping) and set(value) == {"op_types", "nodes", "reason"}

    def __str__(self) -> str:
        return "op_types, nodes and a reason"


Admits = tuple[Any, ...] | AtLeast | Subset | Pairs | Text | KeepList
"""The values that an implementation obeys for one field."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One implementation of one stage, with exactly the values that it obeys.

    Where the admissible values of one field depend on another (Pillow antialiases
    everything but ``nearest``), a backend makes two offers.

    Attributes:
        stage: the name of the stage that it implements, one of the stage table.
        options: for each profile field of that stage which values are obeyed. A field with
            one value need not be written; every other field must be.
        make: the implementation, built from the checked options.
        evidence: how we know that this is what the stack does.
        source: where the behaviour is documented.
    """

    stage: str
    options: Mapping[str, Admits]
    make: type[Any]
    evidence: Evidence = Evidence.NATIVE
    source: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python of its own, for a library that cannot share ours.

    ``simulate backends install NAME`` makes it; the backend then runs there, as a worker
    process, and profiles do not change.

    Attributes:
        requirements: pinned, as pip takes them; the worker itself needs numpy alone.
        no_deps: pinned packages that are installed without what they ask for.
        why: why the library cannot share our interpreter.
    """

    requirements: tuple[str, ...]
    why: str
    no_deps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Backend:
    """One third-party library (or one vendor's published arithmetic), and what it offers.

    Attributes:
        name: the name that profiles use.
        summary: one line for ``simulate backends``.
        library: what has to be installed; None for arithmetic of our own.
        offers: every implementation, listed without importing the library.
        companions: what else has to be installed.
        environment: the Python of its own that it may run in, if it may.
        device: asks the library for the device that it needs: its name, or the exact reason
            why there is none, as a MissingLibrary. None where a CPU is enough.
        may_be_left_out: fields in which offers differ and which need not be written: the first
            offer's value then holds.
        fields: what each field means that is the library's own, in words for editors and new
            profiles; the field's standard words are described by the profile's schema.
    """

    name: str
    summary: str
    offers: tuple[Offer, ...]
    library: Library | None = None
    companions: tuple[Library, ...] = ()
    environment: Environment | None = None
    device: Callable[[], str] | None = None
    may_be_left_out: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)

    def of(self, stage: str) -> tuple[Offer, ...]:
        """Return the offers for *stage*."""
        return tuple(offer for offer in self.offers if offer.stage == stage)

    @property
    def libraries(self) -> tuple[Library, ...]:
        """Everything that has to be installed."""
        return (*((self.library,) if self.library else ()), *self.companions)
