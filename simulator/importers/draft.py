"""A draft of an imported profile: the written values, ignored keys and problems."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from simulator.importers.values import mapping, plain, show
from simulator.modalities.image.sections import Arithmetic
from simulator.profile.document import Key
from simulator.profile.modality import sections
from simulator.profile.profile import Profile

T = TypeVar("T")
Order = tuple[Arithmetic, str]
"""An order of normalization, and where the tool has it written."""
_WORD = re.compile(r"[a-z_][a-z0-9_]*")
_NOT_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")


class Draft:
    """The result of importing a document.

    Attributes:
        base: the profile that it will extend.
        tool: the name of the document's format in comments.
        problems: one line for everything that a profile cannot express.
        aside: ignored keys of the document, each with the reason.
        card: values that belong in the model card.
        evidence: for each section its (kind, source).
        whole: sections that inherit nothing from the base.
        name: the name of the network, if the document has it.
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
        """Write one field, with its origin as a comment."""
        self._lines.setdefault(section, {})[field] = (value, origin)

    def claim(self, section: str, kind: str, source: str) -> None:
        """Set the evidence of a section."""
        self.evidence[section] = (kind, source)

    def color(self, why: str, order: str = "rgb", origin: str = "") -> None:
        """Write that images are RGB, and the order of the channels that the network is fed."""
        self.whole.add("color")
        self.write("color", "format", "rgb", why)
        self.write("color", "order", order, origin or why)

    def network(self, size: Iterable[int], origin: str, layout: str = "") -> None:
        """Note the height and width of the network's input, in pixels, for the model card."""
        height, width = size
        layout = f", layout: {layout}" if layout else ""
        self.card.append(f"input: height: {height}, width: {width}{layout} ({origin})")

    def half(self, origin: str, source: str) -> None:
        """Write FP16 weights and activations, cast into an ONNX file, with sums in FP32."""
        self.whole.add("precision")
        self.write("precision", "storage", "fp16", origin)
        self.write("precision", "compute", "fp32", "sums are FP32")
        self.write("precision", "cast", {"backend": "onnxconverter"}, "an FP16 ONNX file")
        self.claim("precision", "emulated", source)

    def normalize(
        self,
        mean: list[Fraction],
        std: list[Fraction],
        order: Order,
        origin: Callable[[str], str],
    ) -> None:
        """Write mean and std on the scale 0-255, which override the model card's, and their order.

        Args:
            mean: per channel, in the order of the tensor.
            std: per channel, in the order of the tensor.
            order: in which the tool computes.
            origin: returns the origin of ``mean`` and of ``std``.
        """
        for name, numbers in (("mean", mean), ("std", std)):
            self.write("normalize", name, [float(one) for one in numbers], origin(name))
        self.write("normalize", "arithmetic", *order)

    def render(self, name: str, source: str, extends: str) -> str:
        """Return the YAML document.

        Args:
            name: the name of the profile.
            source: the imported file, for the first comment.
            extends: the value of ``extends``.
        """
        head = [
            f"Imported from {source} ({self.tool}) by simulate profiles import.",
            f"All other values come from {extends}; simulate profiles show lists them.",
        ]
        for title, lines in (
            (
                "For the model card (docs/model-cards.md), which has the network's input size:",
                self.card,
            ),
            ("In the file, but ignored:", self.aside),
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
        return f"{of}imported from its {self.tool} file; other values from {self.base.name}"

    def _removed(self, section: str) -> dict[str, tuple[Any, str]]:
        """Return the base's fields that a completely written section must not inherit."""
        if section not in self.whole:
            return {}
        inherited = getattr(self.base.spec, section).model_dump(exclude_none=True)
        note = f"{self.base.name} has one, but this stack does not"
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
    """One mapping of the document. Every key is used, ignored with a reason, or refused.

    Args:
        draft: the draft that collects problems.
        values: the mapping.
        where: returns ``FILE:LINE`` of a place in the document.
        place: of the mapping in the document.
        prefix: what stands before its keys in messages; by default the dotted place.
        near: the part of the prefix that comments show; by default all of it.
    """

    def __init__(
        self,
        draft: Draft,
        values: Mapping[str, Any],
        where: Callable[[Key], str],
        place: Key = (),
        prefix: str | None = None,
        near: str | None = None,
    ) -> None:
        self.draft = draft
        self.values = values
        self.prefix = "".join(f"{part}." for part in place) if prefix is None else prefix
        self.near = self.prefix if near is None else near
        self._where, self._place = where, place
        self._seen: set[str] = set()
        self._told: set[str] = set()

    def inner(self, key: str) -> Keys:
        """Take a mapping inside this one; an empty one if the key is missing or refused."""
        found: dict[str, Any] = self.take(key, mapping, {})
        return Keys(self.draft, found, self._where, (*self._place, key))

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def is_seen(self, key: str) -> bool:
        """Whether a key was used, set aside or refused."""
        return key in self._seen

    def take(self, key: str, check: Callable[[Any], T], default: T) -> T:
        """Return a checked value; *default* if the key is missing or its value was refused."""
        self._seen.add(key)
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
            self._seen.add(key)
            self.problem(key, f"not written; {why}")
        return self.take(key, check, default)

    def choice(self, key: str, offered: Mapping[Any, T], default: T) -> T:
        """Return the meaning of a value; refuse values that are not in *offered*."""

        def check(value: Any) -> T:
            if isinstance(value, list | dict | float | bool):
                raise ValueError(f"one of {', '.join(map(str, offered))} expected")
            if value not in offered:
                raise ValueError(
                    f"a profile cannot express this; these can be imported: "
                    f"{', '.join(map(str, offered))}"
                )
            return offered[value]

        return self.take(key, check, default)

    def refuse(self, key: str, why: str) -> None:
        """Report that a profile cannot express a value."""
        self._seen.add(key)
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

    def aside(self, reasons: Mapping[str, str]) -> None:
        """Ignore keys that change no pixel and no logit."""
        for key in self.values:
            if key in reasons and key not in self._seen:
                self._seen.add(key)
                self._leave(key, reasons[key])

    def _leave(self, key: str, reason: str) -> None:
        self._told.add(key)
        self.draft.aside.append(f"{self.near}{key}={show(self.values[key])}: {reason}")

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
                    self._leave(key, "has no field of its own below")
            elif key not in self._seen:
                near = difflib.get_close_matches(key, {*self._seen, *(reasons or {}), *also}, n=1)
                hint = f"did you mean {near[0]}?" if near else "remove it if it changes nothing"
                if passed_over and not near:
                    self._leave(key, f"{passed_over} does not know this key and passes it over")
                else:
                    self.refuse(key, f"unknown key, which may change a pixel; {hint}")
