"""A profile in the making: what an importer found, wrote, set aside and refused."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from simulator.importers.values import plain, show
from simulator.profile.load import Profile
from simulator.profile.modality import sections

T = TypeVar("T")
_WORD = re.compile(r"[a-z_][a-z0-9_]*")
_NOT_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")


class Draft:
    """What becomes of a document.

    Attributes:
        base: the profile that it will extend.
        tool: the document's kind, as it is called in comments.
        problems: one line for everything that a profile cannot say.
        aside: what the document says and no stack has, each with the reason.
        card: what belongs to the model card.
        evidence: section to (kind, source).
        whole: sections of which nothing is inherited from the base.
        name: of the network, where the document tells it.
    """

    def __init__(self, base: Profile, tool: str) -> None:
        self.base = base
        self.tool = tool
        self.problems: list[str] = []
        self.aside: list[str] = []
        self.card: list[str] = []
        self.evidence: dict[str, tuple[str, str]] = {}
        self.whole: set[str] = set()
        self.name = ""
        self._lines: dict[str, dict[str, tuple[Any, str]]] = {}

    def write(self, section: str, field: str, value: Any, origin: str) -> None:
        """Write one field, with where it comes from."""
        self._lines.setdefault(section, {})[field] = (value, origin)

    def claim(self, section: str, kind: str, source: str) -> None:
        """Say how we know a section."""
        self.evidence[section] = (kind, source)

    def normalize(
        self, mean: list[Fraction], std: list[Fraction], origin: Callable[[str], str]
    ) -> None:
        """Write numbers on 0-255; they override the model card's.

        Args:
            mean: per channel, in the order of the tensor.
            std: likewise.
            origin: gives the origin of ``mean`` and of ``std``.
        """
        for name, numbers in (("mean", mean), ("std", std)):
            self.write("normalize", name, [float(one) for one in numbers], origin(name))

    def render(self, name: str, source: str, extends: str) -> str:
        """Return the YAML document.

        Args:
            name: of the profile.
            source: what was imported, for the first comment.
            extends: how the base is written.
        """
        head = [
            f"Imported from {source} ({self.tool}) by simulate profiles import.",
            f"What that file does not say comes from {extends}; simulate profiles show tells it.",
        ]
        for title, lines in (
            (
                "For the model card (docs/model-cards.md), which has the network's own sizes:",
                self.card,
            ),
            ("In the file, and not written below:", self.aside),
        ):
            head += [title, *(f"  {line}" for line in lines)] if lines else []
        out = [f"# {plain(line)}" for line in head]
        out += ["schema: 1", f"name: {_scalar(name)}", f"summary: {_scalar(self._summary())}"]
        out.append(f"extends: {_scalar(extends)}")
        for section in (s for s in sections(self.base.spec.modality) if s in self._lines):
            fields = self._lines[section]
            out.append(f"{section}:")
            for field, (value, origin) in {**fields, **self._removed(section)}.items():
                out.append(f"  {field}: {_scalar(value)}  # {plain(origin)}")
        if self.evidence:
            out.append("evidence:")
        for section, (kind, said) in self.evidence.items():
            out.append(f"  {section}: {{kind: {kind}, source: {_scalar(said)}}}")
        return "\n".join(out) + "\n"

    def _summary(self) -> str:
        of = f"{plain(self.name)[:80]}, " if self.name else ""
        return (
            f"{of}imported from its {self.tool} file; what that does not say is {self.base.name}'s"
        )

    def _removed(self, section: str) -> dict[str, tuple[Any, str]]:
        """The base's fields that a section of which all is written must not inherit."""
        if section not in self.whole:
            return {}
        inherited = getattr(self.base.spec, section).model_dump(exclude_none=True)
        note = f"{self.base.name} has one, and this stack has not"
        return {f: (None, note) for f in inherited if f not in self._lines[section]}


def together(*origins: str) -> str:
    """Return several origins as one, naming the tool once."""
    first, *others = origins
    start = first[: first.find(": ") + 2] if first.startswith("from ") else ""
    return "; ".join([first, *(one.removeprefix(start) for one in others)])


def _scalar(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {_scalar(v)}' for k, v in value.items())}}}"
    if isinstance(value, float):
        digits, _, exponent = repr(value).partition("e")
        point = digits if "." in digits or not exponent else f"{digits}.0"
        sign = "" if exponent.startswith(("-", "+")) else "+"
        return f"{point}e{sign}{exponent}" if exponent else point  # YAML 1.1: 1.0e-05
    if isinstance(value, str):
        bare = _WORD.fullmatch(value) and value not in _NOT_WORDS
        return value if bare else json.dumps(plain(value), ensure_ascii=False)
    return json.dumps(value)


class Keys:
    """One mapping of the document: every key of it is taken, set aside with a reason, or refused.

    Args:
        draft: where problems go.
        values: the mapping.
        where: gives ``FILE:LINE`` of a key.
        prefix: the dotted path to the mapping, with its last dot.
        near: the end of it that comments show; all of it where it is None.
    """

    def __init__(
        self,
        draft: Draft,
        values: Mapping[str, Any],
        where: Callable[[str], str],
        prefix: str = "",
        near: str | None = None,
    ) -> None:
        self.draft = draft
        self.values = values
        self.prefix = prefix
        self.near = prefix if near is None else near
        self._where = where
        self._seen: set[str] = set()
        self._told: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def take(self, key: str, check: Callable[[Any], T], default: T) -> T:
        """Return a checked value; *default* where it is not written, or was refused."""
        self._seen.add(key)
        if key not in self:
            return default
        try:
            return check(self.values[key])
        except ValueError as error:
            self.refuse(key, str(error))
            return default

    def need(self, key: str, check: Callable[[Any], T], default: T, why: str) -> T:
        """Return a checked value; refuse the document where it is not written."""
        if key not in self:
            self._seen.add(key)
            self.problem(key, f"not written; {why}")
        return self.take(key, check, default)

    def choice(self, key: str, offered: Mapping[Any, T], default: T) -> T:
        """Return what a word stands for; words that are not offered are refused."""

        def check(value: Any) -> T:
            if isinstance(value, list | dict | float | bool):
                raise ValueError(f"one of {', '.join(map(str, offered))} expected")
            if value not in offered:
                raise ValueError(
                    f"a profile has no such thing; these can be imported: "
                    f"{', '.join(map(str, offered))}"
                )
            return offered[value]

        return self.take(key, check, default)

    def refuse(self, key: str, why: str) -> None:
        """Note that a value cannot be expressed."""
        self._seen.add(key)
        self._note(f"{key}={show(self.values.get(key))}", key, why)

    def problem(self, key: str, why: str) -> None:
        """Note a problem with a key, without its value."""
        self._note(key, key, why)

    def _note(self, said: str, key: str, why: str) -> None:
        line = f"{self._where(key)}: {plain(self.prefix)}{plain(said)}: {why}"
        if line not in self.draft.problems:
            self.draft.problems.append(line)

    def origin(self, key: str, default: str = "") -> str:
        """Say where a value comes from.

        Args:
            key: as it is written.
            default: what holds where it is not, and by whose rule.
        """
        self._told.add(key)
        said = f"={show(self.values[key])}" if key in self else f" is not written; {default}"
        return f"from {self.draft.tool}: {self.near}{key}{said}"

    def aside(self, reasons: Mapping[str, str]) -> None:
        """Set keys aside that change no pixel and no logit."""
        for key in self.values:
            if key in reasons and key not in self._seen:
                self._seen.add(key)
                self._leave(key, reasons[key])

    def _leave(self, key: str, reason: str) -> None:
        self._told.add(key)
        self.draft.aside.append(f"{self.near}{key}={show(self.values[key])}: {reason}")

    def rest(self, also: Iterable[str] = (), named: Iterable[str] = ()) -> None:
        """Refuse every key that was neither taken nor set aside; name every key that was.

        Args:
            also: keys that the reader knows besides those of this document, for suggestions.
            named: keys that the document made of it shows in another way.
        """
        self._told |= set(named)
        for key, value in self.values.items():
            nested = value if isinstance(value, list) else [value]
            if key in self._seen and not any(isinstance(one, dict) for one in nested):
                if key not in self._told:
                    self._leave(key, "has no field of its own below")
            elif key not in self._seen:
                near = difflib.get_close_matches(key, {*self._seen, *also}, n=1)
                hint = f"did you mean {near[0]}?" if near else "remove it if it changes nothing"
                self.refuse(key, f"not known here, and it may change a pixel; {hint}")
