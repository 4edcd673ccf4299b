"""Voice activity: whether somebody speaks in each chunk of a sound."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from simulator.contract import Array
from simulator.errors import ModelError
from simulator.profile.section import Section
from simulator.tasks.figures import Figures, Flips
from simulator.tasks.finite import check_finite, output_of
from simulator.tasks.score import Record, Values
from simulator.tasks.settings import Network
from simulator.tasks.task import CHANGES, Shapes, Task
from simulator.tasks.view import Told, View

Outputs = Mapping[str, Array]
Segments = Sequence[tuple[float, float]]
"""Where somebody speaks: begin and end in seconds, each begin before its end."""


class Output(Section):
    """What the network gives for each chunk.

    Attributes:
        probability: the output with the probability of speech.
        threshold: a chunk is speech from this probability on.
    """

    probability: str
    threshold: Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True, slots=True)
class Voiced:
    """The answer for one sound.

    Attributes:
        speech: for each chunk whether it is speech.
        probabilities: (chunks,) float64, from 0 to 1.
    """

    speech: tuple[bool, ...]
    probabilities: NDArray[np.float64] = field(compare=False, repr=False)


def sure(*speech: bool) -> Voiced:
    """Return decisions without doubt."""
    return Voiced(speech, np.array(speech, np.float64))


@dataclass(frozen=True, slots=True)
class InTurn:
    """Chunks one after another; what the network gives back goes into the next inference.

    Attributes:
        carried: the output that each such input becomes.
    """

    carried: Mapping[str, str]
    is_cached: ClassVar[bool] = False
    moves: ClassVar[bool] = False
    neighbours: ClassVar[int] = 0

    def identity(self) -> Any:
        """Return what is carried over."""
        return ["in_turn", dict(self.carried)]

    def steps(self, feeds: Any, placement: Any) -> Generator[Any, Outputs, tuple[Outputs, ...]]:
        """Yield the feeds of each chunk.

        Args:
            feeds: a tuple of mappings, one a chunk, as the front end made them.
            placement: not used.
        """
        state: dict[str, Array] = {}
        found = []
        for feed in feeds:
            outputs = yield {**feed, **state}
            state = {name: outputs[output] for name, output in self.carried.items()}
            found.append(outputs)
        return tuple(found)


class VoiceActivityFlips(Flips):
    """Decisions on chunks that differ."""

    mean: float | None = Field(description="mean absolute difference of the probabilities")
    max: float | None = Field(description="largest absolute difference of the probabilities")


class VoiceActivityView(View):
    """Counts of chunks, and how far the probabilities moved."""

    told: ClassVar[Mapping[str, str]] = {
        "probability of speech": "moved by {mean:.2g} in the mean, at most {max:.2g}"
    }
    titles = ("chunks changed", "train, chunks of speech", "deploy, chunks of speech")

    def said(self, flip: Told, side: str) -> str:
        """Return how many chunks are speech."""
        return f"{flip[side]['voiced']} of {flip[side]['chunks']}"


class VoiceActivity(Task):
    """Speech or not in each chunk; its truth is where somebody speaks, or None.

    A chunk is speech where its middle is. Several inferences make a sound: one for each chunk.
    """

    name = "voice_activity"
    unit = "chunk"
    in_parts = True
    metrics = ("accuracy",)
    several = True
    guess = 0.5
    answer = ("decisions",)
    shown = ("chunks", "voiced")
    shown_once = ("moved", "moved_most", "changed", "units")
    tried_with = "simulator.tasks.voice_activity.specimen:three_chunks"
    Output = Output
    Flips = VoiceActivityFlips
    View = VoiceActivityView
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("accuracy", pa.float64()),
        pa.field("chunks", pa.int64()),
        pa.field("voiced", pa.int64()),
        pa.field("decisions", pa.binary()),
        pa.field("moved", pa.float64()),
        pa.field("moved_most", pa.float64()),
        *CHANGES,
    )

    def __init__(self, output: Any, network: Network) -> None:
        super().__init__(output, network)
        chunk = getattr(network.input, "chunk", None)
        if chunk is None:
            raise ModelError(f"{self.name} needs a model of chunks of sound: input.chunk")
        self._seconds = chunk.size / network.input.rate
        self._carried = {name: one.output for name, one in chunk.carried.items()}

    def outputs(self) -> tuple[str, ...]:
        """Return the output that the card names, and those that are carried over."""
        return (self.output.probability, *self._carried.values())

    def sequel(self, settings: Any) -> InTurn:
        """Return that the chunks are run in turn."""
        return InTurn(self._carried)

    def check(self, shapes: Shapes) -> None:
        """Expect one number a chunk."""
        name, shape = self.output.probability, shapes[self.output.probability]
        if any(size not in (1, None) for size in shape):
            raise ModelError(f"output {name!r}: one probability a chunk expected, got {shape}")

    def decode(self, outputs: Sequence[Outputs], settings: Any, placing: Any) -> Voiced:
        """Read the probability of each chunk."""
        found = np.array([self._probability(output) for output in outputs], np.float64)
        return Voiced(tuple((found >= self.output.threshold).tolist()), found)

    def _probability(self, outputs: Outputs) -> float:
        name, values = output_of(outputs, self.output.probability)
        if values.size != 1 or values.dtype.kind not in "fiu":
            got = f"{values.dtype} {values.shape}"
            raise ModelError(f"output {name!r}: one probability a chunk expected, got {got}")
        check_finite(values, f" in output {name!r}")
        return float(values.reshape(-1)[0])

    def record(self, prediction: Voiced, truth: Segments | None) -> Values:
        """Return the decisions, and the share of them that are right."""
        said = np.array(prediction.speech, bool)
        right = None
        if truth is not None and said.size:
            right = float(np.mean(said == self._truth(truth, said.size)))
        return {
            "accuracy": right,
            "chunks": said.size,
            "voiced": int(said.sum()),
            "decisions": said.astype(np.uint8).tobytes(),
        }

    def _truth(self, segments: Segments, chunks: int) -> NDArray[np.bool_]:
        middles = (np.arange(chunks) + 0.5) * self._seconds
        inside = [(middles >= begin) & (middles < end) for begin, end in segments]
        return np.any(inside, axis=0) if inside else np.zeros(chunks, bool)

    def change(self, before: Voiced, after: Voiced, truth: Any) -> Values:
        """Count the chunks that are decided otherwise; a chunk that only one stack has is one."""
        chunks = max(len(before.speech), len(after.speech))
        common = min(len(before.speech), len(after.speech))
        pairs = zip(before.speech, after.speech, strict=False)
        changed = sum(one != other for one, other in pairs) + chunks - common
        moved = np.abs(before.probabilities[:common] - after.probabilities[:common])
        return {
            "changed": changed,
            "units": chunks,
            "moved": float(moved.sum()),
            "moved_most": float(moved.max()) if common else 0.0,
        }

    def more(self, train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
        """Return how far the probabilities moved."""
        chunks = sum(record["units"] for record in deploy)
        return {
            "mean": sum(record["moved"] for record in deploy) / chunks if chunks else None,
            "max": max((record["moved_most"] for record in deploy), default=None),
        }

    def examples(self) -> list[tuple[Any, Any]]:
        """Return silence, speech at the end, and speech in the middle."""
        second = self._seconds
        return [
            ([], sure(False, False, False)),
            ([(2 * second, 3 * second)], sure(False, False, True)),
            ([(second, 2 * second)], sure(False, True, False)),
        ]
