"""Slips made here with numpy on photographs are named, from two images each."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from simulator.data import example
from simulator.diagnose.finding import Certainty
from simulator.diagnose.inputs import name_inputs
from simulator.modalities.image.card import ImageInput
from simulator.reference.color import rgb_to_yuv, yuv_to_rgb

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


class CARD:
    """The part of a model card that names need: torchvision's numbers."""

    input = ImageInput(
        height=96, width=128, layout="NCHW", order="rgb", top=1, mean=list(MEAN), std=list(STD)
    )


@pytest.fixture(scope="module")
def photos():
    """Two photographs, (3, 96, 128) uint8."""
    files = [item.path for item in example.images().items[:2]]
    return [np.asarray(Image.open(one).resize((128, 96))).transpose(2, 0, 1) for one in files]


def totensor(pixels, mean=MEAN, std=STD, top=255):
    """torchvision's ToTensor and Normalize."""
    mean, std = (np.float32(one)[:, None, None] for one in (mean, std))
    return (np.float32(pixels) / np.float32(top) - mean) / std


def per_channel(*numbers):
    return np.float32(numbers)[:, None, None]


def byte(levels):
    return np.clip(np.rint(levels), 0, 255)


def padded(pixels):
    """A buffer with rows of 448 bytes in place of 384, read as if they had none."""
    buffer = np.zeros((96, 448))
    buffer[:, :384] = pixels.transpose(1, 2, 0).reshape(96, 384)
    return buffer.ravel()[: pixels.size].reshape(96, 128, 3).transpose(2, 0, 1)


def converted(pixels, stored, taken):
    """YUV, rounded to bytes, that is taken for another one."""
    yuv = np.rint(rgb_to_yuv(pixels.transpose(1, 2, 0), *stored))
    return byte(yuv_to_rgb(yuv, *taken)).transpose(2, 0, 1)


SLIPS = {
    "channels are swapped": lambda p: totensor(p[::-1]),
    "channels are in order GBR": lambda p: totensor(p[[1, 2, 0]]),
    "channels RRB in place of RGB": lambda p: totensor(p[[0, 0, 2]]),
    "normalized twice": lambda p: totensor(totensor(p), top=1),
    "255 forgotten": lambda p: totensor(p, top=1),
    "divided by 255 twice": lambda p: totensor(p / 255),
    "one scale for three standard deviations (fits 0.226 for 0.229, 0.224, 0.225)":
        lambda p: totensor(p, std=[0.226] * 3),
    "one scale for three standard deviations (fits 0.225 for 0.229, 0.224, 0.225)":
        lambda p: np.float32(p / (255 * 0.225)) - per_channel(*MEAN / STD),
    "a zero point is ignored (2.132 is added to every value)":
        lambda p: totensor(p) + np.float32(2.132),
    "mean of [0, 1] with std of [0, 255]": lambda p: (p - per_channel(*MEAN))
        / per_channel(*255 * STD),
    "mean in the other channel order": lambda p: totensor(p, mean=MEAN[::-1]),
    "NHWC read as NCHW": lambda p: totensor(p).transpose(1, 2, 0).reshape(p.shape),
    "width and height exchanged": lambda p: totensor(p).transpose(0, 2, 1).reshape(p.shape),
    "uint8 taken for int8": lambda p: totensor(p.view(np.int8)),
    "rows with a stride of 448 elements for 384 (a multiple of 64), read as dense ones":
        lambda p: totensor(padded(p)),
    "a typing error in the third mean (57.375 for 103.53, which is the third standard deviation)":
        lambda p: totensor(p, mean=[0.485, 0.456, 0.225]),
    "limited range taken for full": lambda p: totensor(byte(np.float64(p) * 219 / 255 + 16)),
    "BT.709 for BT.601":
        lambda p: totensor(converted(p, ("bt601", "limited"), ("bt709", "limited"))),
    "full range taken for limited":
        lambda p: totensor(converted(p, ("bt601", "full"), ("bt601", "limited"))),
    "YUV taken for RGB (BT.601, full range)":
        lambda p: totensor(byte(rgb_to_yuv(p.transpose(1, 2, 0), "bt601", "full"))
                           .transpose(2, 0, 1)),
    "colors lost: gray (BT.601)": lambda p: totensor(np.repeat(byte(
        np.tensordot([0.299, 0.587, 0.114], p, 1))[None], 3, axis=0)),
    "multiplied by std in place of divided": lambda p: (p / np.float32(255) - per_channel(*MEAN))
        * per_channel(*STD),
    "scale 1.7 and offset 3 levels in channel G":
        lambda p: totensor(p * per_channel(1, 1.7, 1) + per_channel(0, 3, 0)),
    "scale 0.9 and offset 12 levels in all channels": lambda p: totensor(p * np.float32(0.9) + 12),
    "gamma: levels to the power of 2.2": lambda p: totensor(255 * (p / 255) ** 2.2),
    "mirrored left to right": lambda p: totensor(p)[:, :, ::-1],
    "shifted by 1 pixel right": lambda p: totensor(np.roll(p, 1, axis=2)),
    "shifted by 2 pixels up and 3 pixels left": lambda p: totensor(np.roll(p, (-2, -3), (1, 2))),
    "input in FP16": lambda p: np.float16(totensor(p)),
    "values are clipped to 0 and 1": lambda p: totensor(p).clip(0, 1),
}  # fmt: skip
"""Slips by the name that they must get."""
NEAREST = {
    "BT.709 for BT.601", "full range taken for limited",
}  # fmt: skip
"""Those that are rounded on the way, and so are not undone to the bit."""


def named(photos, slip):
    train, deploy = ([do(one)[None] for one in photos] for do in (totensor, slip))
    return name_inputs(train, [np.ascontiguousarray(one, np.float32) for one in deploy], CARD)


@pytest.mark.parametrize("name", SLIPS)
def test_slips_are_named(photos, name):
    (found,) = named(photos, SLIPS[name])

    assert found.name == name
    assert (found.certainty is Certainty.NEAREST) == (name in NEAREST)
    assert found.evidence
    assert found.change or found.code


@pytest.mark.parametrize(
    ("orientation", "turns", "name"),
    [
        (6, 1, "EXIF ignored (rotated by 90 degrees counterclockwise)"),
        (6, -1, "EXIF applied, unlike in training (rotated by 90 degrees clockwise)"),
        (3, 2, "EXIF applied by one stack only (rotated by 180 degrees)"),
        (1, 1, "rotated by 90 degrees counterclockwise"),
    ],
)
def test_a_turn_is_that_of_the_files_exif(photos, orientation, turns, name):
    """A file of orientation 6 is turned clockwise to be displayed."""
    square = [one[:, :96, :96] for one in photos]
    sides = [[totensor(np.rot90(p, by, (1, 2)))[None] for p in square] for by in (0, turns)]
    card = SimpleNamespace(input=CARD.input.model_copy(update={"width": 96}))

    (found,) = name_inputs(*sides, card, orientations=[orientation] * 2)

    assert found.name == name


def test_a_conversion_between_whole_levels_is_found_up_to_rounding(photos):
    """Both stacks make bytes of one YUV picture; colors that neither clips."""
    dull = [byte(64 + one / 2) for one in photos]
    sides = [
        [totensor(converted(p, ("bt601", "limited"), (matrix, "limited")))[None] for p in dull]
        for matrix in ("bt601", "bt709")
    ]

    (found,) = name_inputs(*sides, CARD)

    assert found.name == "BT.709 for BT.601"
    assert found.certainty is Certainty.ROUNDING
    assert 0 < found.left < 1.5 / min(255 * STD)


def test_two_slips_at_once(photos):
    found = named(photos, lambda p: totensor(p[::-1], top=1))

    assert [one.name for one in found] == ["channels are swapped", "255 forgotten"]
    assert {one.certainty for one in found} == {Certainty.EXACT}
    assert found[0].change == {"color.order": "rgb"}


def test_a_quantized_input_shows_its_steps(photos):
    (found,) = named(photos, lambda p: np.rint(totensor(p) / 0.0186).clip(-128, 127) * 0.0186)

    assert found.name.startswith("input is quantized: steps of 0.0186")
    assert found.certainty is Certainty.ROUNDING
    assert found.left <= 0.0186 * 0.6


def test_steps_below_a_level_are_no_fractions_of_a_resize(photos):
    """Nothing is cut, so that no value is a level away."""
    (found,) = named(photos, lambda p: np.rint(totensor(p) / 0.0187) * 0.0187)
    both = named(photos, lambda p: (np.rint(totensor(p) / 0.0187) + 114) * 0.0187)

    assert found.name.startswith("input is quantized: steps of 0.0187")
    assert both[0].name == "a zero point is ignored (2.132 is added to every value, 114 steps)"


def test_another_order_of_arithmetic_is_rounding(photos):
    """(x - 255 mean) times 1 / (255 std)."""
    (found,) = named(
        photos, lambda p: (p - per_channel(*255 * MEAN)) * (1 / per_channel(*255 * STD))
    )

    assert found.name.startswith("equal up to rounding (")
    assert found.certainty is Certainty.ROUNDING
    assert 0 < found.left < 1e-6


def test_fractions_that_are_rounded(photos):
    """One stack resizes floats, the other rounds to bytes."""
    train = [totensor(one + 0.3)[None] for one in photos]

    (found,) = name_inputs(train, [totensor(one)[None] for one in photos], CARD)

    assert found.name == "resized pixels are rounded to whole levels"


def test_equal_bits_and_other_pixels_have_no_name(photos):
    def cropped(p):
        image = Image.fromarray(p.transpose(1, 2, 0)).crop((20, 20, 100, 90)).resize((128, 96))
        return totensor(np.asarray(image).transpose(2, 0, 1))

    assert named(photos, totensor) == []
    assert named(photos, cropped) == []
