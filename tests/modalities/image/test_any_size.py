"""Networks that take images of any size: where pixels go, what runs them, and what is refused."""

import json

import numpy as np
import pytest
import tiny
import tiny_tasks
import yaml
from hypothesis import given
from hypothesis import strategies as st

import simulator
from simulator.conditions.condition import under
from simulator.data.truth import Boxes
from simulator.errors import ModelError, SampleError, UserError
from simulator.experiments.by_size import Sizes, by_size, sizing
from simulator.experiments.common import chosen
from simulator.experiments.session import Session
from simulator.modalities.image.geometry import Geometry
from simulator.model.card import Card
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.tasks.detection.moving import placed

SIZES = [(64, 64), (48, 64), (64, 48), (33, 64), (128, 96), (20, 50), (64, 64), (48, 64)]
"""As networks of 16-pixel cells: 64x64, 48x64, 64x48, 48x64, 64x48, 32x64, 64x64, 48x64."""


def keeping(rounding="dali", **fields):
    detr = {"shortest": 800, "longest": 1333, "multiple_of": 1}
    return Geometry("keep_ratio", 0, 0, rounding, **{**detr, **fields})


def rect(**fields):
    return Geometry("letterbox", 640, 640, "albumentations", **{"multiple_of": 32, **fields})


@pytest.mark.parametrize(
    ("height", "width", "found"),
    [
        # 800 * 640 / 480 = 1066.67: int(), int() of torchvision, and the nearest of mmcv
        (480, 640, {"transformers": (800, 1066), "torchvision": (800, 1066), "dali": (800, 1067)}),
        # 800 * 1000 / 400 = 2000 > 1333, so 1333 * 400 / 1000 = 533.2
        (1000, 400, dict.fromkeys(("transformers", "torchvision", "dali"), (1333, 533))),
        # 1333 * 427 / 1000 = 569.19; Transformers: int(569.191 * 1000 / 427) = 1333
        (427, 1000, dict.fromkeys(("transformers", "torchvision", "dali"), (569, 1333))),
        # 1333 * 333 / 1280 = 346.79: round() of Transformers and mmcv, int() of torchvision
        (1280, 333, {"transformers": (1333, 347), "torchvision": (1333, 346), "dali": (1333, 347)}),
    ],
)
def test_sizes_that_keep_the_ratio(height, width, found):
    """transformers ``get_size_with_aspect_ratio``, torchvision ``Resize(800, max_size=1333)``,
    mmcv ``rescale_size``: min(1333 / long, 800 / short), int(side * scale + 0.5)."""
    assert {name: keeping(name).resized(height, width) for name in found} == found


@pytest.mark.parametrize(
    ("height", "width", "resized", "network", "start"),
    [
        (480, 640, (480, 640), (480, 640), (0, 0)),
        (427, 640, (427, 640), (448, 640), (10, 0)),  # 21 rows: round(10.4) above, 11 below
        (1080, 810, (640, 480), (640, 480), (0, 0)),  # bus.jpg
        (333, 500, (426, 640), (448, 640), (11, 0)),  # 426.24
        (100, 640, (100, 640), (128, 640), (14, 0)),
    ],
)
def test_ultralytics_rectangle(height, width, resized, network, start):
    """LetterBox(640, auto=True, stride=32): round(side * r), padded to a multiple of 32, half of
    it at round(d - 0.1) above and left."""
    found = rect().placement((height, width), rect().resized(height, width))

    assert (found.rows, found.columns) == resized
    assert (found.network_height, found.network_width) == network
    assert (found.top, found.left) == start


@pytest.mark.parametrize(
    ("geometry", "image", "network"),
    [
        (Geometry("native", 0, 0, multiple_of=16), (33, 64), (48, 64)),
        (keeping(multiple_of=32), (480, 640), (800, 1088)),
        (Geometry("native", 0, 0, multiple_of=16, least=64), (33, 70), (64, 80)),
        # 427 x 640 fits into the smallest of three; 640 x 427 only into the square
        (rect(multiple_of=0, sizes=((640, 640), (448, 640), (480, 640))), (427, 640), (448, 640)),
        (rect(multiple_of=0, sizes=((640, 640), (448, 640), (480, 640))), (640, 427), (640, 640)),
        # none holds 640 x 640: at 448 the image is largest
        (rect(multiple_of=0, sizes=((448, 640), (320, 640))), (640, 640), (448, 640)),
    ],
)
def test_the_networks_size(geometry, image, network):
    assert geometry.taken(*geometry.resized(*image)) == network


def test_a_picture_larger_than_the_network_costs_itself():
    with pytest.raises(SampleError, match=r"input of 900x64.*64 a side at most"):
        Geometry("native", 0, 0, multiple_of=4, most=64).taken(900, 64)


@given(st.integers(8, 900), st.integers(8, 900), st.sampled_from(range(5)))
def test_boxes_go_there_and_back(height, width, which):
    """In the network's input lies the image that :meth:`fit` put there, and a box of the image is
    at the same share of it; what surrounds it is the padding."""
    sizes = ((96, 96), (64, 96))
    geometry = [
        Geometry("letterbox", 96, 96, "albumentations", value=7, multiple_of=16),
        Geometry("letterbox", 96, 96, "albumentations", value=7, sizes=sizes),
        keeping(shortest=48, longest=80, value=7, multiple_of=8),
        keeping(shortest=48, longest=80, value=7, multiple_of=0, sizes=sizes),
        Geometry("native", 0, 0, value=7, multiple_of=32),
    ][which]
    rows, columns = geometry.resized(height, width)
    at = geometry.placement((height, width), (rows, columns))
    made = geometry.fit(np.full((rows, columns, 3), 200, np.uint8))
    assert made.shape[:2] == (at.network_height, at.network_width)
    assert (made == 200).sum() == 3 * rows * columns
    assert (made[at.top : at.top + rows, at.left : at.left + columns] == 200).all()
    whole = placed(boxes([[0, 0, width, height]]), at).xywh[0]
    np.testing.assert_allclose(whole, [at.left, at.top, columns, rows], atol=1e-9)


def boxes(rows):
    xywh = np.array(rows, float)
    none = np.zeros(len(xywh), bool)
    return Boxes(xywh, np.zeros(len(xywh), np.int64), none, xywh[:, 2] * xywh[:, 3], none)


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    """Images of six sizes, with a red cell at their corner and a blue one to its right."""
    folder = tmp_path_factory.mktemp("squares")
    (folder / "images").mkdir()
    images, found = [], []
    for at, (height, width) in enumerate(SIZES):
        pixels = tiny_tasks.picture(("red", 0, 0, 16), ("blue", 16, 0, 16), size=(height, width))
        (folder / "images" / f"{at}.png").write_bytes(tiny.encoded(pixels, "png"))
        images.append({"id": at, "file_name": f"{at}.png", "height": height, "width": width})
        for label, left in ((1, 0), (3, 16)):
            box = {"bbox": [left, 0, 16, 16], "area": 256, "iscrowd": 0, "category_id": label}
            found.append({"id": len(found) + 1, "image_id": at, **box})
    names = [{"id": at, "name": name} for at, name in enumerate(tiny.COLORS, 1)]
    document = {"images": images, "annotations": found, "categories": names}
    (folder / "boxes.json").write_text(json.dumps(document))
    data = {"schema": 1, "name": "squares", "task": "detection", "images": "images",
            "format": "coco", "annotations": "boxes.json"}  # fmt: skip
    (folder / "data.yaml").write_text(yaml.safe_dump(data))
    native = {"kind": "native", "multiple_of": 16, "value": 110}
    return tiny_tasks.free_card(folder, native), folder / "data.yaml"


LEFT = "geometry={kind: model, rounding: model}"


def sized(**size):
    return f"geometry.input_size={json.dumps(size)}"


def answers(card, data, profile, *changes):
    """What one stack, of the card's geometry, answers to every image."""
    with Session.open(card, data, None, 0, 1, None, None) as session:
        one = chosen(profile, [LEFT, *changes])
        stack = session.builder.stack("deploy", one, {"train": one, "deploy": one})
        executor = LocalExecutor(session.card.modality, session.builder.runtimes, workers=1)
        opened = executor.open(plan({Arm("one"): stack.chain}))
        items = session.dataset.items
        return [opened.walk(executor.context(item)).answers()[0] for item in items]


@pytest.mark.parametrize(
    ("profile", "changes"),
    [
        ("openvino_fp16", []),
        ("ncnn_fp32", [sized(kind="fixed", sizes=[[128, 96], [64, 64]])]),
        ("ort_int8", ["precision.quantizer.calibration.samples=6"]),
        ("pillow_fp32", ["runtime.batch=3"]),
        ("pillow_fp32", ["runtime.batch={dynamic: 4}"]),
    ],
)
def test_a_runtime_finds_what_was_drawn_in_images_of_six_sizes(squares, cache, profile, changes):
    """Cells of 16 pixels, none of which is resized: every box is where it was drawn."""
    found = [one.prediction for one in answers(*squares, profile, *changes)]

    assert [one.classes.tolist() for one in found] in [[[0, 2]] * 8, [[2, 0]] * 8]
    for one in found:
        corners = one.boxes[np.argsort(one.boxes[:, 0])]
        np.testing.assert_allclose(corners, [[0, 0, 16, 16], [16, 0, 32, 16]], atol=0.02)


def test_a_network_of_one_size_sees_more_padding_than_a_rectangle(squares, tmp_path, cache):
    """48x64 in 64x64 has 8 rows of padding above: no cell is whole any more."""
    left = [f"{side}.{LEFT}" for side in ("train", "deploy")]
    result = simulator.compare(
        "pillow_fp32", "pillow_fp32", model=tiny_tasks.free_card(tmp_path / "card"),
        data=squares[1], overrides=[*left, f"deploy.{sized(kind='fixed', sizes=[[64, 64]])}"],
        out=tmp_path / "run",
    )  # fmt: skip

    rows = result.frame().to_pylist()
    same = {row["sample"] for row in rows if row["train_digest"] == row["deploy_digest"]}
    assert same == {"0.png", "6.png"}
    assert [one.axis for one in result.summary.axes] == ["input_size"]


@pytest.mark.parametrize(
    ("profile", "change", "told"),
    [
        ("ncnn_fp32", LEFT, r"only models of fixed sizes.*write geometry.input_size"),
        ("pillow_fp32", sized(kind="fixed", sizes=[[60, 64]]), "60 is no multiple of 16"),
        ("pillow_fp32", sized(kind="rect"), "kind rect needs multiple_of"),
        ("pillow_fp32", "geometry={kind: squash, rounding: null}", "one size, and the network"),
    ],
)
def test_what_is_refused(squares, cache, profile, change, told):
    with pytest.raises(UserError, match=told):
        answers(*squares, profile, change)


def test_a_squash_and_its_size_are_blamed_together(squares, tmp_path, cache):
    """A squash needs a size, and a size alone pads."""
    size = "input_size: {kind: fixed, sizes: [[64, 64]]}"
    squash = f"deploy.geometry={{kind: squash, rounding: null, {size}}}"
    result = simulator.explain(
        "pillow_fp32", "pillow_fp32", model=squares[0], data=squares[1], out=tmp_path / "run",
        overrides=[f"train.{LEFT}", squash],
    )  # fmt: skip
    assert result.summary.axes == ["geometry+input_size"]


CODE = """
import numpy as np
from PIL import Image

def padded(path, size=None):
    pixels = np.asarray(Image.open(path), np.float32)
    rows, columns = size or [-(-side // 16) * 16 for side in pixels.shape[:2]]
    out = np.full((rows, columns, 3), 110, np.float32)
    out[:pixels.shape[0], :pixels.shape[1]] = pixels
    return (out - 127) / 64

def square(path):
    return padded(path, (128, 128))
"""


def test_code_says_which_size_it_pads_to(squares, tmp_path, cache):
    """Multiples of 16 as the card says; of another size, once a profile says so."""
    (tmp_path / "code.py").write_text(CODE)
    size = sized(kind="fixed", sizes=[[128, 128]])
    asked = {"model": squares[0], "data": squares[1], "out": tmp_path / "run"}
    own = f"train.{LEFT}"
    result = simulator.compare(
        "pillow_fp32", f"{tmp_path}/code.py:padded", overrides=[own], **asked
    )
    assert result.summary.flips.count == 0

    code = f"{tmp_path}/code.py:square"
    with pytest.raises(UserError, match=r"square gives 128x128.* for 0.png.*, 64x64; write"):
        simulator.compare(
            "pillow_fp32", code, overrides=[own], **asked | {"out": tmp_path / "square"}
        )
    fixed = [own, f"deploy.{size}"]
    result = simulator.compare(
        "pillow_fp32", code, overrides=fixed, **asked | {"out": tmp_path / "fixed"}
    )
    assert result.summary.flips.count == 0


@pytest.mark.parametrize(
    ("size", "geometry", "told"),
    [
        ({"height": 64}, None, "both free, or neither"),
        ({"height": 64, "width": 64}, None, "multiple_of, min and max are for a free"),
        ({}, {"kind": "squash"}, "free just where geometry.kind is rect_letterbox"),
        ({}, {"kind": "keep_ratio", "shortest": 8, "multiple_of": 8}, "needs longest"),
        ({"max": 8}, None, "max is at least min"),
    ],
)
def test_cards_that_say_what_cannot_be(tmp_path, size, geometry, told):
    with pytest.raises(ModelError, match=told):
        Card(tiny_tasks.free_card(tmp_path, geometry, **size))


def test_sizes_under_a_condition_on_the_source_are_those_of_the_picture(squares, cache):
    """The input is made of another picture then."""
    with Session.open(*squares, None, 0, 1, None, None) as session:
        one = chosen("pillow_fp32", [LEFT])
        stack = session.builder.stack("train", one, {"train": one, "deploy": one})
    names = (None, "gaussian_blur:3", "gaussian_blur:3,crop224", "jpeg:50")
    found = [sizing([stack], under(name)).of for name in names]
    assert found == [*["train's input"] * 2, *["the picture"] * 2]


@pytest.mark.parametrize("known", [True, False])
def test_flips_are_told_by_the_size_of_the_input(squares, cache, known):
    """Of 32 inputs 4 have 32x64 pixels, 12 have 48x64, 4 have 64x48, 8 have 64x64 and 4 have
    128x96; in each of the last, one of two objects changes.

    Of 4 images that agree, the rule of three allows ln 20 / 4 of what the bounds leave.
    Deviations of ranks from 16.5: -14, -4, 8, 14 and of the changed -2, 14: rho is
    896 / sqrt(2336 * 896).
    """
    with Session.open(*squares, None, 0, 1, None, None) as session:
        one = chosen("pillow_fp32", [LEFT])
        stack = session.builder.stack("train", one, {"train": one, "deploy": one})
        items = [*session.dataset.items]
        many = session.subset([*items, *items, *items, *items])
        sizes = Sizes(sizing([stack]), 32)
        sizes.known[: int(known)] = 64, 64  # the others are read, as where a run goes on
        rows = [{"changed": int(item.name == "4.png"), "units": 2} for item in items * 4]
        found = by_size(many, sizes, range(32), rows)

    assert found.of == "train's input"
    told = [(one.size, one.samples, one.units, one.changed, one.rate) for one in found.classes]
    assert told == [
        ("64×32", 4, 8, 0, 0), ("64×48", 12, 24, 0, 0), ("48×64", 4, 8, 0, 0),
        ("64×64", 8, 16, 0, 0), ("96×128", 4, 8, 4, 0.5),
    ]  # fmt: skip
    assert found.classes[-1].ci95 == pytest.approx([0.5 - np.log(20) / 8, 0.5 + np.log(20) / 8])
    assert found.rho == pytest.approx(0.6193, abs=1e-4) and found.p < 0.001


def test_many_sizes_are_told_in_quarters(squares, cache):
    """1 to 32 pixels; with one answer each the interval is Clopper and Pearson's: of 7 of 7,
    0.025 ** (1 / 7) to 1."""
    with Session.open(*squares, None, 0, 1, None, None) as session:
        sizes = Sizes(sizing([]), 32)
        sizes.known[:] = [(1, width) for width in range(1, 33)]
        rows = [{"changed": int(at > 24), "units": 1} for at in range(32)]
        found = by_size(session, sizes, range(32), rows)

    names = [f"to {most} pixels" for most in (9, 17, 25, 32)]
    counts = dict(zip(names, (9, 8, 8, 7), strict=True))
    assert {one.size: one.samples for one in found.classes} == counts
    last = found.classes[-1]
    assert (found.of, last.ci95) == ("the picture", pytest.approx([0.025 ** (1 / 7), 1]))
