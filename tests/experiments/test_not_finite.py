"""A deployed network that gives NaN or Inf for a part of the samples, in every task."""

import json

import numpy as np
import onnx
import pytest
import tiny
import tiny_tasks
import yaml
from onnx import TensorProto, helper, numpy_helper

import simulator
from simulator.report.verdict import verdict
from simulator.tasks.task import TASKS
from simulator.testing import text_specimen
from simulator.testing.audio_specimen import CARD, sine, wav, write

LONG = 8
"""Ids that the deployment keeps of a text; the network fails on texts of this length."""
TEXTS = {"long": "the water is on the tree and in the can", "short": "on"}
TEXT_OUTPUTS = {
    "multiple_choice": "{}", "next_word": "{}", "generation": "{tokens: 2, stop: []}",
    "embedding": "{pooling: mean}", "next_token": "{context: 16}",
}  # fmt: skip
LOUDER = "deploy.read.scale=int16"
LOUD = 1000.0
"""Above it are the samples of a loud sound in the deployment, whose full scale is 32768."""
CHUNKS = """\
schema: 1
name: loudness
task: voice_activity
model: model.onnx
input:
  {kind: audio, features: waveform, rate: 8000, layout: NS,
   chunk: {size: 100, context: 20, input: x}}
trained: {normalize: {kind: none}}
output: {probability: p, threshold: 0.6}
"""


def spoiled(path, bad, nodes, spoils, **constants):
    """Let some outputs of a network be *bad* where *nodes* say that ``fails`` is true."""
    found = onnx.load(path)
    for name in spoils:
        for node in found.graph.node:
            node.output[:] = [f"{name}_own" if one == name else one for one in node.output]
    nodes = [*nodes, helper.make_node("Where", ["fails", "bad", "good"], ["poison"])]
    nodes += [helper.make_node("Add", [f"{name}_own", "poison"], [name]) for name in spoils]
    constants |= {"bad": np.float32(bad), "good": np.float32(0)}
    found.graph.node.extend(nodes)
    found.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(one), name) for name, one in constants.items()
    )
    onnx.save(found, path)


def above(source, limit):
    """Nodes by which a network fails where its input reaches *limit*."""
    return [
        helper.make_node("ReduceMax", [source], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "limit"], ["fails"]),
    ], {"limit": np.float32(limit)}


def image(task, folder, bad):
    """The deployment does not subtract the mean: red is above 2 there, and nowhere else."""
    if task == "classification":
        card, data = tiny.card(folder / "model"), tiny.data(folder / "data")
    else:
        card = tiny_tasks.card(folder / "model", task)
        data = tiny_tasks.data(folder / "data", task)
    outputs = {"classification": ["y"], "detection": ["deltas"], "segmentation": ["scores"]}
    first = [helper.make_node("Gather", ["x", "red"], ["reds"], axis=1)]
    nodes, constants = above("reds", 2)
    spoiled(
        folder / "model" / "model.onnx", bad, first + nodes, outputs[task], red=np.array([0]),
        **constants,
    )  # fmt: skip
    return "pillow_fp32", "deploy.normalize.mean=[0.0, 0.0, 0.0]", card, data


def text(task, folder, bad):
    """The deployment cuts what is longer than it takes."""
    text_specimen.write(folder, task, TEXT_OUTPUTS[task])
    for name, words in TEXTS.items():
        texts = {"embedding": [(words, ""), ("in", "")], "generation": [(words, "")]}
        requests = [
            {"context": a, "continuation": b, "length": len(b)}
            for a, b in texts.get(task, [(words, " a")])
        ]
        if task == "next_token":
            requests = [{"ids": [*range(3, 5 + 10 * (name == "long"))], "scored": 1}]
        (folder / "data").mkdir(exist_ok=True)
        (folder / "data" / f"{name}.json").write_text(json.dumps({"requests": requests}))
    too_long(folder / "model.onnx", bad, "logits")
    return "text_fp32", f"deploy.feeds.max_length={LONG}", folder / "card.yaml", folder / "data"


def too_long(path, bad, output):
    nodes = [
        helper.make_node("Shape", ["input_ids"], ["length"], start=1, end=2),
        helper.make_node("Equal", ["length", "long"], ["fails"]),
    ]
    spoiled(path, bad, nodes, [output], long=np.array([LONG]))


def speech(folder, bad):
    """What is said is the ids themselves."""
    _, *found = text("generation", folder, bad)
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["numbers", "ids"], ["wave"]),
    ]
    given = [
        helper.make_tensor_value_info(name, TensorProto.INT64, [1, "length"])
        for name in ("input_ids", "attention_mask")
    ]
    wave = helper.make_tensor_value_info("wave", TensorProto.FLOAT, [1, "length"])
    whole = numpy_helper.from_array(np.float32(448), "ids")
    graph = helper.make_graph(nodes, "speech", given, [wave], [whole])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), folder / "model.onnx")
    too_long(folder / "model.onnx", bad, "wave")
    card = yaml.safe_load((folder / "card.yaml").read_text())
    card |= {"task": "text_to_speech", "output": {"rate": 8000}}
    (folder / "card.yaml").write_text(yaml.safe_dump(card))
    return "text_fp32", *found


def sounds(folder):
    """A loud sound and one that can hardly be heard."""
    (folder / "data").mkdir()
    for name, level in (("loud", 0.5), ("quiet", 0.001)):
        (folder / "data" / f"{name}.wav").write_bytes(wav(sine(440, 8000, 800, level), 8000))
    return folder / "data"


def sound_classes(task, folder, bad):
    """The deployment's full scale is 32768, so that logarithms are 20.8 higher."""
    write(folder)
    (folder / "card.yaml").write_text(CARD.replace("task: classification", f"task: {task}"))
    nodes, constants = above("x", 15)
    spoiled(folder / "model.onnx", bad, nodes, ["y"], **constants)
    return "librosa_fp32", LOUDER, folder / "card.yaml", sounds(folder)


def chunks(folder, bad):
    """The probability is 1 where a chunk has a sound, else a half."""
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["loudest"], axes=[1], keepdims=1),
        helper.make_node("Sigmoid", ["loudest"], ["p"]),
    ]
    made = tiny.model(nodes, {"x": [1, 120]}, {"p": [1, 1]})
    onnx.save(made, folder / "model.onnx")
    nodes, constants = above("x", LOUD)
    spoiled(folder / "model.onnx", bad, nodes, ["p"], **constants)
    (folder / "card.yaml").write_text(CHUNKS)
    return "librosa_fp32", LOUDER, folder / "card.yaml", sounds(folder)


MAKERS = {
    **dict.fromkeys(("classification", "detection", "segmentation"), image),
    **dict.fromkeys(TEXT_OUTPUTS, text),
    "text_to_speech": lambda _, *more: speech(*more),
    "audio_classification": sound_classes,
    "voice_activity": lambda _, *more: chunks(*more),
}


HEARD = {"text_to_speech", "audio_classification", "voice_activity"}
"""Tasks of which a report shows sounds: what the network hears, or what it says."""


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("task", MAKERS)
def test_a_deployment_that_is_not_finite_for_some_fails_every_gate(tmp_path, cache, task, bad):
    profile, change, card, data = MAKERS[task](task, tmp_path, bad)
    found = simulator.compare(
        profile, profile, overrides=[change], model=card, data=data, out=tmp_path / "run",
        fail_on=["flip_rate > 100%"], quick=True,
    )  # fmt: skip
    failed, told = found.summary.failed, verdict(found.summary)
    assert failed["train"].count == 0 < failed["deploy"].count < failed["deploy"].of
    assert not found.passed and told.decision == "not ok"
    assert told.lost[0].startswith("deploy fails on ")
    assert "the model gave " in told.lost[0]
    assert ("NaN" if np.isnan(bad) else "an infinity") in told.lost[0]
    assert "deploy fails on " in found.report.read_text()
    wanted = {"image"} if MAKERS[task] is image else {"sound"} if task in HEARD else set()
    assert {one.kind for one in found.summary.pictures} == wanted


def test_every_task_is_tried():
    """But transcription, whose network gives whole numbers."""
    assert {*MAKERS, "transcription"} == {one.name for one in TASKS}
