"""PaddlePaddle's inference files: PaddleDetection, PaddleClas, PaddleSeg and PaddleX.

Sources: PaddlePaddle/PaddleDetection, ``deploy/python/preprocess.py`` (RGB of cv2.imdecode;
``Resize``: cv2.resize by factors, which rounds to even; ``NormalizeImage``: x / 255 unless
``is_scale`` is false, then (x - mean) / std, ``norm_type`` none: not; ``LetterBoxResize``:
INTER_AREA, 127.5; ``PadStride``: zeros after normalization);
PaddlePaddle/PaddleClas, ``deploy/python/preprocess.py`` (``ResizeImage``: ``size`` is (w, h), the
short side int(round(side)); ``CropImage``: ``size`` is (w, h), from the half rounded down;
``NormalizeImage``: (x * scale - mean) / std); PaddlePaddle/PaddleSeg, ``deploy/python/infer.py``,
``paddleseg/transforms`` (``Normalize``: x / 255, mean and std 0.5; ``Resize``: LINEAR, (w, h)).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from simulator.importers import values
from simulator.importers.draft import Draft, Order
from simulator.importers.image_steps import Follow, ImageSteps, follow
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.network import CardFields, NetworkFile
from simulator.importers.resizing import Kernel
from simulator.importers.values import keys_by_reason

_OPENCV = {0: "nearest", 1: "bilinear", 2: "bicubic", 3: "area", 4: "lanczos4",
           "nearest": "nearest", "bilinear": "bilinear", "bicubic": "bicubic", "area": "area",
           "lanczos": "lanczos4"}  # fmt: skip
"""cv2's numbers, and the names of PaddleClas."""
_SEG = {"NEAREST": "nearest", "LINEAR": "bilinear", "CUBIC": "bicubic", "AREA": "area",
        "LANCZOS4": "lanczos4"}  # fmt: skip
_PILLOW = {name: name for name in ("nearest", "bilinear", "bicubic", "box", "lanczos", "hamming")}
_LIBRARIES: dict[str, tuple[str, dict[Any, str]]] = {
    "cv2": ("opencv", _OPENCV), "pil": ("pillow", _PILLOW), "PIL": ("pillow", _PILLOW),
}  # fmt: skip
_UNIT: Order = ("unit_divide", "x / 255, then (x - mean) / std")
_FACTOR: Order = ("unit_divide", "x * scale, then (x - mean) / std; x / 255 here")
_CHANGES = "changes no pixel"
_STEPS_ASIDE = dict.fromkeys(("ToCHWImage", "KeepKeys", "DecodeImage", "DetPermute"), _CHANGES)
_LISTS = (("Preprocess",), ("PreProcess", "transform_ops"), ("DetPreProcess", "transform_ops"),
          ("RecPreProcess", "transform_ops"), ("Deploy", "transforms"))  # fmt: skip
"""Where lists of steps stand: PaddleDetection; PaddleClas and PaddleX, PP-ShiTu; PaddleSeg."""
_REST = keys_by_reason({
    "the network itself; the model card names an ONNX file":
        "Global Hpi arch model params input_img use_dynamic_shape tracker fpn_stride export_onnx",
    "how it is run": "mode min_subgraph_size batch_size metric export_eb",
    "what happens to the answers": "draw_threshold PostProcess DetPostProcess RecPostProcess NMS "
                                   "mask with_background save_index use_gt IndexProcess",
    "the classes: the model card's labels": "label_list",
})  # fmt: skip


class Paddle(Importer):
    """The preprocessing of an exported network."""

    name = tool = "paddle"
    about = "Paddle's infer_cfg.yml, inference_cls.yaml, deploy.yaml or inference.yml"
    base = "opencv_fp32"
    stems = ("infer_cfg", "deploy", "inference")
    beside = ("infer_cfg.yml", "inference.yml", "deploy.yaml")

    def of_network(self, network: NetworkFile) -> CardFields | None:
        """Return what it does with images, and the classes."""
        made = super().of_network(network)
        for path in network.beside(self.beside) if made else ():
            names = ConfigFile(path).yaml.values.get("label_list")
            if made and isinstance(names, list):
                made.name(dict(enumerate(names)))
        return made

    line = r"^(Preprocess|(Det|Rec)?PreProcess|Deploy)\s*:"

    def stacks(self, file: ConfigFile) -> list[str]:
        """Name the lists of steps: PP-ShiTu has a detector and a recognizer."""
        return [name for name, *_ in _LISTS if name in file.yaml.values] or ["the only one"]

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the list of steps."""
        top = file.yaml_keys(draft)
        wanted = self.stacks(file)[stack]
        place = next((one for one in _LISTS if one[0] == wanted), _LISTS[0])
        each = _each(top, place)
        steps = ImageSteps(draft, "Paddle", "rgb", ["Paddle turns OpenCV's BGR to RGB"])
        call = "cv2.imdecode(data, 1)"
        draft.decode("opencv", "apply", f"{call}, which obeys EXIF", call)
        kinds = _KINDS | (_OF_SEG if place[0] == "Deploy" else {})
        follow(steps, each, kinds, _STEPS_ASIDE)
        if not draft.problems:
            is_factor = any(name == "NormalizeImage" and "scale" in keys for name, keys in each)
            steps.finish(_FACTOR if is_factor else _UNIT, top)
        top.aside(dict.fromkeys((name for name, *_ in _LISTS if name != wanted), "another stack"))
        top.rest(_REST, named=[place[0]], passed_over="Paddle")


def _each(top: Keys, place: tuple[str, ...]) -> list[tuple[str, Keys]]:
    """Return the name and keys of every step: ``{type: X, …}`` or ``X: {…}``."""
    holder = top
    for part in place[:-1]:
        holder = holder.inner(part)
    written = holder.mappings(place[-1], "it is the list of steps")
    made: list[tuple[str, Keys]] = []
    for at, step in enumerate(written):
        if "type" in step:
            made.append((str(step["type"]), holder.below(place[-1], at)))
            continue
        for name in step:
            outer = holder.below(place[-1], at)
            made.append((str(name), outer.inner(name) if outer.values[name] else outer))
    if place[0] != "Preprocess":
        holder.rest(dict.fromkeys(holder.values, "how it is run"), named=[place[-1]])
    return made


def _kernel(keys: Keys, key: str) -> Kernel:
    backend, offered = keys.choice("backend", _LIBRARIES, _LIBRARIES["cv2"])
    chosen = keys.choice(key, offered, "bilinear")
    named = keys.origin("backend", "cv2.resize")
    return Kernel(backend, chosen, named, keys.origin(key, "bilinear is the default"),
                  f"Paddle's resize by {backend}")  # fmt: skip


def _resize(steps: ImageSteps, keys: Keys) -> None:
    """``Resize`` of PaddleDetection: (h, w)."""
    height, width = keys.need("target_size", values.sides, (0, 0), "a profile needs one size")
    kernel = _kernel(keys, "interp")
    is_old = "max_size" in keys  # PaddleDetection 0.x: above 0 it keeps the ratio
    keys.only("max_size", 0, "the size of the network's input varies by image", values.whole)
    keys.only("use_cv2", True, "it resizes by Pillow")
    keys.aside(dict.fromkeys(("image_shape", "resize_box", "max_size", "use_cv2"), _CHANGES))
    keys.tell("max_size", "use_cv2")
    if not keys.take("keep_ratio", values.boolean, not is_old):
        steps.resize(keys, "target_size", "squash", (height, width), kernel, how="keep_ratio")
    elif height == width:
        steps.resize(keys, "target_size", "fit", (height, width), kernel, "even", "keep_ratio")
    else:
        keys.refuse("target_size", "with keep_ratio the box turns with the image, so that the size "
                    "of the network's input varies; a profile has one")  # fmt: skip


def _resize_seg(steps: ImageSteps, keys: Keys) -> None:
    """``Resize`` of PaddleSeg: (w, h)."""
    width, height = keys.take("target_size", values.sides, (512, 512))
    keys.only("keep_ratio", False, "the size of the network's input varies by image")
    chosen = keys.choice("interp", _SEG, "bilinear")
    origin = keys.origin("interp", "LINEAR is the default")
    kernel = Kernel("opencv", chosen, "cv2.resize", origin, "PaddleSeg's resize by OpenCV")
    steps.resize(keys, "target_size", "squash", (height, width), kernel)


def _letterbox(steps: ImageSteps, keys: Keys) -> None:
    keys.refuse(
        "target_size", "LetterBoxResize pads with 127.5; a profile pads with a whole number"
    )


def _resize_image(steps: ImageSteps, keys: Keys) -> None:
    kernel = _kernel(keys, "interpolation")
    keys.aside({"return_numpy": _CHANGES})
    short = keys.take("resize_short", values.pixels, 0)
    if short:
        steps.resize(keys, "resize_short", "short_side", (short, short), kernel, "even")
        return
    width, height = keys.need(
        "size", values.sides, (0, 0), "and no resize_short; one of them expected"
    )
    steps.resize(keys, "size", "squash", (height, width), kernel)


def _crop(steps: ImageSteps, keys: Keys) -> None:
    width, height = keys.need("size", values.sides, (0, 0), "it is the network's size")
    steps.crop(keys, "size", (height, width), "down")


def _normalize_image(steps: ImageSteps, keys: Keys) -> None:
    """``NormalizeImage``: PaddleClas has ``scale``, PaddleDetection ``is_scale``."""
    keys.choice("channel_num", {3: 3}, 3)
    keys.tell("channel_num")
    keys.only("output_fp16", False, "half precision input; set the profile's precision by hand")
    keys.aside({"order": "the axes: the model card's input.layout",
                "is_channel_first": "likewise"})  # fmt: skip
    if "scale" in keys:
        factor = keys.take("scale", _scale, Fraction(1))
        steps.normalize([Fraction(0)] * 3, [1 / factor] * 3, keys.origin("scale"))
    elif keys.take("is_scale", values.boolean, True):
        said = keys.origin("is_scale", "x / 255 is the default")
        steps.normalize([Fraction(0)] * 3, [Fraction(255)] * 3, said)
    if keys.choice("norm_type", {"mean_std": True, "none": False}, True):
        steps.statistics(keys, "mean std", values.MEAN, values.STD)
    else:
        keys.aside(dict.fromkeys(("mean", "std"), "norm_type is none"))


def _scale(value: Any) -> Fraction:
    """A number near 1 / 255, as PaddleClas writes it (0.00392157, or ``1.0/255.0``), or another."""
    if isinstance(value, str):
        parts = value.strip().rstrip(".").split("/")
        found = values.decimal(parts[0]) / (values.decimal(parts[1]) if len(parts) == 2 else 1)
    else:
        found = values.number(value)
    if found <= 0:
        raise ValueError("a number above 0 expected")
    return Fraction(1, 255) if abs(found * 255 - 1) < Fraction(1, 10**5) else found


def _normalize(steps: ImageSteps, keys: Keys) -> None:
    """``Normalize`` of PaddleSeg."""
    steps.normalize([Fraction(0)] * 3, [Fraction(255)] * 3, "PaddleSeg: x / 255 first")
    steps.statistics(keys, "mean std", (0.5,) * 3, (0.5,) * 3)


def _stride(steps: ImageSteps, keys: Keys) -> None:
    """``PadStride``, after the normalization: nothing where the size is a multiple."""
    stride = keys.take("stride", values.whole, 0)
    height, width = steps.size
    if stride > 0 and (steps.varies or height % stride or width % stride):
        keys.refuse("stride", "pads to a size that varies by image; a profile has one")


def _pad(steps: ImageSteps, keys: Keys) -> None:
    """``Pad`` of PaddleDetection: to the right and below."""
    size = keys.need("size", values.sides, (0, 0), "a profile needs one size")
    level = keys.take("fill_value", values.three, [values.number(114.0)] * 3)
    why = keys.origin("fill_value", "114 is the default")
    steps.pad(keys, "size", size, level, "top_left", why)


def _permute(steps: ImageSteps, keys: Keys) -> None:
    """``Permute``: the axes, and of old files the order of the channels."""
    if keys.take("to_bgr", values.boolean, False):
        steps.reverse(keys.origin("to_bgr"))
    keys.aside({"to_bgr": _CHANGES, "channel_first": "the axes: the model card's input.layout"})
    keys.tell("to_bgr")


_OF_SEG: dict[str, Follow] = {"Resize": _resize_seg, "Normalize": _normalize}
_KINDS: dict[str, Follow] = {
    "Resize": _resize, "DetResize": _resize, "DetNormalizeImage": _normalize_image,
    "Permute": _permute, "LetterBoxResize": _letterbox, "ResizeImage": _resize_image,
    "CropImage": _crop, "NormalizeImage": _normalize_image, "Normalize": _normalize_image,
    "PadStride": _stride, "Pad": _pad,
}  # fmt: skip

PADDLE = Paddle()
