"""LibRaw, by rawpy: reading raw files, and development with its own demosaicing, color and tone."""

from __future__ import annotations

import io
from typing import Any, ClassVar

import numpy as np

from simulator.contract import U8, Backend, Encoded, Library, Offer, RawDecoder, SampleError
from simulator.contract.image_formats.dng import written
from simulator.contract.raw import PATTERNS, Developer, Raw, develops

_LIBRARY = Library("rawpy", distribution="rawpy", extra="raw")
_LEAST = 22
_DEMOSAIC = {name: name.upper() for name in ("linear", "vng", "ppg", "ahd", "dcb", "aahd")}
_TONE = {"linear": (1, 1), "srgb": (2.4, 12.92), "bt709": (2.222, 4.5)}
_DENOISE = {"none": "Off", "fbdd_light": "Light", "fbdd_full": "Full"}


class LibRawDecoder(RawDecoder):
    """Reads a Bayer plane with its levels, white balance as shot and color matrix.

    Black levels that differ between sites are made the lowest of them. A plane is never turned.
    """

    reads: ClassVar[tuple[str, ...]] = ("dng",)

    def _raw(self, image: Encoded) -> Raw:
        with _opened(image.data) as opened:
            colors = np.array(opened.raw_colors_visible)
            names = opened.color_desc.decode()
            pattern = "".join(names[color : color + 1] for color in colors[:2, :2].ravel())
            if pattern not in PATTERNS:
                raise SampleError(f"color filters {pattern!r}, not {', '.join(PATTERNS)}")
            blacks = np.array(opened.black_level_per_channel)
            above = (blacks - blacks.min()).astype(np.uint16)[colors]
            plane = opened.raw_image_visible
            plane = np.where(plane > above, plane - above, 0).astype(np.uint16, copy=False)
            red, green, blue = opened.camera_whitebalance[:3]
            camera: Any = tuple(map(tuple, opened.color_matrix[:, :3].tolist()))
            white, low = opened.white_level, int(blacks.min())
        if min(red, green, blue) <= 0 or not np.any(camera):
            raise SampleError("no white balance as shot, or no color matrix")
        gains = (red / green, 1.0, blue / green)
        return Raw(plane, pattern, low, white, gains, camera)


def _opened(data: bytes) -> Any:
    rawpy = _LIBRARY.load()
    try:
        return rawpy.imread(io.BytesIO(data))
    except rawpy.LibRawError as error:
        raise SampleError(f"LibRaw: {error.args[0].decode()}") from error


class LibRawDeveloper(Developer):
    """Lets LibRaw open the plane as a DNG and do all steps, on 16 bits.

    Its DHT is left out: with OpenMP two runs on one plane differ (measured: by up to 203 levels).
    It cuts what its white balance lifts above white, and normalizes its gains to a least one of 1;
    exposure is its ``bright``.
    """

    def _develop(self, raw: Raw) -> U8:
        rawpy, said = _LIBRARY.load(), self.options
        if min(raw.plane.shape) < _LEAST:
            raise SampleError(f"LibRaw develops {_LEAST} rows and columns or more")
        balances: dict[str, dict[str, Any]] = {
            "as_shot": {"use_camera_wb": True},
            "gray_world": {"use_auto_wb": True},
            "none": {"user_wb": [1, 1, 1, 1]},
        }
        color = rawpy.ColorSpace
        with _opened(written(raw)) as opened:
            rgb: U8 = opened.postprocess(
                demosaic_algorithm=rawpy.DemosaicAlgorithm[_DEMOSAIC[said["demosaic"]]],
                fbdd_noise_reduction=rawpy.FBDDNoiseReductionMode[_DENOISE[said["denoise"]]],
                output_color=color.sRGB if said["color_matrix"] == "file" else color.raw,
                user_black=None if said["black_level"] == "subtract" else 0,
                gamma=_TONE[said["tone"]],
                bright=raw.gains[1],
                no_auto_bright=True,
                adjust_maximum_thr=0.0,
                user_flip=0,
                output_bps=8,
                **balances[said["white_balance"]],
            )
        return rgb


BACKEND = Backend(
    name="libraw",
    summary="LibRaw: raw files, raw development, demosaicing by six algorithms",
    library=_LIBRARY,
    offers=(
        Offer(
            "decode",
            {"exif": ("ignore",)},
            LibRawDecoder,
            source="LibRaw documentation, libraw_rawdata_t, libraw_colordata_t",
        ),
        Offer(
            "develop",
            develops(tuple(_DEMOSAIC), tuple(_TONE), tuple(_DENOISE), bits=(16,)),
            LibRawDeveloper,
            source="LibRaw documentation, libraw_output_params_t; rawpy, Params",
        ),
    ),
)
