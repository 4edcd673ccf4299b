"""The faults of what computes gradients and of what fine-tunes, in PyTorch."""

from __future__ import annotations

import numpy as np
import onnx

from backends.fake_quant.tuner import TorchTuner
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
