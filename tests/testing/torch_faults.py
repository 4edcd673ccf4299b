"""The faults of what computes gradients, of what fine-tunes and of what adapts, in PyTorch."""

from __future__ import annotations

import contextlib

import numpy as np
import onnx

from backends.fake_quant.tuner import TorchTuner
from backends.pytorch_adapter import TorchAdapter
from backends.pytorch_onnx import OnnxGradients
from simulator.errors import ModelError

# --- gradients ----------------------------------------------------------------------------------


class AddsToScores(OnnxGradients):
    def _at(self, values):
        scores, pull = super()._at(values)
        return scores + np.float32(0.1), pull


class OverstatesSlopes(OnnxGradients):
    def _at(self, values):
        scores, pull = super()._at(values)
        return scores, lambda cotangent: pull(cotangent) * np.float32(1.05)


class AddsUpWaysBack(OnnxGradients):
    def _at(self, values):
        scores, pull = super()._at(values)
        sums = np.zeros_like(values)

        def back(cotangent):
            sums[...] += pull(cotangent)
            return np.array(sums)

        return scores, back


class Nothing:
    def parameters(self):
        return ()


class FollowsAnything(OnnxGradients):
    def _read(self, artifact):
        try:
            return super()._read(artifact)
        except ModelError:
            return Nothing()


# --- tuners -------------------------------------------------------------------------------------


class NeverLearns(TorchTuner):
    def epoch(self, number, inputs, labels, order):
        before = self.state()
        loss = super().epoch(number, inputs, labels, order)
        self.restore(before)
        return loss


class ForgetsItsMomentum(TorchTuner):
    def restore(self, state):
        super().restore(state)
        self._network.optimizer.state.clear()


class WritesItsSource(TorchTuner):
    def open(self, source, calibration):
        super().open(source, calibration)
        self._source = source.read_bytes()

    def write(self, target):
        target.write_bytes(self._source)


class SignsItsSource(TorchTuner):
    def open(self, source, calibration):
        super().open(source, calibration)
        self._source = source

    def write(self, target):
        super().write(target)
        model = onnx.load(self._source)
        model.doc_string += "tuned"
        onnx.save(model, self._source)


class LearnsNoise(TorchTuner):
    def open(self, source, calibration):
        try:
            super().open(source, calibration)
        except Exception:
            self._network = None


# --- adapters -----------------------------------------------------------------------------------


class UsesStoredStatistics(TorchAdapter):
    def open(self, source, sample, scores=None, probabilities=False):
        super().open(source, sample, scores, probabilities)
        self._module.eval()


class NeverAdapts(TorchAdapter):
    def answer(self, batch):
        before = self.state()
        found = super().answer(batch)
        self.restore(before)
        return found


class NeverForgets(TorchAdapter):
    def _restart(self):
        if not hasattr(self, "_optimizer"):
            super()._restart()


class ForgetsItsBatches(TorchAdapter):
    def restore(self, state):
        pass


class AnswersInPlace(TorchAdapter):
    def answer(self, batch):
        found = super().answer(batch)["y"]
        if not hasattr(self, "_held"):
            self._held = found
        self._held[...] = found
        return {"y": self._held}


class SignsItsNetwork(TorchAdapter):
    def open(self, source, sample, scores=None, probabilities=False):
        super().open(source, sample, scores, probabilities)
        model = onnx.load(source)
        model.doc_string += "adapted"
        onnx.save(model, source)


class TakesAnyNetwork(TorchAdapter):
    def open(self, source, sample, scores=None, probabilities=False):
        with contextlib.suppress(ModelError):
            super().open(source, sample, scores, probabilities)


ADAPTERS = {
    "the_batch_gives_the_statistics": UsesStoredStatistics,
    "it_learns_as_its_method_says": NeverAdapts,
    "an_episode_is_forgotten": NeverForgets,
    "it_goes_on_where_it_stopped": ForgetsItsBatches,
    "batches_and_answers_are_left_alone": AnswersInPlace,
    "the_source_is_left_alone": SignsItsNetwork,
    "without_normalization_is_refused": TakesAnyNetwork,
}
GRADIENTS = {
    "scores_agree_with_onnx_reference": AddsToScores,
    "agrees_with_differences": OverstatesSlopes,
    "the_way_back_stays": AddsUpWaysBack,
    "bad_models_are_refused": FollowsAnything,
}
TUNERS = {
    "the_loss_falls": NeverLearns,
    "it_goes_on_where_it_stopped": ForgetsItsMomentum,
    "the_file_is_what_learned": WritesItsSource,
    "the_source_is_left_alone": SignsItsSource,
    "noise_is_refused": LearnsNoise,
}
