"""The model stages: runtimes, and the quantizers that make their artifacts."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np

from simulator.contract.backend import Implementation, Options
from simulator.contract.frame import Array
from simulator.contract.injection import Injector
from simulator.errors import Unsupported


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output of a model.

    Attributes:
        name: its name in the file.
        dtype: the NumPy type of its elements.
        shape: its dimensions; None for a free one.
        either_layout: whether it also takes an image batch in the other layout (NCHW or NHWC).
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]
    either_layout: bool = False

    def accepts(self, array: Array) -> bool:
        """Whether *array* has this shape, and this dtype or one that is rounded to it."""
        return self.rounded(array).dtype == self.dtype and self.order(array.shape) is not None

    def rounded(self, array: Array) -> Array:
        """Return what a network of FP16 gets of float32; anything else is left alone."""
        half = self.dtype == np.float16 and array.dtype == np.float32
        with np.errstate(over="ignore"):
            return array.astype(np.float16) if half else array

    def order(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the order of axes that turns *shape* into this port's; None if there is none."""
        if of_shape(shape, self.shape):
            return tuple(range(len(shape)))
        orders = [(0, 2, 3, 1), (0, 3, 1, 2)] if self.either_layout and len(shape) == 4 else []
        fitting = (one for one in orders if of_shape([shape[i] for i in one], self.shape))
        return next(fitting, None)


def of_shape(shape: Sequence[int | None], wanted: Sequence[int | None]) -> bool:
    """Whether all that has a shape has another one, too; None is a side of any length."""
    return len(shape) == len(wanted) and all(
        want in (None, got) for got, want in zip(shape, wanted, strict=True)
    )


def shape_words(shape: Sequence[int | None]) -> str:
    """Format a shape as 1x3x?x?."""
    return "x".join("?" if side is None else str(side) for side in shape) or "of unknown shape"


@dataclass(frozen=True, slots=True)
class Effective:
    """The settings that a runtime reports as in use, to compare with those requested.

    Attributes:
        products: how many convolutions and matrix products ran in each precision, as read back
            from the runtime; empty if it ran none or does not report it.
        options: every other option that can be read back, by its profile name.
        details: other facts that the runtime reports (fused kernels, counts by precision).
        probed: the precision found by a probe model, if the runtime does not report it.
    """

    products: Mapping[str, int]
    options: Options
    details: Mapping[str, object] = field(default_factory=dict)
    probed: str | None = None

    @property
    def compute(self) -> str | None:
        """The precision of most products; None if it is unknown."""
        return max(self.products, key=lambda kind: self.products[kind], default=self.probed)


class Runtime(ABC):
    """Runs one model file.

    ``run`` may be called from several threads at once; with ``one_at_a_time`` the calls wait for
    each other.

    Args:
        artifact: the model file, or the folder that ``compile`` wrote.
        options: the checked fields of the profile's ``runtime`` section, and ``storage`` and
            ``compute`` of its ``precision`` section.

    Attributes:
        takes: the format of the model file: ``onnx``, ``torch_export`` or ``tflite``.
        also_takes: the other formats that it opens as they are: what the backend's own quantizer
            writes, and what a profile names as ``precision.artifact``.
        fixed_shapes: whether all dimensions of the model must be fixed.
        one_at_a_time: whether the library runs one call of an open model at a time.
        compiled_by: the options that the compiled form depends on; the runtime then opens the
            folder that ``compile`` wrote. None if it opens the model file directly.
        compiled_format: the model format of its compiled form, where other tools write it too; it
            then opens such a file in place of the folder.
        batches: which batches of several samples it takes: ``fixed``, of a model whose batch
            dimension has that size, and ``dynamic``, of one whose batch dimension is free.
        resizes: whether it gives the model's batch dimension another size itself; else it opens a
            file that has it.
        is_stateful: whether it keeps the keys and values of what it was fed, of an open file. Its
            ``attention_mask`` then covers all of a text: where it is as long as the ``input_ids``,
            a text begins; where it is longer, the last one goes on, and what the mask no longer
            has is forgotten. It raises ValueError where the mask does not follow. Where it can be
            chosen, the option is ``stateful``.
        moves: whether what follows a forgotten place moves up, and is then at another position.
        bit_stable: the kinds of ``compute`` in which a sample's outputs had the same bits in
            batches of 1, 4 and 16 of EfficientNet-Lite0 on one CPU. Another network, device or
            processor may have other kernels: the conformance suite tells what it finds there.
    """

    takes: ClassVar[str] = "onnx"
    also_takes: ClassVar[tuple[str, ...]] = ()
    fixed_shapes: ClassVar[bool] = False
    one_at_a_time: ClassVar[bool] = False
    compiled_by: ClassVar[tuple[str, ...] | None] = None
    compiled_format: ClassVar[str] = ""
    batches: ClassVar[tuple[str, ...]] = ()
    resizes: ClassVar[bool] = False
    moves: ClassVar[bool] = False
    bit_stable: ClassVar[tuple[str, ...]] = ()
    is_stateful: bool = False
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def __init__(self, artifact: Path, options: Options) -> None:
        self.options = options
        self._closed = False
        self._turn: AbstractContextManager[Any] = (
            threading.RLock() if self.one_at_a_time else nullcontext()
        )
        self.inputs, self.outputs = self._open(artifact)

    @classmethod
    def opens(cls) -> tuple[str, ...]:
        """Return the formats of the finished model files that it opens."""
        return tuple(filter(None, (cls.takes, *cls.also_takes, cls.compiled_format)))

    @classmethod
    def compile(cls, source: Path, folder: Path, options: Options) -> None:
        """Convert a model file to the runtime's own form; the result is cached by its inputs.

        Args:
            source: the model file, in the format ``takes``.
            folder: an empty folder to write into.
            options: as for the constructor; the result may depend only on those in ``compiled_by``.
        """
        raise NotImplementedError(f"{cls.__name__} opens its model file directly")

    @classmethod
    def compile_identity(cls) -> Any:
        """Return what else the compiled form depends on, such as the GPU, as JSON."""
        return None

    @classmethod
    def save_conv(cls, weights: Array, path: Path) -> None:
        """Write a 1x1 convolution in the format that the runtime takes; not needed for ONNX.

        Args:
            weights: (features, channels, 1, 1) float32.
            path: where the file goes; its input is (1, channels, 8, 8) float32.
        """
        raise NotImplementedError(f"{cls.__name__} cannot write a probe model")

    @classmethod
    def save_suite(cls, source: Path, target: Path) -> None:
        """Write a model of the conformance suite in the format that the runtime takes.

        Where no exporter gives that format, all runtimes of the format are proved with it.

        Args:
            source: one of :mod:`simulator.testing.models`, as ONNX; no model of a user.
            target: where the file goes.
        """
        raise NotImplementedError(f"{cls.__name__} cannot write the models of the suite")

    @classmethod
    def injector(cls) -> type[Injector]:
        """Return what puts faults into the runtime's artifacts.

        Raises:
            Unsupported: nothing does.
        """
        raise Unsupported(
            "no faults can be put into what it runs: weights and activations cannot be "
            "reached; onnxruntime, openvino and pytorch can"
        )

    @final
    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model once.

        Args:
            feeds: one array per input by name, of exactly the port's dtype and shape; float32 is
                rounded for an input of float16.

        Returns:
            Copies of the outputs by name, float16 as float32; a later call never changes them.

        Raises:
            ValueError: the runtime is closed, or an input is missing, unknown, or does not fit
                its port.
        """
        if self._closed:
            raise ValueError(f"{type(self).__name__} was closed; open it again to run")
        names = {port.name for port in self.inputs}
        if names != set(feeds):
            raise ValueError(f"inputs {sorted(names)} expected, got {sorted(feeds)}")
        for port in self.inputs:
            if not port.accepts(feeds[port.name]):
                got = feeds[port.name]
                raise ValueError(
                    f"input {port.name!r} is {port.dtype} {port.shape}, got {got.dtype} {got.shape}"
                )
        given = {port.name: port.rounded(feeds[port.name]) for port in self.inputs}
        with self._turn:
            return {
                name: np.array(out, np.float32 if out.dtype == np.float16 else None, copy=True)
                for name, out in self._run(given).items()
            }

    @final
    def close(self) -> None:
        """Free the runtime's resources; closing twice is allowed."""
        if not self._closed:
            self._closed = True
            self._close()

    @final
    def alone(self) -> AbstractContextManager[Any]:
        """Keep other threads out meanwhile, where the library runs one call at a time."""
        return self._turn

    def inner(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model, and return what its layers give, in the order of computation.

        Not needed where the runtime opens ONNX files or what is made of them: there the file gets
        further outputs. Kernels may be fused less than in :meth:`run`.

        Args:
            feeds: as for :meth:`run`.

        Returns:
            Floating-point arrays by the names of the file; integers with a scale as real numbers.

        Raises:
            Unsupported: the runtime does not show its layers.
        """
        raise Unsupported(f"{type(self).__name__} does not show what its layers give")

    @abstractmethod
    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Read back the settings in use.

        Args:
            feeds: valid inputs, for runtimes that must be observed while they run.
        """

    @abstractmethod
    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]: ...

    @abstractmethod
    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]: ...

    def _named(self, outputs: Iterable[Array]) -> dict[str, Array]:
        """Return outputs by name, given in the order of the ports."""
        return {port.name: out for port, out in zip(self.outputs, outputs, strict=True)}

    def _close(self) -> None:  # noqa: B027  a runtime may have nothing to free
        pass


class Exporter(Implementation):
    """Converts a model to another format before it is quantized and run.

    Args:
        options: the checked fields of the profile's ``runtime.exporter`` section.

    Attributes:
        takes: the format of the source: ``onnx`` or ``torch_export``.
        gives: the format of the target, for example ``tflite``.
    """

    takes: ClassVar[str]
    gives: ClassVar[str]

    @abstractmethod
    def export(self, source: Path, target: Path) -> None:
        """Convert the model file *source* to the format ``gives`` and write it to *target*."""


class Cast(Implementation):
    """Stores a model's weights in another type; the arithmetic does not change.

    Args:
        options: ``storage`` of the profile's ``precision`` section, and the checked fields of
            its ``cast`` section.

    Attributes:
        format: of the source.
        gives: the format of the target, if it differs.
        portable: whether any runtime of the format opens the file: it has standard operators only.
        sets_compute: whether it also decides what products are computed in.
        proved_on: the model of the conformance suite that it changes.
    """

    format: ClassVar[str] = "onnx"
    gives: ClassVar[str | None] = None
    portable: ClassVar[bool] = True
    sets_compute: ClassVar[bool] = False
    proved_on: ClassVar[str] = "conv"

    @abstractmethod
    def cast(self, source: Path, target: Path) -> None:
        """Write the model file *source* to *target*, with its weights in the requested type."""


class Quantizer(Implementation):
    """Makes an INT8 model by post-training quantization.

    Args:
        options: the checked fields of the profile's ``precision.quantizer`` section.

    Attributes:
        calibrates: whether it needs calibration inputs; a dynamic one does not.
        format: of the source.
        gives: the format of the target, if it differs.
    """

    calibrates: ClassVar[bool] = True
    format: ClassVar[str] = "onnx"
    gives: ClassVar[str | None] = None

    @abstractmethod
    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Write the quantized model.

        Args:
            source: a file with FP32 weights.
            target: where to write the quantized file; an ONNX file has QuantizeLinear and
                DequantizeLinear pairs.
            feeds: calibration inputs, one sample at a time, in the layout of the model card.
        """
