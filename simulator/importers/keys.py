"""The keys of a document of another tool: each is used, ignored with a reason, or refused."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from simulator.importers import values as checks
from simulator.importers.draft import Draft
from simulator.importers.values import Object, boolean, mapping, mappings, plain, show
from simulator.profile.document import Key

T = TypeVar("T")


class Keys:
    """One mapping of the document.

    Args:
        draft: the draft that collects problems.
        values: the mapping.
        where: returns ``FILE:LINE`` of a place in the document.
        place: of the mapping in the document.
        prefix: what stands before its keys in messages; by default the dotted place.
        hidden: how many parts of the place comments leave out.
    """

    def __init__(
        self,
        draft: Draft,
        values: Object,
        where: Callable[[Key], str],
        place: Key = (),
        prefix: str | None = None,
        hidden: int = 0,
    ) -> None:
        self.draft = draft
        self.values = values
        self.prefix = _dotted(place) if prefix is None else prefix
        self.near = _dotted(place[hidden:]) if prefix is None else prefix
        self._where, self._place, self._hidden = where, place, hidden
        self._seen: set[str] = set()
        self._told: set[str] = set()
        self._inner: dict[str, Keys] = {}

    def inner(self, key: str) -> Keys:
        """Take a mapping inside this one; an empty one if the key is missing or refused."""
        if key not in self._inner:
            found: Object = self.take(key, mapping, {})
            self._inner[key] = Keys(self.draft, found, self._where, (*self._place, key))
        return self._inner[key]

    def leave_all(self, why: str) -> None:
        """List every key that nothing was taken of, those of inner mappings too."""
        for key in self.values:
            if key in self._inner:
                self._inner[key].leave_all(why)
            elif key not in self._seen:
                self.leave(key, why)

    def below(self, *place: str | int) -> Keys:
        """Return the keys of the mapping that is at a place below this one."""
        found: Any = self.values
        for part in place:
            found = found[part]
        return Keys(self.draft, found, self._where, (*self._place, *place), hidden=self._hidden)

    def mappings(self, key: str, need: str = "") -> list[Object]:
        """Take a list of mappings, empty if it is missing; *need*: why that is a problem."""
        none: list[Object] = []
        return self.need(key, mappings, none, need) if need else self.take(key, mappings, none)

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def is_seen(self, key: str) -> bool:
        """Whether a key was used, set aside or refused."""
        return key in self._seen

    def skip(self, *keys: str) -> None:
        """Count keys as used, whatever their values."""
        self._seen |= set(keys)

    def take(self, key: str, check: Callable[[Any], T], default: T) -> T:
        """Return a checked value; *default* if the key is missing or its value was refused."""
        self.skip(key)
        if key not in self:
            return default
        try:
            return check(self.values[key])
        except ValueError as error:
            self.refuse(key, str(error))
            return default

    def need(self, key: str, check: Callable[[Any], T], default: T, why: str) -> T:
        """Return a checked value; report a problem if the key is missing."""
        if key not in self:
            self.problem(key, f"not written; {why}")
        return self.take(key, check, default)

    def statistics(
        self,
        names: str = "mean std",
        mean: Sequence[float] = checks.MEAN,
        std: Sequence[float] = checks.STD,
    ) -> tuple[list[Fraction], list[Fraction]]:
        """Take mean and std from two keys, which have defaults."""
        of_mean, of_std = names.split()
        return (
            self.take(of_mean, checks.three, [checks.number(one) for one in mean]),
            self.take(of_std, checks.three_above_zero, [checks.number(one) for one in std]),
        )

    def choice(self, key: str, offered: Mapping[Any, T], default: T, need: str = "") -> T:
        """Return the meaning of a value; refuse values that are not in *offered*.

        Args:
            key: the key.
            offered: the meanings by value.
            default: what is returned if the key is missing or refused.
            need: why it is a problem if the key is missing; empty: it is none.
        """
        words = ", ".join(map(str, offered))

        def check(value: Any) -> T:
            if isinstance(value, list | dict | float | bool):
                raise ValueError(f"one of {words} expected")
            if value not in offered:
                raise ValueError(f"a profile cannot express this; these can be imported: {words}")
            return offered[value]

        return self.need(key, check, default, need) if need else self.take(key, check, default)

    def only(
        self, key: str, allowed: object, why: str, check: Callable[[Any], object] = boolean
    ) -> None:
        """Refuse every value but one, which changes nothing."""
        if self.take(key, check, allowed) != allowed:
            self.refuse(key, why)

    def refuse(self, key: str, why: str) -> None:
        """Report that a profile cannot express a value."""
        self.skip(key)
        self._note(f"{key}={show(self.values.get(key))}", key, why)

    def problem(self, key: str, why: str) -> None:
        """Report a problem with a key, without its value."""
        self._note(key, key, why)

    def _note(self, said: str, key: str, why: str) -> None:
        line = f"{self._where((*self._place, key))}: {plain(self.prefix)}{plain(said)}: {why}"
        if line not in self.draft.problems:
            self.draft.problems.append(line)

    def origin(self, key: str, default: str = "") -> str:
        """Return the origin of a value, for a comment.

        Args:
            key: the key in the document.
            default: the value that is used without the key, and why.
        """
        self._told.add(key)
        said = f"={show(self.values[key])}" if key in self else f" is not written; {default}"
        return f"from {self.draft.tool}: {self.near}{key}{said}"

    def tell(self, *keys: str) -> None:
        """Count keys as mentioned in the profile, where that is written later."""
        self._told |= set(keys)

    def leave(self, key: str, why: str) -> None:
        """List a key that has no effect, if it is written."""
        if key in self.values:
            self.skip(key)
            self._told.add(key)
            self.draft.aside.append(f"{self.near}{key}={show(self.values[key])}: {why}")

    def aside(self, reasons: Mapping[str, str]) -> None:
        """Ignore keys that change no pixel and no logit."""
        for key in self.values:
            if key in reasons and key not in self._seen:
                self.leave(key, reasons[key])

    def rest(
        self,
        reasons: Mapping[str, str] | None = None,
        also: Iterable[str] = (),
        named: Iterable[str] = (),
        passed_over: str = "",
    ) -> None:
        """Refuse every key that was neither used nor ignored; list used keys without a comment.

        Args:
            reasons: keys to ignore, as for :meth:`aside`.
            also: other keys that the importer knows, for suggestions.
            named: keys that the written profile already mentions in another way.
            passed_over: a tool that ignores keys that it does not know: then they are listed,
                and only what looks like a misspelt key is refused.
        """
        self.aside(reasons or {})
        self._told |= set(named)
        for key, value in self.values.items():
            nested = value if isinstance(value, list) else [value]
            if key in self._seen and not any(isinstance(one, dict) for one in nested):
                if key not in self._told:
                    self.leave(key, "has no field of its own below")
            elif key not in self._seen:
                near = difflib.get_close_matches(key, {*self._seen, *(reasons or {}), *also}, n=1)
                hint = f"did you mean {near[0]}?" if near else "remove it if it changes nothing"
                if passed_over and not near:
                    self.leave(key, f"{passed_over} does not know this key and passes it over")
                else:
                    self.refuse(key, f"unknown key, which may change a pixel; {hint}")


def _dotted(place: Key) -> str:
    return "".join(f"{part}." for part in place)
