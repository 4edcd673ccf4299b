"""What a bundle states that does not follow from the rest of it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.audit import recount
from simulator.audit.archive import Archive
from simulator.audit.consistency import Key, contradictions
from simulator.audit.recorded import RecordedAudit
from simulator.errors import RunError, UserError, one_line
from simulator.results.layout import SUMMARY
from simulator.results.summaries import refuse_other_version


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
    return [one for one in fields if any(summary.get(one) is not None for summary in found)]
