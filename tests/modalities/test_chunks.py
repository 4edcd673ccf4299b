"""A network of chunks that counts them: what it gives back comes in with the next chunk."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from simulator import compare
from simulator.modalities.audio.card import Chunk
from simulator.modalities.audio.steps import Chunks
from simulator.model.card import load
from simulator.testing.audio_specimen import sine, wav

CARD = """\
schema: 1
name: counter
task: voice_activity
model: model.onnx
input:
  kind: audio
  features: waveform
  rate: 8000
  layout: NS
  chunk:
    {size: 100, context: 20, input: x, carried: {s: {output: s_next, shape: [1, 1]}},
     constants: {rate: 4}}
trained: {normalize: {kind: none}}
output: {probability: p, threshold: 0.5}
"""
PROFILE = """\
schema: 1
name: plain
summary: a waveform, in ONNX's evaluator
modality: audio
read: {backend: wave, width: file, scale: unit, channels: refuse}
resample: null
normalize: {kind: model}
graph: {}
precision: {storage: fp32, compute: fp32}
runtime: {backend: onnx_reference, device: cpu, threads: 1}
evidence: {}
"""


@pytest.fixture
def folder(tmp_path):
    """The probability is a quarter for each chunk so far: 1/4, 2/4, 3/4, ..."""
    nodes = [
        helper.make_node("Cast", ["rate"], ["four"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["x"], ["most"], axes=[1], keepdims=1),
        helper.make_node("Sub", ["most", "most"], ["zero"]),
        helper.make_node("Cos", ["zero"], ["one"]),
        helper.make_node("Add", ["s", "one"], ["s_next"]),
        helper.make_node("Div", ["s_next", "four"], ["p"]),
    ]
    f32, shapes = TensorProto.FLOAT, {"x": [1, 120], "s": [1, 1], "p": [1, 1], "s_next": [1, 1]}
    ports = {
        name: helper.make_tensor_value_info(name, f32, shape) for name, shape in shapes.items()
    }
    rate = helper.make_tensor_value_info("rate", TensorProto.INT64, [])
    graph = helper.make_graph(
        nodes, "counter", [ports["x"], ports["s"], rate], [ports["p"], ports["s_next"]]
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(
        helper.make_model(graph, opset_imports=[opset], ir_version=8), tmp_path / "model.onnx"
    )
    (tmp_path / "card.yaml").write_text(CARD)
    (tmp_path / "plain.yaml").write_text(PROFILE)
    (tmp_path / "sounds").mkdir()
    (tmp_path / "sounds" / "a.wav").write_bytes(wav(0.25 + sine(50, 8000, 350, 0.125), 8000))
    return tmp_path


def test_the_state_goes_from_chunk_to_chunk(folder, cache):
    """350 samples are four chunks; from the second on the probability is 1/2 or more."""
    same = str(folder / "plain.yaml")
    found = compare(
        same, same, model=folder / "card.yaml", data=folder / "sounds", out=folder / "run"
    )
    (flip,) = [json.loads((folder / "run" / "summary.json").read_text())["flips"]]
    record = found.records().to_pylist()[0]

    assert (flip["count"], flip["units"], flip["mean"]) == (0, 4, 0)
    assert list(record["decisions"]) == [0, 1, 1, 1]


def test_each_chunk_has_the_samples_before_it():
    chunk = Chunk(size=4, context=2, input="x")
    (first, second, last) = Chunks(chunk).open(None)(np.arange(1, 10, dtype=np.float32)[None], None)

    assert first["x"].tolist() == [[0, 0, 1, 2, 3, 4]]
    assert second["x"].tolist() == [[3, 4, 5, 6, 7, 8]]
    assert last["x"].tolist() == [[7, 8, 9, 0, 0, 0]]


def test_a_task_of_chunks_needs_chunks(folder):
    whole = CARD[: CARD.index("  chunk:")] + CARD[CARD.index("trained:") :]
    (folder / "card.yaml").write_text(whole)
    with pytest.raises(Exception, match=r"^voice_activity needs a model of chunks of sound[^\n]*$"):
        load(folder / "card.yaml")


def test_differences_of_waveforms_are_told_in_percent(folder, cache):
    same = str(folder / "plain.yaml")
    found = compare(
        same, same, model=folder / "card.yaml", data=folder / "sounds", out=folder / "run",
        overrides=["deploy.read.width='8'"], quick=True,
    )  # fmt: skip
    (axis,) = json.loads((folder / "run" / "summary.json").read_text())["axes"]

    assert axis["effect"]["unit"] == "% of full scale"
    assert 0 < axis["effect"]["max"] < 100 / 128 and found.summary["flips"]["count"] == 0
