"""What a bundle states that does not follow from the rest of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.analysis import outcomes
from simulator.audit import figures, recount
from simulator.audit.archive import Archive
from simulator.audit.figures import PAIR, TAIL
from simulator.audit.recorded import Key, RecordedAudit
from simulator.errors import RunError, UserError, one_line
from simulator.pipeline.stack import ResolvedProfile
from simulator.results.json_text import JsonObject, finite
from simulator.results.layout import PAIRS_FOLDER, SUMMARY
from simulator.results.shared import Summary
from simulator.results.summaries import refuse_other_version

_COMPARED = ("train", "stacks", "pairs", "gate")
_REQUIRED = frozenset(
    {
        *_COMPARED, "profile", "evidence", "model", "deploy", "samples", "skipped", "value",
        "delta", "flips", "differing", "passed", "rules", "rule", "limit", "failed", "because",
        "of",
    }
)  # fmt: skip
"""Fields that an audit must state; of others, what it states is held against what follows."""
_OLD_UNITS = ("fraction", "")
"""What versions before called the unit of a rule: that of shares and points, and any but these."""
_WORDS = "reason"
"""How a rule that has no figure is explained: words of the version that wrote them."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """What became of the figures of a bundle.

    Attributes:
        of_pairs: those that do not follow from records, pairs and document, by model and stack.
        others: likewise, those of no pair.
        unverified: figures that were held against nothing, each with the reason.
    """

    of_pairs: dict[Key, list[str]]
    others: list[str]
    unverified: list[str]


def doubts(recorded: RecordedAudit) -> Doubts:
    """Return which figures of a bundle do not follow from the rest of it; nothing is run.

    Raises:
        RunError: a summary or a table of records is none.
        UserError: a profile cannot be used here.
    """
    refuse_other_version(recorded.reported, recorded.where(SUMMARY))
    of_pairs, others = contradictions(recorded, recorded.stacks())
    counted, unverified = recount.contradicted(recorded)
    for key, lines in counted.items():
        of_pairs.setdefault(key, []).extend(lines)
    return Doubts(of_pairs, others, unverified)


def without_a_model(packed: Archive) -> tuple[list[str], list[str]]:
    """Return what of an intact bundle is contradicted, and what can only be believed.

    Returns:
        A line for each figure that does not follow; and the figures that nothing here holds
        against a record, with the reason.

    Raises:
        RunError: a summary, a table of records or the document is none.
    """
    with tempfile.TemporaryDirectory(prefix="verify-") as scratch:
        recorded = RecordedAudit(packed, Path(scratch))
        try:
            found = doubts(recorded)
        except RunError:
            raise
        except UserError as error:
            counted, unverified = recount.contradicted(recorded)
            why = f"{SUMMARY}: its profiles cannot be used here: {one_line(error, 100)}"
            found = Doubts(counted, [], [*unverified, why])
        states = stated(recorded, (*recount.ANSWERS, *recount.STATED))
    wrong = [line for lines in found.of_pairs.values() for line in lines] + found.others
    return [f"does not follow from the records: {one}" for one in wrong], [
        *found.unverified,
        *states,
    ]


def stated(recorded: RecordedAudit, fields: Sequence[str]) -> list[str]:
    """Return those of some fields that the summaries of pairs and rounds state.

    Raises:
        RunError: a summary is no JSON object.
    """
    found = [recorded.read_json(f"{place}/{SUMMARY}") for place in recorded.places]
    return [field for field in fields if any(summary.get(field) is not None for summary in found)]


def contradictions(
    recorded: RecordedAudit, chosen: Mapping[str, ResolvedProfile]
) -> tuple[dict[Key, list[str]], list[str]]:
    """Hold an audit's ``summary.json`` against its pairs, its document and its stacks.

    Returns:
        The fields that do not follow: of each pair, by model and stack, and the others.
    """
    found: dict[Key, list[str]] = {}
    gates: dict[Key, list[str]] = {}

    def judged(place: str) -> Summary:
        """Return a summary with every rule judged anew, by its figures."""
        kind, model, deploy = place.split("/")
        of = recorded.audit.of_pair if kind == PAIRS_FOLDER else recorded.audit.of_rounds
        summary = recorded.summary(place)
        outcome = outcomes.evaluate([rule.rule for rule in of(model, deploy)], summary)
        return summary.model_copy(update={"gate": outcome})

    try:
        expected = finite(figures.collect(judged, recorded.audit, chosen))
        for pair in expected["pairs"]:
            summary, key = recorded.summary(pair["folder"]), (pair["model"], pair["deploy"])
            # A bundle's profiles are resolved; which fields were overridden is in its pairs.
            for side, name in (("train", "train"), ("deploy", pair["deploy"])):
                expected["stacks"][name]["overrides"] = summary[side].overrides
            for of, place in ((PAIR, pair["folder"]), (TAIL, pair["tail"])):
                if place is not None:
                    gates.setdefault(key, []).extend(_gate(recorded, place, key, of, expected))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return {}, [f"{PAIRS_FOLDER}: not summaries of pairs: {one_line(error, 100)}"]
    except UserError as error:
        return {}, [one_line(error)]
    others: list[str] = []
    for field in _COMPARED:
        for path in _differing(recorded.reported.get(field), expected[field], (field,)):
            pair_of = _pair_of(path, expected)
            where = others if pair_of is None else found.setdefault(pair_of, [])
            where.append(".".join(path))
    for key, lines in gates.items():
        found.setdefault(key, []).extend(lines)
    return found, others


def _gate(
    recorded: RecordedAudit, place: str, key: Key, of: str, expected: JsonObject
) -> list[str]:
    """Where the gate of a pair's own summary differs from its figures."""
    rules = [
        {name: one[name] for name in ("rule", "value", "limit", "unit", "failed")}
        for one in expected["gate"]["rules"]
        if (one["model"], one["deploy"], one["of"]) == (*key, of)
    ]
    own = {"passed": not any(rule["failed"] for rule in rules), "rules": rules}
    reported = recorded.read_json(f"{place}/{SUMMARY}").get("gate")
    return [".".join(path) for path in _differing(reported, own, (place, "gate"))]


def _pair_of(path: Sequence[str], expected: JsonObject) -> Key | None:
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
    same = reported == expected or (path[-1] == "unit" and reported in _OLD_UNITS)
    return [] if same else [path]
