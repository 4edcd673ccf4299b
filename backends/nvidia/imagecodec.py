"""NVIDIA nvImageCodec: its CPU decoders (libjpeg-turbo, libpng, OpenJPEG, …), or nvJPEG."""

from __future__ import annotations

import os
import threading
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from backends.nvidia.driver import cuda_device
from simulator.contract import (
    U8,
    Admits,
    Backend,
    Decoder,
    Encoded,
    Library,
    Offer,
    Options,
    SampleError,
    Stage,
)


class _Silent(Library):
    def load(self) -> ModuleType:
        os.environ.setdefault("PYNVIMGCODEC_VERBOSITY", "0")
        return super().load()


NVIMGCODEC = _Silent(
    "nvidia.nvimgcodec",
    distribution="nvidia-nvimgcodec-cu13",
    extra="nvimagecodec",
    others=("nvidia-nvimgcodec-cu12",),
)
FORMATS = ("jpeg", "png", "webp", "jpeg2000", "tiff", "bmp")
if TYPE_CHECKING:
    import nvidia.nvimgcodec as codec
else:
    codec = NVIMGCODEC


class NvImageCodecDecoder(Decoder):
    """Decodes with ``nvimgcodec.Decoder``; each thread has its own decoder.

    On ``mixed`` nvJPEG uses its own inverse DCT. Files that it cannot decode (PNG, a few JPEGs) go
    to the CPU decoders, which use ``idct``. The hardware JPEG engine of some GPUs
    (``HW_GPU_ONLY``) is not used, so that all images are decoded in the same way. A TIFF's 16 bits
    are rounded, its floats of 0 to 1 become 0 to 255 (measured).

    Raises:
        MissingLibrary: ``mixed`` without a GPU.
    """

    reads: ClassVar[tuple[str, ...]] = FORMATS

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        if options["device"] == "mixed":
            cuda_device("device: mixed")
        self._local = threading.local()

    def _rgb(self, image: Encoded) -> U8:
        decoder = getattr(self._local, "decoder", None)
        if decoder is None:
            decoder = self._local.decoder = self._opened()
        params = codec.DecodeParams(
            apply_exif_orientation=self.options["exif"] == "apply",
            color_spec=codec.ColorSpec.SRGB,
            allow_any_depth=False,
        )
        decoded = decoder.decode(image.data, params=params)
        if decoded is None:
            raise SampleError(f"nvImageCodec cannot decode this {image.format} file")
        return np.array(decoded.cpu())

    def _opened(self) -> codec.Decoder:
        device = self.options["device"]
        fancy = int(self.options["chroma_upsampling"] == "fancy")
        fast = int(self.options["idct"] == "ifast")
        return codec.Decoder(
            device_id=codec.NVIMGCODEC_DEVICE_CPU_ONLY if device == "cpu" else 0,
            max_num_cpu_threads=1,
            backends=[codec.Backend(kind) for kind in _kinds(device)],
            options=f":fancy_upsampling={fancy} :fast_idct={fast}",
        )


def _kinds(device: str) -> tuple[codec.BackendKind, ...]:
    kinds = codec.BackendKind
    if device == "cpu":
        return (kinds.CPU_ONLY,)
    return kinds.GPU_ONLY, kinds.HYBRID_CPU_GPU, kinds.CPU_ONLY


_TURNED: tuple[dict[str, Admits], ...] = (
    {"exif": ("apply", "ignore"), "idct": ("islow",)},
    {"exif": ("ignore",), "idct": ("ifast",)},
)
"""A rotated JPEG is decoded without the fast IDCT (measured), so this pair is not offered."""

BACKEND = Backend(
    name="nvimagecodec",
    summary="NVIDIA nvImageCodec: JPEG by libjpeg-turbo or nvJPEG, and five other formats",
    library=NVIMGCODEC,
    dies_of=("png",),
    offers=tuple(
        Offer(
            Stage.DECODE,
            {**turned, "chroma_upsampling": ("fancy", "plain"), "device": (device,)},
            NvImageCodecDecoder,
            source="https://docs.nvidia.com/cuda/nvimagecodec/codec_options.html",
        )
        for device in ("cpu", "mixed")
        for turned in _TURNED
    ),
    fields={
        "device": "mixed: the CPU parses, the GPU decodes (nvJPEG)",
        "chroma_upsampling": "the triangle filter, or replication",
    },
)
