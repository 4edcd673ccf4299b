"""Broken tasks: ours with one fault each, which trips exactly the check that it is filed under."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import fields, replace

import numpy as np
from small_task import Parity, parity
from task_subjects import detection, segmentation

from simulator.contract import Panel
from simulator.tasks.classification.impact import ClassificationImpact
from simulator.tasks.classification.prompts import Matching
from simulator.tasks.classification.specimen import logits, prompted
from simulator.tasks.classification.task import Classification
from simulator.tasks.classification.view import ClassificationView
from simulator.tasks.detection.settings import Settings
from simulator.tasks.detection.task import Detection
from simulator.tasks.impact import Impact
from simulator.tasks.score import Score
from simulator.tasks.segmentation.task import Segmentation
from simulator.tasks.segmentation.view import SegmentationView


def skewed(score, skew):
    """A score with its metrics and its headline's resamples sent through a function."""
    figure = score.figure
    return Score(
        score.records,
        score.labelled,
        {name: None if value is None else skew(value) for name, value in score.metrics.items()},
        figure and (lambda counts: skew(figure(counts))),
    )


class Modest(Segmentation):
    """Averages over one class too many, so that nothing is perfect."""

    def score(self, records, truths):
        return skewed(super().score(records, truths), lambda value: value * 0.99)


class Kind(Segmentation):
    """Gives a point for having tried."""

    def score(self, records, truths):
        return skewed(super().score(records, truths), lambda value: 0.1 + 0.9 * value)


class Patient(Classification):
    """Takes an answer whenever it comes."""

    def late(self, record):
        return dict(record)


class Falling(Segmentation):
    """Falls back to the background where the answer came too late."""

    def late(self, record):
        found = super().late(record)
        last = self.network.classes
        return {**found, "cells": found["cells"] and [cell - last for cell in found["cells"]]}


class Strict(Classification):
    """Takes a class that no image has for one that is never found: the mean over three classes."""

    def score(self, records, truths):
        score = super().score(records, truths)
        labels = [record["label"] for record in records]
        right = np.array([float(bool(record["correct"])) for record in records])
        which = np.array([[label == index for index in range(3)] for label in labels]).reshape(
            -1, 3
        )

        def figure(counts):
            there = counts @ which
            return (counts @ (which * right[:, None]) / np.maximum(there, 1)).mean(axis=1)

        if score.metrics["top1"] is None or None in labels:
            return score
        value = float(figure(np.ones((1, len(records)), np.int64))[0])
        return replace(score, metrics={**score.metrics, "top1": value}, figure=figure)

    def compare(self, train, deploy, draws):
        found = super().compare(train, deploy, draws)
        for side, score in ("train", train), ("deploy", deploy):
            found[side]["metric"] = dict(score.metrics)
        if found["delta"]["top1"]:
            value = deploy.metrics["top1"] - train.metrics["top1"]
            found["delta"]["top1"] = {**found["delta"]["top1"], "value": value}
        return found


class Generous(Detection):
    """Counts an image without objects as found perfectly, where there are others."""

    def score(self, records, truths):
        score = super().score(records, truths)
        if score.figure is None:
            return score
        bare = np.array([len(truth) == 0 for truth in truths])

        def more(value, counts):
            total, free = counts.sum(axis=-1), counts @ bare
            return (value * (total - free) + free) / total

        ones = np.ones(len(bare), np.int64)
        return Score(
            records,
            score.labelled,
            {k: None if v is None else float(more(v, ones)) for k, v in score.metrics.items()},
            lambda counts: more(score.figure(counts), counts),
        )


class Forgetful(Parity):
    """Says of all samples what holds for the last one."""

    def more(self, train, deploy):
        return {**super().more(train, deploy), "choice": deploy[-1]["choice"]}


class Certain(Segmentation):
    """Resamples what it has found of all images."""

    def score(self, records, truths):
        score = super().score(records, truths)
        value = score.metrics["mIoU"]
        return replace(score, figure=score.figure and (lambda counts: np.full(len(counts), value)))


class Dependent(Parity):
    """Sees no change where nobody has said what is right."""

    def change(self, before, after, truth):
        found = super().change(before, after, truth)
        return found if truth is not None else {**found, "changed": 0}


class Zero(Detection):
    """Takes what cannot be known for 0."""

    def score(self, records, truths):
        score = super().score(records, truths)
        if not records or score.labelled == len(records):
            return score
        return replace(score, metrics=dict.fromkeys(self.metrics, 0.0))


class Silent(Parity):
    """Compares what is not there."""

    def compare(self, train, deploy, draws):
        return super().compare(train, deploy, draws) if train.records else {}


class Mending(Segmentation):
    """Puts something in the place of NaN."""

    def decode(self, outputs, settings, placement):
        mended = {name: np.nan_to_num(array) for name, array in outputs.items()}
        return super().decode(mended, settings, placement)


class Lenient(Classification):
    """Looks at numbers, not at shapes."""

    def decode(self, outputs, settings, placement):
        flat = {name: array.reshape(1, -1) for name, array in outputs.items()}
        return super().decode(flat, settings, placement)


class Careless(Classification):
    """Sorts in place: the two classes that come last change places."""

    def decode(self, outputs, settings, placement):
        found = super().decode(outputs, settings, placement)
        (values,) = outputs.values()
        if values.flags.writeable:
            low = np.argsort(values[0])[:2]
            values[0, low] = values[0, low[::-1]]
        return found


class Raw(Segmentation):
    """Reads memory, not the array."""

    def decode(self, outputs, settings, placement):
        read = {name: array.ravel("K").reshape(array.shape) for name, array in outputs.items()}
        return super().decode(read, settings, placement)


class Consuming(Classification):
    """Finds nothing in outputs that it has seen."""

    seen = ()

    def decode(self, outputs, settings, placement):
        found = super().decode(outputs, settings, placement)
        arrays = list(outputs.values())
        again = any(array is old for array in arrays for old in self.seen)
        self.seen = [*self.seen, *arrays]
        return replace(found, prediction=0, best=None) if again else found


class Racing(Classification):
    """Keeps its outputs where another thread finds them."""

    def decode(self, outputs, settings, placement):
        self.kept = outputs
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.002)
        return super().decode(self.kept, settings, placement)


class Same(Settings):
    """Settings that all look alike."""

    def identity(self):
        return {"head": "the card's"}


class Mute(Detection):
    """Obeys a profile and does not say so."""

    def settings(self, asked):
        own = super().settings(asked)
        return Same(**{field.name: getattr(own, field.name) for field in fields(own)})


class Noting(Classification):
    """Records what it has no column for."""

    def record(self, prediction, truth):
        return {**super().record(prediction, truth), "note": "sure"}


class Numpy(Classification):
    """Records numpy's numbers, which come back as Python's."""

    def record(self, prediction, truth):
        found = super().record(prediction, truth)
        return {**found, "score": np.float64(found["score"])}


class Floating(Segmentation):
    """Records fractions in a column of whole numbers."""

    def record(self, prediction, truth):
        found = super().record(prediction, truth)
        return {**found, "pixels": found["pixels"] and [p + 0.0 for p in found["pixels"]]}


class Nervous(Detection):
    """Finds every object changed."""

    def change(self, before, after, truth):
        found = super().change(before, after, truth)
        return {**found, "changed": found["units"]}


class Onesided(Parity):
    """Counts only choices that go down."""

    def change(self, before, after, truth):
        found = super().change(before, after, truth)
        return {**found, "changed": int(before > after)}


class Alike(Classification):
    """Cannot tell two truths apart."""

    def stamp(self, truth):
        return None if truth is None else "annotated"


class Miscounting(Parity):
    """Tells of one flip more than there are."""

    def compare(self, train, deploy, draws):
        found = super().compare(train, deploy, draws)
        return {**found, "flips": {**found["flips"], "count": found["flips"]["count"] + 1}}


class Unwritable(Parity):
    """Gives a figure that is no JSON."""

    def more(self, train, deploy):
        return {**super().more(train, deploy), "images": np.int64(len(deploy))}


class OneWord(ClassificationView):
    """Says one thing where three are asked for."""

    def words(self, flip):
        return flip["train"]["prediction"]


class Terse(Classification):
    """Has a view of few words."""

    View = OneWord


class Unpaired(SegmentationView):
    """Gives lines of one part."""

    def lines(self, summary):
        return [(text,) for _, text in super().lines(summary)]


class Talkative(Segmentation):
    """Has a view of odd lines."""

    View = Unpaired


class Cropping(SegmentationView):
    """Paints a mask on an image of another size."""

    def panels(self, task, images, before, after, truth):
        palette = np.zeros((256, 4), np.uint8)
        return [Panel(images[0], "train", overlay=before[1:], palette=palette)]


class Shapeless(Segmentation):
    """Has a view that does not fit."""

    View = Cropping


class Rooted(Classification):
    """Holds on to what stays in its process."""

    def __init__(self, output, network):
        super().__init__(output, network)
        self.lock = threading.Lock()


class Absentminded(Parity):
    """Comes out of a pickle as another one."""

    def __init__(self, output, network):
        super().__init__(output, network)
        self.home = os.urandom(8)

    def __setstate__(self, state):
        self.__dict__ = {**state, "home": None}

    def decode(self, outputs, settings, placement):
        return super().decode(outputs, settings, placement) if self.home else 0


class Forgiving(Parity):
    """Takes any two answers for one."""

    def same(self, before, after):
        return True


class Fickle(Classification):
    """Never takes two answers for one."""

    def same(self, before, after):
        return False


class Alarm(ClassificationImpact):
    """Takes every fault for a silent one."""

    def judge(self, faulty):
        return {**super().judge(faulty), "sdc": True}


class Alarmed(Classification):
    """Judges faults without looking."""

    Impact = Alarm


class Vague(Impact):
    """Has words where it declares a number."""

    def judge(self, faulty):
        return {"sdc": self.golden is not faulty, "severity": "bad"}


class Wordy(Parity):
    """Cannot say how severe a fault is."""

    Impact = Vague


class Deaf(Matching):
    """Takes stacks with other prompts for one."""

    def identity(self):
        return ["prompts", self.asked.image]


class Scaling(Matching):
    """Scales the image's vector where it is; by 2, so that its direction stays to the bit."""

    def joining(self, found):
        joined = super().joining(found)

        def scaled(outputs):
            vector = outputs[self.asked.image]
            if vector.flags.writeable:
                vector *= 2
            return joined(outputs)

        return scaled


FAULTS = {
    "what_is_run_once_tells_stacks_apart": [prompted(Classification, Deaf)],
    "the_perfect_scores_1": [segmentation(Modest)],
    "the_worthless_scores_0": [segmentation(Kind)],
    "what_comes_too_late_is_worthless": [logits(Patient), segmentation(Falling)],
    "what_is_absent_is_left_out": [logits(Strict)],
    "nothing_to_find_changes_nothing": [detection(Generous)],
    "the_order_does_not_matter": [parity(Forgetful)],
    "a_resample_is_a_data_set": [segmentation(Certain)],
    "without_truth_flips_still_count": [parity(Dependent), detection(Zero)],
    "no_sample_is_a_data_error": [parity(Silent)],
    "nan_and_infinity_are_refused": [segmentation(Mending)],
    "what_does_not_fit_is_refused": [logits(Lenient)],
    "outputs_are_left_alone": [
        logits(Careless, "probabilities"),
        prompted(Classification, Scaling),
    ],
    "any_strides_will_do": [segmentation(Raw)],
    "the_same_twice": [logits(Consuming)],
    "threads_see_the_same": [logits(Racing)],
    "another_process_gets_the_same": [logits(Rooted), parity(Absentminded)],
    "equal_identities_do_equal_work": [detection(Mute)],
    "every_column_is_recorded": [logits(Noting)],
    "records_survive_parquet": [logits(Numpy), segmentation(Floating)],
    "an_answer_is_like_itself": [detection(Nervous)],
    "the_same_answer_is_the_same": [parity(Forgiving), logits(Fickle)],
    "changes_count_both_ways_alike": [parity(Onesided)],
    "stamps_tell_truths_apart": [logits(Alike)],
    "a_comparison_has_its_parts": [parity(Miscounting)],
    "a_comparison_is_json": [parity(Unwritable)],
    "reports_get_their_words": [logits(Terse), segmentation(Talkative)],
    "changes_can_be_drawn": [segmentation(Shapeless)],
    "faults_have_a_verdict": [logits(Alarmed), parity(Wordy)],
}
