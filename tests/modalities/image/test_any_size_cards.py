"""The example cards of networks of any size: PyTorch's answers at each, and a pair of stacks."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tiny
import torch
import transformers
import yaml
from PIL import Image

import simulator

CARDS = Path(__file__).parents[3] / "docs" / "cards"
SIZES = [(64, 96), (33, 64), (96, 50)]
VIT = transformers.ViTConfig(
    hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
    image_size=64, patch_size=16, num_labels=9, initializer_range=0.5,
    architectures=["ViTForImageClassification"],
)  # fmt: skip
DEEPLAB = transformers.MobileNetV2Config(
    depth_multiplier=0.1, num_labels=3, output_stride=8, initializer_range=0.2,
    architectures=["MobileNetV2ForSemanticSegmentation"],
)  # fmt: skip


@pytest.fixture(scope="module")
def script():
    """The script beside the cards."""
    spec = importlib.util.spec_from_file_location("any_size", CARDS / "any_size.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def images(folder):
    """Noise of several sizes, and a mask of class 1 for each."""
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True)
    for at, size in enumerate(SIZES):
        pixels = np.random.default_rng(at).integers(0, 256, (*size, 3), np.uint8)
        (folder / "images" / f"{at}.png").write_bytes(tiny.encoded(pixels, "png"))
        Image.fromarray(np.ones(size, np.uint8)).save(folder / "masks" / f"{at}.png")
    (folder / "classes.txt").write_text("0\n1\n2\n")
    data = {"schema": 1, "name": "noise", "task": "segmentation", "images": "images",
            "format": "index_masks", "annotations": "masks", "classes": "classes.txt"}  # fmt: skip
    (folder / "data.yaml").write_text(yaml.safe_dump(data))
    return folder


def normalized(image):
    """To -1 to 1, both cards' mean and std."""
    return torch.from_numpy(np.asarray(image, np.float32) / 127.5 - 1).permute(2, 0, 1)[None]


@pytest.mark.parametrize(
    ("card", "config"),
    [("vit_any_size", VIT), pytest.param("deeplab_native", DEEPLAB, marks=pytest.mark.prove)],
)
def test_a_card_of_any_size_gives_the_answers_of_pytorch(tmp_path, cache, script, card, config):
    torch.manual_seed(1)
    made = getattr(transformers, config.architectures[0])(config)
    made.save_pretrained(tmp_path / "made")
    spec = yaml.safe_load((CARDS / f"{card}.yaml").read_text())
    script.export(str(tmp_path / "made"), tmp_path / spec["model"])
    network, step = script.load(str(tmp_path / "made"))
    session = onnxruntime.InferenceSession(tmp_path / spec["model"])
    for rows, columns in ((step, step), (2 * step, 5 * step), (4 * step, 4 * step)):
        given = torch.randn(1, 3, rows, columns)
        wanted = network(given).detach().numpy()
        (found,) = session.run(None, {"pixel_values": given.numpy()})
        np.testing.assert_allclose(found, wanted, atol=1e-4 * abs(wanted).max())
    shutil.copy(CARDS / f"{card}.yaml", tmp_path)
    names = [f"{at}" for at in range(config.num_labels)]
    (tmp_path / spec["labels"]).write_text("\n".join(names) + "\n")
    folder = images(tmp_path / "data")
    is_masks = spec["task"] == "segmentation"
    result = simulator.compare(
        "pillow_fp32", "openvino_fp16", model=tmp_path / f"{card}.yaml",
        data=folder / ("data.yaml" if is_masks else "images"), out=tmp_path / "run",
        overrides=[f"{side}.geometry={{kind: model, rounding: model}}"
                   for side in ("train", "deploy")],
    )  # fmt: skip
    for row in result.frame().to_pylist():
        image = Image.open(folder / "images" / row["sample"])
        if is_masks:  # padded with zeros, eight pixels a logit, and what was padded is cut off
            sides = [-(-side // step) * step for side in image.size[::-1]]
            given = torch.zeros(1, 3, *sides)
            given[..., : image.height, : image.width] = normalized(image)
            masks = torch.nn.functional.interpolate(network(given), size=sides, mode="bilinear")
            labels = masks.argmax(1)[0, : image.height, : image.width]
            wanted = np.bincount(labels.flatten(), minlength=config.num_labels)
            found = np.zeros_like(wanted)
            found[row["train_classes"]] = row["train_class_units"]
            np.testing.assert_allclose(found, wanted, atol=2)
        else:  # the short side to 224, the long one to 448 at most, both down to multiples of 16
            scale = min(224 / min(image.size), 448 / max(image.size))
            sides = [int(round(side * scale, 6)) // step * step for side in image.size]
            logits = network(normalized(image.resize(sides, Image.Resampling.BICUBIC)))
            wanted = torch.softmax(logits, 1)[0]
            assert row["train_prediction"] == int(wanted.argmax())
            assert row["train_score"] == pytest.approx(float(wanted.max()), abs=1e-4)
