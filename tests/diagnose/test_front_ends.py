"""Front ends written here with Pillow and OpenCV are searched for, and told apart in words."""

import cv2
import numpy as np
import pytest
from PIL import Image

from simulator.diagnose.finding import Certainty
from simulator.diagnose.front_ends import named_by_search
from simulator.diagnose.inputs import name_inputs
from simulator.identify.space import Space

GONE = {"exif": None, "idct": None, "chroma_upsampling": None}
BOX = {"kind": "letterbox", "short_side": None, "rounding": "floor"}
WHOLE = Space("pillow_fp32", {
    "decode": {"pillow": {"decode": {"backend": "pillow", **GONE, "exif": "ignore"}}},
    "resize": {name: {"resize": name}
               for name in ("pil-bilinear", "pil-bicubic", "opencv-bilinear", "opencv-nearest")},
    "geometry": {
        "crop": {"geometry": {"kind": "model", "rounding": "torchvision"}},
        "squash": {"geometry": {"kind": "squash", "rounding": None}},
        "right": {"geometry": {**BOX, "position": "top_left", "value": 0}},
        "both": {"geometry": {**BOX, "position": "center", "value": 114}},
    },
    "order": {"rgb": {"color.order": "rgb"}, "bgr": {"color.order": "bgr"}},
})  # fmt: skip


def tensor(pixels, scale=128):
    """The built-in model's normalization, (x - 127) / 128."""
    x = (np.asarray(pixels, np.float32) - np.float32(127)) / np.float32(scale)
    return np.ascontiguousarray(x.transpose(2, 0, 1)[None])


def torchvision(image, resize=lambda image, w, h: image.resize((w, h), Image.BILINEAR)):
    """Resize(256) and CenterCrop(224)."""
    w, h = image.size
    w, h = (256, int(256 * h / w)) if w < h else (int(256 * w / h), 256)
    top, left = round((h - 224) / 2), round((w - 224) / 2)
    return np.asarray(resize(image, w, h))[top : top + 224, left : left + 224]


def opencv(image, w, h):
    return cv2.resize(np.asarray(image), (w, h), interpolation=cv2.INTER_LINEAR)


def boxed(image, value, center):
    """A letterbox as YOLO's, or as NvInfer's."""
    rows, columns = (int(side * 224 / max(image.size)) for side in image.size[::-1])
    out = np.full((224, 224, 3), value, np.uint8)
    top, left = ((224 - rows) // 2, (224 - columns) // 2) if center else (0, 0)
    out[top : top + rows, left : left + columns] = opencv(image, columns, rows)
    return out


SLIPS = {
    "no antialiasing": (torchvision, lambda image: torchvision(image, opencv)),
    "squash in place of short side and center crop":
        (torchvision, lambda image: np.asarray(image.resize((224, 224), Image.BILINEAR))),
    "padding on the right and below with 0 in place of on both sides with 114":
        (lambda image: boxed(image, 114, True), lambda image: boxed(image, 0, False)),
    "bicubic in place of bilinear": (torchvision, lambda image: torchvision(
        image, lambda one, w, h: one.resize((w, h), Image.BICUBIC))),
}  # fmt: skip


def named(session, train, deploy, scale=128):
    items = session.dataset.items
    images = [Image.open(item.path) for item in items]
    pair = [tensor(train(one)) for one in images], [tensor(deploy(one), scale) for one in images]
    assert all(one.certainty is Certainty.NEAREST for one in name_inputs(*pair, session.card.spec))
    return named_by_search(session, items, *pair, 60, whole=WHOLE)[0]


@pytest.mark.parametrize("name", SLIPS)
def test_other_pixels_are_named_by_what_makes_them(session, name):
    (found,) = named(session, *SLIPS[name])

    assert (found.name, found.certainty) == (name, Certainty.EXACT)
    assert found.change and found.code


def test_a_scale_beside_another_kernel(session):
    """100 for 128, which no option has."""
    found = named(session, *SLIPS["bicubic in place of bilinear"], scale=100)

    assert [one.name for one in found] == [
        "bicubic in place of bilinear",
        "std 100 in place of 128",
    ]


def test_nothing_is_claimed_of_pixels_that_nothing_makes(session):
    drawn = np.random.default_rng(0).integers(0, 255, (2, 224, 224, 3), np.uint8)
    left = list(drawn)

    assert named(session, torchvision, lambda _: left.pop()) == []
