"""What every decoder makes of every kind of file; expected pixels come from elsewhere."""

from __future__ import annotations

import subprocess
import sys

import images
import numpy as np
import pytest
import simplejpeg
from decoding import (
    FAST_IDCT,
    JPEGS,
    MAKE,
    ODD,
    ON_LIBJPEG,
    PLAIN_CHROMA,
    PNGS,
    READS_PNG,
    RGBA,
    TURNS,
    decoder,
    rgb,
)

from simulator.contract import PixelFormat, Range, SampleError, Unsupported, inspect
from simulator.reference.color import upsample, yuv_to_rgb


def apart(a, b) -> float:
    return np.abs(a.astype(np.float64) - b).max()


@pytest.mark.parametrize("kind", JPEGS)
@pytest.mark.parametrize("name", ON_LIBJPEG)
def test_libjpeg_turbo_is_the_same_everywhere(name, kind):
    """All are libjpeg-turbo with its defaults; simplejpeg is called directly here."""
    assert np.array_equal(rgb(name, JPEGS[kind]), simplejpeg.decode_jpeg(JPEGS[kind]))


@pytest.mark.parametrize("kind", JPEGS)
def test_ffmpeg_is_near_libjpeg_and_of_the_same_size(kind):
    """The IDCT is within 1 level; chroma is upsampled otherwise, most felt in 2 chroma rows."""
    got, want = rgb("ffmpeg", JPEGS[kind]), simplejpeg.decode_jpeg(JPEGS[kind])

    assert got.shape == want.shape
    assert np.abs(got.astype(int) - want).mean() < (5 if min(got.shape[:2]) == 3 else 1.5)


@pytest.mark.parametrize("name", FAST_IDCT)
def test_the_fast_idct_is_obeyed(name):
    got = rgb(name, JPEGS["photo"], idct="ifast")

    assert np.array_equal(got, simplejpeg.decode_jpeg(JPEGS["photo"], fastdct=True))
    assert not np.array_equal(got, rgb(name, JPEGS["photo"]))


@pytest.mark.parametrize("name", PLAIN_CHROMA)
@pytest.mark.parametrize("idct", ["islow", "ifast"])
def test_plain_chroma_is_obeyed(name, idct):
    got = rgb(name, JPEGS["photo"], idct=idct, chroma_upsampling="plain")
    want = simplejpeg.decode_jpeg(JPEGS["photo"], fastdct=idct == "ifast", fastupsample=True)

    assert np.array_equal(got, want)
    assert not np.array_equal(got, rgb(name, JPEGS["photo"], idct=idct))


def test_plain_chroma_is_the_nearest_sample():
    """libjpeg without fancy upsampling repeats chroma: FFmpeg's planes, repeated on paper."""
    image = inspect("test", JPEGS["photo"])
    y, u, v = decoder("ffmpeg").planes(image).planes
    full = [upsample(plane.astype(float), 2, 2, y.shape, "nearest") for plane in (u, v)]
    want = yuv_to_rgb(np.stack((y, *full), axis=-1), "bt601", "full").clip(0, 255)

    got = rgb("turbojpeg", JPEGS["photo"], chroma_upsampling="plain")

    assert apart(got, want) < 3.5  # one level of U is 1.77 of B, and Y has one of its own
    assert np.abs(got - want).mean() < 0.5


# --- PNG --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PNGS)
@pytest.mark.parametrize("name", READS_PNG)
def test_png(name, kind):
    """Gray is repeated, alpha is dropped (not composited), 16 bits keep their high byte."""
    data, want = PNGS[kind]

    assert np.array_equal(rgb(name, data), want)


def test_turbojpeg_refuses_png_by_name():
    with pytest.raises(SampleError, match="reads jpeg, not png"):
        rgb("turbojpeg", PNGS["rgb"][0])


OWN_INK = ("imagecodecs", "libvips")
"""The one refuses CMYK, the other has a profile of its own for it."""

# --- EXIF and CMYK ----------------------------------------------------------------------------

# EXIF 2.32, table 6: what to do with the stored rows to see them upright.
UPRIGHT = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: a.swapaxes(0, 1)[:, ::-1],
    7: lambda a: a.swapaxes(0, 1)[::-1, ::-1],
    8: lambda a: a.swapaxes(0, 1)[::-1],
}


@pytest.mark.parametrize("orientation", UPRIGHT)
@pytest.mark.parametrize("name", TURNS)
def test_exif_is_applied(name, orientation):
    data = images.rotated(ODD, orientation)

    want = UPRIGHT[orientation](simplejpeg.decode_jpeg(data))

    assert np.array_equal(rgb(name, data, exif="apply"), want)


@pytest.mark.parametrize("orientation", [3, 6])
@pytest.mark.parametrize("name", MAKE)
def test_exif_is_ignored(name, orientation):
    data = images.rotated(ODD, orientation)

    assert np.array_equal(rgb(name, data), rgb(name, JPEGS["odd"]))


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("name", TURNS)
def test_exif_of_a_png_is_applied(name, orientation):
    data = images.rotated(ODD, orientation, format="png")

    assert np.array_equal(rgb(name, data, exif="apply"), UPRIGHT[orientation](ODD))
    assert np.array_equal(rgb(name, data), ODD)


@pytest.mark.parametrize("name", [name for name in MAKE if name not in OWN_INK])
def test_cmyk_becomes_rgb(name):
    """Without a profile: R = (255 - C)(255 - K) / 255; the libraries round it differently."""
    ink = np.empty((16, 16, 4), np.uint8)
    ink[:] = (200, 100, 0, 60)

    got = rgb(name, images.jpeg(ink, "CMYK", quality=100))

    # 55 * 195 / 255 = 42.06, 155 * 195 / 255 = 118.5, 255 * 195 / 255 = 195
    assert apart(got, np.array((42.06, 118.5, 195.0))) < 3


# --- planes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subsampling", "format"),
    [(0, PixelFormat.YUV444), (1, PixelFormat.YUV422), (2, PixelFormat.I420)],
)
def test_planes_are_the_jpegs_own(subsampling, format):
    """Pillow's draft mode hands out libjpeg's YCbCr; FFmpeg's IDCT is within 1 level of it."""
    data = images.jpeg(ODD, subsampling=subsampling)
    want = images.ycbcr(data)

    frame = decoder("ffmpeg").planes(inspect("test", data))

    assert (frame.format, frame.range) == (format, Range.FULL)
    assert apart(frame.planes[0], want[..., 0]) <= 1
    if subsampling == 0:
        assert apart(frame.planes[1], want[..., 1]) <= 1
        assert apart(frame.planes[2], want[..., 2]) <= 1


def test_planes_and_linear_chroma_are_libjpegs_rgb():
    """RUNTIMES.md 7: libjpeg's fancy upsampling is centred linear; 1 level of IDCT remains."""
    y, u, v = decoder("ffmpeg").planes(inspect("test", JPEGS["photo"])).planes
    full = [upsample(plane.astype(float), 2, 2, y.shape, "linear") for plane in (u, v)]
    want = yuv_to_rgb(np.stack((y, *full), axis=-1), "bt601", "full").clip(0, 255)

    assert apart(simplejpeg.decode_jpeg(JPEGS["photo"]), want) < 4


def test_planes_of_gray_are_neutral():
    frame = decoder("ffmpeg").planes(inspect("test", JPEGS["gray"]))

    assert frame.format is PixelFormat.I420
    assert frame.planes[1].shape == (9, 6)
    assert (frame.planes[1] == 128).all()
    assert (frame.planes[2] == 128).all()
    assert apart(frame.planes[0], simplejpeg.decode_jpeg(JPEGS["gray"])[..., 0]) <= 1


@pytest.mark.parametrize("kind", ["gray", "photo"])
@pytest.mark.parametrize("name", MAKE)
def test_the_next_stage_may_write(name, kind):
    got = rgb(name, JPEGS[kind])

    assert got.flags.writeable
    assert got.flags.c_contiguous


def test_only_ffmpeg_gives_planes():
    assert [name for name, (make, _) in MAKE.items() if make.gives_planes] == ["ffmpeg"]
    with pytest.raises(Unsupported, match="does not give YUV planes"):
        decoder("pillow").planes(inspect("test", JPEGS["odd"]))


@pytest.mark.parametrize("data", [PNGS["rgb"][0], images.jpeg(RGBA, "CMYK")], ids=["png", "cmyk"])
def test_no_planes_in_a_png_or_in_ink(data):
    with pytest.raises(SampleError, match="has no YUV planes"):
        decoder("ffmpeg").planes(inspect("test", data))


@pytest.mark.parametrize("flags", [[], ["accurate_rnd"], ["bilinear", "point"]])
def test_swscale_wants_one_interpolation(flags):
    with pytest.raises(Unsupported, match="exactly one of fast_bilinear"):
        decoder("ffmpeg", swscale_flags=flags)


def test_swscale_flags_are_obeyed():
    """At an even height swscale interpolates chroma only where it must round accurately."""
    names = ("fast_bilinear", "bilinear", "bicubic", "point")

    def seen(*switches: str) -> set[bytes]:
        flags = ([name, *switches] for name in names)
        return {rgb("ffmpeg", JPEGS["photo"], swscale_flags=each).tobytes() for each in flags}

    assert len(seen()) == 1
    assert len(seen("accurate_rnd")) == 4
    assert len(seen("accurate_rnd", "full_chroma_int")) == 4
    assert not seen("accurate_rnd") & seen("accurate_rnd", "full_chroma_int")


def test_listing_every_backend_imports_no_library():
    libraries = {
        "PIL", "cv2", "av", "simplejpeg", "nvidia", "tensorflow", "openvino", "torch", "nncf",
        "onnxruntime", "ai_edge_litert", "ncnn", "MNN", "iree", "tvm", "executorch", "onnx",
    }  # fmt: skip
    listed = "from simulator import registry; registry.backends()"
    probe = f"import sys; {listed}; print({libraries} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"
