"""The worst flips; of clips the worst moments, each the frames in a row that changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice, takewhile

import numpy as np

from simulator.data.folder import Item
from simulator.data.video import Shown
from simulator.experiments.answers import StackRecords
from simulator.tasks.score import Record, Values, numbers
from simulator.tasks.task import Task

WORST = 10
REACH = 1.0
"""Seconds from its worst frame that a moment lasts at most, each way."""
STRIPS, BESIDE = 3, 2
"""Of how many moments pictures are shown, and how many frames on each side of the worst."""


def severity(task: Task, train: Record, deploy: Record) -> float:
    """Return how bad a change is; -inf where the task cannot say (NaN), so that it ranks last."""
    found = task.severity(train, deploy)
    return -math.inf if math.isnan(found) else found


def worst_flips(
    ran: Sequence[Item],
    train: StackRecords,
    deploy: StackRecords,
    task: Task,
    shown: Mapping[str, Shown],
) -> list[Values]:
    """Return the entries of the worst flips, the worst one first; at most :data:`WORST`.

    Args:
        ran: the samples that went through.
        train: their records.
        deploy: their records.
        task: of the model.
        shown: when each is shown, by name; then an entry is the worst frame of a moment.
    """
    flips = np.flatnonzero(numbers(deploy, "changed")[0])
    pairs = zip(flips.tolist(), train.chosen(flips), deploy.chosen(flips), strict=True)
    order = [at for _, at in sorted((-severity(task, *pair), at) for at, *pair in pairs)]
    times = [shown[item.name] for item in ran] if shown else []
    found = [*islice(moments(times, order if shown else ()), WORST)]
    worst = np.array([at for at, _, _ in found] or order[:WORST], np.intp)
    chosen = zip(worst.tolist(), train.chosen(worst), deploy.chosen(worst), strict=True)
    entries = [{"sample": ran[at].name, **task.flip(*pair)} for at, *pair in chosen]
    several = len({time.clip for time in times}) > 1
    for number, (entry, (at, frames, strip)) in enumerate(zip(entries, found, strict=False)):
        entry["moment"] = {
            "clip": times[at].clip if several else None,
            "start": times[frames[0]].time,
            "end": times[frames[-1]].time,
            "worst": times[at].time,
            "frames": len(frames),
            "strip": {ran[one].name: times[one].time for one in strip if number < STRIPS},
        }
    return entries


def moments(
    shown: Sequence[Shown], order: Iterable[int]
) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield the worst frame of each moment, the moment's frames, and those around the worst one.

    Args:
        shown: when each frame is shown.
        order: the frames that changed, the worst one first.
    """
    line = sorted(range(len(shown)), key=shown.__getitem__)
    place = {at: here for here, at in enumerate(line)}
    changed = [place[at] for at in order]
    left = set(changed)

    def near(other: int) -> bool:
        same = shown[line[other]].clip == shown[line[here]].clip
        return same and abs(shown[line[other]].time - shown[line[here]].time) <= REACH

    for here in changed:
        if here not in left:
            continue
        back, on = (takewhile(left.__contains__, count(here, step)) for step in (-1, 1))
        frames = sorted({*takewhile(near, back), *takewhile(near, on)})
        left.difference_update(frames)
        around = line[max(0, here - BESIDE) : here + BESIDE + 1]
        strip = [at for at in around if shown[at].clip == shown[line[here]].clip]
        yield line[here], [line[one] for one in frames], strip
