"""Pixels through a learned codec: analysis, integers, synthesis; by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from backends.ort.library import plainly
from backends.pillow.pixels import PillowDecoder
from simulator.contract import U8, Array, Decoder, Encoded, Options, SampleError, Unsupported
from simulator.errors import one_line

LARGEST = 2**25
"""Pixels at most: the codec's first layer alone may take 100 bytes for each."""


class LearnedDecoder(Decoder):
    """Decodes with Pillow, and sends the pixels through the codec, as if it had stored them.

    The pixels, divided by 255, are padded on the right and at the bottom to the next multiple of
    the codec's stride, and cut again after it. Its values are multiplied by 255, rounded half to
    even, and clipped.

    Args:
        options: ``codec`` is the path of an ONNX file, see `backends.learned_codec.codec.opened`.

    Raises:
        ModelError: the file is no codec.
    """

    reads: ClassVar[tuple[str, ...]] = PillowDecoder.reads
    turns: ClassVar[Mapping[str, str]] = PillowDecoder.turns

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._base = PillowDecoder(options)
        from backends.learned_codec.codec import opened

        self._session, self._stride = opened(options)
        self._input = self._session.get_inputs()[0].name

    def _rgb(self, image: Encoded) -> U8:
        if image.width * image.height > LARGEST:
            raise SampleError(
                f"{image.width}x{image.height} pixels; a learned codec takes {LARGEST:,} at most"
            )
        return self.coded(self._base.rgb(image).rgb)[0]

    def coded(self, rgb: U8) -> tuple[U8, Array | None]:
        """Pack and unpack pixels.

        Args:
            rgb: (H, W, 3) uint8.

        Returns:
            (H, W, 3) uint8, and the integers that a file would hold if the codec gives them.

        Raises:
            SampleError: the codec fails, gives another size than it was given, or NaN.
        """
        height, width = rgb.shape[:2]
        missing = [(0, -size % self._stride) for size in (height, width)]
        padded = np.pad(rgb, (*missing, (0, 0)), mode=self.options["padding"])
        fed = np.ascontiguousarray(padded.transpose(2, 0, 1)[None], np.float32) / np.float32(255)
        try:
            with plainly():
                decoded, *latents = self._session.run(None, {self._input: fed})
        except Unsupported as error:
            raise SampleError(f"the codec fails on this image: {one_line(error, 300)}") from error
        if decoded.shape != fed.shape:
            raise SampleError(f"the codec made {decoded.shape} of {fed.shape}")
        if not np.isfinite(decoded).all():
            raise SampleError("the codec made pixels that are not finite")
        pixels = np.rint(decoded[0, :, :height, :width].transpose(1, 2, 0) * np.float32(255))
        return pixels.clip(0, 255).astype(np.uint8), latents[0] if latents else None
