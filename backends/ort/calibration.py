"""Calibration for ONNX Runtime's static quantizer: the range of every tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from backends.ort.library import quantization
from simulator.contract import Array, Options

HISTOGRAM_BATCH = 16
"""The number of samples whose activations the histogram methods hold at once, about 1.2 GB."""

_CALIBRATORS = {
    "minmax": "MinMax",
    "entropy": "Entropy",
    "percentile": "Percentile",
    "mse": "Percentile",
}
_SHARES = np.linspace(1, 0.02, 50)


def calibrate(
    model: Path,
    operators: list[str],
    feeds: Iterator[Mapping[str, Array]],
    target: Path,
    options: Options,
) -> Any:
    """Write the range of every tensor to *target*, as JSON.

    Returns:
        The ``CalibrationMethod`` with which ``quantize_static`` reads the file.
    """
    from onnxruntime.quantization.calibrate import create_calibrator, save_tensors_data

    method = getattr(quantization.CalibrationMethod, _CALIBRATORS[options["method"]])
    extra = {name: options[name] for name in ("num_bins", "percentile") if name in options}
    if options["method"] == "mse":
        extra["symmetric"] = False  # otherwise it is a histogram of magnitudes
    calibrator = create_calibrator(
        model,
        operators,
        augmented_model_path=str(target.with_name("augmented.onnx")),
        calibrate_method=method,
        extra_options=extra,
    )
    if options["method"] == "minmax":
        calibrator.collect_data(_reader(feeds))
    else:
        while batch := list(islice(feeds, HISTOGRAM_BATCH)):
            calibrator.collect_data(_reader(iter(batch)))
    if options["method"] == "mse":
        method = quantization.CalibrationMethod.MinMax
        ranges = _least_errors(calibrator.collector.histogram_dict, options)
    else:
        ranges = calibrator.compute_data()
    save_tensors_data(ranges, target)
    return method


def _least_errors(histograms: Mapping[str, Any], options: Options) -> Any:
    from onnxruntime.quantization.calibrate import TensorsData

    ends = np.iinfo(options["activations"])
    codes = (-ends.max if ends.min and options["symmetric"] else ends.min, ends.max)
    ranges = {}
    for name, (counts, edges, low, high, *_) in histograms.items():
        filled = counts > 0
        centres = ((edges[:-1] + edges[1:]) / 2)[filled].astype(np.float64)
        seen = float(low), float(high)
        best = least_error(centres, counts[filled], seen, codes, options["symmetric"])
        ranges[name] = tuple(np.array(end, np.float32) for end in best)
    return TensorsData(quantization.CalibrationMethod.MinMax, ranges)


def least_error(
    values: Array, counts: Array, ends: tuple[float, float], codes: tuple[int, int], symmetric: bool
) -> tuple[float, float]:
    """Find the clipping range with the least squared quantization error.

    The two ends are multiplied by all pairs of 50 factors from 1 to 0.02 (with ``symmetric``, or
    values of one sign, by one factor). Each range uses ONNX Runtime's scale and zero point for it.
    Of equal errors the widest range wins.

    Args:
        values: (N,) float64, the centres of the filled bins of a histogram.
        counts: (N,) the number of values in each.
        ends: the smallest and the largest value seen.
        codes: the smallest and the largest integer code.
        symmetric: whether the range must be symmetric around zero.

    Source:
        Nagel et al., A White Paper on Neural Network Quantization,
        https://arxiv.org/abs/2106.08295, section 3.1, equation 22; the search over a
        histogram as in NVIDIA's pytorch-quantization, calib/histogram.py, ``mse``.
    """
    low, high = min(ends[0], 0.0), max(ends[1], 0.0)
    if symmetric:
        high = max(-low, high)
        low = -high
    best, found = np.inf, (low, high)
    for bottom in _SHARES * low if low and not symmetric else (low,):
        for top in _SHARES * high if high else (high,):
            start = -top if symmetric else bottom
            scale = (top - start) / (codes[1] - codes[0])
            if scale < np.finfo(np.float32).tiny:
                continue
            zero = np.round(sum(codes) / 2 if symmetric else codes[0] - start / scale)
            rounded = np.clip(np.rint(values / scale) + zero, *codes) - zero
            error = counts @ (values - rounded * scale) ** 2
            if error < best:
                best, found = error, (float(start), float(top))
    return found


def _reader(feeds: Iterator[Mapping[str, Array]]) -> Any:
    base: Any = quantization.CalibrationDataReader

    class Reader(base):  # type: ignore[misc]
        def get_next(self) -> Any:
            return next(feeds, None)

    return Reader()
