"""Slips that are in no list of ours, each from two images: what a stranger must read."""

import io

import numpy as np
import pytest
from PIL import Image, ImageFilter

from simulator.diagnose.finding import Certainty
from simulator.diagnose.inputs import name_inputs
from simulator.diagnose.registered import registered, unnamed


def tensor(pixels):
    """The built-in model's normalization, (x - 127) / 128."""
    x = (np.asarray(pixels, np.float32) - np.float32(127)) / np.float32(128)
    return np.ascontiguousarray(x.transpose(2, 0, 1)[None])


def short(image, size=256):
    w, h = image.size
    return image.resize((size, int(size * h / w)) if w < h else (int(size * w / h), size),
                        Image.BILINEAR)  # fmt: skip


def center(image):
    left, top = (round((side - 224) / 2) for side in image.size)
    return image.crop((left, top, left + 224, top + 224))


def train(image):
    return center(short(image))


def linear(image):
    x = np.asarray(image) / 255
    return 255 * np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def compressed(image):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=75)
    return Image.open(file)


PIXELS = {
    "gamma: linear light in place of sRGB": linear,
    "colors of 5, 6, 5 bits (RGB565)": lambda image: np.asarray(image) & np.uint8([248, 252, 248]),
    "levels wrap around at 256: 60 is added in uint8":
        lambda image: np.asarray(image) + np.uint8(60),
    "each two rows are exchanged":
        lambda image: np.asarray(image).reshape(112, 2, 224, 3)[:, ::-1].reshape(224, 224, 3),
    "HSV (hue of 255 levels) taken for RGB": lambda image: image.convert("HSV"),
    "compressed as JPEG once more, at the network's size (quality 75)": compressed,
    "blurred by a box of 3 x 3": lambda image: image.filter(ImageFilter.BoxBlur(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", PIXELS)
def test_what_was_done_to_the_pixels(session, name):
    images = [train(Image.open(item.path)) for item in session.dataset.items]

    (found,) = name_inputs(
        [tensor(one) for one in images], [tensor(PIXELS[name](one)) for one in images],
        session.card.spec,
    )  # fmt: skip

    assert found.name == name
    assert found.certainty.sure


def test_what_only_training_does(session):
    images = [train(Image.open(item.path)) for item in session.dataset.items]

    (found,) = name_inputs(
        [tensor(linear(one)) for one in images], [tensor(one) for one in images],
        session.card.spec,
    )  # fmt: skip

    assert found.name == "missing here, and done in training: gamma: linear light in place of sRGB"


def boxed(image):
    """The long side to 224, on the right and below the mean color."""
    scale = 224 / max(image.size)
    small = image.resize(tuple(round(side * scale) for side in image.size), Image.BILINEAR)
    out = Image.new("RGB", (224, 224), (124, 116, 104))
    out.paste(small, (224 - small.width, 224 - small.height))
    return out


PLACES = {
    "center crop without a resize": center,
    "long side 224 and padding on the left and above with 104, 116, 124": boxed,
}


@pytest.mark.parametrize("name", PLACES)
def test_which_part_of_the_image_is_seen(session, name):
    items = session.dataset.items
    images = [Image.open(item.path) for item in items]

    found = registered(
        session, items, [tensor(train(one)) for one in images],
        [tensor(PLACES[name](one))[:, ::-1] for one in images],
    ).findings  # fmt: skip

    assert [one.name for one in found] == [
        f"{name} in place of short side 256 and center crop", "channels are swapped",
    ]  # fmt: skip
    assert all(one.certainty.sure for one in found)
    # 400 x 512 to 256 x 327, of which 224 begin at 16 and, half to even, at 52
    assert "training sees columns 25-375 and rows 81-432" in found[0].evidence[0]


def test_what_has_no_name_is_described(session):
    images = [train(Image.open(item.path)) for item in session.dataset.items]
    pair = (
        [tensor(one) for one in images],
        [tensor(one.filter(ImageFilter.MedianFilter(3))) for one in images],
    )

    assert name_inputs(*pair, session.card.spec) == []
    found = unnamed(*pair, session.card.spec, True)
    assert found.certainty is Certainty.NONE
    assert found.name.startswith("the same part of the image, at the same size; mean ")
    assert "smoother" in found.name
