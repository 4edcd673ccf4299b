"""The subject of a check: one offer with its options; and how checks report a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from simulator import registry
from simulator.contract import Backend, Evidence, Offer, Options, Subset
from simulator.errors import SimulatorError
from simulator.testing.values import one_line, values
from simulator.testing.workshop import Workshop


class Failed(AssertionError):
    """A check failed; the message is one line with the expected and the actual result."""


@dataclass(frozen=True)
class Subject:
    """One offer, with one value for every field.

    Attributes:
        backend: the backend that makes the offer.
        offer: the offer to check.
        options: a supported value for each of the offer's fields.
        workshop: makes model files for runtimes, exporters, casts and quantizers.
    """

    backend: Backend
    offer: Offer
    options: Options
    workshop: Workshop

    @property
    def slow(self) -> bool:
        """Whether to repeat less often: a vendor's simulator takes about a second per inference."""
        return self.offer.evidence is Evidence.VENDOR_SIMULATOR

    def make(self, *arguments: Any) -> Any:
        """Build the implementation, here or in the backend's own environment."""
        return registry.make(self.backend, self.offer, *arguments, dict(self.options))

    def changed(self, **options: Any) -> Subject:
        """Return the same offer with other values."""
        return replace(self, options={**self.options, **options})

    def variants(self) -> Iterator[tuple[Subject, ...]]:
        """Use every supported value once, with the first value for the other fields.

        Yields:
            The subject with that value. For a list there are alternatives: the name alone, or
            after the first name, if the library needs both.
        """
        yield (self,)
        for name, admits in self.offer.options.items():
            for value in values(admits)[1:]:
                if isinstance(admits, Subset):
                    both = [self.options[name][0], *value]
                    yield self.changed(**{name: value}), self.changed(**{name: both})
                else:
                    yield (self.changed(**{name: value}),)


Check = Callable[[Subject], str | None]
"""Raises Failed, or returns a remark or None; its name and docstring say what it requires."""


def first(backend: Backend, offer: Offer, workshop: Workshop) -> Subject:
    """Return an offer with the first value of each field."""
    return Subject(backend, offer, workshop.first(offer), workshop)


def words(subject: Subject, base: Subject | None = None) -> str:
    """Return the options as text; with *base* only those that differ from it."""
    pairs = subject.options.items()
    told = [(k, v) for k, v in pairs if base is None or base.options[k] != v]
    return " ".join(f"{name}={_word(value)}" for name, value in told)


def _word(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def expect(holds: object, otherwise: str) -> None:
    """Fail with *otherwise* unless something holds."""
    if not holds:
        raise Failed(otherwise)


def refused(what: str, call: Callable[..., object], *arguments: Any) -> str:
    """Expect an error message of one line, and return it.

    Args:
        what: what is wrong with the call, for the message.
        call: must raise a SimulatorError or ValueError.
        arguments: of the call.
    """
    try:
        call(*arguments)
    except (SimulatorError, ValueError) as error:
        reason = str(error).strip()
        expect(reason, f"{what}: refused without a message ({type(error).__name__})")
        expect("\n" not in reason, f"{what}: refused in several lines: {one_line(error)}")
        return reason
    except Exception as error:
        raise Failed(f"{what}: a refusal in one line expected, got {one_line(error)}") from error
    raise Failed(f"{what}: a refusal expected, but it was accepted")
