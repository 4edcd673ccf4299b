"""A learned codec as a decoder: pixels by hand, any size, bad files, and what a stack is."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from pathlib import Path

import images
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from backends.learned_codec import LearnedDecoder
from backends.learned_codec.example import write_example
from simulator.cli import main
from simulator.contract import ModelError, SampleError, inspect
from simulator.errors import ProfileError
from simulator.profile import axes
from simulator.profile.implementations import choose
from simulator.profile.load import load

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import train_codec

OPTIONS = {
    "exif": "ignore", "padding": "edge", "threads": 1, "graph_optimization_level": "all",
}  # fmt: skip
ANY = (1, 3, "height", "width")


def codec(path, nodes=None, shape=ANY, kind=TensorProto.FLOAT, stride="2", constants=None):
    """A codec that keeps the mean of 2x2 pixels, in steps of 8 levels."""
    nodes = nodes or [
        helper.make_node("AveragePool", ["x"], ["mean"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Mul", ["mean", "steps"], ["scaled"]),
        helper.make_node("Round", ["scaled"], ["latents"]),
        helper.make_node("Div", ["latents", "steps"], ["small"]),
        helper.make_node("Resize", ["small", "", "twice"], ["y"], mode="nearest"),
    ]
    values = {
        "steps": np.array(255 / 8, np.float32),
        "twice": np.array([1, 1, 2, 2], np.float32),
        **(constants or {}),
    }
    arrays = [numpy_helper.from_array(value, name) for name, value in values.items()]
    ports = [helper.make_tensor_value_info(name, kind, shape) for name in ("x", "y")]
    made = [out for node in nodes for out in node.output]
    given = ["y", "latents"] if "latents" in made else ["y"]
    outputs = [helper.make_tensor_value_info(one, kind, [None] * 4) for one in given]
    graph = helper.make_graph(nodes, "codec", ports[:1], outputs, arrays)
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    if stride is not None:
        helper.set_model_props(model, {"stride": stride})
    path.write_bytes(model.SerializeToString())
    return path


def by_numpy(rgb, padding):
    """The same in float64: blocks of 2x2, their mean in steps of 8 levels, repeated."""
    height, width = rgb.shape[:2]
    padded = np.pad(rgb, ((0, height % 2), (0, width % 2), (0, 0)), mode=padding)
    blocks = padded.reshape(padded.shape[0] // 2, 2, padded.shape[1] // 2, 2, 3)
    levels = 8 * np.rint(blocks.mean(axis=(1, 3)) / 8)
    return np.clip(levels.repeat(2, 0).repeat(2, 1)[:height, :width], 0, 255)


def decoded(path, data, **options):
    decoder = LearnedDecoder({**OPTIONS, "codec": str(path), **options})
    return decoder.rgb(inspect("test", data)).rgb


@pytest.mark.parametrize("padding", ["edge", "reflect"])
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (17, 11), (16, 10)])
def test_every_size_is_what_numpy_makes_of_it(tmp_path, size, padding):
    """Levels of 8n + 1 have odd means of four: never half way between two steps of 8."""
    rgb = images.picture(*size) // 8 * 8 + 1

    got = decoded(codec(tmp_path / "c.onnx"), images.png(rgb), padding=padding)

    assert np.array_equal(got, by_numpy(rgb, padding))


def test_a_flat_picture_by_hand(tmp_path):
    """100 is 12.5 steps of 8 and 98 is 12.25: 96 of it; 255 is 31.875: 32 steps, which clip."""
    rgb = np.zeros((3, 5, 3), np.uint8)
    rgb[...] = (98, 255, 3)

    got = decoded(codec(tmp_path / "c.onnx"), images.png(rgb))

    assert np.array_equal(np.unique(got.reshape(-1, 3), axis=0), [[96, 255, 0]])


def test_the_integers_are_those_of_the_codec(tmp_path):
    """3x5 is padded to 4x6: 2x3 blocks of 3 channels, 98 / 8 = 12.25 is 12."""
    path = codec(tmp_path / "c.onnx")
    rgb = np.full((3, 5, 3), 98, np.uint8)

    latents = LearnedDecoder({**OPTIONS, "codec": str(path)}).coded(rgb)[1]

    assert latents.shape == (1, 3, 2, 3)
    assert (latents == 12).all()


@pytest.mark.parametrize("mode", ["gray", "cmyk"])
def test_gray_and_cmyk_go_through_pillow_first(tmp_path, mode):
    samples = images.picture(17, 11, {"gray": 1, "cmyk": 4}[mode])
    data = images.jpeg(samples, {"gray": None, "cmyk": "CMYK"}[mode])
    with Image.open(io.BytesIO(data)) as opened:
        want = np.asarray(opened.convert("RGB"))
    write_example(tmp_path / "exact.onnx")

    assert np.array_equal(decoded(tmp_path / "exact.onnx", data), want)


def node(kind, inputs, outputs, **fields):
    return helper.make_node(kind, inputs, outputs, **fields)


BAD = {
    "an empty file": (lambda path: path.write_bytes(b""), "stride"),
    "noise": (lambda path: path.write_bytes(b"\xff" * 99), "no ONNX file"),
    "a folder": (lambda path: path.mkdir(), "cannot be read"),
    "no stride": (lambda path: codec(path, stride=None), "stride from 1 to 256, got ''"),
    "a stride of 0": (lambda path: codec(path, stride="0"), "stride from 1 to 256, got '0'"),
    "a stride in words": (lambda path: codec(path, stride="²\n" * 99), "stride from 1 to 256"),
    "a fixed size": (lambda path: codec(path, shape=(1, 3, 32, 32)), "got 1 x 3 x 32 x 32"),
    "four channels": (lambda path: codec(path, shape=(1, 4, "h", "w")), "1 x 3 x any x any"),
    "a batch of two": (lambda path: codec(path, shape=(2, 3, "h", "w")), "1 x 3 x any x any"),
    "integers": (
        lambda path: codec(path, [node("Identity", ["x"], ["y"])], kind=TensorProto.UINT8),
        r"its input must be tensor\(float\)",
    ),
    "no such operator": (lambda path: codec(path, [node("Gone", ["x"], ["y"])]), "no codec"),
    "a cycle": (
        lambda path: codec(path, [node("Add", ["x", "y"], ["z"]), node("Relu", ["z"], ["y"])]),
        "no codec",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_is_no_codec_is_refused_in_a_line(tmp_path, what):
    make, words = BAD[what]
    make(tmp_path / "c.onnx")

    with pytest.raises(ModelError, match=words) as caught:
        LearnedDecoder({**OPTIONS, "codec": str(tmp_path / "c.onnx")})

    assert "\n" not in str(caught.value)
    assert "c.onnx" in str(caught.value)


@pytest.mark.parametrize("inside", [False, True])
def test_data_of_other_files_is_not_read(tmp_path, inside):
    """Not even in the body of an If."""
    model = onnx.load(codec(tmp_path / "c.onnx"))
    far = onnx.TensorProto(name="far", data_type=TensorProto.FLOAT, dims=[1])
    far.data_location = TensorProto.EXTERNAL
    far.external_data.add(key="location", value="../secret")
    if inside:
        body = helper.make_graph([], "body", [], [], [far])
        model.graph.node.add(op_type="If").attribute.add(name="then_branch", g=body)
    else:
        model.graph.initializer.append(far)
    (tmp_path / "c.onnx").write_bytes(model.SerializeToString())

    with pytest.raises(ModelError, match="data in other files"):
        LearnedDecoder({**OPTIONS, "codec": str(tmp_path / "c.onnx")})


def test_damaged_codecs_are_refused_or_run(tmp_path, capfd):
    path = codec(tmp_path / "c.onnx")
    whole, random, told = path.read_bytes(), np.random.default_rng(0), []
    for number in range(150):
        data = bytearray(whole)
        for _ in range(1 + number % 3):
            data[random.integers(len(data))] = random.integers(256)
        path.write_bytes(data[: random.integers(len(data))] if number % 5 == 0 else data)
        try:
            decoded(path, images.png(images.picture(4, 4)))
        except (ModelError, SampleError) as error:
            told.append(str(error))

    assert told and all(line.isprintable() for line in told)
    assert capfd.readouterr() == ("", "")


ODD = {
    "another size": (
        [node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
        r"made \(1, 3, 2, 2\) of \(1, 3, 4, 4\)",
    ),
    "no number": (
        [node("Sub", ["x", "x"], ["zero"]), node("Div", ["zero", "zero"], ["y"])],
        "not finite",
    ),
    "a wrong sum": ([node("Add", ["x", "seven"], ["y"])], "the codec fails on this image: "),
}


@pytest.mark.parametrize("what", ODD)
def test_a_codec_that_fails_costs_a_sample_only(tmp_path, what):
    nodes, words = ODD[what]
    path = codec(tmp_path / "c.onnx", nodes, constants={"seven": np.ones(7, np.float32)})

    with pytest.raises(SampleError, match=words) as caught:
        decoded(path, images.png(images.picture(4, 4)))

    assert "\n" not in str(caught.value)


def test_the_figures_of_a_codec_by_hand(tmp_path):
    """The mean of 98 in steps of 8 is 96: 20 log10(255 / 2). One of two integers is 1 bit.

    The exact codec has 48 integers for 16 pixels, all 0 in one block and all 200 in the other:
    96 bits for 32 pixels.
    """
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "flat.png").write_bytes(images.png(np.full((4, 8, 3), 98, np.uint8)))
    path = codec(tmp_path / "c.onnx")
    assert train_codec.figures(path, folder, None) == (pytest.approx([42.110203], abs=1e-6), 0)

    two = np.zeros((4, 8, 3), np.uint8)
    two[:, 4:] = 200
    (folder / "flat.png").write_bytes(images.png(two))
    write_example(path)
    assert train_codec.figures(path, folder, None) == ([np.inf], 3)


def test_what_is_trained_is_a_codec_of_the_same_numbers(tmp_path):
    """PyTorch's own answer, on a side that is no multiple of the stride."""
    torch.manual_seed(0)
    made = train_codec.Codec(2, 4)
    train_codec.write(made, 4, tmp_path / "c.onnx")
    rgb = images.picture(17, 11)
    fed = np.pad(rgb, ((0, 3), (0, 1), (0, 0)), mode="edge").transpose(2, 0, 1)[None] / 255

    with torch.no_grad():
        want, integers = made(torch.from_numpy(fed).float())
    got, latents = LearnedDecoder({**OPTIONS, "codec": str(tmp_path / "c.onnx")}).coded(rgb)

    assert np.array_equal(latents, integers)
    levels = 255 * want[0, :, :17, :11].permute(1, 2, 0).numpy()
    assert np.abs(got - levels.clip(0, 255)).max() <= 0.51


def test_learning_makes_the_error_smaller(tmp_path):
    """A few steps from the same start, on one picture that is easily learned."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "one.png").write_bytes(images.png(images.picture(32, 32)))
    found = []
    for steps in (1, 60):
        path = tmp_path / f"{steps}.onnx"
        train_codec.train(tmp_path / "images", path, 1, 8, 16, 0.1, steps, 0)
        found.append(train_codec.figures(path, tmp_path / "images", None)[0][0])

    assert found[1] > found[0] + 3


PROFILE = """\
schema: 1
name: {0}
summary: a codec
extends: pillow_fp32
decode: {{backend: learned_codec, codec: {1}, exif: ignore, padding: edge, threads: 1, graph_optimization_level: all}}
"""  # noqa: E501


def profile(folder, file="codec.onnx"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "learned.yaml"
    path.write_text(PROFILE.format("learned", file))
    return str(path)


def chosen(path, *overrides):
    found = load(path, overrides)
    return found, choose(found)


def test_a_codec_is_its_content_and_not_its_path(tmp_path):
    one, other = profile(tmp_path / "one"), profile(tmp_path / "other")
    codec(tmp_path / "one" / "codec.onnx")
    codec(tmp_path / "other" / "codec.onnx")
    assert chosen(one)[1]["decode"].identity() == chosen(other)[1]["decode"].identity()
    assert axes.differing(chosen(one), chosen(other)) == []

    write_example(tmp_path / "other" / "codec.onnx")

    assert chosen(one)[1]["decode"].identity() != chosen(other)[1]["decode"].identity()
    assert axes.differing(chosen(one), chosen(other)) == ["decoder"]


def test_a_codec_stays_found_when_its_axis_is_swapped(tmp_path, monkeypatch):
    path = profile(tmp_path / "one")
    codec(tmp_path / "one" / "codec.onnx")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    mixed = axes.swap(load("opencv_fp32"), load(path), ["decoder"])[1]

    assert mixed["decode"].options["codec"] == str(tmp_path / "one" / "codec.onnx")


@pytest.mark.parametrize("file", ["gone.onnx", ".", "'\\0'", "/dev/zero", f"{'x' * 9999}"])
def test_a_codec_that_cannot_be_read_is_refused_before_anything_runs(tmp_path, file):
    written = f'"{file[1:-1]}"' if file.startswith("'") else file
    path = profile(tmp_path, written)

    with pytest.raises(ProfileError) as caught:
        chosen(path)

    (line,) = caught.value.problems
    assert "learned.yaml:5: decode.codec: learned_codec: " in line
    assert "cannot be read: " in line
    assert "\n" not in line and line.isprintable() and len(line) < 500


@pytest.mark.parametrize("isolate", ["never", "always"])
def test_a_run_names_the_codec_in_its_manifest(card, data, cache, tmp_path, isolate):
    path = profile(tmp_path / "stacks")
    file = codec(tmp_path / "stacks" / "codec.onnx")
    sha = hashlib.sha256(file.read_bytes()).hexdigest()
    sides = ["--train", "pillow_fp32", "--deploy", path, "--isolate", isolate]

    given = ["--model", str(card), "--data", str(data), "--out", str(tmp_path / "run")]
    assert main([*sides, *given]) == 0

    deploy = json.loads((tmp_path / "run" / "manifest.json").read_text())["stacks"]["deploy"]
    decode = next(one for one in deploy["choices"] if one["stage"] == "decode")
    assert decode["options"]["codec"] == f"sha256:{sha}"
    assert deploy["profile"]["decode"]["codec"] == str(file)
    assert sha[:16] in deploy["axes"]["decoder"]["values"]["codec"]
