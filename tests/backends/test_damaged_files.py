"""What every decoder makes of damaged files: an error of ours, or pixels, and nothing worse."""

from __future__ import annotations

import itertools

import images
import numpy as np
import pytest
from decoding import JPEGS, MAKE, ODD, PNGS, RGBA, TURNS, decoder
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.contract import SampleError, inspect
from simulator.testing.formats import FOLDER


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

    with pytest.raises(SampleError, match="its eXIf chunk is repeated or is not EXIF"):
        inspect("test", data)


SEEDS = [
    *(JPEGS[kind] for kind in ("odd", "gray", "progressive", "444")),
    images.rotated(ODD, 6),
    images.jpeg(RGBA, "CMYK"),
    *(PNGS[kind][0] for kind in ("rgba", "palette, tRNS", "gray 16", "rgb 16")),
    images.rotated(ODD, 6, format="png"),
    *(place.read_bytes() for place in sorted(FOLDER.iterdir())),
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
