"""NVIDIA TAO: specs of its TensorFlow networks (protobuf text) and of its PyTorch networks (YAML).

Sources, of NVIDIA/tao_tensorflow1_backend: ``cv/makenet/utils/preprocess_crop.py`` (32 pixels more,
then a crop), ``preprocess_input.py`` (caffe; torch, with 0.224 three times; tf),
``cv/common/inferencer/inferencer.py`` (SSD, YOLO, RetinaNet: ANTIALIAS; the image at the top left
of black), ``cv/detectnet_v2/inferencer/base_inferencer.py``; of NVIDIA/tao_pytorch_backend:
``cv/classification_pyt/dataloader/augmentation.py``, the same of ``segformer``,
``cv/deformable_detr/dataloader/transforms.py``, the same of ``rtdetr``; nvidia-tao-core, ``config``
(defaults of YAML).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from simulator.importers import values
from simulator.importers.draft import Draft, Order
from simulator.importers.image_steps import ImageSteps, follow
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.openmmlab_steps import ASIDE, BY_MMCV, kinds
from simulator.importers.resizing import Kernel, Scaling
from simulator.importers.textproto import TextProto
from simulator.profile.document import inside

_SPEC = (
    r"^(dataset|data)\s*:", r"^(train|evaluate|inference|export|results_dir)\s*:",
    r"^[ \t]+(-\s+)?(img_size|segment|images?_dir|img_dir|data_prefix|fixed_padding|"
    r"\w+_dataset_path)\s*:",
)  # fmt: skip
"""Lines that a YAML spec has."""
_METHODS = {"BILINEAR": "bilinear", "BICUBIC": "bicubic", "bilinear": "bilinear",
            "bicubic": "bicubic"}  # fmt: skip
_BGR = [103.939, 116.779, 123.68]
_MEAN, _STD = [*values.MEAN], [*values.STD]
_UNIT: Order = ("unit_divide", "to_tensor, then normalize: x / 255, (x - mean) / std")


class Tao(Importer):
    """The inference of a network that a spec trains."""

    name = tool = "tao"
    about = "a spec of NVIDIA TAO, as protobuf text or YAML"
    base = "pillow_fp32"
    line = r"^[ \t]*(augmentation_config|inferencer_config|model_config)\s*:?\s*\{"

    def recognises(self, file: ConfigFile) -> bool:
        """Whether it has the sections of a spec."""
        return super().recognises(file) or all(map(file.has_line, _SPEC))

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow what ``tao MODEL inference`` does with an image."""
        if super().recognises(file):
            proto, networks = TextProto.read(file.path, file.text), _OF_TEXT
            top = Keys(draft, proto.values, proto.where)
        else:
            top, networks = file.yaml_keys(draft), _OF_YAML
        found = next((one for one in networks if _has(top, one[0])), None)
        if found is None:
            known = ", ".join(dict.fromkeys(name for _, name, _, _ in networks))
            top.problem("spec", f"no key tells that it is of one of these: {known}")
            return
        _, name, task, read = found
        draft.card.append(f"task: {task} (TAO's {name})")
        call = "TAO: PIL.Image.open"
        draft.decode("pillow", "ignore", f"{call}; EXIF is not looked at", call)
        steps = ImageSteps(draft, "TAO", "rgb", ["TAO opens images as RGB"])
        order = read(steps, top)
        if not draft.problems:
            steps.finish(order, top)
        top.leave_all("of training, of the network, or of its answers")


def _has(top: Keys, place: str) -> bool:
    return inside(top.values, place.split(".")) is not None


def _kernel(name: str, origin: str) -> Kernel:
    return Kernel("pillow", name, "PIL.Image.resize", origin, "TAO: PIL.Image.resize")


_LANCZOS = _kernel("lanczos", "Image.ANTIALIAS, which is Lanczos")


def _sides(keys: Keys, height: str, width: str, channels: str) -> tuple[int, int]:
    """Take a size that two keys say, of an image in color."""
    keys.only(channels, 3, "a profile's images are in color", values.whole)
    why = "it is the network's size"
    return keys.need(height, values.pixels, 0, why), keys.need(width, values.pixels, 0, why)


def _less_mean(steps: ImageSteps, keys: Keys, taken: Callable[[Any], list[Fraction]]) -> Order:
    mean = keys.take("image_mean", taken, [values.number(one) for one in _BGR])
    steps.reverse("preprocess_input: RGB becomes BGR")
    said = keys.origin("image_mean", f"{_BGR} of blue, green and red is the default")
    steps.normalize(mean, [Fraction(1)] * 3, said)
    return "divide", "preprocess_input: x - mean, in float32"


def _by_color(value: Any) -> list[Fraction]:
    """Three entries of a map in protobuf, in the order of the tensor."""
    pairs = value if isinstance(value, list) else [value]
    named = {one.get("key"): one.get("value") for one in pairs if isinstance(one, dict)}
    if set(named) != set("bgr"):
        raise ValueError("numbers of r, g and b expected: a profile's images are in color")
    return [values.number(named[color]) for color in "bgr"]


def _mode(steps: ImageSteps, keys: Keys, taken: Callable[[Any], list[Fraction]]) -> Order:
    """``preprocess_mode`` of a classifier."""
    mode = keys.choice("preprocess_mode", {one: one for one in ("caffe", "torch", "tf")}, "caffe")
    origin = keys.origin("preprocess_mode", "caffe is the default")
    if mode == "caffe":
        steps.turned.append(origin)
        return _less_mean(steps, keys, taken)
    if mode == "tf":
        steps.normalize([Fraction(255, 2)] * 3, [Fraction(255, 2)] * 3, origin)
        return "divide", "preprocess_input: x / 127.5, less 1"
    steps.normalize([Fraction(0)] * 3, [Fraction(255)] * 3, origin)
    mean, std = ([values.number(one) for one in them] for them in (_MEAN, [0.224] * 3))
    steps.normalize(mean, std, "preprocess_input divides by 0.224 three times")
    return _UNIT


def _classify(steps: ImageSteps, keys: Keys, key: str, size: tuple[int, int], crops: bool) -> None:
    """Resize to the size, or to 32 pixels more and crop."""
    kernel = keys.choice("resize_interpolation_method", _METHODS, "bilinear")
    used = _kernel(kernel, keys.origin("resize_interpolation_method", "bilinear is the default"))
    if not crops:
        steps.resize(keys, key, "squash", size, used)
        return
    side = min(size) + 32
    if size[0] != size[1]:
        keys.refuse(key, "with enable_center_crop both sides get 32 pixels more; a profile's crop "
                    "comes after a short side, so a square is expected")  # fmt: skip
    steps.resize(keys, key, "short_side", (side, side), used)
    steps.crop(keys, key, size, "even")
    why = "load_and_crop_img: int(side * ratio), which may be a pixel less than here"
    steps.draft.claim("geometry", "assumed", why)


def _classification(steps: ImageSteps, top: Keys) -> Order:
    model, train, test = (top.inner(f"{key}_config") for key in ("model", "train", "eval"))
    why = 'it is the network\'s size: "3,224,224"'
    size = model.need("input_image_size", _channels_first, (0, 0), why)
    crops = test.take("enable_center_crop", values.boolean, False)
    _classify(steps, model, "input_image_size", size, crops)
    if train.take("enable_center_crop", values.boolean, False) and not crops:
        why = (
            "tao inference goes by eval_config, which does not crop; train_config's validation does"
        )
        steps.draft.claim("geometry", "assumed", why)
    return _mode(steps, train, _by_color)


def _channels_first(value: Any) -> tuple[int, int]:
    sides = [part.strip() for part in values.text(value).split(",")]
    if len(sides) != 3 or sides[0] != "3" or not all(one.isdecimal() for one in sides):
        raise ValueError('"3,height,width" expected: a profile\'s images are in color')
    return values.pixels(int(sides[1])), values.pixels(int(sides[2]))


def _classification_tf2(holder: str, steps: ImageSteps, top: Keys) -> Order:
    model, data = top.inner("model"), top.inner(holder)
    model.values = {"input_height": 256, "input_width": 256, **model.values}
    size = _sides(model, "input_height", "input_width", "input_channels")
    crops = data.inner("augmentation").take("enable_center_crop", values.boolean, True)
    _classify(steps, model, "input_height", size, crops)
    return _mode(steps, data, values.three)


def _detection(scaling: Scaling, steps: ImageSteps, top: Keys) -> Order:
    """The detectors that share one loader of images."""
    keys = top.inner("augmentation_config")
    size = _sides(keys, "output_height", "output_width", "output_channel")
    keys.only("output_depth", 8, "a profile's images have eight bits", values.whole)
    steps.resize(keys, "output_height", scaling, size, _LANCZOS, "even")
    black = "tao inference: Image.new is black (tao evaluate pads in another way)"
    steps.pad(keys, "output_height", size, [Fraction(0)] * 3, "top_left", black)
    return _less_mean(steps, keys, _by_color)


def _detectnet(steps: ImageSteps, top: Keys) -> Order:
    keys, names = top.inner("inferencer_config"), "image_height image_width image_channels"
    if not keys.values:
        keys = top.inner("augmentation_config").inner("preprocessing")
        names = "output_image_height output_image_width output_image_channel"
    size = _sides(keys, *names.split())
    steps.resize(keys, names.split()[0], "squash", size, _LANCZOS)
    said = "base_inferencer.input_preprocessing: x / 255"
    steps.normalize([Fraction(0)] * 3, [Fraction(255)] * 3, said)
    return "divide", said


def _unit(steps: ImageSteps, keys: Keys, names: str, mean: list[float], std: list[float]) -> Order:
    """To floats in [0, 1], then mean and std of that scale."""
    steps.normalize([Fraction(0)] * 3, [Fraction(255)] * 3, "to_tensor divides by 255")
    steps.statistics(keys, names, mean, std)
    return _UNIT


def _square(kernel: str, default: int, steps: ImageSteps, top: Keys) -> Order:
    """``img_size`` and ``augmentation`` of classification_pyt, and of SegFormer's ``segment``."""
    keys = top.inner("dataset")
    keys = keys.inner("segment") if "segment" in keys else keys
    keys.choice("dataset", {"CLDataset": 0, "SFDataset": 0}, 0)
    keys.leave("dataset", "the loader that is followed here")
    keys.values = {"img_size": default, **keys.values}
    side = keys.take("img_size", values.pixels, 0)
    used = _kernel(kernel, f"CLDataAugmentation, CDDataAugmentation: TF.resize, {kernel}")
    steps.resize(keys, "img_size", "squash", (side, side), used)
    statistics = (_MEAN, _STD) if kernel == "bilinear" else ([0.5] * 3, [0.5] * 3)
    return _unit(steps, keys.inner("augmentation"), "mean std", *statistics)


def _detr(steps: ImageSteps, top: Keys) -> Order:
    """DINO and Deformable DETR: a fixed size only where the task says it."""
    sections = [one for one in ("evaluate", "inference") if _has(top, f"{one}.input_width")]
    if not sections:
        top.problem("evaluate.input_width", "not written, so that the network's size varies by "
                    "image; write input_width and input_height of evaluate")  # fmt: skip
        return _UNIT
    keys = top.inner(sections[0])
    size = _sides(keys, "input_height", "input_width", "input_channel")
    steps.resize(keys, "input_height", "squash", size, _kernel("bilinear", "FixedResize"))
    keys = top.inner("dataset").inner("augmentation")
    return _unit(steps, keys, "input_mean input_std", _MEAN, _STD)


def _rtdetr(steps: ImageSteps, top: Keys) -> Order:
    keys = top.inner("dataset").inner("augmentation")
    keys.only("preserve_aspect_ratio", False, "it rounds both sides by a rule that no profile has")
    keys.values = {"eval_spatial_size": [640, 640], **keys.values}
    size = keys.take("eval_spatial_size", values.sides, (0, 0))
    used = _kernel("bilinear", "transforms.v2.Resize of a PIL image")
    steps.resize(keys, "eval_spatial_size", "squash", size, used)
    steps.normalize([Fraction(0)] * 3, [Fraction(255)] * 3, "ConvertImageDtype divides by 255")
    return _UNIT


def _mmpretrain(steps: ImageSteps, top: Keys) -> Order:
    """classification_pyt of TAO 5.0 to 5.5: MMPretrain's steps between decoding and arithmetic."""
    keys = top.inner("dataset").inner("data").inner("test")
    steps.reverse("mmcv reads images as BGR")
    call = "mmcv.imfrombytes: cv2.imdecode"
    steps.draft.decode("opencv", "apply", "mmcv.imfrombytes with cv2", call)
    default = [{"type": "Resize", "scale": 224}, {"type": "CenterCrop", "crop_size": 224}]
    keys.values = {"pipeline": default, **keys.values}
    names = [str(step.get("type")) for step in keys.mappings("pipeline")]
    each = [(name, keys.below("pipeline", at)) for at, name in enumerate(names)]
    follow(steps, each, kinds(), ASIDE)
    keys = top.inner("dataset").inner("img_norm_cfg")
    if keys.take("to_rgb", values.boolean, True):
        steps.reverse(keys.origin("to_rgb", "true is the default"))
    steps.statistics(keys, "mean std", [123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
    return BY_MMCV


_Read = Callable[[ImageSteps, Keys], Order]
_Network = tuple[str, str, str, _Read]
"""The key that only such a spec has, the network, its task, and what reads it."""
_OF_TEXT: list[_Network] = [
    ("inferencer_config", "DetectNet_v2", "detection", _detectnet),
    ("augmentation_config.preprocessing", "DetectNet_v2", "detection", _detectnet),
    ("ssd_config", "SSD", "detection", partial(_detection, "squash")),
    ("dssd_config", "DSSD", "detection", partial(_detection, "squash")),
    ("yolov3_config", "YOLOv3", "detection", partial(_detection, "fit")),
    ("yolov4_config", "YOLOv4", "detection", partial(_detection, "fit")),
    ("retinanet_config", "RetinaNet", "detection", partial(_detection, "fit")),
    ("model_config.input_image_size", "classification", "classification", _classification),
]
_OF_YAML: list[_Network] = [
    ("dataset.segment", "SegFormer", "segmentation", partial(_square, "bicubic", 256)),
    ("dataset.augmentation.eval_spatial_size", "RT-DETR", "detection", _rtdetr),
    ("dataset.augmentation.multi_scales", "RT-DETR", "detection", _rtdetr),
    ("dataset.augmentation.fixed_padding", "DINO or Deformable DETR", "detection", _detr),
    ("dataset.augmentation.input_mean", "DINO or Deformable DETR", "detection", _detr),
    ("model.num_feature_levels", "DINO or Deformable DETR", "detection", _detr),
    ("dataset.data", "classification_pyt", "classification", _mmpretrain),
    ("dataset.train_dataset_path", "classification_tf2", "classification",
     partial(_classification_tf2, "dataset")),
    ("data.train_dataset_path", "classification_tf2", "classification",
     partial(_classification_tf2, "data")),
    ("dataset.img_size", "classification_pyt", "classification", partial(_square, "bilinear", 224)),
]  # fmt: skip

TAO = Tao()
