"""Transforms of PyTorch users: scripts, reprs, saved files and live objects."""

import enum
import json

import cv2
import numpy as np
import pytest
import torch
from importing import ALBUMENTATIONS, SCRIPT, geometry, normalization, photo, written
from PIL import Image

from simulator.errors import ProfileError, UserError
from simulator.importers import convert_object, entries
from simulator.profile.document import read_value

SIZES = [(50, 37), (31, 64), (45, 80)]
IMAGENET = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]

TIMM = """\
Compose(
    Resize(size=235, interpolation=bicubic, max_size=None, antialias=True)
    CenterCrop(size=(224, 224))
    MaybeToTensor()
    Normalize(mean=tensor([0.4850, 0.4560, 0.4060]), std=tensor([0.2290, 0.2240, 0.2250]))
)
"""
"""As ``timm.create_model(...)``'s ``create_transform`` prints itself in its documentation."""

PRESET = """\
ImageClassification(
    crop_size=[224]
    resize_size=[232]
    mean=[0.485, 0.456, 0.406]
    std=[0.229, 0.224, 0.225]
    interpolation=InterpolationMode.BILINEAR
)
"""
"""As ``ResNet50_Weights.IMAGENET1K_V2.transforms()`` prints itself in torchvision's notebooks."""

V2 = """\
Compose(
      ToImage()
      Resize(size=[256], interpolation=InterpolationMode.BILINEAR, antialias=True)
      CenterCrop(size=(224, 224))
      ToDtype(scale=True)
      Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225], inplace=False)
)
"""


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_what_pytorch_users_write(imports, rows, columns):
    """Resize and CenterCrop on a PIL image, ToTensor and Normalize, step by step, in torch."""
    image = photo(rows, columns)
    text = SCRIPT.replace("256)", "36)").replace("224)", "32)")

    tensor = imports.tensor(imports.profile(text, "eval.py"), image, 32)

    short, long = min(rows, columns), max(rows, columns)
    other = int(36 * long / short)
    w, h = (36, other) if columns <= rows else (other, 36)
    resized = np.asarray(Image.fromarray(image).resize((w, h), Image.Resampling.BILINEAR))
    y, x = round((h - 32) / 2.0), round((w - 32) / 2.0)
    unit = (
        torch.from_numpy(resized[y : y + 32, x : x + 32].copy()).permute(2, 0, 1).float().div(255)
    )
    mean, std = (
        torch.tensor(v)[:, None, None] for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    )
    np.testing.assert_array_equal(tensor, unit.sub(mean).div(std).numpy())


@pytest.mark.parametrize(
    ("text", "backend", "interpolation", "short_side"),
    [(TIMM, "pillow", "bicubic", 235), (PRESET, "pillow", "bilinear", 232),
     (V2, "pytorch", "bilinear", 256)],
)  # fmt: skip
def test_reprs(imports, text, backend, interpolation, short_side):
    profile = imports.profile(text, "transform.txt")

    assert geometry(profile) == ("short_side_crop", "torchvision", short_side)
    assert (profile.spec.resize.backend, profile.spec.resize.interpolation) == (
        backend,
        interpolation,
    )
    np.testing.assert_allclose(normalization(profile)[:2], IMAGENET, rtol=1e-7)


def test_a_tensor_is_resized_by_torch(imports):
    """transforms.v2 keeps bytes; the first version resizes floats, which the profile rounds."""
    assert written(imports.profile(V2, "v2.txt"), "resize")["arithmetic"] == "uint8"
    steps = "T.ToTensor(), T.Resize((32, 32), antialias=True)"
    text = f"import torchvision.transforms as T\nt = T.Compose([{steps}])\n"
    profile = imports.profile(text, "eval.py")

    assert written(profile, "resize")["arithmetic"] == "float32"
    assert profile.spec.evidence["resize"].kind == "assumed"


def test_compositions_of_training_are_left_out(imports):
    train = "train = T.Compose([T.RandomResizedCrop(224), T.ToTensor()])\n"
    both = SCRIPT.replace("MEAN =", f"{train}MEAN =")

    assert entries(imports.file(both, "eval.py")) == ["transform, line 7"]
    twice = entries(imports.file(both + both, "eval.py"))
    assert twice == ["transform, line 7", "transform, line 20"]


def test_a_default_is_an_assumption(imports):
    profile = imports.profile(SCRIPT.replace("Resize(256)", "Resize(size)"), "e.py")

    assert geometry(profile) == ("short_side_crop", "torchvision", 256)
    assert profile.spec.evidence["geometry"].kind == "assumed"


def test_a_step_of_the_script_s_own(imports):
    own = SCRIPT.replace("def pre", "class CenterCrop:\n    pass\ndef pre").replace(
        "T.Cent", "Cent"
    )
    imports.refuses(":10: this file's CenterCrop: a profile cannot express", own, "e.py")


def test_steps_that_are_appended(imports):
    text = (
        "from torchvision import transforms\nsteps = [transforms.Resize(40)]\n"
        "steps.append(transforms.CenterCrop(32))\nsteps += [transforms.ToTensor()]\n"
        "evaluate = transforms.Compose(steps)\n"
    )
    assert geometry(imports.profile(text, "e.py")) == ("short_side_crop", "torchvision", 40)
    changed = text.replace("steps +=", "if big:\n    steps.pop()\nsteps +=")
    imports.refuses(":1: no Compose([...])", changed, "e.py")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Resize(256)", "Resize(side)", ":7: Resize.size=side: a number of pixels expected"),
        ("Resize(256)", "Resize(256, max_size=500)", ":8: CenterCrop.size=224: a profile crops"),
        ("Resize(256)", "Resize(256, 9)", ":7: Resize.interpolation=9: one of nearest"),
        ("CenterCrop(224)", "CenterCrop(288)", ":8: CenterCrop.size=288: larger than the short"),
        ("CenterCrop(224)", "Pad(4)", ":8: Pad: a profile cannot express this step"),
        ("CenterCrop(224)", "Lambda(lambda x: x)", ":8: Lambda: a profile cannot express"),
        ("MEAN, STD)", "MEAN, (0, 1, 1))", ":10: Normalize.std=[0, 1, 1]: numbers above 0"),
        ("MEAN, STD)", "MEAN, STD, True, 1)", ":10: Normalize.argument 4=1: unknown key"),
        ("        T.CenterCrop(224),\n", "", ":7: Resize.size=256: the size of the network's"),
        ("T.Compose", "compose", ":1: no Compose([...]) whose steps are written in it"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused(imports, old, new, problem):
    imports.refuses(problem, SCRIPT.replace(old, new), "eval.py")


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_albumentations(imports, rows, columns):
    """LongestMaxSize, PadIfNeeded and Normalize of 1.3, step by step."""
    image = photo(rows, columns)
    text = json.dumps(ALBUMENTATIONS).replace("512", "32")

    tensor = imports.tensor(imports.profile(text, "transform.json"), image, 32)

    scale = 32 / max(rows, columns)
    w, h = round(columns * scale), round(rows * scale)
    resized = cv2.resize(image, (w, h), interpolation=cv2.INTER_LINEAR)
    top, left = int((32 - h) / 2.0), int((32 - w) / 2.0)
    whole = cv2.copyMakeBorder(resized, top, 32 - h - top, left, 32 - w - left,
                               cv2.BORDER_CONSTANT, value=(0, 0, 0)).astype(np.float32)  # fmt: skip
    mean = np.array([0.485, 0.456, 0.406], np.float32) * np.float32(255)
    std = np.array([0.229, 0.224, 0.225], np.float32) * np.float32(255)
    wanted = (whole - mean) * np.reciprocal(std, dtype=np.float32)
    np.testing.assert_allclose(tensor, wanted.transpose(2, 0, 1), atol=1e-6)


def test_albumentations_in_a_script_and_a_repr(imports):
    script = (
        "import albumentations as A\nimport cv2\nfrom albumentations.pytorch import ToTensorV2\n"
        "val = A.Compose([A.SmallestMaxSize(256, interpolation=cv2.INTER_AREA),\n"
        "    A.CenterCrop(224, 224), A.Normalize(), ToTensorV2()])\n"
    )
    profile = imports.profile(script, "data.py")
    assert geometry(profile) == ("short_side_crop", "albumentations", 256)
    assert profile.spec.resize.interpolation == "area"
    text = (
        "Compose([\n  Resize(always_apply=False, p=1, height=32, width=48, interpolation=2),\n"
        "  Normalize(always_apply=False, p=1.0, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), "
        "max_pixel_value=255.0),\n], p=1.0, bbox_params=None, additional_targets={})\n"
    )
    profile = imports.profile(text, "transform.txt")
    assert (geometry(profile), profile.spec.resize.interpolation) == (("squash",), "bicubic")
    assert normalization(profile)[:2] == ([127.5] * 3, [127.5] * 3)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"border_mode": 0', '"border_mode": 4', ": PadIfNeeded.border_mode=4: a profile cannot"),
        ('"border_mode": 0, ', "", ": PadIfNeeded.border_mode: not written; its default depends"),
        ('"p": 1,', '"p": 0.5,', ": LongestMaxSize.p=0.5: applied to some images only"),
        ("[0, 0, 0]", "[1, 2, 3]", ": PadIfNeeded.min_height=512: pads with 1, 2, 3 on 0-255"),
        ('"min_width": 512', '"min_width": 640', ": PadIfNeeded.min_height=512: a profile pads"),
    ],
)  # fmt: skip
def test_albumentations_refused(imports, old, new, problem):
    text = json.dumps(ALBUMENTATIONS).replace(old, new)
    assert text != json.dumps(ALBUMENTATIONS)
    imports.refuses(f":1{problem}", text, "transform.json")


class InterpolationMode(enum.Enum):
    """torchvision/transforms/functional.py."""

    BICUBIC = "bicubic"


def live(name, **fields):
    """An object of a class of this name with these fields, as the library's own has them."""
    made = type(name, (), {"__module__": "torchvision.transforms.transforms"})()
    made.__dict__.update(fields)
    return made


def _profile_of(transform, **options):
    return read_value(convert_object(transform, **options))


def test_a_live_composition():
    """Fields as torchvision's ``__init__`` sets them; timm gives Normalize float32 tensors."""
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    steps = [
        live(
            "Resize",
            size=256,
            max_size=None,
            interpolation=InterpolationMode.BICUBIC,
            antialias=True,
        ),
        live("CenterCrop", size=(224, 224)),
        live("ToTensor"),
        live("Normalize", mean=mean, std=std, inplace=False),
    ]
    made = _profile_of(live("Compose", transforms=steps), name="mine")

    assert made["name"] == "mine"
    assert made["geometry"] == {
        "kind": "short_side_crop",
        "rounding": "torchvision",
        "short_side": 256,
    }
    assert made["resize"]["interpolation"] == "bicubic"
    assert (made["normalize"]["mean"], made["normalize"]["std"]) == IMAGENET


def test_a_live_transform_of_timm_or_albumentations():
    config = {"input_size": (3, 224, 224), "interpolation": "bicubic", "crop_pct": 0.95,
              "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "crop_mode": "center"}  # fmt: skip
    made = [_profile_of(config), _profile_of(live("VisionTransformer", pretrained_cfg=config))]
    assert made[0] == made[1]
    assert made[0]["geometry"]["short_side"] == 235  # floor(224 / 0.95)
    saved = type("Compose", (), {"__module__": "albumentations.core.composition",
                                 "to_dict": lambda self: ALBUMENTATIONS})()  # fmt: skip
    assert _profile_of(saved)["geometry"]["kind"] == "letterbox"


def test_a_live_object_of_another_kind():
    with pytest.raises(UserError, match=r"builtins\.int: a transform of torchvision"):
        convert_object(3)
    flip = live(
        "Compose", transforms=[live("Resize", size=(8, 8)), live("RandomHorizontalFlip", p=0.5)]
    )
    with pytest.raises(ProfileError, match=r"^Compose:3: RandomHorizontalFlip"):
        convert_object(flip)
