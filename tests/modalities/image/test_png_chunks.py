"""PNG files whose chunks are damaged: refused before a library dies of them."""

import json
import struct

import pytest
import tiny
from damaged_png import HOSTILE, animation, joined, split
from warm import command

from simulator.contract.encoded import inspect
from simulator.errors import SampleError


@pytest.mark.parametrize("what", HOSTILE)
def test_an_animation_that_kills_a_decoder_is_refused(what):
    with pytest.raises(SampleError, match="corrupt PNG"):
        inspect("x.png", HOSTILE[what])


def test_a_run_skips_it_with_its_reason(card, data, cache, tmp_path):
    for number, content in enumerate(HOSTILE.values()):
        (data / "red" / f"hostile{number}.png").write_bytes(content)
    done = command(
        "--train", "pillow_fp32", "--deploy", "opencv_fp32", "--model", card, "--data", data,
        "--out", tmp_path / "run",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["samples"], summary["skipped"]) == (6, len(HOSTILE))
    assert all("corrupt PNG" in one["why"] for one in summary["skipped_samples"])


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1"])
@pytest.mark.parametrize("how", [{}, {"default_image": True}])
def test_sound_animations_are_read(mode, how):
    assert inspect("x.png", animation(mode, **how)).width == 7


def test_frames_that_are_parts_of_the_image_are_read():
    assert inspect("x.png", animation(disposal=2, blend=1)).height == 5


def edited(change):
    found = split(tiny.encoded(tiny.picture((1, 2, 3)), "PNG"))
    change(found)
    return joined(found)


def where(found, kind):
    return [own for own, _ in found].index(kind)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.insert(0, (b"tEXt", b"a\0b")), "no valid IHDR"),
        (lambda f: f.insert(1, f[0]), "a second one"),
        (lambda f: f.insert(1, (b"PLTE", b"\0" * 4)), "no palette"),
        (lambda f: f.insert(1, (b"PLTE", b"\0" * 771)), "no palette"),
        (lambda f: f.insert(-1, (b"PLTE", b"\0" * 3)), "too late"),
        (lambda f: f.insert(1, (b"ABCD", b"")), "unknown critical chunk ABCD"),
        (lambda f: f.pop(where(f, b"IDAT")), "before the pixels"),
        (lambda f: f.extend([]) or f.__setitem__(-1, (b"IEND", b"x")), "IEND chunk with content"),
        (lambda f: f.insert(-1, (b"tEXt", b"a\0b")) or f.insert(-1, (b"IDAT", b"")), "apart"),
        (lambda f: f.insert(1, (b"acTL", struct.pack(">II", 1, 0))), "lacks some"),
        (lambda f: f.insert(1, (b"fcTL", bytes(26))), "a frame without an animation"),
        (lambda f: f.insert(-1, (b"fdAT", bytes(9))), "of no frame"),
    ],
)
def test_chunks_in_the_wrong_place_are_refused(change, said):
    with pytest.raises(SampleError, match=said):
        inspect("x.png", edited(change))


def test_chunks_that_a_decoder_skips_are_no_reason():
    found = edited(lambda f: f.insert(1, (b"prVt", b"anything")))

    assert inspect("x.png", found).format == "png"
