"""A draft of an imported profile: the written values, ignored keys and problems."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from simulator.importers.values import plain
from simulator.modalities.image.sections import Arithmetic
from simulator.profile.modality import sections
from simulator.profile.profile import Profile

Order = tuple[Arithmetic, str]
"""An order of normalization, and where the tool has it written."""
_WORD = re.compile(r"[a-z_][a-z0-9_]*")
_NOT_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")


@dataclass(slots=True)
class Normalization:
    """What a tool's steps do to the pixels, exactly: (x - mean) / std for each channel.

    Attributes:
        mean, std: of all steps so far, in the order of the channels.
        origins: where the steps are written.
    """

    mean: list[Fraction] = field(default_factory=lambda: [Fraction(0)] * 3)
    std: list[Fraction] = field(default_factory=lambda: [Fraction(1)] * 3)
    origins: list[str] = field(default_factory=list)

    def then(self, mean: Iterable[Fraction], std: Iterable[Fraction], *origins: str) -> None:
        """Add a step: subtract a mean and divide by a std."""
        self.mean = [m + s * more for m, s, more in zip(self.mean, self.std, mean, strict=True)]
        self.std = [s * more for s, more in zip(self.std, std, strict=True)]
        self.origins += origins

    def reverse(self) -> None:
        """Reverse the channels."""
        self.mean.reverse()
        self.std.reverse()


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
        size: the height and width of the network's input, in pixels or free, with their origin.
        statistics: mean and std on the scale 0-255, exactly.
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
        self.size: tuple[tuple[int | str, int | str], str] | None = None
        self.statistics: tuple[list[Fraction], list[Fraction]] | None = None
        self._lines: dict[str, dict[str, tuple[Any, str]]] = {}

    def write(self, section: str, field: str, value: Any, origin: str) -> None:
        """Write one field, with its origin as a comment."""
        self._lines.setdefault(section, {})[field] = (value, origin)

    def written(self, section: str, field: str) -> tuple[Any, str]:
        """Return a field as it was written, with its origin; None where it was not."""
        return self._lines.get(section, {}).get(field, (None, ""))

    def claim(self, section: str, kind: str, source: str) -> None:
        """Set the evidence of a section."""
        self.evidence[section] = (kind, source)

    def color(self, why: str, order: str = "rgb", origin: str = "") -> None:
        """Write that images are RGB, and the order of the channels that the network is fed."""
        self.whole.add("color")
        self.write("color", "format", "rgb", why)
        self.write("color", "order", order, origin or why)

    def decode(self, backend: str, exif: str, source: str, origin: str) -> None:
        """Write which library decodes, and whether it turns images by their EXIF orientation."""
        self.whole.add("decode")
        self.write("decode", "backend", backend, origin)
        self.write("decode", "exif", exif, origin)
        self.claim("decode", "native", source)

    def network(self, size: Iterable[int | str], origin: str, layout: str = "") -> None:
        """Note the height and width of the network's input for the model card: pixels, or free."""
        height, width = size
        self.size = (height, width), origin
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
        self, mean: list[Fraction], std: list[Fraction], order: Order, origin: Callable[[str], str]
    ) -> None:
        """Write mean and std on the scale 0-255, which override the model card's, and their order.

        Args:
            mean: per channel, in the order of the tensor.
            std: per channel, in the order of the tensor.
            order: in which the tool computes.
            origin: returns the origin of ``mean`` and of ``std``.
        """
        self.statistics = mean, std
        for name, numbers in (("mean", mean), ("std", std)):
            self.write("normalize", name, [float(number) for number in numbers], origin(name))
        self.write("normalize", "arithmetic", *order)

    def render(self, name: str, source: str, extends: str) -> str:
        """Return the YAML document."""
        card = "For the model card (docs/model-cards.md), which has the network's input size:"
        head = [
            f"Imported from {source} ({self.tool}) by simulate profiles import.",
            f"All other values come from {extends}; simulate profiles show lists them.",
        ]
        for title, lines in ((card, self.card), ("In the file, but ignored:", self.aside)):
            head += [title, *(f"  {line}" for line in lines)] if lines else []
        out = [f"# {plain(line)}" for line in head]
        out += ["schema: 1", f"name: {_scalar(name)}", f"summary: {_scalar(self._summary())}"]
        out.append(f"extends: {_scalar(extends)}")
        for section in (s for s in sections(self.base.spec.modality) if s in self._lines):
            fields = self._lines[section]
            out.append(f"{section}:")
            for key, (value, origin) in {**fields, **self._removed(section)}.items():
                out.append(f"  {key}: {_scalar(value)}  # {plain(origin)}")
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
