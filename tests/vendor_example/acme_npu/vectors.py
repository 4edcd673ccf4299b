"""A modality of Acme's own: readings of a sensor, one vector a sample, from ``.npy`` files.

``VECTOR`` is the modality, ``SCALE`` the entry of its own profile section in the stage table. A
model card says ``input: {kind: vector, length: N, full_scale: X}``, a profile ``modality: vector``
and ``scale: {arithmetic: float32}``.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from pydantic import Field

from simulator.contract import Array, StageSpec
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes
from simulator.errors import SampleError, one_line
from simulator.experiments.pictures.decoded import writer
from simulator.experiments.pictures.pictures import Finished, Pictures, ShownPair
from simulator.modalities.card import CardInput, CardSpec
from simulator.modalities.modality import Feed, Modality
from simulator.modalities.specimen import Specimen
from simulator.pipeline.walk import Walk
from simulator.places import Where, read_sample
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile
from simulator.profile.schema import ProfileSpec
from simulator.profile.section import Above0, Section

LARGEST = 2**20
"""Bytes of one sample at most."""


class Scale(Section):
    """How readings become the network's numbers."""

    arithmetic: Literal["float32", "q7"] = Field(
        description="q7: rounded to the 256 steps of a signed byte, as Acme's NPU does"
    )


class VectorSpec(ProfileSpec):
    """A stack that takes vectors."""

    scale: Scale


class VectorInput(CardInput):
    """What the network takes; ``full_scale`` is the reading that becomes 1."""

    kind: Literal["vector"] = "vector"
    length: Annotated[int, Field(ge=1)]
    full_scale: Above0


class VectorCard(CardSpec):
    """The card of a network that takes vectors."""

    input: VectorInput


@dataclass(frozen=True)
class Vector:
    """The content of one file.

    Attributes:
        values: (N,) float32.
        bytes: of the file.
    """

    values: Array
    bytes: int


@dataclass(frozen=True, eq=False)
class Scaled(Recipe):
    """Readings are divided by the full scale; in q7 they are rounded and clipped as well."""

    arithmetic: str
    full_scale: float
    length: int
    stage = "scale"
    gives: ClassVar[Boundary] = Boundary.INPUT

    def open(self, runtimes: Runtimes) -> Apply:
        """Return our own arithmetic."""

        def apply(source: Vector, _: Context) -> Array:
            if source.values.shape != (self.length,):
                raise SampleError(f"{self.length} readings expected, got {source.values.size}")
            scaled = source.values / np.float32(self.full_scale)
            if self.arithmetic == "q7":
                scaled = np.rint(scaled * 128).clip(-128, 127) / np.float32(128)
            return scaled.astype(np.float32)[None]

        return apply


@dataclass(frozen=True)
class Nowhere:
    """A vector has no place in the network's input: it is the input."""

    def identity(self) -> Any:
        """Return nothing."""
        return None

    def __call__(self, source: Any) -> None:
        """Return nothing."""


@dataclass(frozen=True)
class Strips(Pictures):
    """A grey strip for each of the worst flips: a square a reading, black is the lowest."""

    name = "acme_strips"
    worst = 10

    def see(self, walk: Walk) -> Array:
        """Return the readings."""
        values: Array = walk.context.source.values
        return values

    def draw(self, finished: Finished) -> None:
        """Write a PNG of each."""
        files = writer()
        for flip in finished.summary["worst_flips"] if files else ():
            values = finished.seen[flip["sample"]]
            levels = (values - values.min()) / max(np.ptp(values), 1e-12) * 255
            squares = np.kron(np.rint(levels), np.ones((16, 16))).astype(np.uint8)
            flip["picture"] = flip["preview"] = f"flips/{Path(flip['sample']).stem}.png"
            finished.run.write_file(flip["picture"], files.png(np.dstack([squares] * 3)))


def strips(pair: ShownPair) -> Strips:
    """Plan the strips."""
    return Strips()


class VectorModality(Modality):
    """One vector a sample."""

    name = "vector"
    unit = "vector"
    suffixes = (".npy",)
    pictures = ("acme_npu.vectors:strips",)
    Spec = VectorSpec
    Card = VectorCard

    def read(self, name: str, path: Where) -> Vector:
        """Read one file and check it."""
        data = read_sample(path, LARGEST)
        try:
            values = np.load(io.BytesIO(data), allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise SampleError(f"cannot be read: {one_line(error)}") from error
        if not (isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == np.float32):
            raise SampleError("a vector of float32 expected")
        if not np.isfinite(values).all():
            raise SampleError("a reading is NaN or an infinity")
        return Vector(values, len(data))

    def feeds(self, card: Any) -> tuple[Feed, ...]:
        """Return the one tensor of (1, N) float32."""
        return (Feed(None, np.dtype(np.float32), (1, card.input.length)),)

    def front_end(self, profile: Profile, choices: Choices, card: Any) -> list[Recipe]:
        """Return the one step."""
        scale: Scale = profile.spec.scale  # type: ignore[attr-defined]
        return [Scaled(scale.arithmetic, card.input.full_scale, card.input.length)]

    def placing(self, profile: Profile, card: Any) -> Nowhere:
        """Return that there is nothing to say."""
        return Nowhere()

    def sizes(self, source: Vector) -> dict[str, int]:
        """Return the file's bytes and the vector's length."""
        return {"bytes": source.bytes, "length": source.values.size}

    def specimen(self, folder: Path) -> Specimen:
        """Write two vectors, a model with its card, and a profile."""
        for number in range(2):
            readings = np.linspace(-1, 1 + number, 4, dtype=np.float32)
            np.save(folder / f"{number}.npy", readings)
        (folder / "card.yaml").write_text(_CARD)
        onnx.save(_model(), folder / "model.onnx")
        (folder / "profile.yaml").write_text(_PROFILE)
        files = (folder / "0.npy", folder / "1.npy")
        return Specimen(files, folder / "card.yaml", str(folder / "profile.yaml"))


def _model() -> onnx.ModelProto:
    """The first reading is the wear."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    ports = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in (("x", [1, 4]), ("y", [1, 1]))
    )
    weights = numpy_helper.from_array(np.eye(4, 1, dtype=np.float32), "w")
    graph = helper.make_graph(nodes, "bearings", *ports, [weights])
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


_CARD = """\
schema: 1
name: bearings
task: acme_wear
model: model.onnx
input: {kind: vector, length: 4, full_scale: 2.0}
output: {limits: [0.3, 0.7]}
"""
_PROFILE = """\
schema: 1
name: reference
summary: FP32 on ONNX's own evaluator
modality: vector
scale: {arithmetic: float32}
graph: {}
precision: {storage: fp32, compute: fp32}
runtime: {backend: onnx_reference, device: cpu, threads: 1}
evidence: {}
"""

VECTOR = VectorModality()
SCALE = StageSpec(
    "scale",
    "readings become the network's numbers",
    400,
    modality="vector",
    section=("scale",),
    axis="scale",
    step="scale",
)
