"""Which stacks fail on which samples, while others have an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import pyarrow as pa

from simulator.results.shared import Failed, Failure
from simulator.statistics.paired import clopper_pearson

LISTED = 10
"""Reasons that a summary lists at most, those of most samples first."""
NAMED = 3
"""Samples that are named for a reason."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A sample that some stack has answered.

    Attributes:
        sample: its name.
        stacks: that were run on it.
        failed: those that failed, each with the reason.
    """

    sample: str
    stacks: Sequence[str]
    failed: Mapping[str, str]


class Tally(TypedDict):
    """Fields of a summary, see :class:`simulator.results.shared.ModelSummary`."""

    failed: dict[str, Failed]
    failures: list[Failure]


def tried_in(records: pa.Table, stacks: Collection[str]) -> list[Tried]:
    """Return every sample of records, those that no stack has answered too.

    Args:
        records: of a run.
        stacks: those that are looked at; each fails where one of its records says so.
    """
    names = ("sample", "side", "skipped", "failed")
    whole = records.num_rows * [True]
    known = set(records.column_names)
    columns = [records[name].to_pylist() if name in known else whole for name in names]
    failed: dict[str, dict[str, str]] = {}
    for sample, side, why, fails in zip(*columns, strict=True):
        own = failed.setdefault(sample, {})
        if why is not None and fails and side in stacks:
            own.setdefault(side, why)
    return [Tried(sample, tuple(stacks), own) for sample, own in failed.items()]


def tallied(
    samples: Iterable[Tried],
    stacks: Sequence[str],
    reference: str | None,
    whole: Mapping[str, int] | None = None,
) -> Tally:
    """Return which stacks fail on how many samples, and why.

    A stack fails on a sample where what it is compared with has an answer: the reference, or any
    other stack. Its share is of the samples that it, or what it is compared with, has answered.

    Args:
        samples: some that some stack has answered.
        stacks: those that are told of.
        reference: see :func:`failures`.
        whole: of each stack how many further samples every stack has answered.
    """
    count, of = Counter[str](), Counter(whole)
    why: dict[tuple[str, str], list[str]] = {}
    for sample in samples:
        ran = [name for name in sample.stacks if name in stacks]
        for name in ran:
            others = [reference] if reference in ran and name != reference else ran
            answered = any(other not in sample.failed for other in others if other != name)
            fails = name in sample.failed
            of[name] += answered or not fails
            if fails and answered:
                count[name] += 1
                reason = sample.failed[name].replace(f"{sample.sample}: ", "")
                why.setdefault((name, reason), []).append(sample.sample)
    most = sorted(why.items(), key=lambda entry: -len(entry[1]))
    return {
        "failed": {
            name: Failed(
                count=count[name],
                of=of[name],
                rate=count[name] / of[name] if of[name] else None,
                ci95=[*clopper_pearson(count[name], of[name])] if of[name] else None,
                reference=name == reference,
            )
            for name in stacks
        },
        "failures": [
            Failure(stack=name, why=reason, count=len(names), samples=names[:NAMED])
            for (name, reason), names in most[:LISTED]
        ],
    }
