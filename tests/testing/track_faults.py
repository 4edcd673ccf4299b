"""Faults of trackers and of measures of tracks; both begin from Roboflow's."""

import numpy as np

from backends.roboflow_trackers import BoxTracker, TrackEvalMetrics
from simulator.contract import Stage


class LosesTheLastFrame(BoxTracker):
    def follow(self, clip, threshold, rate):
        return super().follow(clip[:-1], threshold, rate)


class GivesOneNumber(BoxTracker):
    def follow(self, clip, threshold, rate):
        return [np.minimum(one, 0) for one in super().follow(clip, threshold, rate)]


class Forgets(BoxTracker):
    """It begins anew where a frame has no box."""

    def follow(self, clip, threshold, rate):
        empty = next(at for at, (_, scores) in enumerate(clip) if not len(scores))
        before, after = (super(Forgets, self).follow(part, threshold, rate)
                         for part in (clip[:empty], clip[empty:]))  # fmt: skip
        return before + [np.where(one < 0, -1, one + 9) for one in after]


class GoesOn(BoxTracker):
    """Numbers go on from clip to clip."""

    begun = 0

    def follow(self, clip, threshold, rate):
        self.begun += 2
        found = super().follow(clip, threshold, rate)
        return [np.where(one < 0, -1, one + self.begun) for one in found]


class NeverSwitches(TrackEvalMetrics):
    def measure(self, clips, counts):
        found = super().measure(clips, counts)
        return {**found, "switches": np.zeros(len(counts))}


class AveragesClips(TrackEvalMetrics):
    def measure(self, clips, counts):
        each = [super(AveragesClips, self).measure([clip], np.array([[1]])) for clip in clips]
        shares = counts / counts.sum(axis=1, keepdims=True)
        return {name: shares @ [one[name][0] for one in each] for name in each[0]}


CORRECT = {
    Stage.TRACK: (BoxTracker, {"method": ("sort", "bytetrack")}),
    Stage.TRACK_METRICS: (TrackEvalMetrics, {}),
}
FAULTS = {
    Stage.TRACK: {
        "every_frame_has_its_numbers": LosesTheLastFrame,
        "no_number_stands_twice": GivesOneNumber,
        "steady_objects_keep_their_numbers": Forgets,
        "each_clip_begins_anew": GoesOn,
    },
    Stage.TRACK_METRICS: {
        "figures_by_hand": NeverSwitches,
        "clips_are_put_together": AveragesClips,
    },
}
