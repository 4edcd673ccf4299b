"""Steps of OpenMMLab's test pipelines, as MMCV, MMPretrain and MMDeploy's SDK run them.

Sources: open-mmlab/mmcv, ``mmcv/transforms/processing.py`` (``Resize``: ``scale`` is (w, h);
``Pad``; ``CenterCrop``: starts at int(round(half))), ``mmcv/image/geometric.py``
(``rescale_size``: int(side * scale + 0.5)), ``mmcv/image/io.py`` (BGR; color turns by EXIF),
``mmcv/image/photometric.py`` (``imnormalize_``: subtract, then multiply by 1 / std);
open-mmlab/mmpretrain, ``datasets/transforms/processing.py`` (``ResizeEdge``: int(scale * w / h));
mmcls 0.x, ``pipelines/transforms.py`` (``Resize``: ``size`` is (h, w), -1 scales the short side);
open-mmlab/mmdeploy, ``csrc/mmdeploy/preprocess/transform/resize.cpp`` (``size`` is [w, h]).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

from simulator.importers import values
from simulator.importers.draft import Order
from simulator.importers.image_steps import Follow, ImageSteps
from simulator.importers.keys import Keys
from simulator.importers.resizing import Kernel, Size

BY_MMCV: Order = ("multiply", "mmcv.imnormalize_: (x - mean) * (1 / std)")
_NOTHING = "changes no pixel"
ASIDE = {
    **dict.fromkeys(
        ("LoadAnnotations", "LoadPanopticAnnotations", "ImageToTensor", "ToTensor", "Transpose",
         "ToDataContainer", "DefaultFormatBundle", "Collect", "PackInputs", "PackDetInputs",
         "PackSegInputs", "PackClsInputs", "PackReIDInputs", "FormatShape",
         "PackTextDetInputs"), _NOTHING,
    ),
    **dict.fromkeys(("RandomFlip", "Flip"), "a test does not flip"),
}  # fmt: skip
_CV2 = {"nearest": "nearest", "bilinear": "bilinear", "bicubic": "bicubic", "area": "area",
        "lanczos": "lanczos4"}  # fmt: skip
_PILLOW = {name: name for name in ("nearest", "bilinear", "bicubic", "box", "lanczos", "hamming")}
_BACKENDS = {"cv2": ("opencv", _CV2), "pillow": ("pillow", _PILLOW)}
_DECODERS: dict[str, tuple[str, dict[str, str]]] = {
    "cv2": ("opencv", {}),
    "pillow": ("pillow", {}),
    "turbojpeg": ("turbojpeg", {"idct": "islow", "chroma_upsampling": "fancy"}),
}
_EXIF = {"color": "apply", "color_ignore_orientation": "ignore"}


def kinds(is_sdk: bool = False, scale: object = None) -> dict[str, Follow]:
    """Return how each step is followed.

    Args:
        is_sdk: whether MMDeploy's SDK runs them, which gives ``size`` as [w, h].
        scale: ``img_scale`` of the ``MultiScaleFlipAug`` around them.
    """
    return {
        "LoadImageFromFile": _load, "Resize": partial(_resize, is_sdk, scale),
        "ResizeEdge": _resize_edge, "CenterCrop": _crop, "Normalize": _normalize, "Pad": _pad,
    }  # fmt: skip


def _load(steps: ImageSteps, keys: Keys) -> None:
    draft = steps.draft
    backend, more = keys.choice("imdecode_backend", _DECODERS, _DECODERS["cv2"])
    exif = keys.choice("color_type", _EXIF, "apply")
    draft.whole.add("decode")
    origin = keys.origin("imdecode_backend", "cv2 is the default")
    draft.write("decode", "backend", backend, origin)
    ignores = backend == "turbojpeg"
    turned = keys.origin("color_type", "color, which obeys EXIF, is the default")
    why = "mmcv's turbojpeg does not look at EXIF" if ignores else turned
    draft.write("decode", "exif", "ignore" if ignores else exif, why)
    for name, value in more.items():
        draft.write("decode", name, value, "TurboJPEG's defaults")
    draft.claim("decode", "native", f"mmcv.imfrombytes with {backend}")
    keys.take("to_float32", values.boolean, False)
    keys.aside(dict.fromkeys(("file_client_args", "backend_args", "ignore_empty"), _NOTHING))


def _kernel(keys: Keys) -> Kernel:
    backend, offered = keys.choice("backend", _BACKENDS, _BACKENDS["cv2"])
    chosen = keys.choice("interpolation", offered, "bilinear")
    origin = keys.origin("interpolation", "bilinear is the default")
    named = keys.origin("backend", "cv2 is the default")
    return Kernel(backend, chosen, named, origin, f"mmcv.imresize with {backend}")


def _sides(value: Any) -> Size:
    """Two sides as they stand, or one twice; ``img_scale`` may be a list of them."""
    inner = value[0] if isinstance(value, list) and len(value) == 1 else value
    return values.sides(inner)


def _resize(is_sdk: bool, around: object, steps: ImageSteps, keys: Keys) -> None:
    key = next((name for name in ("scale", "img_scale", "size") if name in keys), "scale")
    if key not in keys and around is not None:
        keys.values = {**keys.values, key: around}
    kernel = _kernel(keys)
    unused = dict.fromkeys(("clip_object_border", "multiscale_mode", "ratio_range"), _NOTHING)
    keys.aside(unused | {"override": "of a second resize"})
    short = keys.values.get(key)
    if isinstance(short, list) and len(short) == 2 and short[1] == -1:
        side = keys.take(key, lambda _: values.pixels(short[0]), 0)
        steps.resize(keys, key, "short_side", (side, side), kernel, "down")
        return
    width, height = keys.need(key, _sides, (0, 0), "a profile needs one size")
    if key == "size" and not is_sdk:
        height, width = width, height
    if "keep_ratio" not in keys and not is_sdk and (key == "img_scale" or around is not None):
        keys.problem("keep_ratio", "not written, and its default depends on the version")
    elif not keys.take("keep_ratio", values.boolean, False):
        steps.resize(keys, key, "squash", (height, width), kernel, how="keep_ratio")
    elif width != height:
        box = min(width, height), max(width, height)
        steps.resize(keys, key, "keep_ratio", box, kernel, "half_up", "keep_ratio")
    else:
        steps.resize(keys, key, "fit", (height, width), kernel, "half_up", "keep_ratio")


def _resize_edge(steps: ImageSteps, keys: Keys) -> None:
    side = keys.need("scale", values.pixels, 0, "it is the size of the edge")
    keys.choice("edge", {"short": "short"}, "short")
    steps.resize(keys, "scale", "short_side", (side, side), _kernel(keys), "down", "edge")


def _crop(steps: ImageSteps, keys: Keys) -> None:
    size = keys.need("crop_size", _sides, (0, 0), "it is the network's size")
    keys.only("efficientnet_style", False, "it resizes after the crop, by a padding of its own")
    keys.only("auto_pad", False, "a profile's crop does not pad")
    unused = ("crop_padding", "interpolation", "backend", "pad_cfg", "clip_object_border")
    keys.aside(dict.fromkeys(unused, "not used without efficientnet_style or auto_pad"))
    if size[0] != size[1]:
        keys.refuse("crop_size", "(w, h) in MMCV and (h, w) in mmcls 0.x; a square expected")
    steps.crop(keys, "crop_size", size, "even")


def _normalize(steps: ImageSteps, keys: Keys) -> None:
    mean = keys.need("mean", values.three, [Fraction(0)] * 3, "it is a part of the arithmetic")
    std = keys.need("std", values.three_above_zero, [Fraction(1)] * 3, "likewise")
    keys.aside({"to_float": _NOTHING})
    if keys.take("to_rgb", values.boolean, True):
        steps.reverse(keys.origin("to_rgb", "true is the default"))
    steps.normalize(mean, std, keys.origin("mean"), keys.origin("std"))


def _level(value: Any) -> list[Fraction]:
    inner = value.get("img", 0) if isinstance(value, dict) else value
    return values.three(inner)


def _pad(steps: ImageSteps, keys: Keys) -> None:
    level = keys.take("pad_val", _level, [Fraction(0)] * 3)
    keys.choice("padding_mode", {"constant": "constant"}, "constant")
    square = keys.take("pad_to_square", values.boolean, False)
    divisor = keys.take("size_divisor", values.pixels, 1)
    width, height = keys.take("size", _sides, (0, 0))
    done = steps.size
    if square or "size" not in keys:
        height, width = done
    key = next((k for k in ("size", "pad_to_square", "size_divisor") if k in keys), "size")
    why = keys.origin("pad_val", "0 is the default")
    if not square and "size" not in keys and steps.keeps:
        steps.pad_to_multiple(keys, key, divisor, level, why)
        return
    if not square and "size" not in keys and steps.varies:
        keys.refuse(key, "the size of the network's input varies by image; a profile has one: "
                    "write size, or pad_to_square")  # fmt: skip
        return
    if height % divisor or width % divisor:
        keys.refuse("size_divisor", f"{height}x{width} is no multiple; write the final size")
        return
    steps.pad(keys, key, (height, width), level, "top_left", why)


def preprocessor(steps: ImageSteps, keys: Keys) -> Order:
    """Follow a ``data_preprocessor``, which normalizes the batch on the device.

    Source: open-mmlab/mmengine, ``model/base_model/data_preprocessor.py``: channels are reversed,
    then (x - mean) / std, then the batch is padded with ``pad_value``.
    """
    mean = keys.take("mean", values.three, [Fraction(0)] * 3)
    std = keys.take("std", values.three_above_zero, [Fraction(1)] * 3)
    for name in ("bgr_to_rgb", "to_rgb", "rgb_to_bgr"):
        if keys.take(name, values.boolean, False):
            steps.reverse(keys.origin(name))
    if "mean" in keys:
        steps.normalize(mean, std, keys.origin("mean"), keys.origin("std"))
    divisor = keys.take("pad_size_divisor", values.pixels, 1)
    _pad_batch(steps, keys, divisor)
    if not steps.keeps and any(side % divisor for side in steps.size):
        keys.refuse("pad_size_divisor", "pads with numbers after the normalization; resize to a "
                    "multiple of it")  # fmt: skip
    unused = "not used here: there is no more to pad, and no mask or label"
    keys.aside(dict.fromkeys(
        ("type", "pad_value", "pad_val", "pad_mask", "mask_pad_value", "pad_seg", "seg_pad_value",
         "seg_pad_val",
         "boxtype2tensor", "batch_augments", "size", "size_divisor", "test_cfg", "num_classes",
         "to_onehot", "non_blocking"), unused))  # fmt: skip
    keys.rest(named=("type",))
    return "divide", "ImgDataPreprocessor: (x - mean) / std"


def _pad_batch(steps: ImageSteps, keys: Keys, divisor: int) -> None:
    """Pad images that differ in size as the preprocessor does; MMSegmentation's by ``test_cfg``."""
    key = "pad_size_divisor"
    test = keys.values.get("test_cfg")
    if steps.keeps and isinstance(test, dict):
        key, divisor = "test_cfg", 0
        if set(test) == {"size_divisor"}:
            divisor = keys.take(key, lambda _: values.pixels(test["size_divisor"]), 1)
        else:
            keys.refuse(key, "pads to another size than a multiple; write size_divisor")
    if steps.keeps and divisor > 1:
        name = "pad_val" if "pad_val" in keys else "pad_value"
        level = keys.take(name, values.three, [Fraction(0)] * 3)
        steps.pad_to_multiple(keys, key, divisor, level, keys.origin(name, "0 is the default"))
