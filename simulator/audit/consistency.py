"""Whether an audit's summary follows from its own pairs and document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulator.analysis import outcomes
from simulator.audit import figures
from simulator.audit.document import Audit
from simulator.audit.figures import PAIR
from simulator.errors import UserError, one_line
from simulator.pipeline.stack import Chosen
from simulator.results.json_text import finite
from simulator.results.layout import PAIRS_FOLDER
from simulator.results.shared import Gate, Summary

Read = Callable[[str], Summary]
Key = tuple[str, str]

_COMPARED = ("train", "stacks", "pairs", "gate")
_REQUIRED = frozenset(
    {
        *_COMPARED, "profile", "evidence", "model", "deploy", "samples", "skipped", "value",
        "delta", "flips", "differing", "passed", "rules", "rule", "limit", "failed", "because",
        "of",
    }
)  # fmt: skip
"""Fields that an audit must state; of others, what it states is held against what follows."""
_WORDS = "reason"
"""How a rule that has no figure is explained: words of the version that wrote them."""


def contradictions(
    reported: Mapping[str, Any], read: Read, audit: Audit, chosen: Mapping[str, Chosen]
) -> tuple[dict[Key, list[str]], list[str]]:
    """Hold an audit's ``summary.json`` against its pairs, its document and its stacks.

    Args:
        reported: the content of ``summary.json``.
        read: the summary of a pair or of its rounds, from its place in the bundle.
        audit: the document.
        chosen: the stacks, as the bundle has them.

    Returns:
        The fields that do not follow: of each pair, by model and stack, and the others.
    """
    found: dict[Key, list[str]] = {}
    try:
        expected = finite(figures.collect(_evaluated_again(read, audit), audit, chosen))
        _spell_overrides(expected, read)
        judged = _gates(expected, read)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return {}, [f"{PAIRS_FOLDER}: not summaries of pairs: {one_line(error, 100)}"]
    except UserError as error:
        return {}, [one_line(error)]
    others: list[str] = []
    for field in _COMPARED:
        for path in _differing(reported.get(field), expected[field], (field,)):
            key = _pair_of(path, expected)
            (others if key is None else found.setdefault(key, [])).append(".".join(path))
    for key, lines in judged.items():
        found.setdefault(key, []).extend(lines)
    return found, others


def _evaluated_again(read: Read, audit: Audit) -> Read:
    """Return a reader that has every rule judged anew, by the figures of the summary."""

    def judged(place: str) -> Summary:
        of, model, deploy = place.split("/")
        asked = audit.of_pair if of == PAIRS_FOLDER else audit.of_rounds
        rules = [one.rule for one in asked(model, deploy)]
        found = read(place)
        outcome = Gate.model_validate(outcomes.evaluate(rules, found))
        return found.model_copy(update={"gate": outcome})

    return judged


def _spell_overrides(expected: dict[str, Any], read: Read) -> None:
    """A bundle's profiles are resolved; which fields were overridden is in its pairs."""
    for pair in expected["pairs"]:
        found = read(pair["folder"])
        for side, name in (("train", "train"), ("deploy", pair["deploy"])):
            expected["stacks"][name]["overrides"] = found[side].overrides


def _gates(expected: Mapping[str, Any], read: Read) -> dict[Key, list[str]]:
    """Where the gate of a pair's own summary differs from its figures."""
    found: dict[Key, list[str]] = {}
    for pair in expected["pairs"]:
        key = pair["model"], pair["deploy"]
        for of, place in ((PAIR, pair["folder"]), ("tail", pair["tail"])):
            if place is None:
                continue
            rules = [
                {name: one[name] for name in ("rule", "value", "limit", "unit", "failed")}
                for one in expected["gate"]["rules"]
                if (one["model"], one["deploy"], one["of"]) == (*key, of)
            ]
            own = {"passed": not any(one["failed"] for one in rules), "rules": rules}
            paths = _differing(finite(read(place).gate), own, (place, "gate"))
            found.setdefault(key, []).extend(map(".".join, paths))
    return found


def _pair_of(path: Sequence[str], expected: Mapping[str, Any]) -> Key | None:
    """The pair that a field is about, if it is about one."""
    listed = {"pairs": (expected["pairs"], 1), "gate": (expected["gate"]["rules"], 2)}
    entries, at = listed.get(path[0], ([], 0))
    if not entries or len(path) <= at:
        return None
    one = entries[int(path[at])]
    return one["model"], one["deploy"]


def _differing(reported: Any, expected: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The paths of values that differ, or are missing though they are required."""
    if isinstance(reported, Mapping) and isinstance(expected, Mapping):
        found = [(*path, key) for key in expected if key in _REQUIRED and key not in reported]
        for key in expected:
            if key in reported and key != _WORDS:
                found += _differing(reported[key], expected[key], (*path, key))
        return found
    both = isinstance(reported, list) and isinstance(expected, list)
    if both and len(reported) == len(expected):
        pairs = enumerate(zip(reported, expected, strict=True))
        return [
            line for at, (one, other) in pairs for line in _differing(one, other, (*path, str(at)))
        ]
    return [] if reported == expected else [path]
