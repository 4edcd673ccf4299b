"""What a profile cannot say is refused, each with its place; nothing is dropped or crashes."""

import contextlib
import json
import string
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import CHECKER, CLIP, DEEPSTREAM, RESNET, RKNN, YOLO, changed, checker
from network_files import CONVERTER

from simulator.errors import UserError
from simulator.importers import IMPORTERS, convert


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"cfg_crop_pct": "big"}, ": pretrained_cfg.crop_pct=big: a number expected"),
        ({"cfg_crop_pct": -1}, ": pretrained_cfg.crop_pct=-1: a number above 0"),
        ({"cfg_crop_pct": 1.1}, ": pretrained_cfg.crop_pct=1.1: the short side becomes 203"),
        ({"cfg_crop_pct": 1e-9}, ": pretrained_cfg.crop_pct=1e-09: the short side becomes"),
        ({"cfg_crop_mode": "border"}, ": pretrained_cfg.crop_mode=border: timm rounds"),
        ({"cfg_crop_mode": "random"}, ": pretrained_cfg.crop_mode=random: a profile cannot"),
        ({"cfg_crop_mode": "squash"}, ": pretrained_cfg.crop_pct=0.875: with crop_mode squash"),
        ({"cfg_interpolation": "random"}, ": pretrained_cfg.interpolation=random: a profile"),
        ({"cfg_input_size": [3, 224, 288]}, ": pretrained_cfg.input_size=[3, 224, 288]: crop"),
        ({"cfg_input_size": [1, 224, 224]}, ": pretrained_cfg.input_size=[1, 224, 224]: [3"),
        ({"cfg_input_size": None}, ": pretrained_cfg.input_size: not written; it sets"),
        ({"cfg_std": [0.1, 0, 0.1]}, ": pretrained_cfg.std=[0.1, 0, 0.1]: numbers above 0"),
        ({"cfg_mean": [0.5]}, ": pretrained_cfg.mean=[0.5]: three numbers expected"),
        ({"cfg_crop_pctt": 1}, ": pretrained_cfg.crop_pctt=1: unknown key, which may change a "
                               "pixel; did you mean crop_pct?"),
        ({"pretrained_cfg": [1]}, ": pretrained_cfg=[1]: a mapping of keys to values expected"),
        ({"model_args": {"in_chans": 1}}, ': model_args={"in_chans": 1}: its in_chans changes'),
        ({"model_args": {"img_size": 384}}, ': model_args={"img_size": 384}: its img_size changes'),
    ],
)  # fmt: skip
def test_timm(imports, change, problem):
    imports.refuses(problem, changed(RESNET, **change), "config.json")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"image_processor_type": "PerceiverImageProcessor"}, ": image_processor_type=Perceiver"),
        ({"image_processor_type": "CLIPTokenizer"}, ": image_processor_type=CLIPTokenizer: not an"),
        (
            {"image_processor_type": "NewImageProcessor", "size": 256},
            ": size=256: both sides, or the short one? write",
        ),
        (
            {"image_processor_type": "NewImageProcessor", "do_center_crop": None},
            ": do_center_crop: not written",
        ),
        ({"image_processor_type": 3}, ": image_processor_type=3: text expected"),
        ({"image_processor_type": None}, ": image_processor_type: not written; it selects"),
        ({"resample": None}, ": resample: not written; the default depends"),
        ({"resample": 9}, ": resample=9: a profile cannot express this"),
        ({"resample": True}, ": resample=true: one of 0, 1, 2, 3, 4, 5 expected"),
        (
            {"image_processor_type": "CLIPImageProcessorFast", "resample": 1},
            ": resample=1: a profile",
        ),
        ({"do_resize": False}, ": do_resize=false: images keep"),
        ({"do_resize": "yes"}, ": do_resize=yes: true or false expected"),
        ({"do_center_crop": False}, ': size={"shortest_edge": 224}: the size of the network\'s'),
        ({"size": {"shortest_edge": 800, "longest_edge": 1333}}, ": size="),
        ({"size": {"height": 256, "width": 200}}, ": size="),
        ({"size": {"height": 200, "width": 200}}, ": crop_size="),
        ({"size": {"shortest_edge": 200}}, ": crop_size="),
        ({"size": {"shortest_edge": 0}}, ": size="),
        ({"size": None}, ": size: not written"),
        ({"do_pad": True}, ": do_pad=true: a separate step"),
        ({"patch_size": 14}, ": patch_size=14: images are cut into patches or tiles"),
        ({"keep_aspect_ratio": True}, ": keep_aspect_ratio=true: the size of the network's"),
        ({"ensure_multiple_of": 15}, ": ensure_multiple_of=15: the size is no multiple"),
        (
            {
                "image_processor_type": "Mask2FormerImageProcessor",
                "size_divisor": 16,
                "size": {"shortest_edge": 800, "longest_edge": 1333},
            },
            ": size_divisor=16: a profile stretches to multiples of 32",
        ),
        (
            {"image_processor_type": "DetrImageProcessor", "size": 40, "max_size": [9]},
            ": max_size=[9]: a number of pixels",
        ),
        ({"image_mean": None}, ": image_mean: not written; the default depends"),
        ({"image_std": [0, 1, 1]}, ": image_std=[0, 1, 1]: numbers above 0"),
        ({"rescale_factor": 0}, ": rescale_factor=0: a number above 0"),
        ({"rescale_offset": True}, ": rescale_offset=true: unknown key"),
    ],
)
def test_hugging_face(imports, change, problem):
    imports.refuses(problem, changed(CLIP, **change), "p.json", format="huggingface")


RESIZE = "type: resize, size: 256, aspect_ratio_scale: greater"


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([RESIZE], ":9: models.0.datasets.0.preprocessing.0.size=256: the size of the network"),
        (["type: crop, size: 2"], ":9: models.0.datasets.0.preprocessing.0.size=2: a profile"),
        (["type: resize, dst_height: 8, dst_width: 9", "type: crop, size: 4"],
         ":9: models.0.datasets.0.preprocessing.0.dst_height=8: a crop after a resize to two"),
        ([RESIZE, "type: crop, central_fraction: 0.875"],
         ":10: models.0.datasets.0.preprocessing.1.central_fraction=0.875: this crop of a part"),
        (["type: crop, central_fraction: 1.5", RESIZE],
         ":9: models.0.datasets.0.preprocessing.0.central_fraction=1.5: a number up to 1"),
        (["type: crop, max_square: true", "type: resize, dst_height: 8, dst_width: 9"],
         ":9: models.0.datasets.0.preprocessing.0.max_square=true: a square, and the resize"),
        ([RESIZE, "type: crop, size: 300"],
         ":10: models.0.datasets.0.preprocessing.1.size=300: larger than the short side of 256"),
        ([RESIZE, "type: flip"], ":10: models.0.datasets.0.preprocessing.1.type=flip: a profile"),
        ([RESIZE, "size: 2"], ":10: models.0.datasets.0.preprocessing.1.type: not written"),
        (["type: bgr_to_rgb"], ":9: models.0.datasets.0.preprocessing.0.type: no step resizes"),
        (["type: resize, size: 32", "type: resize, size: 16"],
         ":10: models.0.datasets.0.preprocessing.1.size=16: a resize, crop or padding comes"),
        (["type: resize, size: 32, interpolation: Lanczos4, use_pillow: true"],
         ":9: models.0.datasets.0.preprocessing.0.interpolation=Lanczos4: pillow offers NEAREST"),
        (["type: resize, size: 32, aspect_ratio_scale: frcnn_keep_aspect_ratio"],
         ":9: models.0.datasets.0.preprocessing.0.aspect_ratio_scale=frcnn_keep_aspect_ratio: a "
         "profile cannot express this"),
        (["type: resize, size: 32, factor: 32"],
         ":9: models.0.datasets.0.preprocessing.0.factor=32: unknown key"),
        (["type: resize, size: 32, aspect_ratio_scale: fit_to_window",
          "type: padding, pad_value: '104,117,123'"],
         ":10: models.0.datasets.0.preprocessing.1.type=padding: pads with 104, 117, 123"),
        (["type: resize, size: 32", "type: normalization, std: 0"],
         ":10: models.0.datasets.0.preprocessing.1.std=0: numbers above 0"),
        (["type: resize, size: 32", "type: normalization, mean: '1,2'"],
         ":10: models.0.datasets.0.preprocessing.1.mean=1,2: one number or three"),
        (["type: resize, size: .nan"], ":9: models.0.datasets.0.preprocessing.0.size=NaN: a"),
        (["type: resize, size: 32", "type: normalization, mean: .nan"],
         ":10: models.0.datasets.0.preprocessing.1.mean=NaN: a number between"),
    ],
)  # fmt: skip
def test_accuracy_checker(imports, steps, problem):
    imports.refuses(problem, checker(steps), "a.yml")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("adapter: x", "device: GPU", ":6: models.0.launchers.0.device=GPU: only"),
        ("adapter: x", "inputs: [{name: a, type: LSTM_INPUT, value: 1}]",
         ":6: models.0.launchers.0.inputs="),
        ("adapter: x", "inputs: [{name: a, type: INPUT, precision: U8}]",
         ":6: models.0.launchers.0.inputs="),
        ("reader: pillow_imread", "reader: numpy_reader", ":9: models.0.datasets.0.reader=numpy"),
        ("reader: pillow_imread", "reader: {type: opencv_imread, reading_flag: gray}",
         ":9: models.0.datasets.0.reader.reading_flag=gray: a profile's images are in color"),
        ("reader: pillow_imread", "reader: {type: wav_reader, mono: 1}",
         ":9: models.0.datasets.0.reader.type=wav_reader: not a reader of color images"),
        ("models:\n", "evaluations: []\nmodels:\n", ":1: evaluations: several networks"),
        ("models:", "globals: {}\nmodels:", ":1: globals="),
        ("models:\n", "models: []\nother:\n", ":1: models=[]: a list of mappings expected"),
    ],
)  # fmt: skip
def test_the_rest_of_accuracy_checker(imports, old, new, problem):
    document = CHECKER.replace("adapter: classification", "adapter: x").replace(old, new)
    imports.refuses(problem, document, "a.yml")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("topk=-1", "topk=0", ":26: [class-attrs-all] topk=0: no box comes out"),
        ("topk=-1", "topks=9", ":26: [class-attrs-all] topks=9: unknown key, which may change a "
         "pixel; did you mean topk?"),
        ("topk=-1", "minBoxes=0.5", ":26: [class-attrs-all] minBoxes=0.5: a whole number"),
        ("cluster-mode=2", "cluster-mode=5", ":16: cluster-mode=5: a profile cannot"),
        ("process-mode=1", "process-mode=2", ":14: process-mode=2: it runs on the boxes"),
        ("network-mode=2", "network-mode=2# FP16", ":10: network-mode=2#: a profile"),
        ("model-color-format=0", "model-color-format=2", ":5: model-color-format=2: a gray image"),
        ("gpu-id=0", "scaling-compute-hw=2\nscaling-filter=2", ":3: scaling-filter=2: a profile"),
        ("gpu-id=0", "mean-file=mean.ppm", ":2: mean-file=mean.ppm: a mean for every pixel"),
        ("gpu-id=0", "input-tensor-from-meta=1", ":2: input-tensor-from-meta=1: Gst"),
        ("gpu-id=0", "maintain-aspect-ratios=1", ":2: maintain-aspect-ratios=1: unknown key, "
         "which may change a pixel; did you mean maintain-aspect-ratio?"),
        ("gpu-id=0", "gpu-id", ":2: [group] or key=value expected, got gpu-id"),
        ("gpu-id=0", "network-mode=0", ":10: network-mode: given twice, first on line 2"),
        ("net-scale-factor=0.0039215697906911373", "net-scale-factor=nan", ":3: net-scale"),
        ("net-scale-factor=0.0039215697906911373", "net-scale-factor=0", ":3: net-scale"),
        ("gpu-id=0", "offsets=1;2", ":2: offsets=1;2: three numbers separated by ;"),
        ("infer-dims=3;640;640", "infer-dims=1;640;640", ":19: infer-dims=1;640;640: 3"),
        ("maintain-aspect-ratio=1", "maintain-aspect-ratio=2", ":17: maintain-aspect-ratio=2: 0"),
    ],
)  # fmt: skip
def test_deepstream(imports, old, new, problem):
    imports.refuses(problem, DEEPSTREAM.replace(old, new), "c.txt")


def test_all_problems_come_at_once(imports):
    text = DEEPSTREAM.replace("topk=-1", "topk=0").replace("model-color-format=0", "offsets=1")
    text = text.replace("gpu-id=0", "ofsets=1").replace("cluster-mode=2", "cluster-mode=9")

    assert len(imports.refused(text, "c.txt")) == 4


def test_one_line_where_nothing_else_matters(imports):
    """A secondary network is refused for that alone, whatever else stands in the file."""
    text = DEEPSTREAM.replace("process-mode=1", "process-mode=2\noffsets=1")

    assert len(imports.refused(text, "c.txt")) == 1


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", "{", ":1: not JSON: "),
        ("a.json", "[1]", ":1: a JSON object expected"),
        ("a.json", '{"do_resize": NaN}', ": NaN is not a JSON number"),
        ("a.json", '{"do_resize": true, "do_resize": false}', ": do_resize: given twice"),
        ("a.json", '{"do_resize": ' + "9" * 5000 + "}", ": a number with too many digits"),
        ("a.json", '{"do_resize": ' + "[" * 200_000, ": nested too deeply"),
        ("a.json", '{"hello": 1}', ": unknown format; these can be imported"),
        ("a.json", b"\xff\xfe{}", ":1: not UTF-8 text (byte 0)"),
        ("a.yml", "models: [", ":1: "),
        ("a.yml", "models: !!python/object/apply:os.system ['true']\n", ":1: "),
        ("a.yml", "models: &a [*a]\n", ":1: an anchor that contains itself"),
        ("a.yml", "models: 1\nmodels: 2\n", ":2: models: given twice"),
        ("a.yml", "models:\n" + "  - {}\n" * 20_000, ": the document is larger than 100,000 bytes"),
        ("a.yml", "evaluations: []\n", ":1: evaluations: several networks run by a script"),
        ("a.yml", "property: 1\n", ":1: property=1: keys and values expected"),
        ("a.txt", "infer_config {\n}\n", ": a configuration of Gst-nvinferserver (Triton); only"),
        (
            "a.txt",
            "[primary-gie]\nconfig-file=c.txt\n",
            ": a configuration of deepstream-app; import the file that it names: c.txt",
        ),
        ("a.txt", "", ": unknown format; these can be imported"),
        ("a.txt", "a=1\n[property]\n", ":1: a [group] expected first, got a=1"),
        ("a.txt", "[property]\n\x1b[31m\n", ":2: "),
        ("a.bin", b"x" * 5_000_000, ": at most 4,000,000 bytes"),
    ],
)
def test_hostile_files(imports, name, content, problem):
    imports.refuses(problem, content, name)


def test_no_such_file_format_or_base(imports, tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file"):
        convert(tmp_path / "none.json")
    with pytest.raises(UserError, match="cannot be read: Is a directory"):
        convert(tmp_path)
    path = imports.file(RESNET, "c.json")
    with pytest.raises(UserError, match="unknown format 'tim'; did you mean 'timm'"):
        convert(path, format="tim")
    with pytest.raises(UserError, match="unknown profile 'pilow_fp32'; did you mean 'pillow_fp32'"):
        convert(path, base="pilow_fp32")


def test_a_profile_that_cannot_be_chosen_is_refused(imports):
    """A base whose resize must be in YUV, and a resizer of float32: no profile comes of it."""
    base = imports.folder / "base.yaml"
    base.write_text(
        "schema: 1\nname: b\nsummary: b\nextends: pillow_fp32\n"
        "runtime: {backend: litert, exporter: {backend: litert_torch}, kernels: xnnpack,\n"
        "  graph_optimization_level: null}\nprecision: {storage: bf16, compute: fp32}\n"
    )
    problems = imports.refused(RESNET, "c.json", base=str(base))

    assert problems
    assert all("base.yaml" in line or "as a profile" in line for line in problems)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=5),
    st.sampled_from(["1", "0", "-1", "nan", "1;2;3", "greater", "bicubic", 1e300, 1e-300, 255]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value, path=()):
    """Every place of a document at which something else may stand."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


@st.composite
def mutated(draw, document):
    new = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from([p for p in places(new) if p]))
        holder = new
        for key in way:
            holder = holder[key]
        if draw(st.booleans()) and isinstance(holder, dict):
            holder.pop(last)
            holder[draw(st.text(max_size=6))] = draw(VALUES)
        else:
            holder[last] = draw(VALUES)
    return new


def survives(content, name, format):
    """It is imported or refused in lines for a person; nothing else may happen."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(
            content if isinstance(content, bytes) else content.encode(errors="replace")
        )
        with contextlib.suppress(UserError):
            assert yaml.safe_load(convert(path, format=format))["schema"] == 1


@pytest.mark.parametrize(
    ("document", "format"),
    [
        (CLIP, "huggingface"),
        (changed(CLIP, image_processor_type="EfficientNetImageProcessor"), "huggingface"),
        (RESNET, "timm"), (CONVERTER, "keras"), (yaml.safe_load(CHECKER), "accuracy_checker"),
        (yaml.safe_load(YOLO), "ultralytics"), (yaml.safe_load(RKNN), "rknn"),
    ],
)  # fmt: skip
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_mutation(document, format, data):
    is_json = format in ("huggingface", "timm", "keras")
    new = data.draw(mutated(document))
    survives(json.dumps(new) if is_json else yaml.safe_dump(new), "a.yml", format)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_mutation_of_deepstream(data):
    lines = DEEPSTREAM.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        key = lines[at].partition("=")[0]
        value = data.draw(SCALARS | st.text(string.printable, max_size=8))
        lines[at] = data.draw(st.sampled_from([f"{key}={value}", f"{value}={key}", str(value), ""]))
    survives("\n".join(lines), "c.txt", "deepstream")


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=80), st.sampled_from([None, *IMPORTERS.names]))
def test_any_bytes(content, format):
    survives(content, "x.json" if format is None else "x", format)


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (
            "Converted Graph:\n- Output Tensors: ['output']\n\nInput Tensor Configuration:\n"
            "  - Name: 'input'\n    Src Model Parameters:\n        DataType:\n        Layout: NCF\n"
            "    Desired Model Parameters:\n        Layout: NFC\n        Color Conversion:\n",
            "io_config.yaml",
            "extend qnn_int8 or qnn_fp16",
        ),
        (
            '{"version": "0.6.1", "activation_encodings": {"7": [{"bitwidth": 8, "max": 1.5}]}, '
            '"param_encodings": {}}',
            "overrides.json",
            "extend qnn_int8, or give the quantized ONNX",
        ),
    ],
)
def test_qualcomms_files_get_a_line_that_says_what_to_give(imports, text, name, said):
    """qairt-converter --dump_config_template, and --quantization_overrides, as documented."""
    (line,) = imports.refused(text, name)

    assert said in line
