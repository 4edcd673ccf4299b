"""Operators of ONNX as functions of TensorFlow: those of ``tf.nn``, images as NHWC between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from onnx import numpy_helper

from backends.tensorflow_library import tensorflow

tf: Any = tensorflow
TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(frozen=True, slots=True)
class Image:
    """A batch of images whose channels are last.

    Attributes:
        nhwc: the tensor.
    """

    nhwc: Any


def plain(value: Any) -> Any:
    """Return a value in the layout of ONNX."""
    return tf.transpose(value.nhwc, TO_NCHW) if isinstance(value, Image) else value


def last(value: Any) -> Any:
    """Return a value with channels last; what has fewer dimensions is seen as (1, ..., C, H, W)."""
    if isinstance(value, Image):
        return value.nhwc
    if (rank := len(value.shape)) < 4:
        value = tf.reshape(value, [1] * (4 - rank) + list(value.shape))
    return tf.transpose(value, TO_NHWC)


Own = Mapping[str, Any]
Operator = Callable[[Sequence[Any], Own], Any]


def _named(name: str) -> Callable[..., Any]:
    """A function of TensorFlow by its name, which is looked up when it is called."""

    def call(*given: Any, **own: Any) -> Any:
        return attrgetter(name)(tf.load())(*given, **own)

    return call


def _one(function: Callable[[Any], Any]) -> Operator:
    """An operator on each element, in whatever layout."""

    def apply(given: Sequence[Any], own: Own) -> Any:
        (x,) = given
        return Image(function(x.nhwc)) if isinstance(x, Image) else function(x)

    return apply


def _two(name: str) -> Operator:
    """An operator on pairs of elements, which stays in NHWC where an image is among them."""

    def apply(given: Sequence[Any], own: Own) -> Any:
        if any(isinstance(one, Image) for one in given):
            return Image(_named(name)(*map(last, given)))
        return _named(name)(*given)

    return apply


def _usual(function: Callable[..., Any]) -> Operator:
    """An operator in the layout of ONNX, with attributes as named arguments."""
    return lambda given, own: function(*map(plain, given), **own)


def _pads(own: Own) -> list[list[int]] | str:
    """The padding of a window, as TensorFlow takes it in NHWC."""
    kind = own.get("auto_pad", b"NOTSET")
    if kind == b"SAME_LOWER":
        raise NotImplementedError("SAME_LOWER")
    top, left, bottom, right = own.get("pads", (0, 0, 0, 0))
    if kind == b"VALID" or (kind == b"NOTSET" and not (top or left or bottom or right)):
        return "VALID"
    if kind == b"SAME_UPPER":
        return "SAME"
    return [[0, 0], [top, bottom], [left, right], [0, 0]]


def _conv(given: Sequence[Any], own: Own) -> Any:
    x, w, b = (*given, None)[:3]
    image, groups = last(x), own.get("group", 1)
    steps, spread = own.get("strides", [1, 1]), own.get("dilations", [1, 1])
    if len(w.shape) != 4:
        raise NotImplementedError("other than two dimensions")
    pads = _pads(own)
    if groups == image.shape[-1] and groups > 1:
        if not isinstance(pads, str):  # TensorFlow 2.21 aborts where its optimizer meets them here
            image, pads = tf.pad(image, pads), "VALID"
        kernel = tf.transpose(tf.reshape(w, [groups, -1, *w.shape[2:]]), (2, 3, 0, 1))
        made = tf.nn.depthwise_conv2d(image, kernel, [1, *steps, 1], pads, dilations=spread)
    else:
        parts = zip(tf.split(image, groups, 3), tf.split(w, groups, 0), strict=True)
        made = tf.concat([
            tf.nn.conv2d(part, tf.transpose(own_w, (2, 3, 1, 0)), steps, pads, dilations=spread)
            for part, own_w in parts
        ], 3)  # fmt: skip
    return Image(made if b is None else tf.nn.bias_add(made, b))


def _conv_transpose(given: Sequence[Any], own: Own) -> Any:
    x, w, b = (*given, None)[:3]
    image, (down, right) = last(x), own.get("strides", [1, 1])
    if own.get("group", 1) != 1 or any(own.get("pads", ())) or any(own.get("output_padding", ())):
        raise NotImplementedError("groups and padding")
    batch, height, width, _ = tf.unstack(tf.shape(image))
    size = [batch, (height - 1) * down + w.shape[2], (width - 1) * right + w.shape[3], w.shape[1]]
    kernel = tf.transpose(w, (2, 3, 1, 0))
    made = tf.nn.conv2d_transpose(image, kernel, size, [down, right], "VALID")
    return Image(made if b is None else tf.nn.bias_add(made, b))


def _pool(given: Sequence[Any], own: Own, largest: bool) -> Any:
    image, pads = last(given[0]), _pads(own)
    if own.get("ceil_mode", 0) or len(own["kernel_shape"]) != 2:
        raise NotImplementedError("ceil_mode, and other than two dimensions")
    window = own["kernel_shape"], own.get("strides", [1, 1])
    if largest:
        return Image(tf.nn.max_pool2d(image, *window, pads))
    if isinstance(pads, str):
        return Image(tf.nn.avg_pool2d(image, *window, pads))
    made = tf.nn.avg_pool2d(tf.pad(image, pads), *window, "VALID")
    if any(map(any, pads)) and not own.get("count_include_pad", 0):
        made /= tf.nn.avg_pool2d(tf.pad(tf.ones_like(image), pads), *window, "VALID")
    return Image(made)


def _batch_norm(given: Sequence[Any], own: Own) -> Any:
    x, scale, shift, mean, variance = given
    image = isinstance(x, Image) or len(x.shape) == 4
    value = last(x) if image else x
    made = tf.nn.batch_normalization(value, mean, variance, shift, scale, own.get("epsilon", 1e-5))
    return Image(made) if image else made


def _gemm(given: Sequence[Any], own: Own) -> Any:
    a, b, c = (*map(plain, given), None)[:3]
    turned = {f"transpose_{one}": bool(own.get(f"trans{one.upper()}", 0)) for one in "ab"}
    made = own.get("alpha", 1.0) * tf.matmul(a, b, **turned)
    return made if c is None else made + own.get("beta", 1.0) * c


def _reshape(given: Sequence[Any], own: Own) -> Any:
    x, to = plain(given[0]), tf.get_static_value(given[1])
    if to is None:
        return tf.reshape(x, given[1])
    sizes = [int(n) or tf.shape(x)[at] for at, n in enumerate(to)]
    if x.shape[0] is None and to[0] == 1 and None not in x.shape[1:]:
        rest = int(np.prod(x.shape[1:])) // max(1, int(np.prod([n for n in to[1:] if n > 0])))
        sizes = [-1, *(rest if n == -1 else int(n) for n in to[1:])]
    return tf.reshape(x, sizes)


def _flatten(x: Any, axis: int = 1) -> Any:
    if axis != 1:
        raise NotImplementedError("another axis than 1")
    return tf.reshape(x, [-1, int(np.prod(x.shape[1:]))])


def _concat(given: Sequence[Any], own: Own) -> Any:
    if own["axis"] == 1 and all(isinstance(one, Image) for one in given):
        return Image(tf.concat([one.nhwc for one in given], 3))
    return tf.concat([*map(plain, given)], own["axis"])


def _mean(x: Any, axes: Any = None, keepdims: int = 1) -> Any:
    return tf.reduce_mean(x, None if axes is None else [int(at) for at in axes], bool(keepdims))


def _resize(given: Sequence[Any], own: Own) -> Any:
    x, _, scales, sizes = (*given, None, None, None)[:4]
    image, grid = last(x), own.get("coordinate_transformation_mode", b"half_pixel")
    factor = np.ones(2) if scales is None or not len(scales) else np.asarray(scales)[2:]
    to = [
        int(n) for n in (np.asarray(sizes)[2:] if sizes is not None else image.shape[1:3] * factor)
    ]
    kind = own.get("mode", b"nearest"), grid, own.get("nearest_mode", b"round_prefer_floor")
    if kind[:2] == (b"linear", b"half_pixel"):
        return Image(tf.image.resize(image, to, "bilinear"))
    if kind == (b"nearest", b"asymmetric", b"floor"):
        return Image(tf.compat.v1.image.resize_nearest_neighbor(image, to))
    raise NotImplementedError(" ".join(word.decode() for word in kind))


def _layer_norm(
    x: Any, scale: Any, shift: Any = None, axis: int = -1, epsilon: float = 1e-5, **_: Any
) -> Any:
    axes = list(range(axis % len(x.shape), len(x.shape)))
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, shift, scale, epsilon)


def _clip(given: Sequence[Any], own: Own) -> Any:
    x, low, high = (*given, None, None)[:3]
    low, high = own.get("min", low), own.get("max", high)

    def apply(value: Any) -> Any:
        value = value if low is None else tf.maximum(value, low)
        return value if high is None else tf.minimum(value, high)

    return _one(apply)([x], {})


def _constant(given: Sequence[Any], own: Own) -> Any:
    if "value" not in own:
        raise NotImplementedError("constants that are no tensors")
    return np.array(numpy_helper.to_array(own["value"]))


def _squeeze(x: Any, axes: Any = None) -> Any:
    if axes is None:
        raise NotImplementedError("without axes, which would be those of the batch too")
    return tf.squeeze(x, [int(at) for at in axes])


def _unsqueezed(x: Any, axes: Any) -> list[Any]:
    sizes: list[Any] = [-1 if n is None else n for n in x.shape]
    for at in sorted(int(axis) for axis in axes):
        sizes.insert(at, 1)
    return sizes


_TWO = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Pow": "pow"}
_ONE = {
    "Relu": "nn.relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Erf": "math.erf", "Sqrt": "sqrt",
    "Exp": "exp", "Identity": "identity",
}  # fmt: skip
OPERATORS: dict[str, Operator] = {
    **{name: _two(of) for name, of in _TWO.items()},
    **{name: _one(_named(of)) for name, of in _ONE.items()},
    "AveragePool": lambda given, own: _pool(given, own, largest=False),
    "BatchNormalization": _batch_norm,
    "Clip": _clip,
    "Concat": _concat,
    "Constant": _constant,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Flatten": _usual(_flatten),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda given, own: Image(tf.reduce_mean(last(given[0]), (1, 2), True)),
    "HardSwish": _one(lambda x: x * tf.clip_by_value(x / 6 + 0.5, 0, 1)),
    "LayerNormalization": _usual(_layer_norm),
    "LeakyRelu": lambda given, own: _one(
        lambda x: tf.nn.leaky_relu(x, own.get("alpha", 0.01)))(given, own),
    "MatMul": _usual(_named("matmul")),
    "MaxPool": lambda given, own: _pool(given, own, largest=True),
    "ReduceMean": _usual(_mean),
    "Reshape": _reshape,
    "Resize": _resize,
    "Softmax": _usual(lambda x, axis=-1: tf.nn.softmax(x, axis)),
    "Squeeze": _usual(_squeeze),
    "Transpose": _usual(_named("transpose")),
    "Unsqueeze": _usual(lambda x, axes: tf.reshape(x, _unsqueezed(x, axes))),
}  # fmt: skip
"""What is converted, by ONNX's names."""
