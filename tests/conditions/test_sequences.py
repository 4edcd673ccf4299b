"""Perturbation sequences against the libraries that ImageNet-P was made with, and by hand."""

import colorsys
import io
import math

import cv2
import numpy as np
import pytest
from PIL import Image

from simulator.conditions.condition import CONDITIONS, AppliedCondition, Disturbance
from simulator.conditions.image_condition import Window
from simulator.conditions.sequences.sequence import SequenceFrame
from simulator.contract import inspect, rgb_frame
from simulator.contract.recipe import Chain, Context
from simulator.errors import UserError
from simulator.pipeline.runtimes import RuntimePool
from simulator.testing import files

NAMES = [one for one in CONDITIONS.names if issubclass(CONDITIONS[one], SequenceFrame)]
MOVING = {"p_translate", "p_rotate", "p_tilt", "p_scale", "p_zoom_blur"}
WIDTH, HEIGHT = 90, 72
WINDOW = Window(8, 13, 56, 64)


@pytest.fixture(scope="module")
def image():
    return files.picture(HEIGHT, WIDTH)


def shown(whole):
    return np.asarray(whole)[8 : 8 + 56, 13 : 13 + 64]


def frame(name, number, image, seed=0, window=WINDOW):
    return CONDITIONS[name](number).shown(image, window, np.random.default_rng(seed))


def torchvision(image, angle=0, translate=(0, 0), scale=1.0, how=Image.Resampling.BILINEAR):
    """``functional.affine`` of torchvision 0.2, over Pillow's own transform."""
    center = (WIDTH * 0.5 + 0.5, HEIGHT * 0.5 + 0.5)
    angle, scale = math.radians(angle), 1.0 / scale
    matrix = [math.cos(angle), math.sin(angle), 0, -math.sin(angle), math.cos(angle), 0]
    matrix = [scale * one for one in matrix]
    before = [-center[0] - translate[0], -center[1] - translate[1]]
    for row in (0, 3):
        matrix[row + 2] += matrix[row] * before[0] + matrix[row + 1] * before[1]
        matrix[row + 2] += center[row // 3]
    pillow = Image.fromarray(image)
    return shown(pillow.transform(pillow.size, Image.Transform.AFFINE, matrix, how))


def test_the_ten_of_imagenet_p_are_there():
    assert {one: CONDITIONS[one].frames for one in NAMES} == {
        "p_gaussian_noise": 31, "p_shot_noise": 31, "p_motion_blur": 31, "p_zoom_blur": 31,
        "p_snow": 31, "p_brightness": 31, "p_translate": 41, "p_rotate": 31, "p_tilt": 31,
        "p_scale": 31,
    }  # fmt: skip
    assert {one for one in NAMES if CONDITIONS[one].noise} == {"p_gaussian_noise", "p_shot_noise"}


@pytest.mark.parametrize("number", [0, 4, 15, 29])
def test_rotation_and_scale_are_pillows_to_the_bit(image, number):
    turned = torchvision(image, angle=number - 15)
    scaled = torchvision(image, scale=(number * 2.5 + 40) / 100)
    assert np.array_equal(frame("p_rotate", number, image), turned)
    assert np.array_equal(frame("p_scale", number, image), scaled)


@pytest.mark.parametrize("number", [0, 19, 20, 40])
def test_translation_is_pillows_to_the_bit(image, number):
    moved = torchvision(image, translate=(number - 20, 0), how=Image.Resampling.NEAREST)
    assert np.array_equal(frame("p_translate", number, image), moved)


@pytest.mark.parametrize("number", [0, 1, 12])
def test_a_zoom_blur_is_the_running_mean_of_pillows_zooms(image, number):
    total = shown(image).astype(np.float32) / np.float32(255)
    for one in range(1, number + 1):
        total += torchvision(image, scale=1 + 0.004 * one).astype(np.float32) / np.float32(255)
    mean = (total / np.float32(number + 1) * np.float32(255)).astype(np.uint8)
    assert np.array_equal(frame("p_zoom_blur", number, image), mean)


@pytest.mark.parametrize("number", [0, 8, 15, 30])
def test_a_tilt_is_opencvs_within_a_level(image, number):
    """Levels in the original's words; OpenCV 3 rounds places, so the image is smooth here."""
    phi = theta = np.deg2rad(number - 15)
    w, h = WIDTH, HEIGHT
    f = np.sqrt(w**2 + h**2)
    p1 = np.array([[1, 0, -w / 2], [0, 1, -h / 2], [0, 0, 1], [0, 0, 1]])
    rx = np.eye(4)
    rx[1:3, 1:3] = [[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]]
    ry = np.eye(4)
    ry[[0, 0, 2, 2], [0, 2, 0, 2]] = [np.cos(phi), -np.sin(phi), np.sin(phi), np.cos(phi)]
    t = np.eye(4)
    t[2, 3] = f
    p2 = np.array([[f, 0, w / 2, 0], [0, f, h / 2, 0], [0, 0, 1, 0]])
    wanted = shown(cv2.warpPerspective(image, p2 @ t @ rx @ ry @ p1, (w, h)))
    found = frame("p_tilt", number, image)
    assert np.abs(found.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("name", ["p_gaussian_noise", "p_shot_noise"])
def test_noise_begins_with_a_clean_frame(image, name):
    assert np.array_equal(frame(name, 0, image), shown(image))


@pytest.mark.parametrize(
    ("difficulty", "sigma", "photons"), [(1, 0.03, 300), (2, 0.05, 120), (3, 0.08, 60)]
)
def test_noise_has_the_strength_of_the_released_sets(difficulty, sigma, photons):
    """``gaussian_noise``, ``_2`` and ``_3``, and shot noise likewise, of make_imagenet_p.py.

    On middle gray: the deviation of white, and the root of photons * 128 / 255, by photons.
    """
    gray = np.full((200, 200, 3), 128, np.uint8)
    spread = []
    for name in ("p_gaussian_noise", "p_shot_noise"):
        one = CONDITIONS[name].parse(f"5,difficulty={difficulty},crop224")
        louder = f",difficulty={difficulty}" if difficulty > 1 else ""
        assert (one.text, one.place) == (f"{name}:5{louder},crop224", "crop224")
        found = one.shown(gray, Window.of(gray), np.random.default_rng(1)) / 255
        spread.append(found.std())
    assert spread == pytest.approx([sigma, math.sqrt(photons * 128 / 255) / photons], rel=0.02)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("p_shot_noise", "5,difficulty=4", "difficulty=1, difficulty=2, difficulty=3"),
        ("p_shot_noise", "5,difficulty=2,difficulty=2", "FRAME 0 to 30"),
        ("p_shot_noise", "5,original,crop224", "OPTIONS of original, crop224"),
        ("p_rotate", "5,difficulty=2", "OPTIONS of original, crop224$"),
    ],
)
def test_a_difficulty_that_does_not_exist_is_refused(name, parameters, message):
    with pytest.raises(UserError, match=message):
        CONDITIONS[name].parse(parameters)


@pytest.mark.parametrize("number", [0, 14, 15, 30])
def test_brightness_is_added_to_the_value(image, number):
    """Against Python's colorsys, pixel by pixel; a level may be cut off differently."""
    small = image[::9, ::9]
    found = frame("p_brightness", number, small, window=Window.of(small))
    for at in np.ndindex(small.shape[:2]):
        hue, saturation, value = colorsys.rgb_to_hsv(*(small[at] / 255))
        value = min(max(value + (number - 15) * 0.02, 0), 1)
        wanted = 255 * np.array(colorsys.hsv_to_rgb(hue, saturation, value))
        assert np.abs(found[at] - wanted).max() < 1.001


@pytest.mark.parametrize(("number", "dy", "dx"), [(30, 0, 1), (0, 1, 0)])
def test_motion_goes_along_its_angle(number, dy, dx):
    """A point becomes a line of 21 weights; angles are 0 and -120 degrees, after ImageMagick."""
    black = np.zeros((61, 61, 3), np.uint8)
    black[30, 30] = 255
    line = frame("p_motion_blur", number, black, window=Window.of(black))[..., 0]
    rows, columns = np.nonzero(line)
    if number == 30:
        weights = np.exp(-(np.arange(21) ** 2) / 18)
        wanted = np.rint(255 * weights / weights.sum())
        lit = line[30, 30 : 30 + 21] if line[30, 31] else line[30, 30 - 20 : 31][::-1]
        assert lit.tolist() == wanted.tolist()
        assert set(rows) == {30}
    else:
        slope = np.polyfit(rows - 30, columns - 30, 1)[0]
        assert abs(slope) == pytest.approx(1 / math.tan(math.radians(60)), abs=0.1)


def test_the_flakes_of_a_sequence_are_the_same_and_turn(image):
    """All frames draw what the sample draws for the sequence: seen at the steps themselves."""
    black = np.zeros((64, 64, 3), np.uint8)
    context = Context("a.jpg", 0, 0)
    frames = []
    with RuntimePool() as runtimes:
        for text in ("0", "1", "2", "30"):
            step = Disturbance(CONDITIONS["p_snow"].parse(text), 0).open(runtimes)
            frames.append(step(rgb_frame(black), context).rgb[..., 0].astype(float))
    first, after, _, last = (one - one.min() for one in frames)

    def alike(one, other):
        return np.corrcoef(one.ravel(), other.ravel())[0, 1]

    assert alike(first, after) > 0.8 > alike(first, last)
    assert after.sum() == pytest.approx(first.sum(), rel=0.1)


def test_noise_is_drawn_anew_for_each_frame():
    gray, context = rgb_frame(np.full((32, 32, 3), 128, np.uint8)), Context("a.jpg", 0, 0)
    with RuntimePool() as runtimes:
        one, other = (
            Disturbance(CONDITIONS["p_gaussian_noise"].parse(text), 0).open(runtimes)
            for text in ("1", "2")
        )
        assert not np.array_equal(one(gray, context).rgb, other(gray, context).rgb)
        assert np.array_equal(one(gray, context).rgb, one(gray, context).rgb)


@pytest.mark.parametrize("name", NAMES)
def test_crop224_shows_the_middle_of_the_file_without_loss(name):
    """Resized to 256 by Pillow; frames that leave an image as it is are exactly its crop."""
    picture = files.picture(300, 400)
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "png")
    source = inspect("a.png", out.getvalue())
    still = {"p_brightness": 15, "p_translate": 20, "p_rotate": 15, "p_scale": 24}
    number = still.get(name, 0)
    with RuntimePool() as runtimes:
        step = Disturbance(CONDITIONS[name](number, "crop224"), 0).open(runtimes)
        found = np.asarray(Image.open(io.BytesIO(step(source, Context("a.png", 0, 0)).data)))
    small = Image.fromarray(picture).resize((341, 256), Image.Resampling.BILINEAR)
    crop = np.asarray(small)[16 : 16 + 224, round((341 - 224) / 2) :][:, :224]
    assert found.shape == (224, 224, 3)
    if name in {"p_snow", "p_motion_blur", "p_tilt"}:
        assert not np.array_equal(found, crop)
    else:
        assert np.abs(found.astype(int) - crop).max() <= 1


@pytest.mark.parametrize("name", NAMES)
def test_what_all_frames_share_changes_nothing(name):
    """The file is decoded and resized once for all frames; each gives the same bytes without it."""
    out = io.BytesIO()
    Image.fromarray(files.picture(200, 310)).save(out, "jpeg", quality=90)
    source, context = inspect("a.jpg", out.getvalue()), Context("a.jpg", 0, 0)
    one = CONDITIONS[name](5, "crop224")
    with RuntimePool() as runtimes:
        step = Disturbance(one, 0).open(runtimes)
        prepared = one.preparation().open(runtimes)(source, context)
        assert (prepared.height, prepared.width) == (256, 396)
        assert step(prepared, context).data == step(source, context).data
    chains = [
        AppliedCondition(CONDITIONS[name](at, "crop224")).disturbed(Chain(())) for at in (5, 6)
    ]
    assert chains[0].recipes[0] == chains[1].recipes[0]
    assert CONDITIONS[name](5).preparation() is None


@pytest.mark.parametrize("name", NAMES)
def test_what_moves_is_said(name):
    kind = CONDITIONS[name]
    assert kind(1).moves == (name in MOVING)
    assert kind(1, "crop224").moves


@pytest.mark.parametrize("text", ["", "31", "-1", "1,", "1,crop", "1.0", "0,0"])
def test_a_wrong_frame_is_one_line(text):
    with pytest.raises(UserError, match=r"FRAME 0 to 30 and OPTIONS of original, crop224"):
        CONDITIONS["p_snow"].parse(text)
