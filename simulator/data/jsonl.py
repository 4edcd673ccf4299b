"""Texts in a JSONL file as samples: one JSON object a line, whose keys a data card names."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from simulator import cache
from simulator.data.folder import Dataset, Files, Item
from simulator.data.format import DataCard, DataFormat, DataSpec
from simulator.data.labels import Labels, read_text
from simulator.data.tally import Tally
from simulator.errors import DataError
from simulator.limits import CHOICES

Line = Mapping[str, object]
Request = dict[str, object]
"""What the model is asked; see docs/texts.md."""
Made = tuple[list[Request], Any]
"""The requests of a sample, and its truth."""
_KEY = re.compile(r"\{([^{}]+)\}")
_STRIPS: dict[str, Callable[[str], str]] = {
    "left": str.lstrip, "right": str.rstrip, "both": str.strip, "none": str,
}  # fmt: skip
_CONTEXT = "what the model reads; {key} stands for the text of a key"
_DELIMITER = "what stands between a context and its continuation"
_GOLD = "the key of the right one's index, from 0; none: no truth"


class Left(Exception):
    """A line that is left out, with the reason."""


class JsonlSpec(DataSpec):
    """What every card of a JSONL file says."""

    file: str = Field(description="the JSONL file")
    context: str | None = Field(default=None, description=_CONTEXT)
    strip: Literal["none", "left", "right", "both"] = Field(
        default="none", description="where blanks are cut off a key's text in `context`"
    )
    first: Annotated[int, Field(ge=0)] = Field(default=0, description="the first line, from 0")
    last: Annotated[int, Field(ge=0)] | None = Field(default=None, description="the last line")


class _WithContext(JsonlSpec):
    context: str = Field(description=_CONTEXT)


class MultipleChoiceSpec(JsonlSpec):
    """Questions with choices, or with contexts of which one fits a continuation."""

    choices: str | None = Field(default=None, description="the key of a list of continuations")
    contexts: str | None = Field(default=None, description="the key of a list of contexts")
    continuation: str | None = Field(
        default=None, description="what follows each of `contexts`; {key} as in `context`"
    )
    gold: str | None = Field(default=None, description=_GOLD)
    delimiter: str = Field(description=_DELIMITER)

    @model_validator(mode="after")
    def _either(self) -> MultipleChoiceSpec:
        one = self.context is not None and self.choices is not None
        other = self.contexts is not None and self.continuation is not None
        given = (self.context, self.choices, self.contexts, self.continuation)
        if one == other or sum(value is not None for value in given) != 2:
            raise ValueError("either context and choices, or contexts and continuation, expected")
        return self


class NextWordSpec(_WithContext):
    """Passages whose last word is looked for."""

    continuation: str = Field(description="the word; {key} as in `context`")
    delimiter: str = Field(description=_DELIMITER)


class GenerationSpec(_WithContext):
    """Texts to be written on."""

    answer: str | None = Field(
        default=None, description="the text that should follow; {key} as in `context`"
    )


class EmbeddingSpec(_WithContext):
    """Queries with texts, of which one is the right one."""

    choices: str = Field(description="the key of a list of texts")
    gold: str | None = Field(default=None, description=_GOLD)


class Jsonl(DataFormat):
    """Lines become samples in the cache, one small JSON file each, with their truth.

    Samples are called ``piqa.jsonl#000012`` by their line, from 0. Lines without a usable text are
    left out, counted and named.

    Args:
        spec: the schema of its cards.
        made: returns the requests and the truth of a line. It raises Left where the line has none,
            KeyError where a key is missing, and TypeError or ValueError where one has no such
            value.
    """

    def __init__(self, spec: type[JsonlSpec], made: Callable[[Any, Line], Made]) -> None:
        self.Spec = spec  # type: ignore[misc]
        self._made = made

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Read the lines that the card asks for; see :class:`DataFormat`."""
        spec: Any = card.spec
        if ".json" not in files.suffixes:
            takes = f"the model takes {files.noun}s"
            raise DataError(f"{card.path}: format: jsonl has texts, and {takes}")
        path = card.file("file")
        samples, tally = self._samples(spec, path)
        if not samples:
            reasons = "; ".join(tally.notes()) or f"no line from {spec.first} on"
            raise DataError(f"{path}: has no usable line: {reasons}")
        return Dataset(path, written(path.name, samples), tally.notes())

    def _samples(self, spec: Any, path: Path) -> tuple[dict[str, Made], Tally]:
        tally, samples = Tally(), {}
        last = sys.maxsize if spec.last is None else spec.last
        for number, text in enumerate(read_text(path).rstrip("\n").split("\n")):
            if not spec.first <= number <= last:
                continue
            try:
                samples[f"{number:06d}"] = self._made(spec, _object(text))
            except Left as error:
                tally.add("left out", "line", str(error), f"{path.name}:{number + 1}")
            except KeyError as error:
                raise DataError(f"{path}:{number + 1}: there is no key {error}") from error
            except (TypeError, ValueError) as error:
                raise DataError(f"{path}:{number + 1}: {error}") from error
        return samples, tally


def written(named: str, samples: Mapping[str, Made]) -> tuple[Item, ...]:
    """Write samples to the cache, a small JSON file each.

    Args:
        named: the file that they are made of; begins their names.
        samples: what each asks, and its truth, by the end of its name.

    Raises:
        RunError: the cache cannot be written.
    """
    texts = {name: json.dumps({"requests": one}) for name, (one, _) in samples.items()}
    digest = hashlib.blake2b(json.dumps(texts).encode(), digest_size=16).hexdigest()

    def write(folder: Path) -> None:
        for name, text in texts.items():
            (folder / f"{name}.json").write_text(text, encoding="utf-8")

    place = cache.entry(f"texts/{digest}", write)
    return tuple(
        Item(f"{named}#{name}", place / f"{name}.json", truth)
        for name, (_, truth) in samples.items()
    )


def _multiple_choice(spec: MultipleChoiceSpec, line: Line) -> Made:
    requests: list[Request]
    if spec.contexts is not None:
        follows = spec.delimiter + filled(str(spec.continuation), line)
        contexts = _texts(line, spec.contexts)
        requests = [{"context": text, "continuation": follows} for text in contexts]
    else:
        context = filled(str(spec.context), line, spec.strip)
        requests = [
            {"context": context, "continuation": spec.delimiter + text, "length": len(text)}
            for text in _texts(line, str(spec.choices))
        ]
    return requests, _gold(line, spec.gold, len(requests))


def _next_word(spec: NextWordSpec, line: Line) -> Made:
    word = filled(spec.continuation, line)
    if not word:
        raise Left("without a word to look for")
    context = filled(spec.context, line, spec.strip)
    return [{"context": context, "continuation": spec.delimiter + word}], word


def _generation(spec: GenerationSpec, line: Line) -> Made:
    answer = None if spec.answer is None else filled(spec.answer, line)
    return [{"context": filled(spec.context, line, spec.strip)}], answer


def _embedding(spec: EmbeddingSpec, line: Line) -> Made:
    texts = _texts(line, spec.choices)
    query = filled(spec.context, line, spec.strip)
    return [{"context": text} for text in (query, *texts)], _gold(line, spec.gold, len(texts))


def filled(template: str, line: Line, strip: str = "none") -> str:
    """Return a template with the text of each ``{key}`` in its place.

    Args:
        template: of the data card.
        line: the object.
        strip: where blanks are cut off the text of a key.

    Raises:
        KeyError: a key is missing.
        TypeError: its value is no text and no number.
    """
    cut = _STRIPS[strip]

    def value(found: re.Match[str]) -> str:
        known = line[found[1]]
        if isinstance(known, bool) or not isinstance(known, str | int | float):
            raise TypeError(f"{found[1]}: a text expected, got {_short(known)}")
        return cut(str(known))

    return _KEY.sub(value, template)


def _object(text: str) -> Line:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}" if text.strip() else "an empty line") from error
    if not isinstance(found, dict):
        raise TypeError(f"a JSON object expected, got {_short(found)}")
    return found


def _texts(line: Line, key: str) -> list[str]:
    found = line[key]
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TypeError(f"{key}: a list of texts expected, got {_short(found)}")
    if len(found) > CHOICES:
        raise ValueError(f"{key}: {len(found):,} texts; at most {CHOICES:,} are taken")
    if not found:
        raise Left(f"without {key}")
    if not all(one.strip() for one in found):
        raise Left(f"with an empty text in {key}")
    return found


def _gold(line: Line, key: str | None, number: int) -> int | None:
    if key is None:
        return None
    found = line[key]
    if isinstance(found, bool) or not isinstance(found, int):
        raise TypeError(f"{key}: an index expected, got {_short(found)}")
    if not 0 <= found < number:
        raise Left(f"whose {key} is none of its texts")
    return found


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


MULTIPLE_CHOICE = Jsonl(MultipleChoiceSpec, _multiple_choice)
NEXT_WORD = Jsonl(NextWordSpec, _next_word)
GENERATION = Jsonl(GenerationSpec, _generation)
EMBEDDING = Jsonl(EmbeddingSpec, _embedding)
