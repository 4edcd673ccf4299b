"""What a bundle states that does not follow from the rest of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simulator.audit import bundle, recount
from simulator.audit.archive import Archive
from simulator.audit.bundle import MOST_TEXT
from simulator.audit.consistency import Key, contradictions
from simulator.audit.document import TRAIN, Audit, load_audit
from simulator.errors import ProfileError, RunError, UserError, one_line
from simulator.experiments.common import stacks_of
from simulator.pipeline.stack import Chosen
from simulator.results.layout import DOCUMENT, PAIRS_FOLDER, PROFILES_FOLDER, SUMMARY, TAILS_FOLDER
from simulator.results.shared import Summary
from simulator.results.summaries import parse, refuse_other_version


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


def unpack(packed: Archive, scratch: Path) -> Audit:
    """Write the document, and the profile of every stack that it names, to names of our own.

    Raises:
        RunError: one of them is missing, or not such a document.
    """
    document = scratch / DOCUMENT
    document.write_bytes(packed.read(DOCUMENT, MOST_TEXT))
    try:
        audit = load_audit(document)
    except ProfileError as error:
        lines = [line.replace(f"{scratch}/", f"{packed.path}: ") for line in error.problems]
        raise RunError("\n".join(lines)) from error
    (scratch / PROFILES_FOLDER).mkdir()
    for name in (TRAIN, *audit.spec.deploy):
        content = packed.read(f"{PROFILES_FOLDER}/{name}.yaml", MOST_TEXT)
        (scratch / PROFILES_FOLDER / f"{name}.yaml").write_bytes(content)
    return audit


def stacks(audit: Audit, scratch: Path, overrides: Sequence[str] = ()) -> dict[str, Chosen]:
    """Load the stacks of an unpacked bundle.

    Raises:
        UserError: a profile cannot be used here, or an override names no stack.
    """
    names = (TRAIN, *audit.spec.deploy)
    return stacks_of({n: str(scratch / PROFILES_FOLDER / f"{n}.yaml") for n in names}, overrides)


def doubts(packed: Archive, audit: Audit, scratch: Path) -> Doubts:
    """Return which figures of a bundle do not follow from the rest of it; nothing is run.

    Args:
        packed: the bundle.
        audit: its document.
        scratch: where it is unpacked.

    Raises:
        RunError: a summary or a table of records is none.
        UserError: a profile cannot be used here.
    """
    reported = bundle.read_json(packed, SUMMARY)
    refuse_other_version(reported, f"{packed.path}: {SUMMARY}")
    of_pairs, others = contradictions(reported, _reader(packed), audit, stacks(audit, scratch))
    counted, unverified = recount.contradicted(packed)
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
        audit = unpack(packed, Path(scratch))
        try:
            found = doubts(packed, audit, Path(scratch))
        except RunError:
            raise
        except UserError as error:
            counted, unverified = recount.contradicted(packed)
            why = f"{SUMMARY}: its profiles cannot be used here: {one_line(error, 100)}"
            found = Doubts(counted, [], [*unverified, why])
    wrong = [line for lines in found.of_pairs.values() for line in lines] + found.others
    states = stated(packed, (*recount.ANSWERS, *recount.STATED))
    return [f"does not follow from the records: {one}" for one in wrong], [
        *found.unverified,
        *states,
    ]


def stated(packed: Archive, fields: Sequence[str]) -> list[str]:
    """Return those of some fields that the summaries of pairs and rounds state.

    Raises:
        RunError: a summary is no JSON object.
    """
    folders = tuple(f"{one}/" for one in (PAIRS_FOLDER, TAILS_FOLDER))
    found = [
        bundle.read_json(packed, name)
        for name in packed.names
        if name.startswith(folders) and name.endswith(f"/{SUMMARY}")
    ]
    return [one for one in fields if any(summary.get(one) is not None for summary in found)]


def _reader(packed: Archive) -> Callable[[str], Summary]:
    """Return what reads the summary at a place of the bundle, once."""

    @cache
    def read(place: str) -> Summary:
        name = f"{place}/{SUMMARY}"
        return parse(packed.read(name, MOST_TEXT), f"{packed.path}: {name}")

    return read
