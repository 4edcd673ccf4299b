"""Specs of NVIDIA TAO, against TAO's own loaders rebuilt here line by line."""

import numpy as np
import pytest
from importing import TAO, geometry, normalization, photo
from PIL import Image

YOLO = """\
yolov4_config { arch: "cspdarknet_tiny" freeze_blocks: 0 freeze_blocks: 1 }
augmentation_config {
  hue: 0.1
  exposure:1.5
  output_width: 48
  output_height: 32
  output_channel: 3
  image_mean { key: 'b' value: 103.9 }
  image_mean { key: 'g' value: 116.8 }
  image_mean { key: 'r' value: 123.7 }
}
"""
DETECTNET = """\
model_config { arch: "resnet" objective_set { cov { } } }
augmentation_config {
  preprocessing { output_image_width: 1248 output_image_height: 384 output_image_channel: 3 }
}
"""
CLASSIFIER = """\
model_config { arch: "resnet" input_image_size: "3,32,32" resize_interpolation_method: BICUBIC }
train_config { preprocess_mode: "torch" }
eval_config { enable_center_crop: True }
"""
DINO = """\
evaluate: {input_width: 960, input_height: 544}
dataset:
  test_data_sources:
    image_dir: /data
  augmentation: {fixed_padding: True}
model: {num_feature_levels: 4}
"""
SEGFORMER = """\
train: {num_epochs: 300}
dataset:
  segment:
    dataset: SFDataset
    img_size: 224
    augmentation: {with_random_crop: True}
"""


@pytest.mark.parametrize(("rows", "columns"), [(50, 37), (31, 64), (45, 80)])
def test_yolo(imports, rows, columns):
    """Inferencer._load_img: ANTIALIAS, at the top left of black, BGR less its mean."""
    image = photo(rows, columns)
    # a square, as the network of the test has one size of both sides
    text = YOLO.replace("48", "32")

    tensor = imports.tensor(imports.profile(text, "yolo.txt"), image, 32)

    ratio = min(32 / columns, 32 / rows)
    size = round(columns * ratio), round(rows * ratio)
    black = Image.new("RGB", (32, 32))
    black.paste(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS), (0, 0))
    wanted = np.array(black).astype(np.float32).transpose(2, 0, 1)[::-1]
    wanted = wanted - np.float32([103.9, 116.8, 123.7])[:, None, None]
    np.testing.assert_array_equal(tensor, wanted)


def test_a_classifier(imports):
    """load_and_crop_img with 32 pixels more, and the three times 0.224 of preprocess_input."""
    image = photo(50, 80)

    tensor = imports.tensor(imports.profile(CLASSIFIER, "spec.txt"), image, 32)

    ratio = max(64 / 80, 64 / 50)
    resized = Image.fromarray(image).resize((int(80 * ratio), int(50 * ratio)), Image.BICUBIC)
    left, top = (round(side / 2) - round(32 / 2) for side in resized.size)
    x = np.array(resized.crop((left, top, left + 32, top + 32))).astype(np.float32) / 255
    wanted = (x - np.float32([0.485, 0.456, 0.406])) / np.float32(0.224)
    np.testing.assert_allclose(tensor, wanted.transpose(2, 0, 1), atol=1e-6)


@pytest.mark.parametrize(
    ("text", "name", "kind", "mean", "size"),
    [
        (DETECTNET, "a.txt", "lanczos", [0.0] * 3, "height: 384, width: 1248"),
        (YOLO.replace("yolov4", "ssd"), "a.txt", "lanczos", [103.9, 116.8, 123.7],
         "height: 32, width: 48"),
        (DINO, "a.yaml", "bilinear", [123.675, 116.28, 103.53], "height: 544, width: 960"),
        (SEGFORMER, "a.yaml", "bicubic", [127.5] * 3, "height: 224, width: 224"),
        (TAO, "a.yaml", "bilinear", [123.675, 116.28, 103.53], "height: 224, width: 224"),
    ],
)  # fmt: skip
def test_squashed(imports, text, name, kind, mean, size):
    imports.gives({"resize.interpolation": kind}, text, name, size)
    profile = imports.profile(text, name)
    assert geometry(profile) == ("squash",)
    assert normalization(profile)[0] == pytest.approx(mean)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (YOLO.replace("channel: 3", "channel: 1"),
         ":7: augmentation_config.output_channel=1: a profile's images are in color"),
        (DETECTNET.replace("384", "0"), ":3: augmentation_config.preprocessing.output_image_h"),
        (DINO.replace("input_width: 960, ", ""), ":1: evaluate.input_width: not written, so that "),
        (SEGFORMER.replace("SFDataset", "CNDataset"), ":4: dataset.segment.dataset=CNDataset: "),
        ("model_config { num_layers: 18 }", ":1: spec: no key tells that it is of one of these: "),
        (CLASSIFIER.replace("3,32,32", "3,32,64"), ":1: model_config.input_image_size=3,32,64: "),
    ],
)  # fmt: skip
def test_refused(imports, text, problem):
    imports.refuses(problem, text, "spec.yaml" if "dataset:" in text else "spec.txt")


def test_a_spec_of_an_engine_is_known(imports):
    text = "gen_trt_engine:\n  input_width: 960\ndataset: {num_classes: 91}\n"
    imports.refuses(": a spec of NVIDIA TAO without preprocessing; ", text, "spec.yaml")
