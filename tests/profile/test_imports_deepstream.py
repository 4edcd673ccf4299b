"""DeepStream: what a Gst-nvinfer configuration becomes, by NVIDIA's own arithmetic."""

import cv2
import numpy as np
import pytest
from detection_cards import BOXES, settings, whole
from importing import DEEPSTREAM, photo, written

from simulator.tasks.detection.decode import decode

NMS = "postprocess.nms."
PROPERTY, _, ATTRIBUTES = DEEPSTREAM.partition("\n[class-attrs-all]\n")


def clustered(mode, *attributes, **more):
    """The sample with a cluster-mode, keys of [class-attrs-all], and other groups."""
    lines = [f"[class-attrs-all]\n{chr(10).join(attributes)}"]
    lines += [f"[{name.replace('_', '-')}]\n{body}" for name, body in more.items()]
    return PROPERTY.replace("cluster-mode=2", f"cluster-mode={mode}") + "\n" + "\n".join(lines)


def test_deepstream_values(imports):
    """y = net-scale-factor * (x - offsets): std is 1 / 0.0039215697906911373."""
    profile = imports.profile(DEEPSTREAM, "config_infer.txt")
    spec = profile.spec

    assert written(profile, "geometry") == {
        "kind": "letterbox", "rounding": "floor", "position": "center", "value": 0,
    }  # fmt: skip
    assert spec.resize.interpolation == "nearest"
    assert spec.color.order == "rgb"
    assert spec.normalize.mean == [0, 0, 0]
    assert spec.normalize.arithmetic == "multiply"
    assert spec.normalize.std == pytest.approx([254.999924360331] * 3, rel=1e-14)
    assert (spec.color.format, spec.runtime.backend) == ("nv12", "onnxruntime")
    assert written(profile, "precision") == {
        "storage": "fp16", "compute": "fp32", "cast": {"backend": "onnxconverter"},
    }  # fmt: skip
    nms = spec.postprocess.nms
    assert (nms.kind, nms.iou_threshold, nms.score_threshold) == ("greedy", 0.45, 0.25)
    assert (nms.class_aware, nms.top_k_after, nms.class_top_k_after) == (True, "all", "all")
    assert {spec.evidence[s].kind for s in ("color", "resize")} == {"assumed"}
    assert spec.evidence["postprocess"].kind == "emulated"


def test_deepstream_classifier(imports):
    """ImageNet's offsets, BGR, bilinear on a GPU's cubic; no padding, no boxes."""
    text = """\
[property]
net-scale-factor=0.01735207357279195
offsets=103.53;116.28;123.675;
model-color-format=1
network-mode=0
network-type=1
scaling-compute-hw=1
scaling-filter=2
classifier-threshold=0.51
symmetric-padding=1
"""
    wanted = {
        "geometry.kind": "squash", "precision.storage": "fp32", "precision.compute": "fp32",
        "resize.interpolation": "bicubic", "color.order": "bgr", f"{NMS}kind": "model",
        "normalize.mean": [103.53, 116.28, 123.675],
        "normalize.std": pytest.approx([57.63] * 3, rel=1e-6),
    }  # fmt: skip
    imports.gives(wanted, text, "c.txt", "#   classifier-threshold=0.51: hides answers below it")


def test_deepstream_letterbox_tensor(imports):
    """get_converted_buffer: 32 * 37 / 50 = 23.7 columns, cut to 23; (32 - 23) / 2 = 4, black."""
    image = photo(50, 37)
    text = DEEPSTREAM.replace("network-mode=2", "network-mode=0\nscaling-filter=1")
    profile = imports.profile(text, "c.txt", base="pillow_fp32")

    tensor = imports.tensor(profile, image, 32)

    inside = cv2.resize(image, (23, 32), interpolation=cv2.INTER_LINEAR) * 0.0039215697906911373
    wanted = np.zeros((32, 32, 3))
    wanted[:, 4:27] = inside
    np.testing.assert_allclose(tensor, wanted.transpose(2, 0, 1), atol=1e-6)


def test_deepstream_keeps_the_color_and_the_runtime_of_its_base(imports):
    profile = imports.profile(DEEPSTREAM, "c.txt", base="tensorrt_fp16")

    assert (profile.spec.color.format, profile.spec.runtime.backend) == ("rgb", "tensorrt")
    assert profile.spec.precision.compute == "fp16"
    assert "rgb is tensorrt_fp16's" in profile.spec.evidence["color"].source


def yaml_form(text):
    """A GKeyFile as NVIDIA's YAML: [group] as group:, key=value as key: value."""
    lines = []
    for line in text.splitlines():
        if line.startswith("["):
            lines.append(f"{line[1:-1]}:")
        elif "=" in line and not line.startswith("#"):
            lines.append("  {}: {}".format(*line.split("=", 1)))
    return "\n".join(lines)


def test_the_yaml_form_says_the_same(imports):
    """NVIDIA writes each sample twice; only the first line, with the file's name, differs."""
    text = DEEPSTREAM.replace("batch-size=1", "offsets=1;2.5;3\nfilter-out-class-ids=1;2")

    one = imports.text(text, "c.txt", name="n").splitlines()
    other = imports.text(yaml_form(text), "c.yml", name="n").splitlines()

    assert one[1:] == other[1:]


@pytest.mark.parametrize(
    ("mode", "attributes", "nms", "evidence"),
    [
        ("2", ["topk=20", "nms-iou-threshold=0.5"],
         {"kind": "greedy", "iou_threshold": 0.5, "class_top_k_after": 20}, "emulated"),
        ("2", ["post-cluster-threshold=0.4"], {"score_threshold": 0.4}, "emulated"),
        ("4", ["topk=300", "nms-iou-threshold=0.45"],
         {"kind": "none", "class_top_k_after": 300}, "emulated"),
        ("0", ["topk=20", "eps=0.2"], {"kind": "none", "class_top_k_after": "model"}, "emulated"),
        ("0", ["group-threshold=1"], {"kind": "model", "score_threshold": 0.2}, "assumed"),
        ("1", ["topk=20"], {"kind": "none", "class_top_k_after": 20}, "emulated"),
        ("1", ["minBoxes=3", "eps=0.7"], {"kind": "model", "score_threshold": 0.2}, "assumed"),
        ("3", ["nms-iou-threshold=0.5"], {"kind": "greedy", "iou_threshold": 0.5}, "emulated"),
        ("3", ["minBoxes=3"], {"kind": "greedy", "iou_threshold": 0.3}, "assumed"),
        ("2", ["pre-cluster-threshold=0.3", "threshold=0.7"], {"score_threshold": 0.7}, "emulated"),
        ("2", ["detected-min-w=20", "detected-max-h=300"],
         {"min_width": 20, "min_height": 0, "max_width": "none", "max_height": 300}, "emulated"),
        ("2", ["roi-top-offset=20"], {"kind": "greedy"}, "assumed"),
        ("2", ["detected-min-w=0", "bg-color=0;0;0;1"], {"kind": "greedy"}, "emulated"),
    ],
)  # fmt: skip
def test_clustering(imports, mode, attributes, nms, evidence):
    """DEFAULT_GROUP_THRESHOLD and DEFAULT_MIN_BOXES are 0: then nothing is joined."""
    wanted = {f"{NMS}{key}": value for key, value in nms.items()}
    wanted["evidence.postprocess.kind"] = evidence
    said = [f"{line.split('=')[0]}=" for line in attributes]
    imports.gives(wanted, clustered(mode, *attributes), "c.txt", *said)


def test_what_is_not_followed_is_named(imports):
    text = clustered("1", "minBoxes=3", class_attrs_0="roi-top-offset=4\ntopk=-1")
    text = text.replace("gpu-id=0", "filter-out-class-ids=1;2")
    source = imports.profile(text, "c.txt").spec.evidence["postprocess"].source

    assert "cluster-mode=1 (DBSCAN) with minBoxes, the model card's NMS runs" in source
    assert "filter-out-class-ids" in source
    assert "[class-attrs-0] roi-top-offset" in source


PER_CLASS = """\
[property]
gpu-id=0
net-scale-factor=0.0039215697906911373
input-dims=3;544;960;0
batch-size=1
process-mode=1
model-color-format=0
network-mode=2
num-detected-classes=4
cluster-mode=2

[class-attrs-all]
topk=20
nms-iou-threshold=0.5
pre-cluster-threshold=0.2

[class-attrs-0]
topk=20
nms-iou-threshold=0.5
pre-cluster-threshold=0.4

[class-attrs-2]
detected-min-w=30
detected-max-h=544
post-cluster-threshold=0.25
nms-iou-threshold=0.3
topk=5

[class-attrs-3]
pre-cluster-threshold=1.1
border-color=0;1;0;1
"""
"""As NVIDIA's for TrafficCamNet, which has [class-attrs-0]; 1.1 is how others drop a class."""


def test_thresholds_of_single_classes(imports):
    """What [class-attrs-N] writes is put in the place of what [class-attrs-all] has."""
    profile = imports.profile(PER_CLASS, "c.txt")
    nms = profile.spec.postprocess.nms

    assert (nms.score_threshold, nms.iou_threshold, nms.class_top_k_after) == (0.2, 0.5, 20)
    own = {number: one.model_dump(exclude_none=True) for number, one in nms.classes.items()}
    assert own == {
        "0": {"score_threshold": 0.4},
        "2": {"score_threshold": 0.25, "iou_threshold": 0.3, "class_top_k_after": 5,
              "min_width": 30, "max_height": 544},
        "3": {"score_threshold": 1},
    }  # fmt: skip
    assert profile.spec.evidence["postprocess"].kind == "emulated"
    text = imports.text(PER_CLASS, "c.txt")
    assert "[class-attrs-3] pre-cluster-threshold=1.1" in text.partition("classes: {0:")[2]
    assert "#   [class-attrs-0] topk=20: as for all classes" in text


def test_thresholds_of_single_classes_reach_the_answers(imports):
    """Boxes of class 0 above 0.2 and below 0.4 are gone, and nothing else is."""
    asked = imports.profile(PER_CLASS, "c.txt").spec.postprocess
    raw = np.array([[[0, 0, 9, 9], [40, 0, 60, 30], [0, 40, 9, 60]]], np.float32)
    scores = np.array([[[0.3, 0.3, 0, 0.99], [0.5, 0, 0.3, 0], [0, 0, 0.3, 0]]], np.float32)
    outputs = {"boxes": raw, "scores": scores}

    given = settings(BOXES, (544, 960), asked.model_dump(), classes=4)
    some = decode(outputs, given, whole(544, 960), 4)

    assert some.classes.tolist() == [0, 1]
    assert some.scores.tolist() == pytest.approx([0.5, 0.3])


def test_a_class_that_joins_boxes_is_named(imports):
    """Its groupRectangles is not followed; a threshold of its own is."""
    text = clustered("0", class_attrs_1="group-threshold=1\npre-cluster-threshold=0.3\neps=0.5")
    spec = imports.profile(text, "c.txt").spec

    assert spec.postprocess.nms.kind == "model"
    assert spec.postprocess.nms.classes["1"].score_threshold == 0.3
    assert "cluster-mode=0 (groupRectangles) with group-threshold" in (
        spec.evidence["postprocess"].source
    )


@pytest.mark.parametrize(
    ("group", "problem"),
    [
        ("[class-attrs-4]\ntopk=2\n", ":9: num-detected-classes: 4 classes, but there is a group "
         "[class-attrs-4]; Gst-nvinfer stops at it"),
        ("[class-attrs-x]\ntopk=2\n", ": [class-attrs-x]: a class number expected"),
        ("[class-attrs-1]\npre-cluster-threshold=-1\n", ":33: [class-attrs-1] "
         "pre-cluster-threshold=-1: a number from 0 expected"),
        ("[class-attrs-1]\ntopkk=2\n", ":33: [class-attrs-1] topkk=2: unknown key, which may "
         "change a pixel; did you mean topk?"),
    ],
)  # fmt: skip
def test_groups_of_classes_that_are_refused(imports, group, problem):
    assert imports.refused(PER_CLASS + group, "c.txt") == [problem]


def test_groups_of_every_class_that_agree_are_those_of_all(imports):
    text = clustered("2", "topk=9", class_attrs_0="topk=5", class_attrs_1="topk=5")
    profile = imports.profile(text.replace("classes=80", "classes=2"), "c.txt")

    assert profile.spec.postprocess.nms.class_top_k_after == 5
    assert profile.spec.evidence["postprocess"].kind == "emulated"


@pytest.mark.parametrize(
    ("old", "new", "wanted", "said"),
    [
        # DEFAULT_PRE_CLUSTER_THRESHOLD 0.2, DEFAULT_NMS_IOU_THRESHOLD 0.3, DEFAULT_TOP_K -1
        (f"\n[class-attrs-all]\n{ATTRIBUTES}", "",
         {f"{NMS}score_threshold": 0.2, f"{NMS}iou_threshold": 0.3}, []),
        # g_key_file_get_integer: strtol, and what follows may be a space
        ("network-type=0", "network-type=1 # no boxes", {f"{NMS}kind": "model"}, []),
        # g_key_file_get_integer_list: each number ends at its first space; found in public files
        ("infer-dims=3;640;640", "infer-dims=3;544;960      # depends on your model input size",
         {}, ["height: 544, width: 960"]),
        # TensorRT's table cannot be read: the quantizer of ort_int8 runs, and that is assumed
        ("network-mode=2", "network-mode=1\nint8-calib-file=cal.bin",
         {"precision.compute": "int8", "precision.quantizer.backend": "onnxruntime",
          "evidence.precision.kind": "assumed"},
         ["int8-calib-file=cal.bin: TensorRT's calibration"]),
        # UFF, Caffe, TLT and engine keys name the network, which is the card's; dims stand there
        ("infer-dims=3;640;640", "uff-input-dims=3;544;960;0\nuff-input-order=0\ntlt-model-key=k\n"
         "proto-file=p\nenable-dla=1", {},
         ["#   input: height: 544, width: 960 (from config_infer: uff-input-dims"]),
        # a segmenter: masks are mapped back as boxes are; groups about boxes have no effect
        ("network-type=0", "network-type=2\nsegmentation-threshold=0.5",
         {f"{NMS}kind": "model", "postprocess.unletterbox.scale": "resized"},
         ["[class-attrs-all] topk=-1: about boxes, but this is not a detector",
          "task: segmentation"]),
        ("gpu-id=0", "my-note=1", {},
         ["my-note=1: Gst-nvinfer does not know this key and passes it over"]),
        ("topk=-1\n", "topk=-1\n[tests]\nlong=1\n", {},
         ["[tests] long=1: Gst-nvinfer has no such group"]),
    ],
)  # fmt: skip
def test_what_a_key_becomes(imports, old, new, wanted, said):
    assert old in DEEPSTREAM
    imports.gives(wanted, DEEPSTREAM.replace(old, new), "config_infer.txt", *said)


def test_keys_without_a_group_are_those_of_property(imports):
    """TAO Toolkit's nvinfer_config.txt: lines to paste into [property]."""
    text = """\
net-scale-factor=0.00392156862745098
offsets=0.0;0.0;0.0
infer-dims=3;256;256
tlt-model-key=data
network-type=0
num-detected-classes=2
uff-input-order=0
output-blob-names=output_cov/Sigmoid;output_bbox/BiasAdd
uff-input-blob-name=input_1
model-color-format=0
maintain-aspect-ratio=0
"""
    wanted = {"geometry.kind": "squash", "normalize.std": pytest.approx([255] * 3, rel=1e-12)}
    imports.gives(wanted, text, "nvinfer_config.txt", "no [property]")
