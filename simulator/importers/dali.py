"""NVIDIA DALI: a pipeline in a Python file, or a serialized one (``model.dali``, or its text).

Sources: DALI documentation, ``fn.decoders.image`` (RGB, turned by EXIF), ``fn.resize`` (linear,
``antialias`` and ``subpixel_scale`` by default), ``fn.crop_mirror_normalize`` (mean and std on
0-255, the crop's center); NVIDIA/DALI, ``dali/pipeline/dali.proto`` (its numbers were read off what
``Pipeline.serialize()`` of DALI 2.4 writes),
``include/dali/core/dali_data_type.h`` and ``dali/operators/image/resize`` (numbers of types).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from simulator.errors import ProfileError
from simulator.importers import protobuf_file, values
from simulator.importers.compositions import Composition
from simulator.importers.draft import Draft, Order
from simulator.importers.image_steps import Follow, ImageSteps, follow
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.protobuf_file import Schema
from simulator.importers.python_values import Called, Reader
from simulator.importers.resizing import Kernel
from simulator.importers.textproto import TextProto

_ORDER: Order = ("multiply", "fn.crop_mirror_normalize: (x - mean) * (1 / std) in float32")
_SCHEMA: Schema = {
    "PipelineDef": {"op": (5, "*OpDef")},
    "OpDef": {"name": (1, "string"), "args": (4, "*Argument")},
    "Argument": {
        "name": (1, "string"), "type": (2, "string"), "floats": (3, "*float"),
        "ints": (4, "*int64"), "strings": (5, "*string"), "bools": (6, "*bool"),
        "args": (7, "*Argument"), "is_vector": (8, "bool"),
    },
}  # fmt: skip
_KERNELS = {"INTERP_NN": "nearest", "INTERP_LINEAR": "bilinear", "INTERP_CUBIC": "bicubic",
            "INTERP_LANCZOS3": "lanczos3", "INTERP_TRIANGULAR": "bilinear",
            "INTERP_GAUSSIAN": "gaussian"}  # fmt: skip
_NUMBERS = {**dict(enumerate(_KERNELS.values()))}
_HALF = ("FLOAT16", "float16", 8)
_TYPES = ("FLOAT", "float", "FLOAT32", 9)
_UNUSED = values.keys_by_reason({
    "where it runs, not what it computes":
        "device bytes_per_sample_hint preserve preserve_name name device_memory_padding "
        "host_memory_padding "
        "device_memory_padding_jpeg2k host_memory_padding_jpeg2k hw_decoder_load cache_size "
        "split_stages memory_stats affine hybrid_huffman_threshold preallocate_width_hint "
        "preallocate_height_hint temp_buffer_hint minibatch_size seed",
    "the axes: the model card's input.layout": "output_layout",
})  # fmt: skip
_ASIDE = dict.fromkeys(
    ("external_source", "file", "mxnet", "tfrecord", "coco", "_external_source", "one_hot",
     "_make_contiguous", "make_contiguous"), "where data come from or go to",
)  # fmt: skip


class Dali(Importer):
    """A pipeline of DALI."""

    name = tool = "dali"
    about = "a Python file with a pipeline of NVIDIA DALI, or a serialized one"
    base = "dali_fp32"
    line = r"^[ \t]*(from|import)\s+nvidia\.dali|^[ \t]*op\s*\{\s*(\n\s*)?name\s*:"

    def recognises(self, file: ConfigFile) -> bool:
        """Whether it is a ``model.dali``, or imports DALI."""
        return file.path.suffix == ".dali" or super().recognises(file)

    def stacks(self, file: ConfigFile) -> list[str]:
        """Name the functions that build a pipeline with a resize."""
        return [one.label for one in _pipelines(file)]

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the operators of one of them."""
        found = _pipelines(file)
        if not found:
            why = "no function that calls fn.resize, or text of operators"
            draft.problems.append(f"{file.path}:1: {why}")
            return
        each = found[stack].keys(draft, file)
        steps = ImageSteps(draft, "DALI", "rgb", ["fn.decoders.image gives RGB"])
        for _, keys in each:
            keys.aside(_UNUSED)
        follow(steps, each, _KINDS, _ASIDE)
        if not draft.problems:
            steps.finish(_ORDER, each[0][1])


def _pipelines(file: ConfigFile) -> list[Composition]:
    if file.path.suffix == ".dali":
        return [Composition("the only one", _serialized(file))]
    if file.has_line(r"^[ \t]*op\s*\{"):
        proto = TextProto.read(file.path, file.text)
        return [Composition("the only one", _operators(proto))]
    reader = Reader(file.path, file.text, lambda _, __: {})
    calls = [one for one in reader.calls if one.called.startswith("fn.") or ".fn." in one.called]
    names = list(dict.fromkeys(one.function for one in calls if one.value["type"] == "resize"))
    return [
        Composition(name or "the module", [_operator(one) for one in calls if one.function == name])
        for name in names
    ]


def _operator(call: Called) -> tuple[str, values.Object, int]:
    kind = str(call.value["type"])
    held = {key: one for key, one in call.value.items() if key not in ("type", "args")}
    return kind, held, call.line


def _operators(proto: TextProto) -> list[tuple[str, values.Object, int]]:
    """Return the operators of a serialized pipeline's text."""
    made = []
    for at, one in enumerate(_many(proto.values.get("op"))):
        written = {
            str(argument.get("name")): _of_text(argument) for argument in _many(one.get("args"))
        }
        line = proto.lines.get(("op", at), proto.lines.get(("op",), 1))
        made.append((_named(str(one.get("name"))), _kept(written), line))
    return made


def _many(value: Any) -> list[values.Object]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]


def _of_text(argument: values.Object) -> Any:
    if inner := _many(argument.get("args")):
        return [_of_text(one) for one in inner]
    return next(
        (one for key, one in argument.items() if key not in ("name", "type", "is_vector")), None
    )


def _serialized(file: ConfigFile) -> list[tuple[str, values.Object, int]]:
    try:
        found = protobuf_file.parse("dali", _SCHEMA, file.whole())
    except protobuf_file.BrokenFileError as error:
        raise ProfileError(
            [f"{file.path}: a damaged model.dali: {values.plain(str(error))}"]
        ) from error
    return [(_named(one.name), _kept({arg.name: _of_binary(arg) for arg in one.args}), 1)
            for one in found.op]  # fmt: skip


def _of_binary(argument: Any) -> Any:
    if argument.is_vector:
        return [_of_binary(one) for one in argument.args]
    kind = {"float": argument.floats, "bool": argument.bools, "string": argument.strings}
    found = kind.get(argument.type, argument.ints)
    one = found[0] if found else None
    return float(str(np.float32(one))) if isinstance(one, float) else one


def _kept(written: values.Object) -> values.Object:
    """Return the arguments without those that DALI adds on its own."""
    return {key: one for key, one in written.items() if not key.startswith("_")}


def _named(operator: str) -> str:
    """Return the name of the function of an operator: ``decoders__Image`` is ``image``."""
    words = operator.rpartition("__")[2]
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in words).lstrip("_")


def _decode(steps: ImageSteps, keys: Keys) -> None:
    order = keys.choice("output_type", {"types.RGB": "rgb", 0: "rgb", "types.BGR": "bgr", 1: "bgr",
                                        "RGB": "rgb", "BGR": "bgr"}, "rgb")  # fmt: skip
    if order == "bgr":
        steps.reverse("the decoder gives BGR")
    steps.turned.append(keys.origin("output_type", "RGB is the default"))
    draft = steps.draft
    turns = keys.take("adjust_orientation", values.boolean, True)
    fast = keys.take("use_fast_idct", values.boolean, False)
    draft.whole.add("decode")
    draft.write("decode", "backend", "dali", "fn.decoders.image")
    exif = keys.origin("adjust_orientation", "true is the default")
    draft.write("decode", "exif", "apply" if turns else "ignore", exif)
    idct = keys.origin("use_fast_idct", "false is the default")
    draft.write("decode", "idct", "ifast" if fast else "islow", idct)
    keys.only("jpeg_fancy_upsampling", True, "of nvJPEG on a GPU; here the CPU decodes")
    on_gpu = keys.values.get("device") in ("mixed", "gpu")
    why = "device=mixed: nvJPEG on a GPU decodes; here DALI's decoder on the CPU does"
    draft.claim("decode", "assumed" if on_gpu else "native", why if on_gpu else "fn.decoders.image")


def _side(value: Any) -> int:
    return values.pixels(int(value) if isinstance(value, float) and value == int(value) else value)


def _sides(value: Any) -> list[int]:
    if not isinstance(value, list):
        raise ValueError("a list of sides expected")
    return [_side(one) for one in value]


def _resize(steps: ImageSteps, keys: Keys) -> None:
    names = {f"types.{name}": kind for name, kind in _KERNELS.items()}
    kernel = keys.choice("interp_type", {**names, **_KERNELS, **_NUMBERS}, "bilinear")
    antialias = keys.take("antialias", values.boolean, True) and kernel != "nearest"
    subpixel = keys.take("subpixel_scale", values.boolean, True)
    keys.tell("antialias", "subpixel_scale", "resize_y", "mode")
    origin = keys.origin("interp_type", "INTERP_LINEAR is the default")
    fields = {"antialias": antialias, "subpixel_scale": subpixel}
    used = Kernel("dali", kernel, "fn.resize", origin, "fn.resize on the CPU", fields)
    mode = keys.choice("mode", {one: one for one in ("default", "stretch", "not_larger",
                                                     "not_smaller")}, "default")  # fmt: skip
    sizes = {key: keys.take(key, _side, 0) for key in ("resize_x", "resize_y", "resize_shorter")}
    both = keys.take("size", _sides, [0])
    if "resize_shorter" in keys:
        side = sizes["resize_shorter"]
        steps.resize(keys, "resize_shorter", "short_side", (side, side), used, "half_up")
        return
    key = "size" if "size" in keys else "resize_x"
    height, width = both if len(both) == 2 else (sizes["resize_y"], sizes["resize_x"])
    if not height or not width:
        keys.problem(key, "one side alone gives an input whose size varies by image; write both")
    elif mode in ("default", "stretch"):
        steps.resize(keys, key, "squash", (height, width), used)
    elif mode == "not_larger":
        steps.resize(keys, key, "fit", (height, width), used, "half_up", "mode")
    elif height == width:
        steps.resize(keys, key, "short_side", (height, width), used, "half_up", "mode")
    else:
        keys.refuse("mode", "a profile covers a square only")


def _crop_of(steps: ImageSteps, keys: Keys) -> None:
    size = keys.take("crop", _sides, [0])
    sides = [keys.take(key, _side, 0) for key in ("crop_h", "crop_w")]
    keys.tell("crop_w")
    for key in ("crop_pos_x", "crop_pos_y"):
        if keys.take(key, values.number, Fraction(1, 2)) != Fraction(1, 2):
            keys.refuse(key, "a profile crops the center")
        keys.tell(key)
    if "crop" in keys or "crop_h" in keys:
        key = "crop" if "crop" in keys else "crop_h"
        height, width = size[:2] if len(size) >= 2 else sides
        steps.crop(keys, key, (height, width), "half_up")


def _crop_mirror_normalize(steps: ImageSteps, keys: Keys) -> None:
    _crop_of(steps, keys)
    if keys.take("mirror", lambda value: value, 0) not in (0, False):
        keys.refuse("mirror", "images are flipped; a profile flips none")
    written = keys.take("dtype", lambda value: value, "FLOAT")
    kind = written if isinstance(written, int) else written.rpartition(".")[2]
    if kind in _HALF:
        why = f"{keys.origin('dtype')}: rounded to float16 there, float32 here"
        steps.draft.claim("normalize", "assumed", why)
    elif kind not in _TYPES:
        keys.refuse("dtype", "types.FLOAT expected; a profile has float32")
    keys.tell("dtype", "mirror", "pad_output", "out_of_bounds_policy")
    keys.only("pad_output", False, "a fourth channel; a profile's images have three")
    keys.choice("out_of_bounds_policy", {"error": 0}, 0)
    scale = keys.take("scale", values.above_zero, Fraction(1))
    shift = keys.take("shift", values.number, Fraction(0))
    mean = keys.take("mean", values.three, [Fraction(0)] * 3)
    std = keys.take("std", values.three_above_zero, [Fraction(1)] * 3)
    said = [keys.origin(key) for key in ("mean", "std", "scale", "shift") if key in keys]
    steps.normalize(mean, [one / scale for one in std], *said)
    steps.normalize([-shift] * 3, [Fraction(1)] * 3)


_KINDS: dict[str, Follow] = {
    "image": _decode, "resize": _resize, "crop": _crop_of,
    "crop_mirror_normalize": _crop_mirror_normalize,
}  # fmt: skip

DALI = Dali()
"""Also read by Triton's importer."""
