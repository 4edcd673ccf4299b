"""What a call says of code: which may run, by which interpreter, and for which model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeVar

from simulator.command.options import Group, given
from simulator.errors import UserError

O = TypeVar("O", bound=Group)  # noqa: E741


@dataclass(frozen=True, slots=True)
class Call:
    """What a call says of code.

    Attributes:
        named: the stacks and overrides that its user wrote.
        allowed: whether profiles and other documents may name code as well.
        python: the interpreter that runs Python code; None: ours.
        model: the model card or file, or the first of several; None: the built-in one.
        received: whether its options are a folder's, which others may have written.
    """

    named: frozenset[str] = frozenset()
    allowed: bool = False
    python: str | None = None
    model: str | None = None
    received: bool = False


_call: ContextVar[Call] = ContextVar("call", default=Call())  # noqa: B039  it is frozen


def current() -> Call:
    """Return what the call says that runs now."""
    return _call.get()


def may(origin: str) -> bool:
    """Whether the user of this call wrote a value, or allows code that documents name."""
    call = current()
    return call.allowed or origin.removeprefix("--set ") in call.named


@contextmanager
def calling(asked: Group) -> Iterator[None]:
    """Let the options of a call say which code may run meanwhile."""
    named: list[str] = []
    for declared, value in given(asked):
        if declared.about.kind == "profile" or declared.name in ("overrides", "recording"):
            named += value if declared.several else [value] if value is not None else []
    named += getattr(asked, "changes", ())
    allowed, python = getattr(asked, "allow_code", False), getattr(asked, "python", None)
    model = next(iter(getattr(asked, "models", ())), getattr(asked, "model", None))
    call = Call(frozenset(map(str, named)), allowed, python, model and str(model))
    if current().received:
        call = replace(call, named=frozenset(), allowed=False, received=True)
    with _set(call):
        yield


def received(by_others: bool) -> AbstractContextManager[None]:
    """Let calls run no code meanwhile, where their options are a folder's that others wrote."""
    return _set(replace(current(), received=by_others))


@contextmanager
def _set(call: Call) -> Iterator[None]:
    before = _call.set(call)
    try:
        yield
    finally:
        _call.reset(before)


class GivesOtherwise(UserError):
    """Code gives something else than the network's input, for which its user did not say so.

    Attributes:
        reference: as the user named it.
        gives: what it gives.
    """

    def __init__(self, message: str, reference: str, gives: str) -> None:
        super().__init__(message)
        self.reference, self.gives = reference, gives


def said_what_it_gives(asked: O, found: GivesOtherwise) -> O:
    """Return the options of a call in which a stack says what it gives.

    Raises:
        GivesOtherwise: no option names it.
    """
    changed: dict[str, object] = {}
    better = f"{found.reference}:{found.gives}"
    for declared, value in given(asked):
        if declared.about.kind != "profile":
            continue
        if declared.several and found.reference in value:
            changed[declared.name] = [better if v == found.reference else v for v in value]
        elif value == found.reference:
            changed[declared.name] = better
    if not changed:
        raise found
    return replace(asked, **changed)
