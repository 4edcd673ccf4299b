"""Roboflow's trackers: SORT, OC-SORT and ByteTrack, and the measures of TrackEval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract import (
    Backend,
    Environment,
    FoundBoxes,
    Library,
    Matchable,
    Offer,
    Stage,
    Tracker,
    TrackMetrics,
)

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
trackers = Library("trackers", distribution="trackers", extra="tracking")
evaluation = Library("trackers.eval", distribution="trackers", extra="tracking")
supervision = Library("supervision", distribution="supervision", extra="tracking")
_LOW = 0.1
"""ByteTrack goes on with a track by boxes of lower scores, from here (Zhang et al., ECCV 2022)."""
_NEW = 0.1
"""By how much the score of a box that begins a ByteTrack is above its threshold (likewise)."""
_FIGURES = {
    "hota": "HOTA", "deta": "DetA", "assa": "AssA", "mota": "MOTA", "switches": "IDSW",
    "fragmentations": "Frag", "idf1": "IDF1",
}  # fmt: skip


class BoxTracker(Tracker):
    """A tracker with its authors' settings, but for the threshold and the frames a second."""

    def follow(self, clip: Sequence[FoundBoxes], threshold: float, rate: float) -> list[I64]:
        """Return the number of each box's track."""
        tracker, least = self._made(threshold, rate)
        return [self._numbers(tracker, *found, least) for found in clip]

    def _made(self, threshold: float, rate: float) -> tuple[Any, float]:
        method = self.options["method"]
        if method == "sort":
            own = {"track_activation_threshold": threshold}
            return trackers.SORTTracker(frame_rate=rate, **own), threshold
        own = {"high_conf_det_threshold": threshold}
        if method == "ocsort":
            return trackers.OCSORTTracker(frame_rate=rate, **own), threshold
        own["track_activation_threshold"] = min(threshold + _NEW, 1.0)
        return trackers.ByteTrackTracker(frame_rate=rate, **own), min(_LOW, threshold)

    @staticmethod
    def _numbers(tracker: Any, boxes: F64, scores: F64, least: float) -> I64:
        taken = np.flatnonzero(scores > least)
        given = supervision.Detections(
            xyxy=boxes[taken], confidence=scores[taken], data={"at": np.arange(len(taken))}
        )
        found = tracker.update(given)
        numbers = np.full(len(scores), -1, np.int64)
        if len(found):
            numbers[taken[found.data["at"]]] = found.tracker_id
        return numbers


class TrackEvalMetrics(TrackMetrics):
    """HOTA, CLEAR MOT and identity measures; clips are put together as TrackEval does."""

    def measure(self, clips: Sequence[Sequence[Matchable]], counts: I64) -> Mapping[str, F64]:
        """Return figures of all clips together, for several draws of them."""
        columns = [list(map(list, zip(*clip, strict=True))) for clip in clips]
        families = []
        for family in ("hota", "clear", "identity"):
            compute = getattr(evaluation, f"compute_{family}_metrics")
            put_together = getattr(evaluation, f"aggregate_{family}_metrics")
            each = [compute(*column) for column in columns]
            families.append([put_together(_drawn(each, row)) for row in counts])
        whole = [
            dict(part for one in draw for part in one.items())
            for draw in zip(*families, strict=True)
        ]
        return {
            ours: np.array([one[theirs] for one in whole], np.float64)
            for ours, theirs in _FIGURES.items()
        }


def _drawn(each: list[Any], times: I64) -> list[Any]:
    return [one for one, number in zip(each, times.tolist(), strict=True) for _ in range(number)]


BACKEND = Backend(
    name="trackers",
    summary="Roboflow's trackers: SORT, OC-SORT, ByteTrack; HOTA, MOTA, IDF1 as in TrackEval",
    library=trackers,
    companions=(supervision,),
    environment=Environment(
        requirements=(
            "numpy==2.4.6", "scipy==1.17.1", "opencv-python-headless==5.0.0.93", "pillow==13.0.0",
            "requests==2.34.2", "rich==15.0.0", "tqdm==4.70.1", "defusedxml==0.7.1",
            "pydeprecate==0.13.0", "pyyaml==6.0.3",
        ),
        why="trackers asks for opencv-python, which overwrites opencv-python-headless",
        no_deps=("trackers==2.6.1", "supervision==0.31.2"),
    ),
    offers=(
        Offer(
            Stage.TRACK,
            {"method": ("sort", "ocsort", "bytetrack")},
            BoxTracker,
            source="https://trackers.roboflow.com",
        ),
        Offer(
            Stage.TRACK_METRICS,
            {},
            TrackEvalMetrics,
            source="https://github.com/JonathonLuiten/TrackEval",
        ),
    ),
    fields={"method": "which tracker"},
)  # fmt: skip
