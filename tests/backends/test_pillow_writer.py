"""Image files that Pillow writes, read back by OpenCV and by our own reader of headers."""

import cv2
import numpy as np
import pytest

from simulator import registry
from simulator.contract import Stage, inspect


@pytest.fixture(scope="module")
def writer():
    (offer,) = registry.backend("pillow").of(Stage.WRITE)
    return offer.make({})


def noise(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("shape", [(1, 1), (17, 11), (17, 11, 3), (1, 5, 3)])
def test_a_png_holds_every_pixel(writer, shape):
    pixels = noise(*shape)

    read = cv2.imdecode(np.frombuffer(writer.png(pixels), np.uint8), cv2.IMREAD_UNCHANGED)

    assert np.array_equal(read if len(shape) == 2 else read[..., ::-1], pixels)


def test_a_view_is_written_as_it_is_seen(writer):
    pixels = noise(8, 9, 3)

    assert writer.png(pixels[::-1, ::2]) == writer.png(np.ascontiguousarray(pixels[::-1, ::2]))


def test_a_jpeg_has_its_quality_and_half_the_chroma(writer):
    """Quality 50 is the table of ITU-T T.81 annex K.1, whose first entries are 16, 11, 10, 16."""
    data = writer.jpeg(noise(32, 48, 3), 50)
    table = data.index(b"\xff\xdb") + 5
    frame = data.index(b"\xff\xc0")

    assert list(data[table : table + 3]) == [16, 11, 12]  # zigzag order: (0,0), (0,1), (1,0)
    assert data[frame + 11] == 0x22  # luma is sampled twice as often in both directions
    assert len(data) < len(writer.jpeg(noise(32, 48, 3), 95))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_jpeg_keeps_the_orientation(writer, orientation):
    found = inspect("a.jpg", writer.jpeg(noise(8, 16, 3), 90, orientation))

    assert (found.width, found.height, found.orientation) == (16, 8, orientation)


@pytest.mark.parametrize("wrong", [noise(4, 4, 2), noise(4, 4).astype(np.int16), noise(0, 4)])
def test_what_is_no_picture_is_refused(writer, wrong):
    with pytest.raises(ValueError, match="pixels are uint8"):
        writer.png(wrong)
