"""Backends of plain numpy that pass every check; the faults start from them."""

from __future__ import annotations

import numpy as np
import onnx
import raw_faults
import sound_faults
import track_faults
from load_faults import PlainLoad
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tokenizer_faults import PlainTokenizer

from backends.fake_quant.tuner import TorchTuner
from backends.ffmpeg_video import OFFER as VIDEO
from backends.ffmpeg_video import FFmpegVideo
from backends.pillow import PillowDecoder
from backends.pytorch_adapter import TorchAdapter
from backends.pytorch_onnx import OnnxGradients
from simulator.contract import (
    Above,
    AtLeast,
    Backend,
    Cast,
    Converter,
    Effective,
    Encoder,
    Evidence,
    Exporter,
    Matrix,
    Offer,
    PixelFormat,
    Port,
    Quantizer,
    Range,
    Resizer,
    Runtime,
    Stage,
    yuv_frame,
)
from simulator.errors import ModelError
from simulator.reference import color


class NumpyResizer(Resizer):
    def _resize(self, plane, height, width):
        out = plane.reshape(*plane.shape[:2], -1).astype(np.float32)
        for axis, want in enumerate((height, width)):
            low, high, share = self._taps(out.shape[axis], want)
            share = share[:, None, None] if axis == 0 else share[:, None]
            out = out.take(low, axis) * (1 - share) + out.take(high, axis) * share
        return np.rint(out).astype(np.uint8).reshape(height, width, *plane.shape[2:])

    def _taps(self, have, want):
        """Between which two samples an output lies, and how near the second it is."""
        index = np.arange(want)
        if self.options["interpolation"] == "nearest":
            at = (2 * index + 1) * have // (2 * want)
            return at, at, np.zeros(want, np.float32)
        at = (index + 0.5) * have / want - 0.5
        low = np.floor(at).astype(int)
        return low.clip(0, have - 1), (low + 1).clip(0, have - 1), (at - low).astype(np.float32)


class NumpyEncoder(Encoder):
    def _encode(self, rgb):
        o = self.options
        exact = color.rgb_to_yuv(rgb, o["matrix"], o["range"])
        v, h = PixelFormat(o["format"]).subsampling
        small = (color.downsample(exact[..., c], v, h, o["chroma_downsampling"]) for c in (1, 2))
        planes = (np.rint(p).clip(0, 255).astype(np.uint8) for p in (exact[..., 0], *small))
        layout = PixelFormat(o["format"])
        return yuv_frame(layout, *planes, Matrix(o["matrix"]), Range(o["range"]))


class NumpyConverter(Converter):
    @property
    def assumes(self):
        return Matrix(self.options["matrix"]), Range(self.options["range"])

    def _convert(self, frame):
        size, how = (frame.height, frame.width), self.options["chroma_upsampling"]
        factors = frame.format.subsampling
        chroma = (color.upsample(p.astype(float), *factors, size, how) for p in frame.chroma)
        yuv = np.stack((frame.planes[0], *chroma), axis=-1)
        return np.rint(color.yuv_to_rgb(yuv, *self.assumes)).clip(0, 255).astype(np.uint8)


class NumpyRuntime(Runtime):
    def _open(self, artifact):
        self.model = onnx.load(str(artifact))
        onnx.checker.check_model(self.model)
        self._evaluator = ReferenceEvaluator(self.model)
        graph = self.model.graph
        return tuple(map(port, graph.input)), tuple(map(port, graph.output))

    def _run(self, feeds):
        (node, *others), (tensor, *_) = self.model.graph.node, [*self.model.graph.initializer, None]
        if node.op_type == "Conv" and tensor.dims[2:] == [1, 1] and not others:
            taps = numpy_helper.to_array(tensor)[..., 0, 0]
            return {"y": np.einsum("kc,nchw->nkhw", taps, feeds["x"])}
        return {"y": self._evaluator.run(None, dict(feeds))[0]}

    def effective(self, feeds):
        return Effective({"fp32": 1}, {"device": "cpu", "threads": self.options["threads"]})


def port(value):
    shape = tuple(d.dim_value or None for d in value.type.tensor_type.shape.dim)
    return Port(value.name, np.dtype(np.float32), shape)


class CopyExporter(Exporter):
    takes, gives = "onnx", "copy"

    def export(self, source, target):
        onnx.save(checked(source), str(target))


class HalfCast(Cast):
    """Weights become halves, and are made float32 again where they are used."""

    def cast(self, source, target):
        model = checked(source)
        for tensor in list(model.graph.initializer):
            self._replace(model.graph, tensor, numpy_helper.to_array(tensor))
        onnx.save(model, str(target))

    def _replace(self, graph, tensor, value):
        half = numpy_helper.from_array(value.astype(np.float16), f"{tensor.name}_half")
        node = helper.make_node("Cast", [half.name], [tensor.name], to=TensorProto.FLOAT)
        swap(graph, tensor, node, half)


class WeightQuantizer(Quantizer):
    """Weights become 8 bits with one scale a tensor."""

    def quantize(self, source, target, feeds):
        model = checked(source)
        for tensor in list(model.graph.initializer):
            self._replace(model.graph, tensor, numpy_helper.to_array(tensor))
        onnx.save(model, str(target))

    def _replace(self, graph, tensor, value):
        name, scale = tensor.name, np.float32(np.abs(value).max() / 127)
        stored = numpy_helper.from_array(np.rint(value / scale).astype(np.int8), f"{name}_int8")
        step = numpy_helper.from_array(np.array(scale), f"{name}_scale")
        node = helper.make_node("DequantizeLinear", [stored.name, step.name], [name])
        swap(graph, tensor, node, stored, step)


def swap(graph, tensor, node, *stored):
    graph.initializer.remove(tensor)
    graph.initializer.extend(stored)
    graph.node.insert(0, node)


def checked(path):
    try:
        return onnx.load(str(path))
    except Exception as error:
        raise ModelError("the source is no ONNX file") from error


YUV = {"format": ("nv12", "yuv444"), "matrix": ("bt601", "bt709"), "range": ("full", "limited")}
CORRECT = {
    Stage.DECODE: (
        PillowDecoder,
        {"exif": ("apply", "ignore"), "idct": ("islow",), "chroma_upsampling": ("fancy",)},
    ),
    Stage.VIDEO: (FFmpegVideo, VIDEO.options),
    Stage.RESIZE: (NumpyResizer, {"interpolation": ("bilinear", "nearest"), "antialias": (False,)}),
    Stage.ENCODE: (NumpyEncoder, {**YUV, "chroma_downsampling": ("average", "nearest")}),
    Stage.CONVERT: (NumpyConverter, {**YUV, "chroma_upsampling": ("nearest", "linear")}),
    Stage.RUNTIME: (
        NumpyRuntime,
        {"device": ("cpu",), "threads": AtLeast(1), "storage": ("fp32",), "compute": ("fp32",)},
    ),
    **sound_faults.CORRECT,
    **raw_faults.CORRECT,
    **track_faults.CORRECT,
    Stage.EXPORT: (CopyExporter, {}),
    Stage.CAST: (HalfCast, {"storage": ("fp16",)}),
    Stage.QUANTIZE: (WeightQuantizer, {"method": ("minmax",)}),
    Stage.LOAD: (PlainLoad, {}),
    "tokenize": (PlainTokenizer, {"special_tokens": (False, True)}),
    Stage.GRADIENT: (OnnxGradients, {"format": ("onnx",)}),
    Stage.ADAPT: (
        TorchAdapter,
        {
            "threads": AtLeast(1),
            "batch": AtLeast(1),
            "method": ("tent",),
            "steps": AtLeast(1),
            "learning_rate": Above(0),
            "reset": ("never", "batch"),
            "optimizer": ("adam", "sgd"),
        },
    ),
    Stage.TUNE: (
        TorchTuner,
        {
            "bits": (8,),
            "epochs": AtLeast(1),
            "batch": AtLeast(1),
            "threads": AtLeast(1),
            "output": ("logits",),
            "method": ("dorefa",),
            "weights": ("per_tensor",),
        },
    ),
}


def backend(stage, make=None, more=None, evidence=Evidence.NATIVE):
    """A backend of one offer, like the correct one but for what is given."""
    correct, options = CORRECT[stage]
    offer = Offer(stage, {**options, **(more or {})}, make or correct, evidence)
    return Backend("numpy", "plain numpy", (offer,))
