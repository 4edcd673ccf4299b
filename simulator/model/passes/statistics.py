"""Means and variances of BatchNormalization, taken anew from calibration samples."""

from __future__ import annotations

import numpy as np
import onnx

from simulator.contract import Array
from simulator.contract.passes import Fitting, Wanted
from simulator.errors import ModelError
from simulator.model.passes.graph import edit
from simulator.profile.graph import Batchnorm

Statistics = tuple[Array, Array]
"""Mean and variance of each channel, float64."""


def wanted(asked: Batchnorm) -> Wanted | None:
    """Return the samples that the statistics are taken from."""
    given = asked.statistics
    return Wanted(given.samples, given.source, (given.through,)) if given else None


def estimable(node: onnx.NodeProto) -> bool:
    """Whether a BatchNormalization normalizes by stored statistics."""
    return len(node.output) == 1 and not edit.attributes(node).get("training_mode", 0)


def estimated(model: onnx.ModelProto, asked: Batchnorm, fitting: Fitting) -> dict[str, Statistics]:
    """Take the statistics of every BatchNormalization anew, in the order of the graph.

    Each is that of its input over all samples and positions, behind nodes whose statistics are
    new already. This is what one step of training with all samples as one batch stores, in
    PyTorch with ``momentum=None``: the stored variance is the unbiased one, and the samples are
    normalized by the biased one.

    Args:
        model: not changed.
        asked: the profile's section.
        fitting: the samples.

    Returns:
        By the output of each node.

    Raises:
        ModelError: the samples have a single value for each channel.

    Source:
        Li et al., Adaptive Batch Normalization, arXiv 1603.04779; the variance: PyTorch,
        ``torch.nn.BatchNorm2d``, "track_running_stats".
    """
    work = onnx.ModelProto()
    work.CopyFrom(model)
    nodes = [node for node in edit.nodes_of(work, "BatchNormalization") if estimable(node)]
    samples = [feeds for (feeds,) in fitting.samples()] if nodes else []
    found: dict[str, Statistics] = {}
    for node in nodes:
        if asked.epsilon != "keep":
            edit.set_attributes(node, epsilon=asked.epsilon)
        seen, name = _Moments(), node.input[0]
        if name in samples[0]:
            for feeds in samples:
                seen.add(feeds[name])
        else:
            with fitting.run(edit.until(work, [name])) as run:
                for feeds in samples:
                    seen.add(run(feeds)[name])
        if seen.count < 2:
            raise ModelError(
                f"graph.batchnorm.statistics: {edit.label(node)} sees one value for each channel; "
                "a variance needs more samples"
            )
        found[node.output[0]] = seen.mean, seen.squares / (seen.count - 1)
        build = edit.Builder(work, "batchnorm/statistics", node.output[0])
        node.input[3] = build.constant(seen.mean)
        node.input[4] = build.constant(seen.squares / seen.count)
    return found


class _Moments:
    """Mean and sum of squared deviations of each channel, over arrays (N, channels, ...).

    Source:
        Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample
        Variances, 1979.
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean: Array = np.zeros(())
        self.squares: Array = np.zeros(())

    def add(self, values: Array) -> None:
        """Take in one array."""
        rows = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1).astype(np.float64)
        count, mean = rows.shape[1], rows.mean(1)
        squares = ((rows - mean[:, None]) ** 2).sum(1)
        step, whole = mean - self.mean, self.count + count
        self.squares = self.squares + squares + step**2 * self.count * count / whole
        self.mean = self.mean + step * count / whole
        self.count = whole
