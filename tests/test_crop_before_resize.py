"""The crop before the resize: TensorFlow's and Keras' own functions, Accuracy Checker's rule, the
places of images, and the axis that it is part of."""

import numpy as np
import pytest
import tiny

from backends.tensorflow_library import tf_of_one_thread
from simulator.contract.encoded import inspect
from simulator.errors import ModelError, ProfileError, SampleError
from simulator.modalities.image.cropping import CentralCrop, Cut
from simulator.modalities.image.front_end import front_end
from simulator.modalities.image.geometry import Geometry
from simulator.modalities.image.modality import ImagePlacing
from simulator.model.card import Card
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile import axes
from simulator.profile.implementations import choose
from simulator.profile.load import load

SIZES = [(1, 1), (2, 3), (17, 11), (31, 200), (224, 224), (333, 500), (375, 499)]


@pytest.fixture
def tf():
    """TensorFlow, opened by its backend: threads are set once a process."""
    return tf_of_one_thread()


def ramp(rows, columns):
    """Every pixel says where it is: (row, column, 0), with the high bytes in the third."""
    y, x = np.mgrid[0:rows, 0:columns]
    return np.stack([y % 256, x % 256, 16 * (y // 256) + x // 256], axis=-1).astype(np.uint8)


def kept(image, cut):
    return image[cut.top : image.shape[0] - cut.bottom, cut.left : image.shape[1] - cut.right]


@pytest.mark.parametrize("fraction", [0.875, 0.8, 0.5, 0.1, 224 / 256, 0.999])
def test_a_fraction_is_tensorflows_central_crop(tf, fraction):
    for size in SIZES:
        image = ramp(*size)
        wanted = tf.image.central_crop(tf.constant(image), fraction).numpy()

        cut = CentralCrop(fraction, "tensorflow").cut(*size, (224, 224))

        np.testing.assert_array_equal(kept(image, cut), wanted)


@pytest.mark.parametrize("network", [(224, 224), (32, 48), (48, 32), (1, 7)])
def test_the_networks_ratio_is_keras_crop_to_aspect_ratio(tf, network):
    layer = tf.keras.layers.Resizing(*network, interpolation="nearest", crop_to_aspect_ratio=True)
    plain = tf.keras.layers.Resizing(*network, interpolation="nearest")
    for size in SIZES:
        image = ramp(*size).astype(np.float32)

        cut = CentralCrop(None, "floor").cut(*size, network)

        np.testing.assert_array_equal(plain(kept(image, cut)[None]), layer(image[None]))


@pytest.mark.parametrize(
    ("crop", "size", "cut"),
    [
        # int(37 * 0.875) = 32 rows and int(50 * 0.875) = 43 columns; 5 // 2 and 7 // 2
        (CentralCrop(0.875, "floor"), (37, 50), Cut(2, 3, 3, 4)),
        # Pillow's: int(round(5 / 2)) = 2 and int(round(7 / 2)) = 4
        (CentralCrop(0.875, "torchvision"), (37, 50), Cut(2, 4, 3, 3)),
        # TensorFlow's: int(37 * 0.125 / 2) = 2 and int(50 * 0.125 / 2) = 3, at both ends
        (CentralCrop(0.875, "tensorflow"), (37, 50), Cut(2, 3, 2, 3)),
        # max_square: 37 columns of 50, from 13 // 2 and from int(round(13 / 2))
        (CentralCrop(None, "floor"), (37, 50), Cut(0, 6, 0, 7)),
        (CentralCrop(None, "torchvision"), (37, 52), Cut(0, 8, 0, 7)),
    ],
)
def test_accuracy_checkers_crops_by_hand(crop, size, cut):
    """crop.py: int(side * central_fraction); (side - new) // 2, or int(round(half)) in Pillow."""
    assert crop.cut(*size, (224, 224)) == cut


def test_nothing_left_is_said():
    with pytest.raises(SampleError, match="1x7 pixels: the crop before the resize leaves none"):
        CentralCrop(0.5, "floor").cut(1, 7, (224, 224))


PART = "geometry.crop_before_resize={fraction: 0.875, rounding: tensorflow}"
SQUASH = "geometry.kind=squash", "geometry.rounding=null"


def profile(*overrides, name="pillow_fp32"):
    return load(name, [*SQUASH, *overrides])


def tensor(stack, image, folder, size=32, **card):
    spec = {**tiny.SPEC["input"], "height": size, "width": size}
    made = Card(tiny.card(folder / "card", tiny.classifier(size), input=spec, **card)).spec
    value = inspect("x.png", tiny.encoded(image, "png"))
    for recipe in front_end(stack, choose(stack), made):
        value = recipe.open(RuntimePool())(value, None)
    return np.asarray(value)[0]


def test_a_stack_crops_and_then_resizes_as_tensorflow(tf, tmp_path):
    """``tf.image.central_crop`` and ``tf.image.resize``, through the profile's own stages."""
    image = np.random.default_rng(0).integers(0, 256, (53, 50, 3), dtype=np.uint8)
    stack = profile(
        PART,
        "resize={backend: tensorflow, interpolation: bilinear, antialias: false, "
        "coordinates: half_pixel, domain: rgb}",
        "normalize={mean: [0, 0, 0], std: [1, 1, 1]}",
    )

    found = tensor(stack, image, tmp_path)

    wanted = tf.image.resize(tf.image.central_crop(tf.constant(image), 0.875), (32, 32))
    np.testing.assert_allclose(found, wanted.numpy().transpose(2, 0, 1), atol=1e-4)


def test_a_card_may_crop_and_a_profile_follows(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (53, 50, 3), dtype=np.uint8)
    part = {"fraction": 0.875, "rounding": "tensorflow"}
    follows = load("pillow_fp32", ["geometry={kind: model, rounding: model, short_side: null}"])

    by_card = tensor(follows, image, tmp_path / "a", geometry={
        "kind": "squash", "crop_before_resize": part,
    })  # fmt: skip

    np.testing.assert_array_equal(by_card, tensor(profile(PART), image, tmp_path / "b"))


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["geometry={kind: model, rounding: model, short_side: null}", PART],
         "kind model has no crop_before_resize"),
        (["geometry.crop_before_resize={rounding: floor}"], "needs fraction or aspect"),
        (["geometry.crop_before_resize={aspect: network, rounding: tensorflow}"],
         "rounding tensorflow is for a fraction"),
        (["geometry.crop_before_resize={fraction: 1.0, rounding: floor}"], "less than 1"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(overrides, said):
    with pytest.raises(ProfileError) as caught:
        profile(*overrides)

    (line,) = caught.value.problems
    assert "geometry" in line
    assert said in line


def test_yuv_is_not_cropped_before_the_resize(tmp_path):
    """In the profile, and where only the card says so."""
    in_yuv = "ascend_nv12_int8"
    with pytest.raises(ProfileError, match=r"crop_before_resize needs resize\.domain rgb"):
        profile(PART, name=in_yuv)
    part = {"kind": "squash", "crop_before_resize": {"fraction": 0.5, "rounding": "floor"}}
    follows = load(in_yuv, ["geometry={kind: model, rounding: model, short_side: null}"])
    with pytest.raises(ModelError, match=r"write resize\.domain: rgb"):
        tensor(follows, np.zeros((40, 40, 3), np.uint8), tmp_path, geometry=part)


def test_it_is_part_of_the_geometry_axis():
    one, other = profile(), profile(PART)
    both = (one, choose(one)), (other, choose(other))

    assert axes.differing(*both) == ["geometry"]
    mixed, _ = axes.swap(one, other, ["geometry"])
    assert mixed.spec.geometry == other.spec.geometry


def test_swapped_into_a_stack_that_resizes_yuv_it_resizes_rgb():
    mixed, _ = axes.swap(load("ascend_nv12_int8"), profile(PART), ["geometry"])

    assert mixed.spec.geometry.crop_before_resize.fraction == 0.875
    assert mixed.spec.resize.domain == "rgb"
    assert mixed.spec.color.format == "nv12"


def test_the_place_of_an_image_counts_what_was_cut():
    """Of 41 x 81 an odd row and column go first; half of 40 x 80 is 20 x 40, from (10, 20)."""
    geometry = Geometry("squash", 10, 10, crop_before_resize=CentralCrop(0.5, "floor"))
    source = inspect("x.png", tiny.encoded(np.zeros((41, 81, 3), np.uint8), "png"))

    where = ImagePlacing(geometry, exif="ignore", drop=True, even=False)(source)

    assert where.cut == (10, 20, 11, 21)
    assert (where.height, where.width) == (20, 40)
    assert where.scales("resized") == (10 / 20, 10 / 40)
