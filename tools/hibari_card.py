"""Write the voice of hibari-tts as FP32, its card, and phoneme ids of sentences: FOLDER TEXTS IDS

``pip install --no-deps hibari-tts`` (Apache-2.0) brings the network, its weights in 8 bits, and the
way from texts to phonemes. FOLDER gets model.onnx and card.yaml: the weights as FP32, each exactly
what its integer stands for, so that 8 bits are a choice of a stack; and behind them, as nodes, what
the package computes in NumPy: the spectrum of a pulse train under the network's harmonics, and its
free part; its noise is left out, so that two runs are equal. The inverse transform is left to the
stack. TEXTS has a line ``NAME|TEXT`` for each sentence; IDS gets a text sample NAME.json of each,
and data.yaml, a data card whose truth is the durations that the package's own 8-bit network gives.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import compose, helper, numpy_helper

RATE, N_FFT, HOP = 24000, 1200, 300
STEPS = 2
"""Frames of a unit of the network's durations."""
LOWEST, HIGHEST = 40.0, 11000.0
"""Hz: what is lower has no voice; the last harmonic."""
PARTS = ("lh", "theta", "lr", "phi", "f0")
"""The outputs that are used: ``ln`` is the loudness of the noise."""
CARD = """\
schema: 1
name: hibari_heart
summary: hibari-tts 0.2.1, the voice heart, weights as FP32, without its noise
task: text_to_speech
model: model.onnx
input:
  kind: text
  vocabulary: {symbols}
  max_length: 4096
  names: {{ids: ids}}
  constants: {{speed: [1]}}
output:
  rate: 24000
  durations: durations
  spectrogram:
    {{outputs: [real, imaginary], features: complex, layout: NMT, n_fft: 1200, win_length: 1200,
     hop: 300}}
  trained:
    stft:
      {{center: true, pad_mode: reflect, window: hann, window_symmetry: periodic, scaling: none,
       frames: whole, power: 1}}
"""
DATA = """\
schema: 1
name: hibari_durations
task: text_to_speech
format: table
files: .
table: durations.csv
"""


class Spectrum(torch.nn.Module):
    """The spectrum that the network's parts stand for, in FP64, which no stack's precision is."""

    def forward(
        self, harmonic: torch.Tensor, theta: torch.Tensor, free: torch.Tensor,
        phi: torch.Tensor, f0: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        harmonic, theta, free, phi = (p.double() for p in (harmonic, theta, free, phi))
        shape = torch.hann_window(N_FFT, dtype=torch.float64) / (N_FFT / 4)
        pulses = torch.stft(
            pulse_train(f0), N_FFT, HOP, window=shape, pad_mode="reflect", return_complex=False
        )[:, :, : harmonic.shape[2]]  # fmt: skip
        turn, gain = torch.tanh(theta) * torch.pi, torch.exp(harmonic.clamp(max=7))
        own = torch.exp(free.clamp(max=7))
        cos, sin = gain * torch.cos(turn), gain * torch.sin(turn)
        real, imaginary = pulses[..., 0], pulses[..., 1]
        return (
            (real * cos - imaginary * sin + own * torch.cos(phi)).float(),
            (real * sin + imaginary * cos + own * torch.sin(phi)).float(),
        )


def pulse_train(f0: torch.Tensor) -> torch.Tensor:
    """Every harmonic of a pitch up to HIGHEST, each with an amplitude of 1.

    Args:
        f0: (1, frames), Hz; 0 where there is no voice.
    """
    hertz = torch.nn.functional.interpolate(f0[:, None], scale_factor=HOP, mode="linear")
    hertz = hertz[:, 0].double()
    voiced, hertz = hertz > LOWEST, hertz.clamp(min=LOWEST)
    turns = torch.cumsum(hertz / RATE, 1)
    phase = 2 * torch.pi * (turns - torch.floor(turns))
    count = torch.floor(HIGHEST / hertz) + 0.5
    half = 2 * torch.sin(phase / 2)
    near = half.abs() <= 2e-3
    found = torch.where(near, count, torch.sin(count * phase) / torch.where(near, 1.0, half))
    return torch.where(voiced, found - 0.5, 0.0)


def in_fp32(model: onnx.ModelProto) -> None:
    """Replace products of integers by those of the numbers that they stand for."""
    graph = model.graph
    made = {name: node for node in graph.node for name in node.output}
    users = {name: node for node in graph.node for name in node.input}
    known = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    gone = []
    for node in [one for one in graph.node if one.op_type == "MatMulInteger"]:
        source, cast = made[node.input[0]], users[node.output[0]]
        last = users[cast.output[0]]
        (scales,) = (made[name] for name in last.input if name != cast.output[0])
        (scale,) = (known[name] for name in scales.input if name in known)
        weights = (known[node.input[1]].astype(np.float32) - known[node.input[3]]) * scale
        name = f"{node.input[1]}_fp32"
        graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), name))
        node.CopyFrom(
            helper.make_node("MatMul", [source.input[0], name], last.output, name=last.name)
        )
        gone += [cast, last, scales]
    for node in gone:
        graph.node.remove(node)
    used = {name for node in graph.node for name in node.input}
    for node in [one for one in graph.node if not used & set(one.output)]:
        if node.op_type == "DynamicQuantizeLinear":
            graph.node.remove(node)
    for tensor in [one for one in graph.initializer if one.name not in used]:
        graph.initializer.remove(tensor)


def acoustic(file: Path) -> onnx.ModelProto:
    """The package's own network in FP32, with the durations of phonemes as an output."""
    model = onnx.load(str(file))
    in_fp32(model)
    ordered(model.graph)
    (clip,) = (node for node in model.graph.node if node.op_type == "Clip")
    model.graph.node.append(helper.make_node("Add", 2 * list(clip.output), ["durations"]))
    port = helper.make_tensor_value_info("durations", onnx.TensorProto.FLOAT, ["L"])
    model.graph.output.append(port)
    return model


def ordered(graph: onnx.GraphProto) -> None:
    """Put each node behind those whose results it takes."""
    there = {one.name for one in (*graph.input, *graph.initializer)} | {""}
    waiting, found = list(graph.node), []
    while waiting:
        ready = [node for node in waiting if there.issuperset(node.input)]
        found += ready
        there |= {name for node in ready for name in node.output}
        waiting = [node for node in waiting if node not in ready]
    del graph.node[:]
    graph.node.extend(found)


def spectrum(folder: Path) -> onnx.ModelProto:
    """The nodes that make a spectrum of the network's parts."""
    parts = [torch.zeros(1, N_FFT // 2 + 1, 5) for _ in range(4)]
    path, made = folder / "spectrum.onnx", ["real", "imaginary"]
    free = {**{name: {2: "F"} for name in (*PARTS[:4], *made)}, "f0": {1: "F"}}
    exported(Spectrum(), (*parts, torch.zeros(1, 5)), path, list(PARTS), made, free)
    found = onnx.load(str(path))
    path.unlink()
    return found


def exported(
    network: torch.nn.Module, given: tuple[torch.Tensor, ...], file: Path,
    inputs: list[str], outputs: list[str], free: dict[str, dict[int, str]],
) -> None:  # fmt: skip
    """Write a network as ONNX.

    Args:
        network: what is written.
        given: inputs of any length.
        file: where.
        inputs: names.
        outputs: names.
        free: dimensions of any length, by the name of their input or output.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(), given, str(file), dynamo=False, opset_version=17, input_names=inputs,
            output_names=outputs, dynamic_axes=free,
        )  # fmt: skip


def behind(
    one: onnx.ModelProto, other: onnx.ModelProto, prefix: str, names: Iterable[str],
    outputs: list[str],
) -> onnx.ModelProto:  # fmt: skip
    """Put a network behind another, whose outputs of these names it takes.

    Args:
        one: the first.
        other: the second; every name in it begins with *prefix* then.
        prefix: see above.
        names: of outputs of the first, and of inputs of the second.
        outputs: what the whole gives.
    """
    other.ir_version = one.ir_version
    merged = compose.merge_models(
        one, compose.add_prefix(other, prefix), outputs=outputs,
        io_map=[(name, f"{prefix}{name}") for name in names],
    )  # fmt: skip
    del merged.opset_import[1:]  # both name the same set
    return merged


def with_durations(file: Path) -> onnxruntime.InferenceSession:
    """Open the package's network with its durations, in units of STEPS frames, as a last output."""
    model = onnx.load(str(file))
    (clip,) = (node for node in model.graph.node if node.op_type == "Clip")
    model.graph.output.append(helper.make_tensor_value_info(clip.output[0], 1, None))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def write_ids(texts: Path, folder: Path) -> None:
    """Write a text sample with the phoneme ids of each sentence, and the frames of each phoneme."""
    from hibari import Hibari

    voice = Hibari()
    session = with_durations(Path(voice.model_path))
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["file,label"]
    for line in texts.read_text(encoding="utf-8").splitlines():
        name, text = line.split("|")[:2]
        ids = [voice.ids(said) for said in voice.phonemize(text)]
        content = {"requests": [{"context": text, "ids": one} for one in ids]}
        written = json.dumps(content, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(written, encoding="utf-8")
        feeds = [{"ids": np.array([one]), "speed": np.ones(1, np.float32)} for one in ids]
        spans = np.concatenate([session.run(None, one)[-1].reshape(-1) for one in feeds])
        rows.append(f"{name}.json,{' '.join(str(int(STEPS * span)) for span in spans)}")
    (folder / "durations.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "data.yaml").write_text(DATA, encoding="utf-8")


def main() -> None:
    folder, texts, ids = map(Path, sys.argv[1:])
    try:
        import hibari
    except ImportError as error:
        why = f"hibari-tts is not installed: {error}; try: pip install --no-deps hibari-tts"
        raise SystemExit(why) from None
    assets = Path(hibari.__file__).parent / "assets"
    folder.mkdir(parents=True, exist_ok=True)
    one, other = acoustic(assets / "hibari.onnx"), spectrum(folder)
    merged = behind(one, other, "of/", PARTS, ["of/real", "of/imaginary", "durations"])
    for port in (one for one in merged.graph.output if one.name.startswith("of/")):
        name = port.name.removeprefix("of/")
        merged.graph.node.append(helper.make_node("Identity", [port.name], [name]))
        port.name = name
    onnx.checker.check_model(merged)
    onnx.save(merged, str(folder / "model.onnx"))
    symbols = 1 + max(json.loads((assets / "vocab.json").read_text(encoding="utf-8")).values())
    (folder / "card.yaml").write_text(CARD.format(symbols=symbols), encoding="utf-8")
    write_ids(texts, ids)


if __name__ == "__main__":
    main()
