"""OpenVINO's ``.xml``: the preprocessing that PrePostProcessor wrote into the graph.

Sources: OpenVINO documentation, "Preprocessing API - details"; openvinotoolkit/openvino,
``src/core/src/preprocess/preprocess_steps_impl.cpp`` (which operations a step becomes; mean and
scale carry the mark ``preprocessing``, the others none).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from simulator.importers.draft import Draft, Normalization, Order
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.openvino_ir import Graph, Layer, graph_of
from simulator.importers.values import PIXELS, number, reciprocal, show

_COLORS = {"NV12toRGB": ("nv12", "rgb"), "NV12toBGR": ("nv12", "bgr"),
           "I420toRGB": ("i420", "rgb"), "I420toBGR": ("i420", "bgr")}  # fmt: skip
_RESIZES = {"linear": ("bilinear", False), "linear_onnx": ("bilinear", False),
            "nearest": ("nearest", False), "cubic": ("bicubic", False),
            "bilinear_pillow": ("bilinear", True), "bicubic_pillow": ("bicubic", True)}  # fmt: skip
_FIXED = {"coordinate_transformation_mode": "half_pixel", "antialias": "false"}
_OWN_GRID = ("bilinear_pillow", "bicubic_pillow")
_BEHIND_RESIZE: Order = ("multiply_add", "OpenVINO's CPU plugin, behind its own resize")
_ALONE: Order = ("fused_multiply_add", "OpenVINO's CPU plugin, where the graph does not resize")
_MOST = 8
"""Steps of arithmetic; PrePostProcessor writes two."""
_LAYOUTS = {(0, 3, 1, 2), (0, 2, 3, 1)}


@dataclass(slots=True)
class _Steps:
    """What the steps so far have done."""

    draft: Draft
    graph: Graph
    yuv: tuple[str, str] | None = None
    turned: bool = False
    resized: Layer | None = None
    normalization: Normalization = field(default_factory=Normalization)
    done: list[str] = field(default_factory=list)

    def refuse(self, layer: Layer, why: str) -> None:
        """Report a step that a profile does not have."""
        said = f"{layer.kind} {show(layer.name)}"
        self.draft.problems.append(f"{self.graph.path}:{layer.line}: {said}: {why}")


class OpenVino(Importer):
    """The steps of PrePostProcessor in an IR."""

    name = tool = "openvino"
    about = "OpenVINO's .xml with the steps of PrePostProcessor"
    base = "openvino_ppp_fp32"
    line = r"\A\s*<"

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the graph from its input to the network."""
        _read(graph_of(file.path, file.text), draft)


def _read(found: Graph, draft: Draft) -> None:
    path = found.path
    inputs = [at for at, layer in found.layers.items() if layer.kind == "Parameter"]
    first = {user for at in inputs for user in found.users.get(at, [])}
    planes = len(first) == 1 and found.layers[next(iter(first))].kind in _COLORS
    if len(inputs) > 1 and not planes:
        names = show(", ".join(found.layers[at].name for at in inputs))
        draft.problems.append(f"{path}: inputs {names}: a profile feeds one image")
        return
    steps = _Steps(draft, found)
    last = _follow(steps, inputs[0])
    if draft.problems:
        return
    if not (steps.yuv or steps.resized or steps.normalization.origins):
        draft.problems.append(
            f"{path}: no color conversion, resize, mean or scale of PrePostProcessor at the input; "
            "write what the application does by hand, or import its configuration"
        )
        return
    _card(steps, found.layers[last])
    if not draft.problems:
        _write(steps)


def _follow(steps: _Steps, at: str) -> str:
    """Take steps from the input on, and return the id of the last one."""
    kinds: dict[str, Callable[[_Steps, str, Layer], bool]] = {
        "Convert": _convert, "Gather": _gather, "Interpolate": _interpolate,
        "Subtract": _arithmetic, "Add": _arithmetic, "Multiply": _arithmetic,
        "Divide": _arithmetic, "Transpose": _transpose, **dict.fromkeys(_COLORS, _color),
    }  # fmt: skip
    graph = steps.graph
    for _ in graph.layers:
        users = graph.users.get(at, [])
        layer = graph.layers.get(users[0]) if len(users) == 1 else None
        step = kinds.get(layer.kind) if layer else None
        if layer is None or step is None or not step(steps, users[0], layer):
            break
        steps.done.append(layer.name)
        at = users[0]
    after = [graph.layers[user] for user in graph.users.get(at, []) if user in graph.layers]
    names = ", ".join(f"{layer.kind} {layer.name}" for layer in after)
    steps.draft.aside.append(f"{show(names)}: where the network itself is taken to begin")
    return at


def _convert(steps: _Steps, at: str, layer: Layer) -> bool:
    if layer.data.get("destination_type") != "f32":
        steps.refuse(layer, "pixels become float32 in a profile, and no other type")
    return True


def _gather(steps: _Steps, at: str, layer: Layer) -> bool:
    """Channels reversed; anything else is the network's."""
    order = steps.graph.constant(at, 1)
    if order is None or order.tolist() != [2, 1, 0]:
        return False
    steps.turned = not steps.turned
    steps.normalization.reverse()
    return True


def _color(steps: _Steps, at: str, layer: Layer) -> bool:
    steps.yuv = _COLORS[layer.kind]
    return True


def _interpolate(steps: _Steps, at: str, layer: Layer) -> bool:
    mode = layer.data.get("mode", "")
    wanted = {} if mode in _OWN_GRID else _FIXED
    odd = [f"{key}={layer.data[key]}" for key, value in wanted.items()
           if layer.data.get(key, value) != value]  # fmt: skip
    odd += [f"{key}={layer.data[key]}" for key in ("pads_begin", "pads_end")
            if set(layer.data.get(key, "0").replace(" ", "").split(",")) != {"0"}]  # fmt: skip
    if mode not in _RESIZES or odd:
        said = show(", ".join(odd) or f"mode={mode}")
        steps.refuse(layer, f"{said}: OpenVINO's resizers do not offer this here")
    if steps.normalization.origins or steps.resized:
        steps.refuse(layer, "a profile resizes once, and before mean and scale")
    steps.resized = layer
    return True


def _arithmetic(steps: _Steps, at: str, layer: Layer) -> bool:
    """Take mean and scale, which PrePostProcessor marks; unmarked ones are the network's own."""
    values = steps.graph.constant(at, 1) if layer.marked else None
    if values is None:
        return False
    try:
        numbers = [number(value) for value in _short(values)]
    except ValueError:
        numbers = []
    is_factor = layer.kind in ("Multiply", "Divide")
    if len(numbers) not in (1, 3) or (is_factor and min(numbers) <= 0):
        said = "one or three numbers up to 1e12 expected, of a scale above 0"
        steps.refuse(layer, f"{show(values.tolist())}: {said}")
        return True
    if len(steps.normalization.origins) == _MOST:
        steps.refuse(layer, f"more than {_MOST} steps of arithmetic")
        return True
    each = numbers * (3 // len(numbers))
    mean, std = [Fraction(0)] * 3, [Fraction(1)] * 3
    if is_factor:
        std = each if layer.kind == "Divide" else [reciprocal(one) for one in each]
    else:
        mean = each if layer.kind == "Subtract" else [-one for one in each]
    said = f"{layer.kind} {show(layer.name)}={show(_short(values))}"
    steps.normalization.then(mean, std, said)
    return True


def _short(values: Any) -> list[float]:
    """Return the fewest digits that are the same float32."""
    return [float(str(one)) for one in values.astype("f4")]


def _transpose(steps: _Steps, at: str, layer: Layer) -> bool:
    order = steps.graph.constant(at, 1)
    return order is not None and tuple(order.astype(int).tolist()) in _LAYOUTS


def _card(steps: _Steps, last: Layer) -> None:
    """Note the network's size and layout for the model card."""
    dims = last.dims[0] if last.dims else []
    layouts = {1: "NCHW", 3: "NHWC"}
    layout = next((layouts[i] for i in layouts if len(dims) == 4 and dims[i] == 3), "")
    sides = [side for i, side in enumerate(dims[1:], 1) if layout and layout[i] != "C"]
    if not layout or not all(0 < side <= PIXELS for side in sides):
        steps.refuse(last, f"{show(dims)}: a color image of one size expected after it")
        return
    steps.draft.network(sides, f"the shape behind {show(last.name)}", layout)


def _write(steps: _Steps) -> None:
    draft = steps.draft
    draft.whole |= {"color", "resize", "geometry"}
    why = f"the graph begins with pixels; the decoder is {draft.base.name}'s"
    draft.claim("decode", "assumed", why)
    _write_color(steps)
    _write_resize(steps)
    made = steps.normalization
    said = "; ".join(made.origins) or "no marked step; the application or the network may do it"
    order = _BEHIND_RESIZE if steps.resized else _ALONE
    draft.normalize(made.mean, made.std, order, lambda _: f"from openvino: {said}")
    left = f"steps that were followed: {show(', '.join(steps.done))}"
    draft.aside.append(f"{left}; give the card's ONNX file without them")


def _write_color(steps: _Steps) -> None:
    draft = steps.draft
    if steps.yuv is None:
        why = "which order the application feeds is not in the graph; the card says the network's"
        why += " (the graph reverses it)" if steps.turned else ""
        draft.color("the input has three channels", "model", why)
        draft.claim("color", "assumed", why)
        return
    format, order = steps.yuv
    if steps.turned:
        order = "bgr" if order == "rgb" else "rgb"
    name = f"from openvino: {format.upper()}to{steps.yuv[1].upper()}"
    bt601 = {"matrix": "bt601", "range": "limited"}
    draft.write("color", "format", format, name)
    draft.write("color", "order", order, name)
    draft.write("color", "source", "encode", "the camera's YUV is rebuilt from RGB")
    draft.write("color", "odd_size", "drop", "OpenVINO refuses odd sizes")
    encode = {"backend": "itu", **bt601, "chroma_downsampling": "average"}
    draft.write("color", "encode", encode, "assumed: what a camera gives")
    convert = {"backend": "openvino", **bt601, "chroma_upsampling": "nearest"}
    draft.write("color", "convert", convert, f"{name} is BT.601, limited range")
    rebuilt = "the camera's YUV is rebuilt by ITU-R BT.601, limited range"
    draft.claim("color", "emulated", f"convert_color is OpenVINO's own; {rebuilt}")


def _write_resize(steps: _Steps) -> None:
    draft, layer = steps.draft, steps.resized
    mode = layer.data["mode"] if layer else "linear"
    interpolation, antialias = _RESIZES[mode]
    said = f"from openvino: mode={mode}" if layer else "no step resizes; RESIZE_LINEAR is assumed"
    draft.write("resize", "backend", "openvino", said)
    draft.write("resize", "interpolation", interpolation, said)
    draft.write("resize", "antialias", antialias, said)
    draft.write("resize", "domain", "rgb", "PrePostProcessor resizes after the color conversion")
    squash = "Interpolate scales both sides" if layer else "the application resizes, assumed so"
    draft.write("geometry", "kind", "squash", squash)
    if layer is None:
        why = "the graph does not resize; what the application does is not in the file"
        draft.claim("resize", "assumed", why)
        draft.claim("geometry", "assumed", why)
    elif layer.inputs[:1] == ["U8"]:
        why = "the graph resizes bytes, and rounds; here OpenVINO resizes float32"
        draft.claim("resize", "assumed", why)
    else:
        draft.claim("resize", "native", f"OpenVINO's Interpolate, mode={mode}, on float32")


OPENVINO = OpenVino()
