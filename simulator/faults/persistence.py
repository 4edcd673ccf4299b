"""What permanent faults leave over the frames of a video: ghosts that stay, objects that vanish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simulator.analysis import faults
from simulator.analysis.persistence import Frame, Rule, Severity, persistent, severity
from simulator.faults.measured import Measured
from simulator.results.faults import Mean, Persistence, PersistentGroup, Rate
from simulator.tasks.impact import Blobs, Impact
from simulator.tasks.task import Task

LEVELS = tuple(level / 100 for level in range(16))
"""Of the area, as in Figure 10 of the paper."""
_RULE = Rule()
_STILL = Severity((), 0.0, 0.0, 0, 0)


def persistence(found: Measured, task: Task) -> Persistence | None:
    """Track what each fault leaves; the samples are the frames of one video, in order.

    A frame in which a fault was detected leaves nothing: whoever uses the answer knows of it.

    Args:
        found: of a campaign of permanent faults.
        task: of the model.

    Returns:
        None where answers are no places in images of one size, or there are fewer frames than the
        tracker needs.
    """
    frames = len(found.items)
    if not task.Impact.in_records or frames < _RULE.least or len(set(found.sizes)) != 1:
        return None
    impacts = [
        _impact(task, record, size) for record, size in zip(found.clean, found.sizes, strict=True)
    ]
    by_fault: dict[int, list[dict[str, Any]]] = {}
    for row in found.rows.to_pylist():
        by_fault.setdefault(row["fault"], []).append(row)
    tracked = {fault: _tracked(rows, impacts) for fault, rows in by_fault.items()}
    bits = {fault: rows[0]["bit"][0] for fault, rows in by_fault.items()}
    return _figures(tracked, bits, frames)


def _impact(task: Task, record: Mapping[str, Any], size: Any) -> Impact:
    return task.Impact(task, task.Impact.Options(), task.Impact.restored(record), None, size)


def _tracked(rows: Sequence[Mapping[str, Any]], impacts: Sequence[Impact]) -> Severity:
    """Track one fault; most of them change too few frames to leave anything."""
    changed = sum(bool(row["false_area"] or row["missed_area"]) for row in rows)
    if changed < _RULE.least:
        return _STILL
    frames = [frame for frame, _, _ in persistent(_blobs(rows, impacts), _RULE)]
    return severity(frames)


def _blobs(rows: Sequence[Mapping[str, Any]], impacts: Sequence[Impact]) -> Iterator[Blobs]:
    for row in rows:
        impact = impacts[row["at"]]
        detected = row["due"] or row["skipped"] is not None
        yield impact.blobs(impact.golden if detected else type(impact).restored(row))


def _figures(tracked: Mapping[int, Severity], bits: Mapping[int, int], frames: int) -> Persistence:
    every = list(tracked.values())
    false, missed = [one.false for one in every], [one.missed for one in every]
    worst = max(tracked, key=lambda fault: tracked[fault].false + tracked[fault].missed)
    there = bool(tracked[worst].frames)
    shown: Sequence[Frame] = tracked[worst].frames
    return Persistence(
        frames=frames,
        window=_RULE.window,
        least=_RULE.least,
        radius=_RULE.radius,
        levels=list(LEVELS),
        false=[_rate(one) for one in faults.exceeding(false, LEVELS)],
        missed=[_rate(one) for one in faults.exceeding(missed, LEVELS)],
        by_bit={
            str(bit): PersistentGroup(
                false=_above([one.false for f, one in tracked.items() if bits[f] == bit]),
                missed=_above([one.missed for f, one in tracked.items() if bits[f] == bit]),
            )
            for bit in sorted(set(bits.values()), reverse=True)
        },
        false_area=_mean([one for one in false if one]),
        missed_area=_mean([one for one in missed if one]),
        worst=worst if there else None,
        worst_false=[frame.false for frame in shown],
        worst_missed=[frame.missed for frame in shown],
    )


def _above(values: Sequence[float]) -> Rate:
    (found,) = faults.exceeding(values, [0.0])
    return _rate(found)


def _rate(found: faults.Rate) -> Rate:
    return Rate(rate=found.value, ci95=list(found.ci95), count=found.events, of=found.trials)


def _mean(values: Sequence[float]) -> Mean:
    found = faults.mean(values)
    return Mean(value=found.value, ci95=list(found.ci95 or (None, None)), of=found.events)
