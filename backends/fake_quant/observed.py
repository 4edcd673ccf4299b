"""What calibration sees of activations, by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from backends.ort.library import ort
from simulator.contract import Array, ModelError

if TYPE_CHECKING:
    import onnx

DRAWN = 1024
"""Values that are drawn from each tensor of each sample, to search the step of least error."""


@dataclass(slots=True)
class Observed:
    """One tensor over all samples.

    Attributes:
        low: its smallest value.
        high: its largest value.
        total: the sum of magnitudes.
        count: the number of values.
        drawn: some of its values, drawn at random with a fixed seed.
    """

    low: float = np.inf
    high: float = -np.inf
    total: float = 0.0
    count: int = 0
    drawn: list[Array] = field(default_factory=list)

    def add(self, values: Array, rng: np.random.Generator) -> None:
        """Take in the tensor of one sample."""
        flat = values.reshape(-1)
        self.low, self.high = min(self.low, float(flat.min())), max(self.high, float(flat.max()))
        self.total += float(np.abs(flat).sum(dtype=np.float64))
        self.count += flat.size
        few = flat if flat.size <= DRAWN else flat[rng.integers(0, flat.size, DRAWN)]
        self.drawn.append(few.astype(np.float32))

    @property
    def signed(self) -> bool:
        """Whether it was ever below 0."""
        return self.low < 0

    @property
    def mean(self) -> float:
        """The mean magnitude."""
        return self.total / self.count

    @property
    def most(self) -> float:
        """The largest magnitude; 1 if it was always 0."""
        return max(-self.low, self.high) or 1.0

    @property
    def values(self) -> Array:
        """(1, N) float32: the values that were drawn."""
        return np.concatenate(self.drawn)[None]


def observe(
    model: onnx.ModelProto, names: Iterable[str], feeds: Iterator[Mapping[str, Array]]
) -> dict[str, Observed]:
    """Run a model on calibration inputs and watch some of its tensors.

    Raises:
        ModelError: there are no samples, or a tensor has a value that is not finite.
    """
    seen = {name: Observed() for name in names}
    inputs = {port.name for port in model.graph.input}
    rng = np.random.default_rng(0)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(
        _tapped(model, [name for name in seen if name not in inputs]).SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )
    outputs = [port.name for port in session.get_outputs()]
    samples = 0
    for samples, feed in enumerate(feeds, 1):  # noqa: B007  counted
        made = dict(zip(outputs, session.run(outputs, dict(feed)), strict=True)) | dict(feed)
        for name, observed in seen.items():
            if not np.isfinite(made[name]).all():
                raise ModelError(f"calibration: tensor {name!r} has values that are not finite")
            observed.add(made[name], rng)
    if not samples:
        raise ModelError("calibration: there are no samples")
    return seen


def _tapped(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """Return a copy with more outputs."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    have = {port.name for port in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in have)
    return copy
