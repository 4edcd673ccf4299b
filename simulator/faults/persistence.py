"""What permanent faults leave over the frames of a video: ghosts that stay, objects that vanish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.analysis import faults
from simulator.analysis.persistence import Frame, Mask, Rule, Severity, persistent, severity
from simulator.faults.on_stack import OnStack
from simulator.results.faults import Mean, Persistence, PersistentGroup, Rate
from simulator.tasks.impact import Impact
from simulator.tasks.task import Task

LEVELS = tuple(level / 100 for level in range(16))
"""Of the area, as in Figure 10 of the paper."""
_STILL = Severity((), 0.0, 0.0, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Shot:
    """One frame with a fault.

    Attributes:
        at: its number among the samples of the campaign.
        impact: of what is seen without the fault.
        answer: with the fault; that without it where the fault was detected.
        detected: whether it was.
        frame: the areas that persist.
        false: (H, W) bool, pixels that false objects occupy persistently.
        missed: (H, W) bool, the same of missed objects.
    """

    at: int
    impact: Impact
    answer: Any
    detected: bool
    frame: Frame
    false: Mask
    missed: Mask


def persistence(found: OnStack, task: Task, rule: Rule) -> Persistence | None:
    """Track what each fault leaves; the samples are the frames of one video, in order.

    A frame in which a fault was detected leaves nothing: whoever uses the answer knows of it.

    Args:
        found: a campaign of permanent faults.
        task: of the model.
        rule: what persists.

    Returns:
        None where answers are no places in images of one size, or there are fewer frames than the
        tracker needs.
    """
    frames = len(found.items)
    if not task.Impact.in_records or frames < rule.least or len(set(found.sizes)) != 1:
        return None
    changed = _changed(found)
    tracked = {
        fault: _tracked(found, task, fault, rule) if count >= rule.least else _STILL
        for fault, count in changed.items()
    }
    against = (_impact(found, task, at).reference() for at in range(frames))
    known = [blobs for blobs in against if blobs is not None]
    seen = _figures(tracked, _bits(found), frames, rule)
    return seen.model_copy(
        update={
            "reference_false": [blobs.false_area for blobs in known],
            "reference_missed": [blobs.missed_area for blobs in known],
        }
    )


def shots(found: OnStack, task: Task, fault: int, rule: Rule) -> Iterator[Shot]:
    """Yield every frame of the video with one fault.

    Args:
        found: see :func:`persistence`.
        task: likewise.
        fault: its number.
        rule: likewise.
    """
    answers = list(_answers(found, task, fault))
    blobs = (impact.blobs(answer) for _, impact, answer, _ in answers)
    for answer, tracked in zip(answers, persistent(blobs, rule), strict=True):
        yield Shot(*answer, *tracked)


def _changed(found: OnStack) -> dict[int, int]:
    """In how many frames each fault changes what is occupied."""
    areas = [
        pc.fill_null(pc.greater(found.rows[name], 0), False)
        for name in ("false_area", "missed_area")
    ]
    changed = np.array(pc.or_(*areas))
    faults_, of = np.unique(_numbers(found), return_inverse=True)
    counts = np.bincount(of, changed, len(faults_)).astype(int)
    return dict(zip(faults_.tolist(), counts.tolist(), strict=True))


def _numbers(found: OnStack) -> NDArray[np.int64]:
    """The fault of each row, in ascending order."""
    return np.asarray(found.rows["fault"].to_numpy(), np.int64)


def _bits(found: OnStack) -> dict[int, int]:
    """The bit of each fault; none where several are hit together."""
    _, first = np.unique(_numbers(found), return_index=True)
    rows = found.rows.select(["fault", "bit"]).take(first).to_pylist()
    return {row["fault"]: row["bit"][0] for row in rows if len(row["bit"]) == 1}


def _tracked(found: OnStack, task: Task, fault: int, rule: Rule) -> Severity:
    blobs = (impact.blobs(answer) for _, impact, answer, _ in _answers(found, task, fault))
    return severity([frame for frame, _, _ in persistent(blobs, rule)])


def _answers(found: OnStack, task: Task, fault: int) -> Iterator[tuple[int, Impact, Any, bool]]:
    """Each frame's number, its impact, the answer with the fault, and whether it was detected.

    Where the rows say that nothing changed, the answer is that without the fault: it was judged
    against the injector's own, and the stack's own may differ from it in the last bits.
    """
    start, end = np.searchsorted(_numbers(found), [fault, fault + 1]).tolist()
    names = {field.name for field in task.columns} | {
        "at", "due", "skipped", "false_area", "missed_area"
    }  # fmt: skip
    for row in found.rows.slice(start, end - start).select(sorted(names)).to_pylist():
        at = row["at"]
        impact = _impact(found, task, at)
        detected = bool(row["due"] or row["skipped"] is not None)
        still = detected or not (row["false_area"] or row["missed_area"])
        answer = impact.golden if still else type(impact).restored(row)
        yield at, impact, answer, detected


def _impact(found: OnStack, task: Task, at: int) -> Impact:
    golden = task.Impact.restored(found.clean[at])
    return task.Impact(task, found.options, golden, found.items[at].truth, found.sizes[at])


def _figures(
    tracked: Mapping[int, Severity], bits: Mapping[int, int], frames: int, rule: Rule
) -> Persistence:
    every = list(tracked.values())
    false, missed = [one.false for one in every], [one.missed for one in every]
    worst = max(tracked, key=lambda fault: tracked[fault].false + tracked[fault].missed)
    there = tracked[worst].false + tracked[worst].missed > 0
    shown: Sequence[Frame] = tracked[worst].frames if there else ()
    return Persistence(
        frames=frames,
        window=rule.window,
        least=rule.least,
        radius=rule.radius,
        levels=list(LEVELS),
        false=[_rate(rate) for rate in faults.exceeding(false, LEVELS)],
        missed=[_rate(rate) for rate in faults.exceeding(missed, LEVELS)],
        by_bit={
            str(bit): _group([tracked[fault] for fault, hit in bits.items() if hit == bit])
            for bit in sorted(set(bits.values()), reverse=True)
        },
        false_area=_mean(false),
        missed_area=_mean(missed),
        worst=worst if there else None,
        worst_false=[frame.false for frame in shown],
        worst_missed=[frame.missed for frame in shown],
    )


def _group(some: Sequence[Severity]) -> PersistentGroup:
    false, missed = [one.false for one in some], [one.missed for one in some]
    return PersistentGroup(
        false=_rate(faults.exceeding(false, [0.0])[0]),
        missed=_rate(faults.exceeding(missed, [0.0])[0]),
        false_area=_mean(false),
        missed_area=_mean(missed),
    )


def _rate(found: faults.Rate) -> Rate:
    return Rate(rate=found.value, ci95=list(found.ci95), count=found.events, of=found.trials)


def _mean(areas: Sequence[float]) -> Mean:
    """The mean area of the faults that leave something."""
    found = faults.mean([area for area in areas if area])
    return Mean(value=found.value, ci95=list(found.ci95 or (None, None)), of=found.events)
