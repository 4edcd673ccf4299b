"""TensorFlow: tf.io's decoders, tf.image.resize in its new and old coordinates, SavedModels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from backends.sound.tensorflow_sound import OFFERS as SOUND
from backends.sound.vocoders import FIELDS as VOCODER
from backends.tensorflow_library import tensorflow, tf_of_one_thread
from backends.tensorflow_runtime import OnnxExporter, SavedModelRuntime
from simulator.contract import (
    U8,
    Admits,
    Array,
    AtLeast,
    Backend,
    Decoder,
    Encoded,
    Offer,
    Resizer,
    SampleError,
    Stage,
    three_channels,
)

_DCT = {"islow": "INTEGER_ACCURATE", "ifast": "INTEGER_FAST"}
_LEGACY = ("legacy", "legacy_align_corners")


class TensorFlowDecoder(Decoder):
    """Decodes with ``tf.io.decode_jpeg`` and ``decode_png``, others with ``decode_image``.

    Nothing is ever turned. Of an animation the first frame counts. The palette of a BMP is ignored:
    its indices become gray (measured).

    The defaults of ``decode_jpeg`` are ``idct: ifast, chroma_upsampling: fancy``. CMYK becomes RGB
    by TensorFlow's own formula. libjpeg fills in corrupt pixel data and prints a warning on
    standard error.
    """

    reads: ClassVar[tuple[str, ...]] = ("jpeg", "png", "webp", "jxl", "bmp", "gif")

    def _rgb(self, image: Encoded) -> U8:
        tf = tf_of_one_thread()
        try:
            if image.format == "png":
                return np.array(tf.io.decode_png(image.data, channels=3))
            if image.format != "jpeg":
                return three_channels(
                    np.array(tf.io.decode_image(image.data, expand_animations=False))
                )
            return np.array(
                tf.io.decode_jpeg(
                    image.data,
                    channels=3,
                    dct_method=_DCT[self.options["idct"]],
                    fancy_upscaling=self.options["chroma_upsampling"] == "fancy",
                )
            )
        except tf.errors.InvalidArgumentError as error:
            reason = error.message.partition("}} ")[2].partition(" [Op:")[0]
            raise SampleError(f"TensorFlow: {reason or error.message}") from error


class TensorFlowResizer(Resizer):
    """Resamples with ``tf.image.resize``, or ``tf.compat.v1.image.resize`` for the old grids.

    The result is neither rounded nor clipped. ``half_pixel`` uses sample centres; its bicubic has
    a = -0.5 and ignores pixels outside the image. ``legacy`` uses source = index x scale, and
    ``legacy_align_corners`` aligns the corner samples; their bicubic has a = -0.75 and repeats the
    edge.
    """

    gives: ClassVar[type[np.uint8] | type[np.float32]] = np.float32

    def _resize(self, plane: U8, height: int, width: int) -> Array:
        tf, options = tf_of_one_thread(), self.options
        channels = plane if plane.ndim == 3 else plane[..., None]
        size, method = (height, width), options["interpolation"]
        with tf.device("CPU"):
            if options["coordinates"] == "half_pixel":
                out = tf.image.resize(channels, size, method, antialias=options["antialias"])
            else:
                corners = options["coordinates"] == "legacy_align_corners"
                out = tf.compat.v1.image.resize(channels, size, method, align_corners=corners)
        return np.array(out).reshape(*size, *plane.shape[2:])


class TensorFlowNearest(TensorFlowResizer):
    """``method="nearest"`` keeps uint8."""

    gives = np.uint8


_SOURCE = "https://www.tensorflow.org/api_docs/python/tf/"
_GRIDS = ("half_pixel", *_LEGACY)
_RESIZES: tuple[tuple[type[Resizer], dict[str, Admits]], ...] = (
    (
        TensorFlowResizer,
        {
            "interpolation": ("bilinear", "bicubic", "lanczos3", "gaussian"),
            "antialias": (True, False),
            "coordinates": ("half_pixel",),
        },
    ),
    (
        TensorFlowResizer,
        {"interpolation": ("bilinear", "bicubic"), "antialias": (False,), "coordinates": _LEGACY},
    ),
    (TensorFlowResizer, {"interpolation": ("area",), "antialias": (True,), "coordinates": _GRIDS}),
    (
        TensorFlowNearest,
        {"interpolation": ("nearest",), "antialias": (False,), "coordinates": _GRIDS},
    ),
)

BACKEND = Backend(
    name="tensorflow",
    summary="TensorFlow on the CPU: SavedModels, tf.io decoders, tf.image.resize, tf.signal",
    library=tensorflow,
    dies_of=("webp",),
    offers=(
        Offer(
            Stage.DECODE,
            {
                "exif": ("ignore",),
                "idct": ("islow", "ifast"),
                "chroma_upsampling": ("fancy", "plain"),
            },
            TensorFlowDecoder,
            source=_SOURCE + "io/decode_jpeg",
        ),
        *(
            Offer(Stage.RESIZE, fields, make, source=_SOURCE + "image/resize")
            for make, fields in _RESIZES
        ),
        Offer(
            Stage.RUNTIME,
            {
                "device": ("cpu",),
                "threads": AtLeast(1),
                "onednn": (True, False),
                "jit_compile": (False, True),
                "storage": ("fp32",),
                "compute": ("fp32",),
            },
            SavedModelRuntime,
            source="https://www.tensorflow.org/guide/saved_model",
        ),
        Offer(Stage.EXPORT, {}, OnnxExporter, source=_SOURCE + "nn"),
        *SOUND,
    ),
    fields={
        **VOCODER,
        "idct": "libjpeg's accurate or fast integer one",
        "chroma_upsampling": "libjpeg's triangle filter, or replication",
        "coordinates": "legacy: TensorFlow 1's default",
        "onednn": "whether operators run in oneDNN, TensorFlow's default on x86",
        "jit_compile": "whether XLA compiles the graph",
    },
)
