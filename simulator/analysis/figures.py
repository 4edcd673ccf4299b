"""The figures of a summary: their paths, their names in rules, their units and their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from simulator.typed import Keys, Typed, open_for

ALIASES: tuple[tuple[str, str], ...] = (
    ("flip_rate", "flips.rate"),
    ("flip_rate.low", "flips.ci95.0"),
    ("flip_rate.high", "flips.ci95.1"),
    ("failed.{stack}.low", "failed.{stack}.ci95.0"),
    ("failed.{stack}.high", "failed.{stack}.ci95.1"),
    ("failed.{stack}", "failed.{stack}.rate"),
    ("delta.{metric}.low", "delta.{metric}.ci95.0"),
    ("delta.{metric}.high", "delta.{metric}.ci95.1"),
    ("delta.{metric}", "delta.{metric}.value"),
    ("{stack}.{kind}.{condition}.low", "stacks.{stack}.{kind}.{condition}.ci95.0"),
    ("{stack}.{kind}.{condition}.high", "stacks.{stack}.{kind}.{condition}.ci95.1"),
    ("{stack}.{kind}.{condition}", "stacks.{stack}.{kind}.{condition}.value"),
    ("SDC", "stacks.deploy.SDC.rate"),
    ("DUE", "stacks.deploy.DUE.rate"),
    ("{stack}.{fault}.low", "stacks.{stack}.{fault}.ci95.0"),
    ("{stack}.{fault}.high", "stacks.{stack}.{fault}.ci95.1"),
    ("{stack}.{fault}", "stacks.{stack}.{fault}.rate"),
    ("{stack}.{fault}.rate", "stacks.{stack}.{fault}.rate"),
    ("{stack}.{mean}.low", "stacks.{stack}.{mean}.ci95.0"),
    ("{stack}.{mean}.high", "stacks.{stack}.{mean}.ci95.1"),
    ("{stack}.{mean}", "stacks.{stack}.{mean}.value"),
    ("interaction.{stack}.{condition}.low", "interaction.{stack}.{condition}.ci95.0"),
    ("interaction.{stack}.{condition}.high", "interaction.{stack}.{condition}.ci95.1"),
    ("interaction.{stack}.{condition}", "interaction.{stack}.{condition}.value"),
    ("against.{stack}.{condition}.low", "against.interaction.{stack}.{condition}.ci95.0"),
    ("against.{stack}.{condition}.high", "against.interaction.{stack}.{condition}.ci95.1"),
    ("against.{stack}.{condition}", "against.interaction.{stack}.{condition}.value"),
    ("{stack}.{flips}.{condition}.low", "sequences.stacks.{stack}.{flips}.{condition}.ci95.0"),
    ("{stack}.{flips}.{condition}.high", "sequences.stacks.{stack}.{flips}.{condition}.ci95.1"),
    ("{stack}.{flips}.{condition}", "sequences.stacks.{stack}.{flips}.{condition}.value"),
    ("{stack}.{mean_flips}.low", "sequences.stacks.{stack}.{mean_flips}.ci95.0"),
    ("{stack}.{mean_flips}.high", "sequences.stacks.{stack}.{mean_flips}.ci95.1"),
    ("{stack}.{mean_flips}", "sequences.stacks.{stack}.{mean_flips}.value"),
    ("{stack}.{noise}.low", "system_noise.stacks.{stack}.{noise}.ci95.0"),
    ("{stack}.{noise}.high", "system_noise.stacks.{stack}.{noise}.ci95.1"),
    ("{stack}.{noise}", "system_noise.stacks.{stack}.{noise}.value"),
    ("{stack}.{quality}", "tail.{stack}.{quality}"),
    ("{stack}.qps", "served.{stack}.qps"),
    ("{side}.{score}", "{side}.metric.{score}"),
    ("{stack}.latency.{statistic}", "latency_ms.{stack}.total.{statistic}"),
    ("{stack}.latency.{rest}", "latency_ms.{stack}.{rest}"),
)
"""(name in a rule, path in the summary); the first that fits is used, in both directions."""
_WORDS = {
    "metric": r"\w+",
    "stack": r"[\w-]+",
    "kind": "NR|NCI|CE|relative_CE",
    "mean": "clean|mNR|mNCI|mCE|relative_mCE",
    "fault": "SDC|DUE",
    "flips": "FP|FR|u?T5D",
    "mean_flips": "mFP|mFR|mu?T5D",
    "noise": r"mean_SR|SNI|std|SR\.[\w.-]+",
    "condition": r"[\w-]+",
    "quality": r"quality|tail_quality@.+",
    "side": "train|deploy",
    "score": r"(?!profile$|overrides$|effective$|metric$)[\w ]+",
    "statistic": r"p[\d.]+|mean|min|max",
    "rest": ".+",
}
"""What may stand in place of a word of :data:`ALIASES`."""
_NOT_RESULTS = ("schema", "seconds", "workers")


_FRACTIONS = (
    r"flips\.(rate|ci95.*|\w+_rates?(\..*)?|mean_iou)|delta\.\w+\.(value|ci95.*)"
    r"|(train|deploy)\.metric\..*|tail\..*|failed\..*\.(rate|ci95.*)"
    r"|stacks\.[^.]+\.m?(clean|NR|NCI)\..*|(against\.)?(mean_)?interaction\..*\.(value|ci95.*)"
    r"|stacks\.[^.]+\.((SDC|DUE|masked)|further\.\w+)\.(rate|ci95.*)"
    r"|system_noise\.stacks\..*\.(value|ci95.*)"
    r"|sequences\.(stacks\.[\w-]+\.m?FP|(mean_)?interaction)\..*"
)
_TIMES = r"latency_ms\..*|.*[._]ms(\.\d+)?|percentiles\..*\.ci95\.\d+"
MISSING = object()
"""What :func:`find` returns for a path that a summary does not have."""


def path_of(name: str) -> str:
    """Return the path of a figure that a rule names; a path is its own name."""
    return _translated(name, 0)


def name_of(path: str) -> str:
    """Return a figure's name as people write it in a rule; inverse of :func:`path_of`."""
    return _translated(path, 1)


def _translated(text: str, given: int) -> str:
    for entry in ALIASES:
        if match := _pattern(entry[given]).fullmatch(text):
            return entry[1 - given].format(**match.groupdict())
    return text


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    made = (
        f"(?P<{one}>{_WORDS[one]})" if at % 2 else re.escape(one) for at, one in enumerate(parts)
    )
    return re.compile("".join(made))


def figures(
    shape: type[BaseModel], vocabulary: Mapping[str, Iterable[str]], prefix: str = ""
) -> Iterator[str]:
    """Yield the dotted path of every number that a summary of this shape can have.

    Args:
        shape: a model of results.
        vocabulary: see :func:`simulator.analysis.gate.check`.
        prefix: put before each path.
    """
    for name, field in shape.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        yield from _numbers(field.annotation, field.metadata, vocabulary, path)
    further = open_for(shape)
    for name in vocabulary.get(further, ()) if further else ():
        yield f"{prefix}{name}"


def _numbers(
    kind: Any, about: Sequence[Any], vocabulary: Mapping[str, Iterable[str]], path: str
) -> Iterator[str]:
    """Yield the paths of numbers below a field of this type; lists of variable length have none."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from _numbers(inner[0], [*about, *inner[1:]], vocabulary, path)
    elif origin in (Union, UnionType):
        for one in inner:
            yield from _numbers(one, about, vocabulary, path)
    elif origin is dict:
        words = [
            word for one in about if isinstance(one, Keys) for word in vocabulary.get(one.of, ())
        ]
        for word in words:
            yield from _numbers(inner[1], (), vocabulary, f"{path}.{word}")
    elif origin is list:
        for at in range(_length(about)):
            yield from _numbers(inner[0], (), vocabulary, f"{path}.{at}")
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from figures(kind, vocabulary, f"{path}.")
    elif kind in (int, float):
        yield path


def _length(about: Sequence[Any]) -> int:
    """The fixed length of a list; 0 where it varies."""
    limits = [one for field in about for one in getattr(field, "metadata", [field])]
    least = max((one.min_length for one in limits if hasattr(one, "min_length")), default=0)
    most = min((one.max_length for one in limits if hasattr(one, "max_length")), default=-1)
    return least if least == most else 0


def names(summary: Mapping[str, Any] | Typed) -> dict[str, tuple[float | None, str]]:
    """Return every figure of a run that a rule can name, with its value and its unit.

    Args:
        summary: as in ``summary.json``.
    """
    found: dict[str, tuple[float | None, str]] = {}
    for path in leaves(summary, ""):
        value, unit = find(summary, path.split(".")), unit_of(path)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        listed = re.search(r"(?<!ci95)(?<!p\d\d)\.\d+(\.|$)", path)
        if (number or (value is None and unit)) and not listed and path not in _NOT_RESULTS:
            found[name_of(path)] = value, unit
    return found


def unit_of(path: str) -> str:
    """The unit of a figure: ``ms``, ``fraction``, or "" for anything else."""
    if re.fullmatch(_TIMES, path):
        return "ms"
    return "fraction" if re.fullmatch(_FRACTIONS, path) else ""


def find(node: Any, parts: Sequence[str]) -> Any:
    """The value at a path, whose keys may contain dots; None if a part of the path is None."""
    if not parts or node is None:
        return node
    if isinstance(node, list | tuple):
        inside = parts[0].isascii() and parts[0].isdigit() and int(parts[0]) < len(node)
        return find(node[int(parts[0])], parts[1:]) if inside else MISSING
    if isinstance(node, Mapping | Typed):
        for length in range(1, len(parts) + 1):
            key = ".".join(parts[:length])
            if key in node:
                found = find(node[key], parts[length:])
                if found is not MISSING:
                    return found
    return MISSING


def leaves(node: Any, prefix: str) -> Iterator[str]:
    """The paths of all values in *node* that are not mappings or lists."""
    keys = range(len(node)) if isinstance(node, list | tuple) else node.keys()
    for key in keys:
        if isinstance(node[key], Mapping | list | tuple | Typed):
            yield from leaves(node[key], f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
