"""OpenCV: imdecode, resize, and cvtColor between RGB and 4:2:0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator.contract import (
    U8,
    Backend,
    Converter,
    DataError,
    Decoder,
    Encoded,
    Encoder,
    Evidence,
    Frame,
    Library,
    Matrix,
    Offer,
    PixelFormat,
    Range,
    Resizer,
    SampleError,
    Stage,
    Unsupported,
    yuv_frame,
)
from simulator.contract.raw import BITS, SteppedDeveloper, develops
from simulator.contract.video import VideoReader

_LIBRARY = Library("cv2", distribution="opencv-python-headless", extra="opencv")

_KERNELS = {
    "nearest": "INTER_NEAREST",
    "nearest_exact": "INTER_NEAREST_EXACT",
    "bilinear": "INTER_LINEAR",
    "linear_exact": "INTER_LINEAR_EXACT",
    "bicubic": "INTER_CUBIC",
    "lanczos4": "INTER_LANCZOS4",
    "area": "INTER_AREA",
}
_DEMOSAIC = {"bilinear": "", "edge_aware": "_EA", "vng": "_VNG"}
_FORMATS = ("nv12", "nv21", "i420")


@cache
def _cv2() -> Any:
    """Import OpenCV, limited to the calling thread, and without warnings on the terminal.

    Images already run in parallel, and a file that is not read has its reason in the run.
    """
    cv2 = _LIBRARY.load()
    cv2.setNumThreads(1)
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)
    return cv2


class OpenCVDecoder(Decoder):
    """Decodes with ``cv2.imdecode``; EXIF is obeyed unless ``IMREAD_IGNORE_ORIENTATION``.

    AVIF is never turned, TIFF always is; alpha is multiplied into the colors of both (measured).
    CMYK becomes RGB by OpenCV's own formula. Corrupt pixel data is not refused: OpenCV fills
    missing pixels with gray, and libjpeg prints a warning on standard error.
    """

    reads: ClassVar[tuple[str, ...]] = (
        "jpeg", "png", "webp", "avif", "jpeg2000", "tiff", "bmp", "gif"
    )  # fmt: skip
    turns: ClassVar[Mapping[str, str]] = {"avif": "ignore", "tiff": "apply"}

    def _rgb(self, image: Encoded) -> U8:
        cv2 = _cv2()
        flags = cv2.IMREAD_COLOR_RGB
        if self.options["exif"] == "ignore":
            flags |= cv2.IMREAD_IGNORE_ORIENTATION
        rgb: U8 | None = cv2.imdecode(np.frombuffer(image.data, np.uint8), flags)
        if rgb is None:
            raise SampleError(f"OpenCV cannot decode this {image.format} file")
        return rgb


class OpenCVVideo(VideoReader):
    """Decodes with ``cv2.VideoCapture`` and its FFmpeg, one thread; the result is BGR.

    Color is by the stream's tags, chroma by swscale's bilinear filter and fast arithmetic: the same
    bits as PyAV's ``to_ndarray("rgb24")`` (measured, OpenCV 5.0). Damage is concealed.
    """

    def _frames(self, path: Path) -> Iterator[tuple[float, U8]]:
        cv2 = _cv2()
        capture = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
        if not capture.isOpened():
            raise DataError(f"{path}: OpenCV cannot open it as a video")
        try:
            while True:
                there, bgr = capture.read()
                if not there:
                    return
                yield capture.get(cv2.CAP_PROP_POS_MSEC) / 1000, bgr
        finally:
            capture.release()

    def _rgb(self, frame: U8) -> U8:
        return frame[..., ::-1]


class OpenCVResizer(Resizer):
    """Resamples with ``cv2.resize``; only ``area`` widens its kernel when shrinking.

    ``bicubic`` sometimes differs by one level between 1, 2 and 3 channels (measured).
    """

    def _resize(self, plane: U8, height: int, width: int) -> U8:
        cv2 = _cv2()
        kernel = getattr(cv2, _KERNELS[self.options["interpolation"]])
        out: U8 = cv2.resize(plane, (width, height), interpolation=kernel)
        return out


class OpenCVEncoder(Encoder):
    """Converts with ``cv2.cvtColor(..., COLOR_RGB2YUV_I420)``: BT.601, limited range.

    Chroma is that of the top left pixel of each 2x2 block (measured: within 1 level of the
    BT.601 formula there, 11 away from the average). OpenCV refuses odd sizes, so the last
    row and column are repeated first and the luma is cropped.
    """

    def _encode(self, rgb: U8) -> Frame:
        cv2 = _cv2()
        height, width = rgb.shape[:2]
        stacked = cv2.cvtColor(_even(rgb), cv2.COLOR_RGB2YUV_I420)
        rows, columns = stacked.shape[0] * 2 // 3, stacked.shape[1]
        chroma = stacked[rows:].reshape(2, rows // 2, columns // 2)
        return yuv_frame(
            PixelFormat(self.options["format"]),
            stacked[:height, :width],
            chroma[0],
            chroma[1],
            Matrix.BT601,
            Range.LIMITED,
        )


class OpenCVConverter(Converter):
    """Converts with ``cv2.cvtColor``: BT.601, limited range, each chroma sample repeated.

    Luma below 16 is clipped to 16 (measured); the formula does not clip. OpenCV
    refuses odd sizes, so the last luma row and column are repeated and the result is cropped.
    """

    @property
    def assumes(self) -> tuple[Matrix, Range]:
        """Return BT.601 and limited range; OpenCV has no other for 8-bit 4:2:0."""
        return Matrix.BT601, Range.LIMITED

    def _convert(self, frame: Frame) -> U8:
        cv2 = _cv2()
        if frame.format not in _FORMATS:
            raise Unsupported(f"OpenCV converts {', '.join(_FORMATS)}, not {frame.format}")
        luma = _even(frame.planes[0])
        code = getattr(cv2, f"COLOR_YUV2RGB_{frame.format.upper()}")
        if frame.format.semiplanar:
            chroma = np.ascontiguousarray(frame.planes[1])
            rgb: U8 = cv2.cvtColorTwoPlane(luma, chroma, code)
        else:
            flat = np.concatenate([plane.reshape(-1) for plane in (luma, *frame.planes[1:])])
            rgb = cv2.cvtColor(flat.reshape(-1, luma.shape[1]), code)
        return np.ascontiguousarray(rgb[: frame.height, : frame.width])


class OpenCVDeveloper(SteppedDeveloper):
    """Demosaics with ``cv2.cvtColor``; the other steps are our own arithmetic.

    All copy their border from the next pixel inside. VNG takes 8 bits only.
    """

    def _demosaic(self, levels: NDArray[Any], pattern: str) -> NDArray[Any]:
        cv2 = _cv2()
        if min(levels.shape) < 3:
            return np.repeat(levels[..., None], 3, axis=-1)
        code = f"COLOR_Bayer{pattern}2RGB{_DEMOSAIC[self.options['demosaic']]}"
        rgb: NDArray[Any] = cv2.cvtColor(np.ascontiguousarray(levels), getattr(cv2, code))
        return rgb

    def _denoise(self, rgb: U8) -> U8:
        if self.options["denoise"] == "none":
            return rgb
        median: U8 = _cv2().medianBlur(rgb, 3)
        return median


def _even(plane: U8) -> U8:
    """Repeat the last row and column if the size is odd."""
    pad = [(0, plane.shape[0] % 2), (0, plane.shape[1] % 2), (0, 0)][: plane.ndim]
    odd = any(after for _, after in pad)
    return np.pad(plane, pad, mode="edge") if odd else np.ascontiguousarray(plane)


def _develops(demosaic: tuple[str, ...], bits: tuple[int, ...]) -> Offer:
    """What OpenCV demosaics in samples of some bits."""
    return Offer(
        "develop",
        develops(demosaic, denoise=("none", "median"), bits=bits),
        OpenCVDeveloper,
        evidence=Evidence.EMULATED,
        source="OpenCV documentation, cv::ColorConversionCodes; only the demosaic is OpenCV's",
    )


BACKEND = Backend(
    name="opencv",
    summary="OpenCV: decoding by libjpeg-turbo, resizing that rarely antialiases, NV12",
    library=_LIBRARY,
    dies_of=("png",),
    offers=(
        Offer(
            Stage.DECODE,
            {"exif": ("apply", "ignore"), "idct": ("islow",), "chroma_upsampling": ("fancy",)},
            OpenCVDecoder,
            source="OpenCV documentation, cv::ImreadModes",
        ),
        Offer(
            Stage.VIDEO,
            {"matrix": ("tags",), "range": ("tags",)},
            OpenCVVideo,
            source="OpenCV documentation, cv::VideoCapture with CAP_FFMPEG",
        ),
        Offer(
            Stage.RESIZE,
            {
                "interpolation": tuple(name for name in _KERNELS if name != "area"),
                "antialias": (False,),
            },
            OpenCVResizer,
            source="OpenCV documentation, cv::InterpolationFlags",
        ),
        Offer(
            Stage.RESIZE,
            {"interpolation": ("area",), "antialias": (True,)},
            OpenCVResizer,
            source="OpenCV documentation, cv::InterpolationFlags",
        ),
        Offer(
            Stage.ENCODE,
            {
                "format": _FORMATS,
                "matrix": ("bt601",),
                "range": ("limited",),
                "chroma_downsampling": ("nearest",),
            },
            OpenCVEncoder,
            source="OpenCV documentation, cv::ColorConversionCodes; the filter was measured",
        ),
        Offer(
            Stage.CONVERT,
            {
                "format": _FORMATS,
                "matrix": ("bt601",),
                "range": ("limited",),
                "chroma_upsampling": ("nearest",),
            },
            OpenCVConverter,
            source="OpenCV documentation, cv::ColorConversionCodes",
        ),
        _develops(("bilinear", "edge_aware"), BITS),
        _develops(("vng",), (8,)),
    ),
)
