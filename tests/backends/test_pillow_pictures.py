"""Pillow's masks and pictures: indices are read as stored, and boxes are drawn where they are."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageSequence

from simulator import registry
from simulator.contract import MAX_PIXELS, Key, Panel, Rectangle, Stage
from simulator.errors import SampleError

RED, BLUE = (213, 94, 0), (0, 114, 178)
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
COLORS = bytes(range(200, 200 + 48))
"""A palette of 16 colors that no index of the tests equals."""


def made(stage):
    (offer,) = registry.backend("pillow").of(stage)
    return offer.make({})


@pytest.fixture(scope="module")
def masks():
    return made(Stage.MASK)


@pytest.fixture(scope="module")
def painter():
    return made(Stage.DRAW)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, bits, color, rows, palette=b""):
    """A PNG by the specification; *rows* are its packed scanlines, each without a filter."""
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    chunks = [chunk(b"IHDR", header), chunk(b"PLTE", palette) if palette else b""]
    chunks += [chunk(b"IDAT", pixels), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


# Worked on paper: the leftmost sample stands in the highest bits of a byte.
PACKED = {
    1: ([b"\xa0", b"\x40"], [[1, 0, 1], [0, 1, 0]]),
    2: ([b"\x1c", b"\xe4"], [[0, 1, 3], [3, 2, 1]]),
    4: ([b"\x0f\x70", b"\x12\x30"], [[0, 15, 7], [1, 2, 3]]),
    8: ([b"\x00\x0f\x07", b"\x01\x02\x03"], [[0, 15, 7], [1, 2, 3]]),
}


@pytest.mark.parametrize("bits", PACKED)
@pytest.mark.parametrize("color", [GRAY, PALETTE])
def test_samples_of_every_depth_are_indices(masks, bits, color):
    rows, expected = PACKED[bits]
    palette = COLORS[: 3 * 2 ** min(bits, 4)] if color == PALETTE else b""
    mask = masks.indices(png(3, 2, bits, color, rows, palette), "mask.png")
    assert mask.dtype == np.uint8
    assert mask.tolist() == expected
    assert mask.flags.writeable and mask.flags.c_contiguous


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 9), (33, 17)])
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_interlaced_masks_are_read_whole(masks, size, bits):
    """Adam7 as the specification's 8.2 numbers the pixels of an 8x8 block."""
    height, width = size
    even, odd = "1646264677777777", "3646364677777777"
    cells = even + "5656565677777777" + odd + "5656565677777777"
    block = [cells[i : i + 8] for i in range(0, 64, 8)]
    indices = np.random.default_rng(0).integers(0, 2**bits, size)
    packed = b""
    for number in "1234567":
        for y in range(height):
            row = [indices[y, x] for x in range(width) if block[y % 8][x % 8] == number]
            if row:
                bit = "".join(f"{value:0{bits}b}" for value in row)
                bit += "0" * (-len(bit) % 8)
                packed += b"\0" + int(bit, 2).to_bytes(len(bit) // 8, "big")
    header = struct.pack(">IIBBBBB", width, height, bits, PALETTE, 0, 0, 1)

    def file(pixels):
        parts = [chunk(b"IHDR", header), chunk(b"PLTE", COLORS[: 3 * 2 ** min(bits, 4)])]
        parts += [chunk(b"IDAT", zlib.compress(pixels)), chunk(b"IEND", b"")]
        return b"\x89PNG\r\n\x1a\n" + b"".join(parts)

    assert masks.indices(file(packed), "m").tolist() == indices.tolist()
    for short in range(len(packed)):
        with pytest.raises(SampleError, match=r"pixel data|truncated"):
            masks.indices(file(packed[:short]), "m")


def test_gray_of_16_bits_keeps_both_bytes(masks):
    mask = masks.indices(png(2, 1, 16, GRAY, [b"\x00\x07\x80\x01"]), "mask.png")
    assert mask.dtype == np.uint16
    assert mask.tolist() == [[7, 0x8001]]


def test_255_is_kept_in_palette_and_gray(masks):
    file = png(2, 1, 8, PALETTE, [b"\xff\x00"], bytes(768))
    assert masks.indices(file, "m").tolist() == [[255, 0]]
    assert masks.indices(png(2, 1, 8, GRAY, [b"\xff\x00"]), "m").tolist() == [[255, 0]]


@pytest.mark.parametrize(
    ("color", "row", "kind"),
    [
        (RGB, b"\1\2\3", "an RGB picture"),
        (RGBA, b"\1\2\3\4", "an RGBA picture"),
        (GRAY_ALPHA, b"\1\2", "a gray picture with alpha"),
    ],
)
def test_pictures_are_refused_as_masks(masks, color, row, kind):
    with pytest.raises(SampleError) as raised:
        masks.indices(png(1, 1, 8, color, [row]), "a/b.png")
    assert str(raised.value) == f"a/b.png: is {kind}, not an index mask; convert it to indices"


def jpeg():
    file = io.BytesIO()
    Image.new("L", (8, 8)).save(file, "JPEG")
    return file.getvalue()


GOOD = png(3, 2, 8, GRAY, PACKED[8][0])
BAD = {
    "empty": b"",
    "text": b"not a picture at all",
    "jpeg": jpeg(),
    "too few rows": png(3, 200, 8, GRAY, PACKED[8][0]),
    "index beyond the bits": png(3, 2, 3, GRAY, PACKED[8][0]),
    "palette of 16 bits": png(3, 2, 16, PALETTE, PACKED[8][0], COLORS),
    "no pixels": png(0, 0, 8, GRAY, []),
    "bomb": png(MAX_PIXELS // 1000 + 1, 1000, 8, GRAY, []),
    "pixels that are no zlib": GOOD[:33] + chunk(b"IDAT", b"garbage") + chunk(b"IEND", b""),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_mask_is_refused_in_one_line(masks, name):
    with pytest.raises(SampleError) as raised:
        masks.indices(BAD[name], "m.png")
    assert str(raised.value).startswith("m.png: ")
    assert "\n" not in str(raised.value) and " at 0x" not in str(raised.value)


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_a_damaged_mask_is_refused_or_read(masks, place, flip):
    damaged = bytearray(GOOD)
    damaged[place] ^= flip
    for data in (bytes(damaged), GOOD[:place]):
        with pytest.raises(SampleError):  # every byte is the signature's or under a checksum
            masks.indices(data, "m.png")


def decoded(file):
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))


def origin(sheet, image):
    """Where *image*, of one unusual color, starts on a white sheet."""
    rows, columns = np.nonzero((sheet == image[0, 0]).all(axis=2))
    return rows.min(), columns.min()


def test_a_box_is_drawn_on_its_pixels_and_nowhere_else(painter):
    image = np.full((400, 500, 3), (10, 200, 90), np.uint8)
    box = Rectangle((100, 50, 300, 250), RED)
    sheet = decoded(painter.png([Panel(image, "train", (box,))]))
    y, x = origin(sheet, image)
    drawn = sheet[y : y + 400, x : x + 500]
    edge = np.zeros((400, 500), bool)
    edge[50:250, 100:300] = True
    edge[52:248, 102:298] = False
    assert (drawn[edge] == RED).all()
    near = np.zeros((400, 500), bool)
    near[50:250, 100:300] = True
    near[53:247, 103:297] = False  # one row further in, there is the dark thread
    assert (drawn[~near] == image[0, 0]).all()


def test_a_dashed_box_alternates_with_black(painter):
    image = np.full((400, 500, 3), (10, 200, 90), np.uint8)
    box = Rectangle((100, 50, 300, 250), (255, 255, 255), dashed=True, width=1)
    sheet = decoded(painter.png([Panel(image, "", (box,))]))
    y, x = origin(sheet, image)
    top = sheet[y + 50, x + 100 : x + 300]
    assert {tuple(color) for color in top.tolist()} == {(0, 0, 0), (255, 255, 255)}
    assert (top[:4] == 255).all() and (top[4:8] == 0).all()


def test_a_small_image_grows_by_a_whole_factor(painter):
    image = np.arange(32 * 32 * 3).reshape(32, 32, 3).astype(np.uint8)
    sheet = decoded(painter.png([Panel(image, "")]))
    grown = np.repeat(np.repeat(image, 10, 0), 10, 1)
    windows = [
        (y, x)
        for y in range(sheet.shape[0] - 319)
        for x in range(sheet.shape[1] - 319)
        if (sheet[y, x] == grown[0, 0]).all()
    ]
    assert any((sheet[y : y + 320, x : x + 320] == grown).all() for y, x in windows)


def test_an_overlay_is_mixed_by_its_alpha(painter):
    image = np.full((400, 400, 3), (10, 200, 90), np.uint8)
    overlay = np.zeros((400, 400), np.uint16)
    overlay[:, 200:] = 1
    palette = np.array([[0, 0, 0, 0], [250, 0, 90, 51]], np.uint8)
    sheet = decoded(painter.png([Panel(image, "", overlay=overlay, palette=palette)]))
    y, x = origin(sheet, image)
    assert sheet[y + 5, x + 199].tolist() == [10, 200, 90]
    assert sheet[y + 5, x + 200].tolist() == [58, 160, 90]  # 0.8 of the image, 0.2 of the color


def test_captions_lie_in_the_image_and_not_on_each_other():
    from backends.pillow.captions import place

    font = pytest.importorskip("PIL.ImageFont").load_default(size=12)
    boxes = [(0, 0, 9, 9), (290, 0, 299, 9), (0, 190, 9, 199), (290, 190, 299, 199)] * 2
    boxes.append((140, 100, 160, 120))
    captions = [f"person {i}" for i in range(8)] + ["x" * 500]
    placed = list(place(boxes, captions, font, (300, 200)))
    seen = np.zeros((200, 300), int)
    for index, (left, top, right, bottom), text in placed:
        assert 0 <= left <= right < 300 and 0 <= top <= bottom < 200
        assert captions[index].startswith(text.removesuffix("…"))
        seen[top : bottom + 1, left : right + 1] += 1
    assert seen.max() == 1
    assert [index for index, _, _ in placed][:2] == [8, 7]
    assert len(placed) == len({spot for _, spot, _ in placed}) == 9


def test_the_legend_names_each_meaning_once(painter):
    panel = Panel(np.zeros((40, 300, 3), np.uint8), "", legend=(Key(RED, "lost"),))
    other = Panel(panel.image, "", legend=(Key(RED, "lost"), Key(BLUE, "gained")))
    once = decoded(painter.png([panel, panel]))
    both = decoded(painter.png([panel, other]))
    swatch = 18 * 11
    assert (once == RED).all(axis=2).sum() == swatch
    assert (both == RED).all(axis=2).sum() == (both == BLUE).all(axis=2).sum() == swatch


def test_equal_panels_give_equal_bytes(painter):
    image = np.random.default_rng(0).integers(0, 256, (90, 120, 3)).astype(np.uint8)
    before = image.copy()
    panel = Panel(image, "train", (Rectangle((3, 4, 50, 60), RED, "dog 0.91"),))
    assert painter.png([panel, panel]) == made(Stage.DRAW).png([panel, panel])
    assert (image == before).all()


def test_noise_of_six_megapixels_fits_into_a_megabyte(painter):
    image = np.random.default_rng(0).integers(0, 256, (2000, 3000, 3)).astype(np.uint8)
    assert len(painter.png([Panel(image, "train"), Panel(image, "deploy")])) <= 1_000_000


def test_a_drawing_for_a_page_is_small_and_keeps_its_colors(painter):
    """Of smooth noise, which has more detail than a photograph; colors within 10 of 255."""
    rough = np.random.default_rng(0).integers(0, 256, (60, 80, 3)).astype(np.uint8)
    image = np.array(Image.fromarray(rough).resize((640, 480), Image.Resampling.BICUBIC))
    panels = [Panel(image, name, (Rectangle((64, 48, 320, 240), RED, width=4),))
              for name in ("train", "deploy")]  # fmt: skip
    content = painter.jpeg(panels)
    sheet = decoded(content)

    assert content.startswith(b"\xff\xd8") and len(content) <= 150_000
    assert sheet.shape[1] <= 2 * 480 + 3 * 8
    near = (abs(sheet.astype(int) - RED).max(axis=2) <= 10).sum()
    assert near > 2 * 2 * 2 * (192 + 144)  # of the 4 pixels of width at least 2


def frames_of(data):
    with Image.open(io.BytesIO(data)) as file:
        return [
            (np.asarray(frame.convert("RGB")), frame.info["duration"])
            for frame in ImageSequence.Iterator(file)
        ]


def test_a_gif_shows_panel_after_panel_with_exact_colors(painter):
    """A box moves ten pixels a frame over gray noise; boxes and keys keep their colors."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (60, 90, 1), np.uint8).repeat(3, axis=2)
    panels = [
        Panel(noise, f"frame {at}", (Rectangle((10 * at, 5, 10 * at + 20, 30), RED),),
              legend=(Key(BLUE, "blue"),))
        for at in range(4)
    ]  # fmt: skip
    found = frames_of(painter.gif(panels, 250))

    assert [each for _, each in found] == [250] * 4
    red = [np.flatnonzero((picture == RED).all(axis=2).any(axis=0)) for picture, _ in found]
    scale = (found[0][0].shape[1] - 16) / 90
    starts = [(columns[0] - 8) / scale for columns in red]
    assert starts == pytest.approx([0, 10, 20, 30], abs=1)
    assert all((picture == BLUE).all(axis=2).any() for picture, _ in found)
    assert painter.gif(panels, 250) == painter.gif(panels, 250)


def test_a_gif_is_made_smaller_until_it_fits(painter):
    """Thirty frames of noise have no regularity that a GIF could use."""
    rng = np.random.default_rng(0)
    panels = [Panel(rng.integers(0, 256, (270, 480, 3), np.uint8), "") for _ in range(30)]
    data = painter.gif(panels, 100)
    assert len(data) <= 1_000_000
    assert len(frames_of(data)) == 30


def test_images_of_two_sizes_are_no_gif(painter):
    panels = [Panel(np.zeros((2, width, 3), np.uint8), "") for width in (3, 4)]
    with pytest.raises(ValueError, match="one size"):
        painter.gif(panels, 100)


number = st.one_of(st.floats(), st.floats(-50, 150), st.integers(-10, 70).map(float))


@settings(deadline=None)
@given(
    size=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    boxes=st.lists(
        st.tuples(st.tuples(number, number, number, number), st.text(max_size=30), st.booleans()),
        max_size=5,
    ),
    width=st.integers(1, 5),
)
def test_no_box_or_text_stops_the_painter(painter, size, boxes, width):
    rectangles = tuple(Rectangle(box, RED, text, dashed, width) for box, text, dashed in boxes)
    title = " ".join(text for _, text, _ in boxes)
    panel = Panel(np.zeros((*size, 3), np.uint8), title, rectangles, legend=(Key(RED, title),))
    assert decoded(painter.png([panel])).ndim == 3


@pytest.mark.parametrize("size", [(1, 5000), (5000, 1), (1, 1), (3, 700)])
def test_images_of_extreme_shape_are_drawn(painter, size):
    box = Rectangle((-1e308, -1e308, 1e308, 1e308), RED, "everything 1.00")
    sheet = decoded(painter.png([Panel(np.zeros((*size, 3), np.uint8), "train", (box,))] * 5))
    assert (sheet == RED).all(axis=2).any()


@pytest.mark.parametrize(
    ("overlay", "palette"),
    [
        (np.zeros((2, 3), np.uint8), None),
        (np.zeros((3, 2), np.uint8), np.zeros((1, 4), np.uint8)),
        (np.ones((2, 3), np.uint8), np.zeros((1, 4), np.uint8)),
        (np.zeros((2, 3), np.uint8), np.zeros((1, 3), np.uint8)),
    ],
)
def test_an_overlay_that_does_not_fit_is_refused(overlay, palette):
    with pytest.raises(ValueError, match="overlay"):
        Panel(np.zeros((2, 3, 3), np.uint8), "", overlay=overlay, palette=palette)
