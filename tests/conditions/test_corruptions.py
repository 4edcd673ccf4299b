"""Corruptions: equal to the original code, at any size, the same for every stack."""

import importlib.util
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from simulator import compare, registry
from simulator.conditions.condition import CONDITIONS, Disturbance, under
from simulator.conditions.corruptions.camera import camera_noise
from simulator.conditions.corruptions.corruption import Corruption
from simulator.conditions.corruptions.elastic import _affine, elastic_transform, smooth
from simulator.conditions.corruptions.glass import copied
from simulator.conditions.corruptions.weather import frosted
from simulator.conditions.image_condition import Window
from simulator.conditions.sequences.sequence import SequenceFrame
from simulator.contract import Matrix, PixelFormat, Range, Stage, inspect, rgb_frame, yuv_frame
from simulator.contract.recipe import Context
from simulator.errors import SampleError, UserError
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.implementations import implementation
from simulator.tasks.task import TASKS
from simulator.testing import files

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/golden/corruptions.json").read_text())
OTHER_NAMES = {"elastic_transform": "elastic_bethgelab"}
"""Where the published code is not the oracle's, what we have of the oracle has another name."""
NAMES = [one for one in CONDITIONS.names if issubclass(CONDITIONS[one], Corruption)]
SEQUENCES = [one for one in CONDITIONS.names if issubclass(CONDITIONS[one], SequenceFrame)]
STRONGER = (
    "brightness", "camera_noise", "contrast", "defocus_blur", "fog", "gaussian_blur",
    "gaussian_noise", "impulse_noise", "jpeg_compression", "pixelate", "psf_blur", "shot_noise",
    "speckle_noise",
)  # fmt: skip


class Legacy(np.random.RandomState):
    """What the original code draws from, with a Generator's name for whole numbers."""

    def integers(self, *args, **options):
        return self.randint(*args, **options)


def oracle():
    place = ROOT / "tools/corruption_goldens.py"
    spec = importlib.util.spec_from_file_location("corruption_goldens", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", GOLDEN)
def test_it_is_the_original_to_the_last_bit(name):
    """The digests are imagecorruptions-imaug 1.1.5's, written by tools/corruption_goldens.py."""
    script, kind = oracle(), CONDITIONS[OTHER_NAMES.get(name, name)]
    draws = np.random.default_rng if name == "impulse_noise" else Legacy

    found = {
        title: [script.digest(kind(one).apply(image, draws(one))) for one in range(1, 6)]
        for title, image in script.pictures().items()
    }

    assert found == GOLDEN[name]


def test_all_kinds_are_there():
    assert {OTHER_NAMES.get(one, one) for one in GOLDEN} < set(NAMES)
    assert len(NAMES) == 19 + 1 + 3  # ImageNet-C and its extra four, bethgelab's elastic, Kamann's


@settings(max_examples=15, deadline=None)
@given(height=st.integers(1, 64), width=st.integers(1, 64), data=st.data())
@pytest.mark.parametrize("name", [*NAMES, *SEQUENCES])
def test_any_size_and_any_content_will_do(name, height, width, data):
    kind = CONDITIONS[name]
    last = kind.frames - 1 if name in SEQUENCES else len(kind.levels)
    condition = kind(data.draw(st.integers(1, last)))
    content = data.draw(st.sampled_from(["noise", "black", "white"]))
    image = np.full((height, width, 3), 255 * (content == "white"), np.uint8)
    if content == "noise":
        image = np.random.default_rng(height).integers(0, 256, image.shape, np.uint8)
    before = image.copy()
    with np.errstate(all="raise", under="ignore"):
        first, again = (
            condition.shown(image, Window.of(image), np.random.default_rng(1)) for _ in range(2)
        )

    assert (first.shape, first.dtype) == (image.shape, np.uint8)
    assert np.array_equal(first, again)
    assert np.array_equal(image, before)


@pytest.mark.parametrize("name", STRONGER)
def test_a_higher_severity_changes_more(name):
    image, kind = files.picture(64, 72), CONDITIONS[name]
    changes = [
        np.abs(kind(one + 1).apply(image, np.random.default_rng(0)).astype(int) - image).mean()
        for one in range(len(kind.levels))
    ]

    assert changes == sorted(changes)
    assert len(set(changes)) == len(changes)


def test_pixels_are_copied_one_after_the_other():
    """The loop of the original, in which the swap is a copy, step by step."""
    draws = np.random.default_rng(3)
    for delta, size in ((1, (9, 12)), (2, (8, 5)), (4, (16, 19))):
        image = draws.integers(0, 256, (*size, 3), np.uint8)
        inner = [side - 2 * delta for side in size]
        moves = draws.integers(-delta, delta, (3, *inner, 2))
        wanted = image.copy()
        for one in moves.reshape(3, -1, 2):
            at = iter(one.tolist())
            for h in range(size[0] - delta, delta, -1):
                for w in range(size[1] - delta, delta, -1):
                    dx, dy = next(at)
                    wanted[h, w] = wanted[h + dy, w + dx].copy()

        assert np.array_equal(copied(image, moves, delta), wanted)


def test_three_points_fix_the_jitter():
    """By hand: x doubled and moved by 1, y kept."""
    rows = _affine([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)], [(1.0, 0.0), (3.0, 0.0), (1.0, 1.0)])

    assert rows == [(2.0, 0.0, 1.0), (0.0, 1.0, 0.0)]
    assert _affine([(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)], [(0.0, 0.0)] * 3) is None


@pytest.mark.parametrize("sigmas", [(2.44, 1.0), (170.8, 30.0)])
def test_cosine_transforms_blur_as_scipy_does(sigmas):
    from scipy import ndimage

    field = np.random.default_rng(0).uniform(-1, 1, (40, 56))
    wanted = ndimage.gaussian_filter(field, sigmas, mode="reflect", truncate=3)

    np.testing.assert_allclose(smooth(field, sigmas), wanted, rtol=0, atol=1e-12)


class Bounds:
    """A Generator that writes down between which bounds it was asked to draw."""

    def __init__(self):
        self.asked, self.draws = [], np.random.default_rng(0)

    def uniform(self, low, high, size):
        self.asked.append(high)
        return self.draws.uniform(low, high, size)


@pytest.mark.parametrize(("side", "jitter"), [(448, 24.4), (224, 24.4), (56, 6.1)])
def test_below_224_pixels_the_image_is_bent_less(side, jitter):
    bounds = Bounds()
    elastic_transform(1).apply(files.picture(side, side + 9), bounds)

    assert bounds.asked[0] == pytest.approx(jitter)


def test_ice_has_the_colors_of_the_published_files():
    """The means of frost1 to frost5, as numpy gives them of the files."""
    known = {(78, 149, 166), (201, 205, 214), (138, 153, 165), (112, 123, 135)}
    for seed in range(8):
        mean = frosted(200, 240, np.random.default_rng(seed)).mean(axis=(0, 1))

        assert min(np.abs(mean - one).max() for one in known) < 4


def test_the_darker_the_noisier():
    def spread(level):
        flat = np.full((80, 80, 3), level, np.uint8)
        return camera_noise(2).apply(flat, np.random.default_rng(0)).std()

    found = [spread(level) for level in (32, 96, 160, 224)]

    assert found == sorted(found, reverse=True)
    assert found[0] > 4 * found[2] > 0


def frames():
    rgb = files.picture(20, 28)
    y, u, v = rgb[..., 0], rgb[:10, :14, 1], rgb[:10, :14, 2]
    parts = Matrix.BT601, Range.LIMITED
    yield rgb_frame(rgb)
    yield yuv_frame(PixelFormat.NV12, y, u, v, *parts)
    yield yuv_frame(PixelFormat.NV21, y, u, v, *parts)
    yield yuv_frame(PixelFormat.I420, y, u, v, Matrix.BT709, Range.FULL)


@pytest.mark.parametrize("name", ["gaussian_noise", *SEQUENCES])
@pytest.mark.parametrize("frame", list(frames()), ids=lambda frame: str(frame.format))
def test_a_frame_keeps_its_format(frame, name):
    disturb = CONDITIONS[name].parse("1").open()
    one, same = (disturb(frame, np.random.default_rng(2)) for _ in range(2))

    assert (one.format, one.matrix, one.range) == (frame.format, frame.matrix, frame.range)
    assert [plane.shape for plane in one.planes] == [plane.shape for plane in frame.planes]
    assert all(np.array_equal(a, b) for a, b in zip(one.planes, same.planes, strict=True))
    assert not np.array_equal(one.planes[0], frame.planes[0])


def test_what_is_left_alone_comes_back_in_yuv():
    """Chroma that is repeated and averaged again is what it was: gray levels survive the way."""
    y = np.tile(np.arange(16, 236, dtype=np.uint8), (4, 1))
    gray = np.full((2, 110), 128, np.uint8)
    frame = yuv_frame(PixelFormat.I420, y, gray, gray, Matrix.BT601, Range.LIMITED)
    brighter = CONDITIONS["brightness"].parse("1").open()(frame, np.random.default_rng(0))

    assert np.array_equal(brighter.planes[1], gray)
    assert (brighter.planes[0][:, :190].astype(int) - y[:, :190] > 15).all()


def cropped(data, text="fog:3,crop224"):
    with RuntimePool() as runtimes:
        apply = Disturbance(under(text).condition, 0).open(runtimes)
        source = inspect("a.png", data)
        return apply(source, Context("a.png", source, None))


def saved(size, mode="RGB", form="PNG"):
    file = io.BytesIO()
    Image.effect_noise(size, 60).convert(mode).save(file, form)
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [saved((300, 420)), saved((1, 1)), saved((640, 31), "L"), saved((50, 90), "CMYK", "JPEG"),
     saved((9, 300), "LA")],
    ids=["portrait", "one pixel", "gray", "cmyk", "alpha"],
)  # fmt: skip
def test_crop224_writes_the_file_of_the_published_set(data):
    """JPEG, 224x224, 4:2:0, with the tables of libjpeg's quality 85: 16 * 30 / 100 = 4.8, 5."""
    made = cropped(data)
    image = Image.open(io.BytesIO(made.data))

    assert (made.format, image.size) == ("jpeg", (224, 224))
    assert image.quantization[0][0] == 5
    assert [layer[1:3] for layer in image.layer] == [(2, 2), (1, 1), (1, 1)]
    assert cropped(data).data == made.data


def test_crop224_cuts_the_middle_of_256():
    """A 512x256 image whose middle is white: 16 of 256 rows go, and of 512 columns 144."""
    pixels = np.zeros((256, 512, 3), np.uint8)
    pixels[16:240, 144:368] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")

    made = Image.open(io.BytesIO(cropped(file.getvalue(), "gaussian_blur:1,crop224").data))

    assert np.asarray(made).min() > 250


def test_a_strip_is_refused_for_crop224():
    with pytest.raises(SampleError, match=r"^1x5000 pixels would become 256x1280000"):
        cropped(saved((1, 5000)), "contrast:1,crop224")


@pytest.mark.parametrize("wrong", ["0", "6", "", "x", "3,", "3,crop", "3,crop224,1", "03"])
def test_a_severity_that_is_not_there_is_refused(wrong):
    with pytest.raises(UserError, match="fog:SEVERITY or fog:SEVERITY,PLACE expected") as caught:
        under(f"fog:{wrong}")

    assert "\n" not in str(caught.value)


def test_places_are_two_conditions():
    one, other = under("fog:3"), under("fog:3,crop224")

    assert (one.condition.text, other.condition.text) == ("fog:3", "fog:3,crop224")
    assert under("fog:3,original").condition.text == "fog:3"
    assert one.described()["acts_on"] == "frame"
    assert other.described()["acts_on"] == "source"
    assert one.described()["parameters"] == {"severity": 3, "place": "original"}


@pytest.mark.parametrize("text", ["geometric_distortion:2,crop224", "fog:1,crop224"])
def test_what_moves_is_refused_where_the_answer_is_a_place(text):
    with pytest.raises(UserError, match=r"boxes and masks cannot follow"):
        under(text).check("image", in_pixels=True)

    under(text).check("image", in_pixels=False)
    under("fog:1").check("image", in_pixels=True)


def test_equal_pixels_get_equal_weather_whoever_decoded_them():
    source = files.jpeg(files.picture(40, 48)).data
    step = Disturbance(under("snow:3").condition, 0)
    found = []
    for name in ("pillow", "opencv"):
        choice = implementation(Stage.DECODE, registry.backend(name), {"exif": "ignore"})
        frame = choice.make().rgb(inspect("a.jpg", source))
        with RuntimePool() as runtimes:
            found.append(step.open(runtimes)(frame, Context("a.jpg", None, None)).rgb)

    assert np.array_equal(*found)


@pytest.mark.parametrize("text", ["fog:3", "fog:3,crop224"])
def test_a_run_says_what_it_was_under(text, card, data, tmp_path):
    found = compare(
        "pillow_fp32", "opencv_fp32", model=card, data=data, out=tmp_path / "run", limit=3,
        under=text,
    )  # fmt: skip

    assert found.summary.under.text == text
    assert found.summary.samples == 3


def test_boxes_and_masks_are_places_and_classes_are_not():
    assert {one.name for one in TASKS if one.in_pixels} == {"detection", "segmentation"}
