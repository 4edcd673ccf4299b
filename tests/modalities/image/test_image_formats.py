"""Headers of image files against the libraries that wrote them, and runs over several formats."""

from __future__ import annotations

import io

import numpy as np
import pillow_heif
import pillow_jxl  # noqa: F401  registers itself
import pytest
import tiny
from PIL import Image

from simulator import cli
from simulator.conditions.condition import CONDITIONS
from simulator.contract import SampleError, inspect
from simulator.testing.formats import FOLDER

pillow_heif.register_heif_opener()
CODECS = {
    "jpeg": "JPEG", "png": "PNG", "webp": "WEBP", "avif": "AVIF", "heic": "HEIF", "jxl": "JXL",
    "jpeg2000": "JPEG2000", "tiff": "TIFF", "bmp": "BMP", "gif": "GIF",
}  # fmt: skip
OTHERWISE = {"webp": {"lossless": True}, "jxl": {"lossless": True}, "tiff": {"big_tiff": True}}
NEVER_TURNED = ("jpeg2000", "bmp", "gif")
NOISE = np.random.default_rng(0).integers(0, 255, (513, 300, 3), np.uint8)


def saved(rgb, codec, **options):
    file = io.BytesIO()
    Image.fromarray(rgb).save(file, codec, **options)
    return file.getvalue()


@pytest.mark.parametrize("format", CODECS)
def test_the_header_says_the_size(format):
    for height, width in ((1, 1), (8, 8), (2, 3), (32, 64), (64, 64), (513, 1), (40, 300)):
        for options in ({}, OTHERWISE.get(format, {})):
            data = saved(NOISE[:height, :width], CODECS[format], **options)

            found = inspect("one", data)

            assert (found.format, found.height, found.width) == (format, height, width)
            assert (found.bits, found.orientation) == (8, 1)


@pytest.mark.parametrize("format", [name for name in CODECS if name not in NEVER_TURNED])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_header_says_how_it_is_turned(format, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation

    found = inspect("one", saved(NOISE[:33, :47], CODECS[format], exif=exif.tobytes()))

    assert (found.height, found.width, found.orientation) == (33, 47, orientation)


@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.name)
def test_what_is_cut_is_refused_in_one_line(file):
    """A bare codestream of JPEG XL does not say where it ends; its header is all that is known."""
    data = file.read_bytes()
    least = 16 if file.name == "plain.jxl" else len(data)

    for length in range(least):
        with pytest.raises(SampleError) as refused:
            inspect("one", data[:length])
        assert "\n" not in str(refused.value)


def test_a_bomb_is_refused_before_it_is_decoded():
    data = bytearray((FOLDER / "plain.webp").read_bytes())
    data[21:25] = b"\xff\xff\xff\x0f"  # 14 bits of columns, 14 of rows

    with pytest.raises(SampleError, match=r"16384x16384 pixels are more than"):
        inspect("one", bytes(data))


def test_a_bigtiff_that_points_far_beyond_its_end_is_refused_in_one_line():
    """So is one that counts more entries, or values, than a file could hold."""
    data = bytearray(saved(NOISE[:4, :4], "TIFF", big_tiff=True))
    start = int.from_bytes(data[8:16], "little")
    for at, value in ((8, 2**64 - 1), (start, 2**64 - 1), (start + 12, 2**62), (start + 12, 2**61)):
        broken = bytearray(data)
        broken[at : at + 8] = value.to_bytes(8, "little")

        with pytest.raises(SampleError, match="truncated"):
            inspect("one", bytes(broken))


def test_a_frame_far_beyond_the_screen_of_a_gif_is_refused():
    data = bytearray(saved(NOISE[:4, :4], "GIF"))
    at = data.index(b",\0\0\0\0\4\0\4\0")
    data[at + 1 : at + 5] = b"\xff\xff\xff\xff"

    with pytest.raises(SampleError, match="a frame ends at 65539x65539"):
        inspect("one", bytes(data))


def test_junk_between_the_segments_of_a_jpeg_is_skipped():
    """As libjpeg does: "extraneous bytes before marker" is a warning."""
    whole = saved(NOISE[:9, :12], "JPEG")
    data = whole[:20] + b"junk" + whole[20:]  # after APP0

    found = inspect("one", data)

    assert (found.width, found.height) == Image.open(io.BytesIO(data)).size == (12, 9)


@pytest.mark.parametrize("name", ["webp", "avif", "heic", "jxl"])
def test_a_condition_saves_in_its_format_and_keeps_the_turn(name):
    exif = Image.Exif()
    exif[0x0112] = 6
    source = inspect("one", saved(NOISE[:64, :48], "JPEG", exif=exif))
    sizes = []
    for quality in ("10", "90"):
        made = CONDITIONS[name].parse(quality).open()(source, np.random.default_rng(0))
        assert (made.format, made.height, made.width, made.orientation) == (name, 64, 48, 6)
        sizes.append(len(made.data))

    assert sizes[0] < sizes[1]


@pytest.mark.parametrize(("format", "upright"), [("heic", True), ("tiff", True), ("jxl", False)])
def test_a_condition_reads_what_the_reference_decoder_does_not(format, upright):
    """A library that turns every file of a format leaves nothing to turn."""
    exif = Image.Exif()
    exif[0x0112] = 6
    source = inspect("one", saved(NOISE[:64, :48], CODECS[format], exif=exif.tobytes()))

    made = CONDITIONS["webp"].parse("90").open()(source, np.random.default_rng(0))

    want = (48, 64, 1) if upright else (64, 48, 6)
    assert (made.height, made.width, made.orientation) == want


def test_files_that_a_decoder_cannot_read_are_told_of_before_the_run(tmp_path, card, capsys):
    folder = tmp_path / "data" / "red"
    folder.mkdir(parents=True)
    for name, codec in CODECS.items():
        (folder / f"{name}.{name[:4]}").write_bytes(saved(tiny.picture(tiny.COLORS["red"]), codec))
    for old, new in (("jpeg.jpeg", "a.jpg"), ("jpeg2000.jpeg", "b.jp2")):
        (folder / old).rename(folder / new)
    given = ["--model", str(card), "--data", str(folder.parent), "--out", str(tmp_path / "run")]
    pair = ["--train", "pillow_fp32", "--deploy", "opencv_fp32"]

    assert cli.main([*pair, *given]) == 0

    said = capsys.readouterr()
    told = "cannot read 2 of 10 files, these backends can: heic: pillow_heif; jxl: imagecodecs or "
    assert f"note pillow {told}pillow_jxl" in said.err
    assert "8 images, 2 skipped" in said.out
    heic = ["--under", "heic:50", "--overwrite"]
    assert cli.main([*pair, *given, *heic]) == 2
    assert "error: pillow cannot read 10 of 10 files" in capsys.readouterr().err
