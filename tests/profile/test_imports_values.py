"""Imported profiles: values by the upstream tools' own arithmetic, and the tensors they make."""

import math
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
import tiny_tasks
import torch
import yaml
from importing import (
    CHECKER,
    CLIP,
    NAMES,
    RESNET,
    changed,
    checker,
    geometry,
    normalization,
    photo,
    written,
)
from PIL import Image

from simulator.cli import main
from simulator.importers import IMPORTERS, convert, entries

IMAGENET = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
PILLOW_BICUBIC = {"backend": "pillow", "interpolation": "bicubic", "domain": "rgb"}
CONVERTED = ("coreml", "deepstream", "rknn", "tflite")
"""Formats whose check converts a network, up to a minute each; what they extend is checked."""


def test_every_format_has_a_sample_here():
    assert {*NAMES, "triton"} == set(IMPORTERS.names)  # triton needs a folder


@pytest.mark.parametrize("format", [one for one in NAMES if one not in CONVERTED])
def test_what_was_imported_passes_the_check(imports, format, capsys):
    """``simulate profiles import`` and ``check``, as a user types them."""
    made = imports.folder / "made.yaml"
    file = imports.file(*NAMES[format])

    assert main(["profiles", "import", str(file), "--out", str(made)]) == 0
    free = ["--model", str(tiny_tasks.free_card(imports.folder / "card"))]
    card = free if "free" in made.read_text() else []
    assert main(["profiles", "check", str(made), *card]) == 0
    assert "made.yaml" in capsys.readouterr().out


OF_STEPS = {
    "dali": "resize_shorter interp_type crop mean std output_type device name output_layout",
    "albumentations": "max_size interpolation min_height value mean std max_pixel_value "
                      "always_apply mask_value bbox_params additional_targets __version__",
    "detectron2": "META_ARCHITECTURE NAME MIN_SIZE_TEST MAX_SIZE_TEST",
    "mmdeploy": "size keep_ratio pad_to_square pad_val mean std to_rgb input output name tasks",
    "openmmlab": "scale edge backend interpolation crop_size num_classes mean std to_rgb",
    "paddle": "interp keep_ratio target_size is_scale mean std mode draw_threshold arch label_list",
    "torchvision": "Resize.size CenterCrop.size Normalize.mean Normalize.std",
    "tao": "results_dir evaluate dataset img_size random_flip train_dataset",
}  # fmt: skip
"""Keys of the samples that are lists of steps."""


@pytest.mark.parametrize("format", NAMES)
def test_no_key_of_the_document_is_lost(imports, format):
    """Every key of the sample stands in the document that is made of it, in a comment at least."""
    document, name = NAMES[format]
    made = imports.text(document, name)

    if format == "deepstream":
        keys = {line.split("=")[0] for line in document.splitlines() if line[:1].isalpha()}
    elif format in ("ultralytics", "rknn"):
        keys = {line.split(":")[0].strip() for line in document.splitlines() if line[:1] != "-"}
        keys -= {"args", "configs", "models", "subgraphs", "0", "1", "- 1,3,640,640"}
        keys -= {"input_size_list", "batch"} | ({"name"} if format == "rknn" else set())
    elif format == "accuracy_checker":
        keys = {"framework", "model", "adapter", "reader", "use_pillow", "aspect_ratio_scale",
                "size", "interpolation", "mean", "std", "metrics", "name"}  # fmt: skip
    elif format in OF_STEPS:
        keys = set(OF_STEPS[format].split())
    elif format == "openvino":
        assert "where the network itself is taken to begin" in made
        keys = {"mode"}
    elif format == "coreml":
        keys = {"colorSpace", "scale", "bias"}
    elif format == "tflite":
        assert "labels.txt" in made
        keys = {"color_space"}
    elif format == "keras":
        keys = set(document) - {"config"} | set(document["config"])
    else:
        keys = set(document) - {"pretrained_cfg"} | set(document.get("pretrained_cfg", {}))
    assert {key for key in keys if f"{key}=" not in made} == set()


def test_timm_values(imports):
    """transforms_imagenet_eval: floor(224 / 0.875) = 256; ToTensor divides by 255."""
    profile = imports.profile(RESNET, "config.json")

    assert profile.name == "resnet50"
    assert geometry(profile) == ("short_side_crop", "torchvision", 256)
    assert written(profile, "resize") == PILLOW_BICUBIC
    assert normalization(profile) == (*IMAGENET, "unit_divide")


@pytest.mark.parametrize(
    ("size", "fraction", "short_side"),
    [(224, 0.9, 248), (224, 0.95, 235), (240, 0.882, 272), (288, 1.0, 288), (299, 0.875, 341)],
)
def test_timm_rounds_the_short_side_down(imports, size, fraction, short_side):
    """224 / 0.9 = 248.9, 224 / 0.95 = 235.8, 240 / 0.882 = 272.1, 299 / 0.875 = 341.7."""
    document = changed(RESNET, cfg_input_size=[3, size, size], cfg_crop_pct=fraction)

    made = imports.profile(document, "config.json")

    assert made.spec.geometry.short_side == short_side


def test_a_bare_pretrained_cfg_and_squash(imports):
    cfg = RESNET["pretrained_cfg"] | {"crop_mode": "squash", "crop_pct": 1.0}

    assert written(imports.profile(cfg, "cfg.json"), "geometry") == {"kind": "squash"}


def test_timm_says_its_defaults(imports):
    document = changed(
        RESNET, cfg_interpolation=None, cfg_crop_pct=None, cfg_crop_mode=None, cfg_mean=None
    )
    made = imports.text(document, "config.json")

    assert (
        "interpolation: bicubic  # from timm: pretrained_cfg.interpolation is not written" in made
    )
    assert "short_side: 256  # from timm: pretrained_cfg.crop_pct is not written" in made
    assert "mean: [123.675, 116.28, 103.53]" in made


def test_timm_tensor(imports):
    """PIL Resize of the short side, torchvision's CenterCrop, ToTensor, Normalize."""
    image = photo(61, 47)
    document = changed(RESNET, cfg_input_size=[3, 32, 32], cfg_crop_pct=0.9)
    profile = imports.profile(document, "config.json")

    tensor = imports.tensor(profile, image, 32)

    short = math.floor(32 / 0.9)
    long = int(short * 61 / 47)
    resized = np.asarray(Image.fromarray(image).resize((short, long), Image.Resampling.BICUBIC))
    top, left = round((long - 32) / 2), round((short - 32) / 2)
    crop = torch.from_numpy(resized[top : top + 32, left : left + 32].copy()).float().div(255)
    mean, std = (torch.tensor(RESNET["pretrained_cfg"][key]) for key in ("mean", "std"))
    wanted = crop.sub(mean).div(std).numpy()
    np.testing.assert_array_equal(tensor, wanted.transpose(2, 0, 1))


def test_hugging_face_values(imports):
    """(x / 255 - m) / s = (x - 255 m) / (255 s): 0.48145466 * 255 = 122.7709383."""
    wanted = {
        "geometry.kind": "short_side_crop", "geometry.rounding": "floor",
        "geometry.short_side": 224, "resize.interpolation": "bicubic",
        "normalize.mean": [122.7709383, 116.7460125, 104.09373615],
        "normalize.std": [68.5005327, 66.6321579, 70.32316305], "evidence.resize.kind": "assumed",
    }  # fmt: skip
    imports.gives(wanted, CLIP, "preprocessor_config.json")


@pytest.mark.parametrize(
    ("name", "resample", "backend", "interpolation", "antialias", "kind"),
    [
        ("Sam2ImageProcessor", 2, "pytorch", "bilinear", True, "native"),
        ("PPDocLayoutV3ImageProcessor", 3, "pytorch", "bicubic", False, "native"),
        ("CLIPImageProcessorPil", 2, "pillow", "bilinear", None, "native"),
        ("CLIPFeatureExtractor", 1, "pillow", "lanczos", None, "native"),
        ("CLIPImageProcessorFast", 2, "pytorch", "bilinear", True, "native"),
        ("CLIPImageProcessorFast", 0, "pytorch", "nearest_exact", None, "native"),
    ],
)
def test_the_class_says_which_library_resizes(
    imports, name, resample, backend, interpolation, antialias, kind
):
    """PIL's integers: 0 nearest, 1 lanczos, 2 bilinear, 3 bicubic; torchvision: nearest_exact."""
    document = changed(CLIP, image_processor_type=name, resample=resample)
    resize = imports.profile(document, "p.json").spec.resize

    assert (resize.backend, resize.interpolation, resize.antialias) == (
        backend, interpolation, antialias,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("suffix", "change", "arithmetic"),
    [
        ("ImageProcessorFast", {}, "divide"),
        ("ImageProcessorFast", {"do_rescale": False}, "divide"),
        ("ImageProcessorFast", {"do_normalize": False}, "multiply"),
        ("ImageProcessorPil", {"do_rescale": False}, "divide"),
    ],
)
def test_the_order_of_hugging_face(imports, suffix, change, arithmetic):
    """_fuse_mean_std_and_rescale_factor, normalize alone, rescale alone: image * factor."""
    document = changed(CLIP, image_processor_type=f"CLIP{suffix}", resample=2, **change)

    assert imports.profile(document, "p.json").spec.normalize.arithmetic == arithmetic


RT_DETR = {
    "do_convert_annotations": True, "do_normalize": False, "do_pad": False, "do_rescale": True,
    "do_resize": True, "format": "coco_detection", "image_mean": [0.485, 0.456, 0.406],
    "image_processor_type": "RTDetrImageProcessor", "image_std": [0.229, 0.224, 0.225],
    "resample": 2, "rescale_factor": 0.00392156862745098, "size": {"height": 40, "width": 32},
}  # fmt: skip
OLD_VIT = {
    "do_normalize": True, "do_resize": True, "feature_extractor_type": "ViTFeatureExtractor",
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 2, "size": 224,
}  # fmt: skip
SQUASH = {"kind": "squash"}
SCALED = ([0.0] * 3, [255.0] * 3)
CONVNEXT = {"crop_pct": 0.875, "do_center_crop": None, "crop_size": None}


@pytest.mark.parametrize(
    ("document", "kind", "change", "geometry", "numbers", "order"),
    [
        # get_size_dict: one number is both sides for ViT; nothing but do_normalize is written
        (OLD_VIT, None, {}, SQUASH, ([127.5] * 3, [127.5] * 3), "rgb"),
        # ConvNeXt crops below 384 only
        (CLIP, "ConvNext", {**CONVNEXT, "size": {"shortest_edge": 224}},
         {"kind": "short_side_crop", "rounding": "floor", "short_side": 256}, None, "rgb"),
        (CLIP, "ConvNext", {**CONVNEXT, "size": {"shortest_edge": 384}}, SQUASH, None, "rgb"),
        # EfficientNet divides twice: ((x / 127.5 - 1 - 0) / 0.5) / 0.5 = (x - 127.5) / 31.875
        (CLIP, "EfficientNet",
         {"size": {"height": 346, "width": 346}, "do_center_crop": False, "include_top": True,
          "rescale_factor": 1 / 127.5, "rescale_offset": True, "image_mean": [0.0, 0.0, 0.0],
          "image_std": [0.5, 0.5, 0.5]}, SQUASH, ([127.5] * 3, [31.875] * 3), "rgb"),
        # MobileViT flips, and does not normalize
        (CLIP, "MobileViT",
         {"do_flip_channel_order": True, "do_normalize": None, "image_mean": None,
          "image_std": None, "size": {"shortest_edge": 288},
          "crop_size": {"height": 256, "width": 256}},
         {"kind": "short_side_crop", "rounding": "floor", "short_side": 288}, SCALED, "bgr"),
        # plain processors of any name: a squash, divided by 255; do_normalize is false
        *((RT_DETR, name, {"do_pad": None}, SQUASH, SCALED, "rgb")
          for name in ("RTDetr", "Segformer", "NobodyKnows")),
    ],
)  # fmt: skip
def test_processors_of_hugging_face(imports, document, kind, change, geometry, numbers, order):
    named = {"image_processor_type": f"{kind}ImageProcessor"} if kind else {}
    profile = imports.profile(changed(document, **named, **change), "preprocessor_config.json")

    assert written(profile, "geometry") == geometry
    assert profile.spec.color.order == order
    assert numbers is None or normalization(profile) == (*numbers, "unit_divide")
    assert profile.spec.resize.backend == "pillow"
    assert profile.spec.resize.interpolation == {2: "bilinear", 3: "bicubic"}[document["resample"]]


def test_padding_to_a_batch_is_nothing_where_all_have_one_size(imports):
    made = imports.text(changed(RT_DETR, do_pad=True), "preprocessor_config.json")

    assert "do_pad=true: a batch has images of one size here" in made


def test_hugging_face_squash_and_crop_tensor(imports):
    """PIL to 31 x 31 whatever the shape; center_crop starts at (31 - 24) // 2."""
    document = changed(
        CLIP, size={"height": 31, "width": 31}, crop_size={"height": 24, "width": 24}
    )
    image = photo(50, 37)

    tensor = imports.tensor(imports.profile(document, "p.json"), image, 24)

    small = Image.fromarray(image).resize((31, 31), Image.Resampling.BICUBIC)
    cut = np.asarray(small, np.float64)[3:27, 3:27] / 255
    wanted = (cut - CLIP["image_mean"]) / CLIP["image_std"]
    np.testing.assert_allclose(tensor, wanted.transpose(2, 0, 1), atol=1e-5)


def test_the_image_processor_of_a_processor(imports):
    """processor_config.json of Transformers 5 holds the image processor's keys one level down."""
    nested = {"image_processor": CLIP, "processor_class": "CLIPProcessor"}

    assert written(imports.profile(nested, "processor_config.json"), "geometry") == written(
        imports.profile(CLIP, "preprocessor_config.json"), "geometry"
    )
    text = imports.text(
        {**nested, "tokenizer": {"vocab": 3}, "num_image_tokens": 7}, "processor_config.json"
    )
    for said in ("processor_class=CLIPProcessor", 'tokenizer={"vocab": 3}', "num_image_tokens=7"):
        assert f"{said}: of another part of the processor, not of images" in text


def test_hugging_face_tensor(imports):
    """The crop starts at (37 - 32) // 2 = 2 and (35 - 32) // 2 = 1; torchvision's at 2 and 2.

    image_transforms.py: rescale in float64, then float32; normalize in float32.
    """
    image = photo(53, 50)
    sizes = {"size": {"shortest_edge": 35}, "crop_size": {"height": 32, "width": 32}}
    document = changed(CLIP, **sizes)

    tensor = imports.tensor(imports.profile(document, "p.json"), image, 32)

    resized = np.asarray(Image.fromarray(image).resize((35, 37), Image.Resampling.BICUBIC))
    scaled = (resized[2:34, 1:33].astype(np.float64) * CLIP["rescale_factor"]).astype(np.float32)
    mean, std = (np.array(CLIP[key], np.float32) for key in ("image_mean", "image_std"))
    np.testing.assert_array_equal(tensor, ((scaled - mean) / std).transpose(2, 0, 1))


def test_accuracy_checker_values(imports):
    """Two normalizations in a row: (x / 255 - 0.485) / 0.229 = (x - 123.675) / 58.395."""
    profile = imports.profile(CHECKER, "accuracy-check.yml")

    assert profile.name == "resnet_50_pytorch"
    assert written(profile, "decode") == {"backend": "pillow", "exif": "ignore"}
    assert geometry(profile) == ("short_side_crop", "torchvision", 256)
    assert normalization(profile) == (*IMAGENET, "divide")
    assert profile.spec.runtime.backend == "onnxruntime"


def test_accuracy_checker_resizes_and_pads_what_is_normalized(imports):
    """Bilinear weights add to 1, so a resize may come before; (114 - 100) / 2 = 7."""
    steps = [
        "type: normalization, mean: 100, std: 2",
        "type: resize, size: 32, aspect_ratio_scale: fit_to_window",
        "type: padding, size: 32, pad_value: 7",
    ]
    wanted = {"geometry.value": 114, "evidence.resize.kind": "assumed"}
    imports.gives(wanted, checker(steps), "a.yml")


def test_accuracy_checker_tensor_in_opencv(imports):
    """cv2.imread is BGR; means come before the channels are reversed, so they are reversed too."""
    steps = [
        "type: resize, size: 35, aspect_ratio_scale: greater",
        "type: crop, size: 32",
        "type: normalization, mean: [104, 117, 123], std: [1, 2, 4]",
        "type: bgr_to_rgb",
    ]
    image = photo(53, 50)
    profile = imports.profile(checker(steps, reader="opencv_imread"), "a.yml")

    tensor = imports.tensor(profile, image, 32)

    bgr = cv2.resize(image[..., ::-1], (35, int(35 * 53 / 50)), interpolation=cv2.INTER_LINEAR)
    top, left = (bgr.shape[0] - 32) // 2, (35 - 32) // 2
    crop = bgr[top : top + 32, left : left + 32].astype(np.float64)
    wanted = ((crop - [104, 117, 123]) / [1, 2, 4])[..., ::-1]
    np.testing.assert_allclose(tensor, wanted.transpose(2, 0, 1), atol=1e-5)
    assert profile.spec.decode.exif == "apply"
    assert profile.spec.color.order == "rgb"


def test_accuracy_checker_letterbox_tensor(imports):
    """scale_fit_to_window: int(32 / 50 * 37) = 23 columns; center_padding: 4 and 5."""
    steps = [
        "type: resize, size: 32, aspect_ratio_scale: fit_to_window, interpolation: CUBIC",
        "type: padding, size: 32, pad_value: '114,114,114'",
    ]
    image = photo(50, 37)
    profile = imports.profile(checker(steps, reader="opencv_imread"), "a.yml")

    tensor = imports.tensor(profile, image, 32)

    bgr = cv2.resize(image[..., ::-1], (23, 32), interpolation=cv2.INTER_CUBIC)
    wanted = cv2.copyMakeBorder(bgr, 0, 0, 4, 5, cv2.BORDER_CONSTANT, value=(114, 114, 114))
    np.testing.assert_array_equal(tensor, wanted.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("step", "resize"),
    [
        ("size: 32, resize_realization: tf",
         {"backend": "tensorflow", "interpolation": "bilinear", "antialias": False,
          "coordinates": "half_pixel"}),
        ("size: 32, use_tensorflow: true, interpolation: Area",
         {"backend": "tensorflow", "interpolation": "area", "coordinates": "half_pixel"}),
        ("dst_height: 32, dst_width: 32, use_pillow: true, interpolation: ANTIALIAS",
         {"backend": "pillow", "interpolation": "lanczos"}),
        ("size: 32, interpolation: Area", {"backend": "opencv", "interpolation": "area"}),
        ("size: 32", {"backend": "opencv", "interpolation": "bilinear"}),
    ],
)  # fmt: skip
def test_accuracy_checker_resizers(imports, step, resize):
    profile = imports.profile(checker([f"type: resize, {step}"]), "a.yml")

    assert written(profile, "resize") == {**resize, "domain": "rgb"}
    assert written(profile, "geometry") == {"kind": "squash"}


def test_accuracy_checker_boxes_and_inputs(imports):
    """Open Model Zoo's SSD: the default reader, and what is always done with boxes."""
    document = """\
models:
  - name: ssd300
    launchers:
      - framework: dlsdk
        adapter: {type: ssd, threshold: 0.01}
        inputs: [{name: data, type: INPUT, shape: "1,3,300,300"}]
    datasets:
      - name: VOC2007_detection
        preprocessing:
          - {type: resize, size: 300}
          - {type: normalization, mean: "104, 117, 123"}
        postprocessing:
          - type: resize_prediction_boxes
"""
    wanted = {
        "decode.backend": "opencv", "decode.exif": "apply", "color.order": "bgr",
        "normalize.mean": [104.0, 117.0, 123.0], "normalize.std": [1.0] * 3,
        "normalize.arithmetic": "divide",
    }  # fmt: skip
    imports.gives(wanted, document, "a.yml", "shape")


def test_accuracy_checker_table_of_stds_holds_the_means(imports):
    """PRECOMPUTED_STDS['imagenet'] of normalization.py, as it stands there."""
    steps = ["type: resize, size: 32", "type: normalization, mean: imagenet, std: imagenet"]
    normalize = imports.profile(checker(steps), "a.yml").spec.normalize

    assert normalize.mean == normalize.std == [104.00698793, 116.66876762, 122.67891434]


def test_one_of_several_models(imports):
    two = CHECKER + CHECKER.partition("\n")[2].replace("onnx_runtime", "openvino")

    (problem,) = imports.refused(two, "a.yml")
    assert "the file has 2 stacks; give one, or --all" in problem
    assert "--entry 1: resnet-50-pytorch (onnx_runtime)" in problem
    assert "--entry 2: resnet-50-pytorch (openvino)" in problem
    profile = imports.profile(two, "a.yml", entry=2)
    assert profile.spec.runtime.backend == "openvino"
    assert not profile.spec.runtime.model_extra
    assert imports.refused(two, "a.yml", entry=3) == [": entry 3: the file has 2 stacks"]


def test_launchers_and_data_sets_are_stacks_too(imports):
    """Two launchers and two data sets of a model are four stacks, in the order of the file."""
    document = CHECKER.replace(
        "      - framework: onnx_runtime",
        "      - framework: caffe\n      - framework: onnx_runtime",
    )
    document += "      - {name: other, preprocessing: [{type: resize, size: 64}]}\n"
    labels = entries(imports.file(document, "a.yml"))

    assert labels == [
        "resnet-50-pytorch (caffe, imagenet_1000_classes)", "resnet-50-pytorch (caffe, other)",
        "resnet-50-pytorch (onnx_runtime, imagenet_1000_classes)",
        "resnet-50-pytorch (onnx_runtime, other)",
    ]  # fmt: skip
    assert imports.profile(document, "a.yml", entry=4).spec.geometry.kind == "squash"
    caffe = imports.profile(document, "a.yml", entry=1)
    assert caffe.spec.evidence["runtime"].kind == "assumed"
    assert caffe.spec.runtime.backend == "onnxruntime"
    assert "# launchers.1=onnx_runtime: another entry".replace("# ", "#   ") in imports.text(
        document, "a.yml", entry=1
    )


def test_what_comes_after_the_network_is_set_aside(imports):
    after = "        postprocessing: [{type: nms, overlap: 0.5}, {type: resize_prediction_boxes}]\n"
    made = imports.text(CHECKER + after, "a.yml")
    profile = imports.profile(CHECKER + after, "a.yml")

    assert 'postprocessing {"type": "nms", "overlap": 0.5}: after the network' in made
    assert profile.spec.evidence["postprocess"].source.endswith("set aside: nms")


def test_squash_and_crop_tensor(imports):
    """cv2.resize to 31 x 31 whatever the shape; OpenCV's crop starts at (31 - 24) // 2."""
    image = photo(50, 37)
    steps = ["type: resize, size: 31", "type: crop, size: 24"]
    profile = imports.profile(checker(steps, reader="opencv_imread"), "a.yml")

    tensor = imports.tensor(profile, image, 24)

    wanted = cv2.resize(image[..., ::-1], (31, 31), interpolation=cv2.INTER_LINEAR)[3:27, 3:27]
    np.testing.assert_array_equal(tensor, wanted.transpose(2, 0, 1).astype(np.float32))


def test_the_base_fills_in_and_leaves_nothing_of_its_own(imports):
    """A base with NV12 and DALI's options: what the document says is all there is of a section."""
    base = imports.folder / "base.yaml"
    base.write_text(
        "schema: 1\nname: camera\nsummary: test\nextends: nv12_fp32\n"
        "resize: {backend: dali, antialias: true, device: cpu, api: pipeline, domain: yuv}\n"
    )
    made = imports.text(RESNET, "config.json", base=str(base), name="mine")
    profile = imports.profile(RESNET, "config.json", base=str(base), name="mine")

    assert yaml.safe_load(made)["extends"] == str(base)
    assert profile.name == "mine"
    assert written(profile, "color") == {"format": "rgb", "order": "rgb"}
    assert written(profile, "resize") == PILLOW_BICUBIC


def test_the_page_shows_what_is_made(imports):
    page = (Path(__file__).parents[2] / "docs" / "importing.md").read_text()
    source = re.search(r"`(\{.*?\})` this is made", page, re.DOTALL)[1]
    shown = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1]

    made = imports.text(source, "config.json")

    assert [line for line in made.splitlines() if line[:1] != "#"] == shown.splitlines()


def test_the_name_may_be_anything(imports):
    path = imports.file(RESNET, "config.json")
    name = "a: b # c\nd: [e"

    made = convert(path, name=name)

    assert yaml.safe_load(made)["name"] == "a: b # c\\nd: [e"
