"""The faults of each stage: each trips its check, and no other."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import load_faults
import numpy as np
import onnx
import raw_faults
import sound_faults
import tokenizer_faults
import torch_faults
import track_faults
from correct import (
    CopyExporter,
    HalfCast,
    NumpyConverter,
    NumpyEncoder,
    NumpyResizer,
    NumpyRuntime,
    WeightQuantizer,
)
from faults import perturbed

from backends.ffmpeg_video import FFmpegVideo
from backends.number_formats.quantizer import DynamicFloatQuantizer
from backends.pillow import PillowDecoder
from backends.stored_weights.floats import FloatWeights
from simulator.contract import Effective, Frame, KeepList, Matrix, PixelFormat, Port, Stage
from simulator.errors import ModelError, SampleError

# --- decoders -----------------------------------------------------------------------------------


class DarkensGray(PillowDecoder):
    def _rgb(self, image):
        return super()._rgb(image) - (2 if image.channels == 1 and image.format == "jpeg" else 0)


class LosesColor(PillowDecoder):
    def _rgb(self, image):
        rgb = super()._rgb(image)
        return np.repeat(rgb[..., :1], 3, axis=2) if image.height > 50 else rgb


class CompositesAlpha(PillowDecoder):
    def _rgb(self, image):
        rgb = super()._rgb(image)
        return rgb // 2 if image.format == "png" and image.channels == 4 else rgb


class WantsTwoPixels(PillowDecoder):
    def _rgb(self, image):
        if min(image.height, image.width) == 1:
            raise SampleError("two pixels are the least")
        return super()._rgb(image)


class AlwaysUpright(PillowDecoder):
    def _rgb(self, image):
        if image.format == "jpeg":
            return PillowDecoder({**self.options, "exif": "apply"})._rgb(image)
        return super()._rgb(image)


class DarkensWebP(PillowDecoder):
    def _rgb(self, image):
        rgb = super()._rgb(image)
        return rgb // 2 if image.format == "webp" and image.orientation == 1 else rgb


class NeverTurnsAvif(PillowDecoder):
    def _rgb(self, image):
        if image.format == "avif":
            return PillowDecoder({**self.options, "exif": "ignore"})._rgb(image)
        return super()._rgb(image)


class IgnoresProfiles(PillowDecoder):
    def __init__(self, options):
        super().__init__({**options, "profile": "ignore"})


class ClaimsPlanes(PillowDecoder):
    gives_planes = True


class Freezes(PillowDecoder):
    def _rgb(self, image):
        rgb = super()._rgb(image)
        rgb.flags.writeable = False
        return rgb


class FillsWithBlack(PillowDecoder):
    def _rgb(self, image):
        try:
            return super()._rgb(image)
        except SampleError:
            return np.zeros((*image.size("ignore"), 3), np.uint8)


class RemembersFailure(PillowDecoder):
    failed = False

    def _rgb(self, image):
        try:
            rgb = super()._rgb(image)
        except Exception:
            self.failed = True
            raise
        return perturbed(rgb) if self.failed else rgb


# --- readers of videos --------------------------------------------------------------------------


class LosesTheLastFrame(FFmpegVideo):
    def _frames(self, path):
        return (one for one, _ in pairwise(super()._frames(path)))


class IgnoresTheTags(FFmpegVideo):
    def __init__(self, options):
        super().__init__({**options, "matrix": "bt601"})


class SaysBt601(FFmpegVideo):
    def _planes(self, frame):
        return replace(super()._planes(frame), matrix=Matrix.BT601)


class TakesNoise(FFmpegVideo):
    def _frames(self, path):
        try:
            yield from super()._frames(path)
        except ValueError:
            yield 0, None


# --- resizers and colors ------------------------------------------------------------------------


class CannotReachWhite(NumpyResizer):
    def _resize(self, plane, height, width):
        return super()._resize(plane, height, width).clip(0, 254)


class AlwaysNearest(NumpyResizer):
    def __init__(self, options):
        super().__init__({**options, "interpolation": "nearest"})


class SwapsTwoChannels(NumpyResizer):
    def _resize(self, plane, height, width):
        swapped = plane[..., ::-1] if plane.shape[2:] == (2,) else plane
        return super()._resize(swapped, height, width)


class WantsTwoRows(NumpyResizer):
    def _resize(self, plane, height, width):
        if min(height, *plane.shape[:2]) == 1:
            raise SampleError("two rows are the least")
        return super()._resize(plane, height, width)


class TakesAnyPlane(NumpyResizer):
    def resize(self, plane, height, width):
        if plane.dtype != np.uint8 or plane.ndim not in (2, 3) or not height * width:
            return np.zeros((height, width), np.uint8)
        return super().resize(plane, height, width)


class TintsGray(NumpyEncoder):
    def _encode(self, rgb):
        frame = super()._encode(rgb)
        if np.ptp(rgb, axis=2).max() == 0:
            frame.planes[1][...] += 3
        return frame


class EncodesBt709(NumpyEncoder):
    def _encode(self, rgb):
        asked = self.options["matrix"]
        self.options = {**self.options, "matrix": "bt709"}
        frame = super()._encode(rgb)
        return Frame(frame.format, frame.planes, Matrix(asked), frame.range)


class SaysBt709(NumpyEncoder):
    def _encode(self, rgb):
        frame = super()._encode(rgb)
        return Frame(frame.format, frame.planes, Matrix.BT709, frame.range)


class EncodesTwoPixels(NumpyEncoder):
    def _encode(self, rgb):
        if min(rgb.shape[:2]) == 1:
            raise SampleError("two pixels are the least")
        return super()._encode(rgb)


class BrightensGray(NumpyConverter):
    def _convert(self, frame):
        gray = all((plane == 128).all() for plane in frame.chroma)
        return super()._convert(frame) + np.uint8(3 * gray)


class ConvertsBt709(NumpyConverter):
    def _convert(self, frame):
        return NumpyConverter({**self.options, "matrix": "bt709"})._convert(frame)


class AssumesBt709(NumpyConverter):
    @property
    def assumes(self):
        return Matrix.BT709, super().assumes[1]


class ConvertsTwoPixels(NumpyConverter):
    def _convert(self, frame):
        if min(frame.planes[0].shape) == 1:
            raise SampleError("two pixels are the least")
        return super()._convert(frame)


class TakesRgb(NumpyConverter):
    def convert(self, frame):
        return frame if frame.format is PixelFormat.RGB else super().convert(frame)


# --- runtimes -----------------------------------------------------------------------------------


class Saturates(NumpyRuntime):
    def _run(self, feeds):
        return {name: out.clip(-20, 20) for name, out in super()._run(feeds).items()}


class ForgetsTheBias(NumpyRuntime):
    def _open(self, artifact):
        ports = super()._open(artifact)
        if any(node.op_type == "Gemm" for node in self.model.graph.node):
            self.bias = onnx.numpy_helper.to_array(self.model.graph.initializer[1])
        return ports

    def _run(self, feeds):
        out = super()._run(feeds)["y"]
        bias = getattr(self, "bias", np.zeros(1, np.float32))
        return {"y": out - bias if bias.shape[-1] in (1, out.shape[-1]) else out}


class DoesNotSayWhat(NumpyRuntime):
    def _open(self, artifact):
        ports = super()._open(artifact)
        if any(node.op_type == "Gemm" for node in self.model.graph.node):
            raise ModelError("something in this model is not supported")
        return ports


class GivesDoubles(NumpyRuntime):
    def _run(self, feeds):
        return {name: out.astype(np.float64) for name, out in super()._run(feeds).items()}


class LosesABit(NumpyRuntime):
    """Batches have other last bits than where it was declared."""

    batches, bit_stable = ("fixed",), ("fp32",)

    def _run(self, feeds):
        count = len(feeds["x"])
        return {
            name: array * np.float32(1 + 1e-6 * (count > 1))
            for name, array in super()._run(feeds).items()
        }


class MixesSixteen(NumpyRuntime):
    """Each of sixteen samples gets the answer of another one."""

    def _run(self, feeds):
        return {
            name: np.roll(out, 1, axis=0) if len(out) == 16 else out
            for name, out in super()._run(feeds).items()
        }


class PadsToEight(NumpyRuntime):
    """Repeats the last row and column up to a multiple of 8, and cuts the answer."""

    def _run(self, feeds):
        x = feeds["x"]
        more = [(0, -side % 8 if at > 1 and x.ndim == 4 else 0) for at, side in enumerate(x.shape)]
        found = super()._run({"x": np.pad(x, more, mode="edge")})
        if not any(map(any, more)):
            return found
        return {name: out[:, :, : x.shape[2], : x.shape[3]] for name, out in found.items()}


class RepeatsTheFirst(NumpyRuntime):
    """Of outputs with planes."""

    def _run(self, feeds):
        return {
            name: np.repeat(out[:1], len(out), 0) if out.ndim == 4 else out
            for name, out in super()._run(feeds).items()
        }


class TakesAnyInput(NumpyRuntime):
    def run(self, feeds):
        try:
            return super().run(feeds)
        except ValueError:
            if self._closed:
                raise
            return {"y": np.zeros(1)}


class NeverCloses(NumpyRuntime):
    def close(self):
        pass


class OpensAnything(NumpyRuntime):
    def _open(self, artifact):
        try:
            return super()._open(artifact)
        except Exception:
            ports = (Port("x", np.dtype(np.float32), (1,)),)
            return ports, ports


class IgnoresThreads(NumpyRuntime):
    def effective(self, feeds):
        return Effective({"fp32": 1}, {"device": "cpu", "threads": 1})


class GoesOnAnywhere(NumpyRuntime):
    """It keeps a text, and takes whatever follows as if it did."""

    def _open(self, artifact):
        inputs, outputs = super()._open(artifact)
        self.is_stateful = len(inputs) > 1
        names = [port.name for port in inputs[2:]]
        self._kept = dict.fromkeys(names)
        if not self.is_stateful:
            return inputs, outputs
        whole = np.dtype(np.int64)
        return tuple(replace(port, dtype=whole) for port in inputs[:2]), outputs[:1]

    def _run(self, feeds):
        if not self.is_stateful:
            return super()._run(feeds)
        rows, new = feeds["input_ids"].shape
        begin = feeds["attention_mask"].shape[1] - new
        if not begin:
            self._kept = dict.fromkeys(self._kept, np.zeros((rows, 1, 0, 1), np.float32))
        past = {name: np.resize(kept, (rows, 1, begin, 1)) for name, kept in self._kept.items()}
        logits, *present = self._evaluator.run(None, {**feeds, **past})
        self._kept = dict(zip(self._kept, present, strict=True))
        return {"logits": logits}


class ClaimsHalf(NumpyRuntime):
    def effective(self, feeds):
        return Effective({"fp16": 1}, super().effective(feeds).options)


# --- exporters, casts and quantizers ------------------------------------------------------------


def maker_faults(correct, method):
    """The faults of one that makes files."""
    raw = getattr(correct, method)

    def broken(work):
        return type(work.__name__, (correct,), {method: work})

    def signs_the_source(self, source, target, *feeds):
        raw(self, source, target, *feeds)
        model = onnx.load(str(source))
        model.doc_string += "seen"
        onnx.save(model, str(source))

    def signs_with_the_time(self, source, target, *feeds):
        raw(self, source, target, *feeds)
        model = onnx.load(str(target))
        model.doc_string = str(time.perf_counter_ns())
        onnx.save(model, str(target))

    def takes_noise(self, source, target, *feeds):
        try:
            raw(self, source, target, *feeds)
        except ModelError:
            target.write_bytes(b"")

    def double_size(self, graph, tensor, value):
        correct._replace(self, graph, tensor, value * 2)

    faults = {
        "the_source_is_left_alone": broken(signs_the_source),
        "noise_is_refused": broken(takes_noise),
    }
    if method != "export":
        faults["the_same_twice"] = broken(signs_with_the_time)
        faults["the_numbers_stay_near"] = type("double_size", (correct,), {"_replace": double_size})
    return faults


class RoundsPowersDown(FloatWeights):
    def __init__(self, options):
        super().__init__({**options, "scale_mode": "floor"})


class QuantizesPowersDown(DynamicFloatQuantizer):
    def __init__(self, options):
        super().__init__({**options, "scale_mode": "floor"})


BLOCKS = {"granularity": ("block",), "block_size": (32,), "scale_mode": ("rceil",)}
MXFP4 = {
    Stage.CAST: (RoundsPowersDown, {**BLOCKS, "storage": ("mxfp4",), "keep": KeepList()}),
    Stage.QUANTIZE: (
        QuantizesPowersDown,
        {**BLOCKS, "format": ("mxfp4",), "activations": ("mxfp4",), "keep": KeepList()},
    ),
}
"""What takes OCP's scales where NVIDIA's are asked for."""

OWN = {
    Stage.DECODE: {
        "flat_files_by_hand": DarkensGray,
        "agrees_with_float64": LosesColor,
        "png_keeps_its_samples": CompositesAlpha,
        "any_size_will_do": WantsTwoPixels,
        "exif_is_obeyed": AlwaysUpright,
        "planes_are_as_claimed": ClaimsPlanes,
        "results_may_be_written": Freezes,
        "bad_files_are_refused": FillsWithBlack,
        "a_bad_file_leaves_no_trace": RemembersFailure,
        "formats_are_as_claimed": DarkensWebP,
        "turns_in_every_format": NeverTurnsAvif,
    },
    Stage.VIDEO: {
        "every_frame_by_its_time": LosesTheLastFrame,
        "color_is_as_declared": IgnoresTheTags,
        "planes_are_the_files_own": SaysBt601,
        "what_is_no_clip_is_refused": TakesNoise,
    },
    Stage.RESIZE: {
        "a_flat_plane_stays_flat": CannotReachWhite,
        "agrees_with_float64": AlwaysNearest,
        "channels_do_not_mix": SwapsTwoChannels,
        "any_size_will_do": WantsTwoRows,
        "what_is_no_plane_is_refused": TakesAnyPlane,
    },
    Stage.ENCODE: {
        "gray_has_neutral_chroma": TintsGray,
        "encodes_like_float64": EncodesBt709,
        "the_frame_says_what_it_is": SaysBt709,
        "encodes_any_size": EncodesTwoPixels,
    },
    Stage.CONVERT: {
        "neutral_chroma_is_gray": BrightensGray,
        "converts_like_float64": ConvertsBt709,
        "it_assumes_what_it_says": AssumesBt709,
        "converts_any_size": ConvertsTwoPixels,
        "rgb_is_not_converted": TakesRgb,
    },
    Stage.RUNTIME: {
        "answers_by_hand": Saturates,
        "agrees_with_onnx_reference": ForgetsTheBias,
        "outputs_fit_their_ports": GivesDoubles,
        "a_batch_is_its_singles": RepeatsTheFirst,
        "samples_of_a_batch_stay_apart": MixesSixteen,
        "images_of_any_size_are_not_padded": PadsToEight,
        "what_does_not_fit_is_refused": TakesAnyInput,
        "closes_twice_and_then_refuses": NeverCloses,
        "bad_models_are_refused": OpensAnything,
        "options_are_in_force": IgnoresThreads,
        "precision_is_in_force": ClaimsHalf,
    },
    Stage.EXPORT: maker_faults(CopyExporter, "export"),
    Stage.CAST: maker_faults(HalfCast, "cast"),
    Stage.QUANTIZE: maker_faults(WeightQuantizer, "quantize"),
    **sound_faults.FAULTS,
    **raw_faults.FAULTS,
    **track_faults.FAULTS,
    Stage.LOAD: load_faults.FAULTS,
    "tokenize": tokenizer_faults.FAULTS,
    Stage.GRADIENT: torch_faults.GRADIENTS,
    Stage.TUNE: torch_faults.TUNERS,
    Stage.ADAPT: torch_faults.ADAPTERS,
}
