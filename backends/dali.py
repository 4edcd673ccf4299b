"""NVIDIA DALI on the CPU: nvImageCodec's libjpeg-turbo, and its separable resampler."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from simulator.contract import (
    U8,
    Array,
    Backend,
    Decoder,
    Encoded,
    Library,
    Offer,
    Options,
    Resizer,
    SampleError,
    Stage,
)

dali = Library("nvidia.dali", distribution="nvidia-dali-cuda120", extra="dali")
fn = Library("nvidia.dali.fn", distribution="nvidia-dali-cuda120", extra="dali")
types = Library("nvidia.dali.types", distribution="nvidia-dali-cuda120", extra="dali")

_KERNELS = {
    "bilinear": "INTERP_LINEAR",
    "bicubic": "INTERP_CUBIC",
    "lanczos3": "INTERP_LANCZOS3",
    "gaussian": "INTERP_GAUSSIAN",
    "triangular": "INTERP_TRIANGULAR",
    "nearest": "INTERP_NN",
}


class _Pipelines(threading.local):
    """One one-sample pipeline per thread: building takes 1-2 ms, running needs no lock.

    DALI's dynamic API gives the same bits, takes 1.2-1.3 times as long and does not scale
    over Python threads (measured).

    Args:
        build: makes the operator graph; called once per thread.
    """

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build
        self._pipeline: Any = None

    def run(self, **feeds: Array) -> U8:
        """Run this thread's pipeline; one that failed is unusable, and the next call rebuilds."""
        pipeline, self._pipeline = self._pipeline or self._built(), None
        try:
            for name, array in feeds.items():
                pipeline.feed_input(name, [array])
            # The output buffer belongs to the pipeline and is used again: copy.
            out: U8 = np.array(pipeline.run()[0].at(0))
        except RuntimeError as error:
            raise SampleError(f"DALI: {_reason(str(error))}") from error
        self._pipeline = pipeline
        return out

    def _built(self) -> Any:
        pipeline = dali.Pipeline(
            batch_size=1,
            num_threads=1,
            device_id=None,
            prefetch_queue_depth=1,
            exec_async=False,
            exec_pipelined=False,
        )
        with pipeline:
            pipeline.set_outputs(self._build())
        pipeline.build()
        return pipeline


def _reason(message: str) -> str:
    """Take the cause out of DALI's report, which also quotes our own source."""
    lines = [line.strip(" :") for line in message.partition("encountered:")[2].splitlines()]
    return next(filter(None, lines), "the operator failed without saying why")


class DaliDecoder(Decoder):
    """Decodes with ``fn.decoders.image(device="cpu")``; EXIF by ``adjust_orientation``.

    ``jpeg_fancy_upsampling`` is left alone: on the CPU it does nothing, chroma is always fancy.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._pipelines = _Pipelines(self._graph)

    def _graph(self) -> Any:
        return fn.decoders.image(
            fn.external_source(name="file", dtype=types.UINT8, ndim=1),
            device="cpu",
            output_type=types.RGB,
            adjust_orientation=self.options["exif"] == "apply",
            use_fast_idct=self.options["idct"] == "ifast",
        )

    def _rgb(self, image: Encoded) -> U8:
        return self._pipelines.run(file=np.frombuffer(image.data, np.uint8))


class DaliResizer(Resizer):
    """Resamples with ``fn.resize``; ``antialias`` widens the kernel when shrinking.

    ``triangular`` is DALI's deprecated name for ``bilinear`` and gives the same bits.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._pipelines = _Pipelines(self._graph)

    def _graph(self) -> Any:
        return fn.resize(
            fn.external_source(name="plane", dtype=types.UINT8, ndim=3, layout="HWC"),
            size=fn.external_source(name="size", dtype=types.FLOAT, ndim=1),
            interp_type=getattr(types, _KERNELS[self.options["interpolation"]]),
            antialias=self.options["antialias"],
        )

    def _resize(self, plane: U8, height: int, width: int) -> U8:
        channels = np.ascontiguousarray(plane if plane.ndim == 3 else plane[..., None])
        size = np.array((height, width), np.float32)
        out = self._pipelines.run(plane=channels, size=size)
        return out.reshape(height, width, *plane.shape[2:])


BACKEND = Backend(
    name="dali",
    summary="NVIDIA DALI on the CPU: decoding by libjpeg-turbo, resizing with antialias on or off",
    library=dali,
    offers=(
        Offer(
            Stage.DECODE,
            {
                "exif": ("apply", "ignore"),
                "idct": ("islow", "ifast"),
                "chroma_upsampling": ("fancy",),
            },
            DaliDecoder,
            source="DALI documentation, nvidia.dali.fn.decoders.image",
        ),
        Offer(
            Stage.RESIZE,
            {
                "interpolation": tuple(name for name in _KERNELS if name != "nearest"),
                "antialias": (True, False),
            },
            DaliResizer,
            source="DALI documentation, nvidia.dali.fn.resize",
        ),
        Offer(
            Stage.RESIZE,
            {"interpolation": ("nearest",), "antialias": (False,)},
            DaliResizer,
            source="DALI documentation, nvidia.dali.fn.resize",
        ),
    ),
)
