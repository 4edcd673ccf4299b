"""What every decoder makes of every kind of file; expected pixels come from elsewhere."""

from __future__ import annotations

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import images
import numpy as np
import pytest
import simplejpeg
from hypothesis import given, settings
from hypothesis import strategies as st

from backends import dali, ffmpeg, opencv, pillow, turbojpeg
from simulator.contract import Decoder, PixelFormat, Range, SampleError, Unsupported, inspect
from simulator.reference.color import upsample, yuv_to_rgb

LIBJPEG = {"exif": "ignore", "idct": "islow", "chroma_upsampling": "fancy"}
SWSCALE = ["bilinear", "accurate_rnd", "full_chroma_int", "full_chroma_inp", "bitexact"]
FFMPEG = {"exif": "ignore", "idct": "ffmpeg", "swscale_flags": SWSCALE}
MAKE = {
    "pillow": (pillow.PillowDecoder, LIBJPEG),
    "opencv": (opencv.OpenCVDecoder, LIBJPEG),
    "turbojpeg": (turbojpeg.TurboJpegDecoder, LIBJPEG),
    "dali": (dali.DaliDecoder, LIBJPEG),
    "ffmpeg": (ffmpeg.FFmpegDecoder, FFMPEG),
}
ON_LIBJPEG = ("pillow", "opencv", "turbojpeg", "dali")
READS_PNG = ("pillow", "opencv", "dali", "ffmpeg")
TURNS = ("pillow", "opencv", "dali")

PHOTO = images.picture(60, 44)
ODD = images.picture(17, 11)
JPEGS = {
    "photo": images.jpeg(PHOTO),
    "odd": images.jpeg(ODD),
    "one pixel": images.jpeg(images.picture(1, 1)),
    "long": images.jpeg(images.picture(3, 8191)),
    "tall": images.jpeg(images.picture(8191, 3)),
    "gray": images.jpeg(images.picture(17, 11, 1)),
    "progressive": images.jpeg(PHOTO, progressive=True),
    "444": images.jpeg(ODD, subsampling=0),
    "422": images.jpeg(ODD, subsampling=1),
}


def decoder(name: str, **changed) -> Decoder:
    make, options = MAKE[name]
    return make({**options, **changed})


def rgb(name: str, data: bytes, **changed) -> np.ndarray:
    return decoder(name, **changed).rgb(inspect("test", data)).rgb


def apart(a, b) -> float:
    return np.abs(a.astype(np.float64) - b).max()


@pytest.mark.parametrize("kind", JPEGS)
@pytest.mark.parametrize("name", ON_LIBJPEG)
def test_libjpeg_turbo_is_the_same_everywhere(name, kind):
    """All four are libjpeg-turbo with its defaults; simplejpeg is called directly here."""
    assert np.array_equal(rgb(name, JPEGS[kind]), simplejpeg.decode_jpeg(JPEGS[kind]))


@pytest.mark.parametrize("kind", JPEGS)
def test_ffmpeg_is_near_libjpeg_and_of_the_same_size(kind):
    """The IDCT is within 1 level; chroma is upsampled otherwise, most felt in 2 chroma rows."""
    got, want = rgb("ffmpeg", JPEGS[kind]), simplejpeg.decode_jpeg(JPEGS[kind])

    assert got.shape == want.shape
    assert np.abs(got.astype(int) - want).mean() < (5 if min(got.shape[:2]) == 3 else 1.5)


@pytest.mark.parametrize("name", ["turbojpeg", "dali"])
def test_the_fast_idct_is_obeyed(name):
    got = rgb(name, JPEGS["photo"], idct="ifast")

    assert np.array_equal(got, simplejpeg.decode_jpeg(JPEGS["photo"], fastdct=True))
    assert not np.array_equal(got, rgb(name, JPEGS["photo"]))


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

DEEP = (images.picture(17, 11, 4, 1).astype(np.uint16) << 8) | images.picture(17, 11, 4, 2)
HIGH = (DEEP >> 8).astype(np.uint8)
GRAY = images.picture(17, 11, 1)
RGBA = images.picture(17, 11, 4)
PALETTE = images.picture(16, 16, 3).reshape(256, 3)
PLTE = images.chunk(b"PLTE", PALETTE.tobytes())
SEE_THROUGH = images.chunk(b"tRNS", bytes(range(256)))
ONE_COLOR = images.chunk(b"tRNS", ODD[3, 3].astype(">u2").tobytes())


def gray3(plane):
    return np.repeat(plane[..., None], 3, axis=2)


PNGS = {
    "rgb": (images.png(ODD), ODD),
    "gray": (images.png(GRAY), gray3(GRAY)),
    "gray and alpha": (images.png(RGBA[..., :2]), gray3(RGBA[..., 0])),
    "rgba": (images.png(RGBA), RGBA[..., :3]),
    "palette": (images.raw_png(GRAY, 3, 8, PLTE), PALETTE[GRAY]),
    "palette, tRNS": (images.raw_png(GRAY, 3, 8, PLTE, SEE_THROUGH), PALETTE[GRAY]),
    "rgb, tRNS": (images.raw_png(ODD, 2, 8, ONE_COLOR), ODD),
    "gray, tRNS": (images.raw_png(GRAY, 0, 8, images.chunk(b"tRNS", b"\0\x80")), gray3(GRAY)),
    "gray 16": (images.raw_png(DEEP[..., 0], 0, 16), gray3(HIGH[..., 0])),
    "gray and alpha 16": (images.raw_png(DEEP[..., :2], 4, 16), gray3(HIGH[..., 0])),
    "rgb 16": (images.raw_png(DEEP[..., :3], 2, 16), HIGH[..., :3]),
    "rgba 16": (images.raw_png(DEEP, 6, 16), HIGH[..., :3]),
    "one pixel": (images.png(RGBA[:1, :1, :3]), RGBA[:1, :1, :3]),
}


@pytest.mark.parametrize("kind", PNGS)
@pytest.mark.parametrize("name", READS_PNG)
def test_png(name, kind):
    """Gray is repeated, alpha is dropped (not composited), 16 bits keep their high byte."""
    data, want = PNGS[kind]

    assert np.array_equal(rgb(name, data), want)


def test_turbojpeg_refuses_png_by_name():
    with pytest.raises(SampleError, match="TurboJPEG decodes JPEG only"):
        rgb("turbojpeg", PNGS["rgb"][0])


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


@pytest.mark.parametrize("name", MAKE)
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


# --- robustness -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKE)
def test_four_threads_see_the_same(name):
    shared = decoder(name)
    files = [inspect("test", JPEGS[kind]) for kind in ("photo", "odd", "gray", "444")] * 8
    want = [decoder(name).rgb(file).rgb for file in files]

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda file: shared.rgb(file).rgb, files))

    assert all(map(np.array_equal, got, want))


@pytest.mark.parametrize("name", MAKE)
def test_a_bad_file_does_not_spoil_the_next(name):
    shared, good = decoder(name), inspect("test", JPEGS["photo"])
    want = shared.rgb(good).rgb
    header = JPEGS["photo"].index(b"\xff\xda")

    # A scan of 20 bytes: some refuse it, some fill it with gray (as in deployment).
    cut = inspect("test", JPEGS["photo"][: header + 30] + b"\xff\xd9")
    images.quiet(lambda: shared.rgb(cut), SampleError)

    assert np.array_equal(shared.rgb(good).rgb, want)


@pytest.mark.parametrize("data", [b"", b"GIF89a", JPEGS["photo"][:-200], PNGS["rgb"][0][:-9]])
def test_the_front_door_refuses(data):
    with pytest.raises(SampleError):
        inspect("test", data)


def test_the_front_door_checks_the_sums_of_a_png():
    """A wrong one in eXIf makes DALI's libpng corrupt the heap; nobody gets to see it."""
    data = bytearray(images.rotated(ODD, 6, format="png"))
    at = data.index(b"eXIf")
    data[at + 12] ^= 1

    with pytest.raises(SampleError, match=f"wrong checksum in the chunk at byte {at - 4}"):
        inspect("test", bytes(data))
    assert inspect("test", images.rotated(ODD, 6, format="png")).orientation == 6


@pytest.mark.parametrize(
    "chunks", [[b"MM\0*" + bytes(8)] * 2, [b"XX\0*" + bytes(8)], [b""]], ids=["two", "XX", "none"]
)
def test_the_front_door_wants_exif_in_exif(chunks):
    """The rest of what libpng rejects in eXIf, with the same end in DALI."""
    data = images.raw_png(ODD, 2, 8, *(images.chunk(b"eXIf", body) for body in chunks))

    with pytest.raises(SampleError, match="its eXIf is repeated, or not EXIF"):
        inspect("test", data)


SEEDS = [
    *(JPEGS[kind] for kind in ("odd", "gray", "progressive", "444")),
    images.rotated(ODD, 6),
    images.jpeg(RGBA, "CMYK"),
    *(PNGS[kind][0] for kind in ("rgba", "palette, tRNS", "gray 16", "rgb 16")),
    images.rotated(ODD, 6, format="png"),
]
OPEN = [
    decoder(name, exif=exif)
    for name, exif in itertools.product(MAKE, ("ignore", "apply"))
    if exif == "ignore" or name in TURNS
]


@st.composite
def broken(draw):
    """Real files with a few bytes changed, cut or removed; and plain noise."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    start = draw(st.integers(0, len(data)))
    return draw(
        st.sampled_from(
            [
                bytes(data),
                images.resealed(bytes(data)) if data[1:4] == b"PNG" else bytes(data),
                bytes(data[:start]),
                bytes(data[:start] + data[start + 3 :]),
                bytes(data[:start]) + b"\xff\xd9",
                bytes(data[:2] + data[start:]),
            ]
        )
        | st.binary(max_size=64)
    )


@settings(max_examples=400, deadline=None, derandomize=True)
@given(data=broken())
def test_only_sample_errors_come_out(data):
    try:
        image = inspect("fuzz", data)
    except SampleError:
        return
    if image.width * image.height > 100_000:
        return  # valid, and too slow for a test
    for each in OPEN:
        images.quiet(lambda each=each: each.rgb(image), SampleError)
        if each.gives_planes:
            images.quiet(lambda each=each: each.planes(image), SampleError)


def test_listing_the_offers_imports_no_library():
    modules = ["pillow", "opencv", "ffmpeg", "turbojpeg", "dali", "itu", "aipp", "sysnoise"]
    imports = "; ".join(f"import backends.{module}" for module in modules)
    libraries = {"PIL", "cv2", "av", "simplejpeg", "nvidia"}
    probe = f"import sys; {imports}; print({libraries} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"
