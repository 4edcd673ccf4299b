"""Ascend DVPP: JPEG decoding (JPEGD) and resizing (VPC) on the device."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np

from backends.ascend.device import Channel, Scratch, acl, call, download, soc, upload
from simulator.contract import (
    U8,
    Decoder,
    Encoded,
    Frame,
    Matrix,
    Options,
    PixelFormat,
    Range,
    Resizer,
    SampleError,
    Unsupported,
    yuv_frame,
)

_YUV400, _NV12 = 0, 1  # acldvppPixelFormat
INTERPOLATION = {"bilinear": 1, "nearest": 2}
"""acldvppSetResizeConfigInterpolation: both as in OpenCV; 0 is Huawei's own on 310 and 910."""


def jpegd_strides(width: int, height: int, soc_name: str) -> tuple[int, int]:
    """Return the width and height strides of an NV12 picture that JPEGD writes, in bytes and rows.

    Source:
        CANN, pyACL "JPEGD: Functions and Restrictions", table 2: width aligned to 128 on Ascend
        310 and 910, to 64 on 310P, 310B and 910B; height aligned to 16.
    """
    return _up(width, 128 if first_generation(soc_name) else 64), _up(height, 16)


def vpc_strides(width: int, height: int) -> tuple[int, int]:
    """Return the strides of a YUV400 picture for VPC: width aligned to 16, and at least 32.

    Source:
        CANN, "VPC Restrictions", table 1, Atlas inference products; the others need less.
    """
    return max(_up(width, 16), 32), height


def first_generation(soc_name: str) -> bool:
    """Whether the chip is an Ascend 310 or 910, not a 310P, 310B or 910B."""
    newer = re.match(r"Ascend910(B\d|_)", soc_name)
    return soc_name == "Ascend310" or (soc_name.startswith("Ascend910") and not newer)


def nv12_planes(data: U8, width: int, height: int, strides: tuple[int, int]) -> tuple[U8, U8, U8]:
    """Return Y, U and V of an even-sized picture from an NV12 buffer with strides."""
    across, down = strides
    luma = data[: across * down].reshape(down, across)[:height, :width]
    chroma = data[across * down : across * down * 3 // 2].reshape(down // 2, across // 2, 2)
    return luma, chroma[: height // 2, : width // 2, 0], chroma[: height // 2, : width // 2, 1]


class DvppDecoder(Decoder):
    """JPEGD, to NV12 at full range; baseline JPEGs only.

    The hardware obeys the EXIF orientation, and rounds an odd width or height down to even.
    """

    reads: ClassVar[tuple[str, ...]] = ("jpeg",)
    gives_planes: ClassVar[bool] = True
    drops_odd: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._channel = Channel()

    def _rgb(self, image: Encoded) -> U8:
        raise Unsupported("DVPP decodes to NV12; write color: {format: nv12, source: planes, ...}")

    def _planes(self, image: Encoded) -> Frame:
        height, width = (size & ~1 for size in image.size("apply"))
        strides = jpegd_strides(width, height, soc())
        size = strides[0] * strides[1] * 3 // 2
        source = np.frombuffer(image.data, np.uint8)
        with Scratch() as scratch:
            jpeg, out = scratch.malloc(source.nbytes), scratch.malloc(size)
            upload(jpeg, source)
            picture = scratch.picture(out, _NV12, (width, height), strides, size)
            self._channel.run(
                lambda channel, stream: acl.media.dvpp_jpeg_decode_async(
                    channel, jpeg, source.nbytes, picture, stream
                ),
                "acl.media.dvpp_jpeg_decode_async",
            )
            found = (
                acl.media.dvpp_get_pic_desc_width(picture),
                acl.media.dvpp_get_pic_desc_height(picture),
            )
            data = download(out, size)
        if found != (width, height):
            raise SampleError(f"JPEGD gave {found[0]}x{found[1]} pixels, not {width}x{height}")
        planes = nv12_planes(data, width, height, strides)
        return yuv_frame(PixelFormat.NV12, *planes, Matrix.BT601, Range.FULL)


class VpcResizer(Resizer):
    """VPC, one plane at a time as a YUV400 picture; not on Ascend 310 and 910, which write NV12."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        if first_generation(soc()):
            raise Unsupported(f"VPC of {soc()} writes no YUV400; resize with another backend")
        self._channel = Channel()
        self._config = acl.media.dvpp_create_resize_config()
        code = INTERPOLATION[options["interpolation"]]
        call(acl.media.dvpp_set_resize_config_interpolation(self._config, code), "interpolation")

    def _resize(self, plane: U8, height: int, width: int) -> U8:
        if plane.ndim == 2:
            return self._gray(plane, height, width)
        channels = [plane[..., channel] for channel in range(plane.shape[2])]
        return np.stack([self._gray(each, height, width) for each in channels], axis=-1)

    def _gray(self, plane: U8, height: int, width: int) -> U8:
        before = vpc_strides(plane.shape[1], plane.shape[0])
        after = vpc_strides(width, height)
        padded = np.zeros(before[::-1], np.uint8)
        padded[:, : plane.shape[1]] = plane
        size = after[0] * after[1]
        with Scratch() as scratch:
            source, out = scratch.malloc(padded.nbytes), scratch.malloc(size)
            upload(source, padded)
            shape = (plane.shape[1], plane.shape[0])
            given = scratch.picture(source, _YUV400, shape, before, padded.nbytes)
            made = scratch.picture(out, _YUV400, (width, height), after, size)
            self._channel.run(
                lambda channel, stream: acl.media.dvpp_vpc_resize_async(
                    channel, given, made, self._config, stream
                ),
                "acl.media.dvpp_vpc_resize_async",
            )
            data = download(out, size)
        return data.reshape(after[::-1])[:, :width]


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
