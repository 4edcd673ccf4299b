"""``simulate quantize``: gradients, the file that it makes, interruptions, refusals."""

import importlib.util
import json
import os

import numpy as np
import onnx
import pytest
import tiny
import torch
import yaml
from onnx import helper
from PIL import Image

import simulator
from backends.fake_quant.formulas import Grid, clip_codes, dorefa_weights, lsq_codes
from backends.fake_quant.learned import DorefaActivation, DorefaWeights, Lsq, Pact
from simulator import cli, quantize
from simulator.contract import Stage
from simulator.errors import UserError
from simulator.experiments import tuning
from simulator.profile.implementations import implementation
from simulator.profile.load import load
from simulator.registry import backend
from simulator.robustness.method import method_of

needs_onnx2torch = pytest.mark.skipif(
    importlib.util.find_spec("onnx2torch") is None,
    reason="onnx2torch is not installed",
)


# Gradients


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_gradients_of_lsq_are_pytorchs(bits, signed):
    """
    Against the operator that PyTorch and MQBench use. It treats values up to half a step beyond an
    end as inside, where the paper's formula has them outside: no value is there, or near a tie.
    """
    low, high = lsq_codes(bits, signed)
    spread = np.linspace((low - 4.7) * 0.17, (high + 5.3) * 0.17, 4000, dtype=np.float32)
    codes = spread / 0.17
    beyond = ((codes > high) & (codes < high + 0.51)) | ((codes < low) & (codes > low - 0.51))
    clear = spread[~beyond & (np.abs(codes % 1 - 0.5) > 0.01)][::8][:400]
    count = len(clear) // 4
    values = torch.from_numpy(clear[: 4 * count].reshape(4, count)).requires_grad_()
    weight = torch.linspace(-1, 1, 4 * count).reshape(4, count)
    ours = Lsq(Grid(np.float32(0.17), low, high), per_sample=True)
    (ours(values) * weight).sum().backward()
    ours_of_values, values.grad = values.grad, None
    step = torch.tensor([0.17], requires_grad=True)
    made = torch._fake_quantize_learnable_per_tensor_affine(
        values, step, torch.zeros(1), low, high, (count * high) ** -0.5
    )
    (made * weight).sum().backward()

    assert torch.allclose(ours_of_values, values.grad, atol=1e-6)
    assert ours.step.grad.item() == pytest.approx(step.grad.item(), rel=1e-3, abs=1e-4)


def test_gradient_of_lsqs_step_by_hand():
    """
    s = 1, codes -2 to 1, N = 4: 0.3 gives round(v) - v = -0.3, 0.8 gives 0.2, 5 gives 1, -9 gives
    -2; the sum is -1.1, times 1 / sqrt(4 x 1).
    """
    module = Lsq(Grid(np.float32(1), -2, 1), per_sample=False)
    module(torch.tensor([0.3, 0.8, 5.0, -9.0])).sum().backward()

    assert module.step.grad.item() == pytest.approx(-1.1 / 2)


def test_gradients_of_pact_by_hand():
    """alpha = 2: it gets those from alpha on; the values those from 0 to alpha."""
    low, high = clip_codes(4, signed=False)
    module = Pact(Grid(np.float32(2 / high), low, high))
    values = torch.tensor([-1.0, 0.5, 1.9, 2.5, 7.0], requires_grad=True)
    module(values).sum().backward()

    assert module.alpha.grad.item() == 2
    assert values.grad.tolist() == [0, 1, 1, 0, 0]


def test_gradients_of_dorefa_are_those_without_rounding():
    """d/dw of tanh(w) / max|tanh w|: the rounding is passed, the bending is not."""
    weights = torch.tensor([0.1, -0.4, 0.9], dtype=torch.float64, requires_grad=True)
    (DorefaWeights(2, 1.0)(weights) * torch.tensor([1.0, 2, 3])).sum().backward()
    plain = weights.detach().clone().requires_grad_()
    bent = torch.tanh(plain)
    (bent / bent.abs().max() * torch.tensor([1.0, 2, 3])).sum().backward()

    assert torch.allclose(weights.grad, plain.grad)


@pytest.mark.parametrize("bits", [2, 4, 6, 8])
def test_what_learns_rounds_like_numpy(bits):
    values = np.random.default_rng(bits).normal(0, 1, (3, 50)).astype(np.float32)
    low, high = clip_codes(bits, signed=True)
    grid = Grid(np.float32(0.11), low, high)
    for module in (Lsq(grid, True), Pact(grid), DorefaActivation(grid)):
        made = module(torch.from_numpy(values)).detach().numpy()
        assert made == pytest.approx(grid.rounded(values), abs=1e-5)
        assert float(module.grid().step) == pytest.approx(0.11)
    weights = DorefaWeights(bits, 0.5)(torch.from_numpy(values)).numpy()
    assert weights == pytest.approx(dorefa_weights(values, bits) * 0.5, abs=1e-5)


# The command


@pytest.fixture
def card(tmp_path):
    """A net of three layers that has to learn which colour an image has, and 60 images."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1] * 4, strides=[4, 4]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"]),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("GlobalAveragePool", ["r2"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"]),
    ]
    shapes = {"w1": (6, 3, 3, 3), "b1": (6,), "w2": (6, 6, 1, 1), "b2": (6,)}
    shapes |= {"w3": (6, 3), "b3": (3,)}
    held = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    tiny.data(tmp_path / "data", each=20)
    return tiny.card(tmp_path, tiny.model(nodes, {"x": ["n", 3, 32, 32]}, {"y": ["n", 3]}, held))


def tuned(card, out, method="lsq", bits=4, epochs=3, **more):
    more = {"batch": 8, "learning_rate": 0.05, "method": method, "bits": bits} | more
    return quantize(card, card.parent / "data", card.parent / out, epochs=epochs, **more)


@needs_onnx2torch
@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("method", ["lsq", "pact", "dorefa"])
def test_the_file_answers_as_the_network_that_learned(card, method, bits):
    """In ONNX Runtime, on inputs that it has not seen; some values may fall beside a tie."""
    tuner = backend("fake_quant_torch").of(Stage.TUNE)[0].make(
        {
            "method": method, "bits": bits, "weights": "per_tensor", "epochs": 2, "batch": 8,
            "learning_rate": 0.05, "threads": 1, "output": "logits",
            "seed": 0,
        }
    )  # fmt: skip
    rng = np.random.default_rng(1)
    inputs = rng.normal(0, 1, (24, 3, 32, 32)).astype(np.float32)
    labels = rng.integers(0, 3, 24)
    tuner.open(card.parent / "model.onnx", inputs)
    before = tuner.answers(inputs)
    for number in range(2):
        assert np.isfinite(tuner.epoch(number, inputs, labels, np.arange(24)))
    want = tuner.answers(inputs)
    tuner.write(card.parent / "made.onnx")

    import onnxruntime

    onnx.checker.check_model(str(card.parent / "made.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(str(card.parent / "made.onnx"))
    off = np.abs(session.run(None, {"x": inputs})[0] - want).max(1)
    _same_gradients(card.parent / "made.onnx", tuner._network.module, inputs[np.argmin(off)][None])
    assert np.abs(before - want).max() > 1e-3
    assert np.median(off) < 0.02 * np.abs(want).max()
    kinds = [node.op_type for node in onnx.load(str(card.parent / "made.onnx")).graph.node]
    assert kinds.count("Round") == (0 if bits == 8 else 1) + (2 if method != "lsq" else 0) + (
        1 if bits == 8 and method != "lsq" else 0
    )


def _same_gradients(file, module, values):
    """An attack on the file follows the gradient with which its network learned: straight."""
    given = torch.from_numpy(values).requires_grad_()
    module(given)[0, 1].backward()
    want = given.grad.numpy()
    model = implementation(Stage.GRADIENT, backend("onnx2torch"), {"format": "onnx"}).make(file)
    _, pull = model.at(values)
    assert np.abs(want).max() > 0
    np.testing.assert_allclose(pull(np.float32([[0, 1, 0]])), want, atol=1e-4 * np.abs(want).max())


@needs_onnx2torch
def test_it_learns_and_writes_a_card_that_runs(card, capsys):
    summary = tuned(card, "out", epochs=6)

    assert summary["converged"]
    assert summary["accuracy"] > 0.9
    out = card.parent / "out"
    made = yaml.safe_load((out / "model.yaml").read_text())
    assert made["name"] == "colors_lsq_w4a4"
    assert made["checkpoint"] == {"recipe": "lsq_w4a4", "seed": 0}
    assert made["converged"] is True
    assert sorted(p.name for p in out.iterdir()) == [
        "labels.txt", "lsq_w4a4_tuned.yaml", "model.onnx", "model.yaml", "plan.json",
        "summary.json",
    ]  # fmt: skip
    code = cli.main(
        ["--train", "pillow_fp32", "--deploy", "pillow_fp32", "--model", str(out / "model.yaml"),
         "--data", str(card.parent / "data"), "--out", str(card.parent / "run"), "--json"]
    )  # fmt: skip
    assert code == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 60
    own = load(str(out / summary["stack"]))
    assert own.spec.name == "lsq_w4a4_tuned" and own.spec.precision.artifact == str(
        out / "model.onnx"
    )
    assert method_of(simulator.load_card(card).spec, own) == ("lsq, fine-tuned", 4)


@needs_onnx2torch
def test_a_network_at_chance_is_nc(card):
    summary = tuned(card, "out", "pact", 2, 1, held_out=0.5)

    needed = 1 / 3 + 0.1
    assert summary["nc_below"] == pytest.approx(needed)
    made = yaml.safe_load((card.parent / "out" / "model.yaml").read_text())
    assert made["converged"] is summary["converged"] is (summary["accuracy"] >= needed)
    assert ("NC" in made["summary"]) is not summary["converged"]


@needs_onnx2torch
def test_what_was_stopped_goes_on_with_the_same_weights(card, monkeypatch):
    """A process that is killed: test_resumed_commands.py."""
    written = tuning.write_whole

    def stopped(place, data):
        written(place, data)
        if place.name == tuning.STATE:
            raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "write_whole", stopped)
    with pytest.raises(KeyboardInterrupt):
        tuned(card, "stopped", epochs=2)
    monkeypatch.undo()
    torch.set_num_threads(1)  # as a runtime that was opened before may leave it
    went_on = tuned(card, "stopped", epochs=2)
    torch.set_num_threads(3)
    assert went_on == tuned(card, "whole", epochs=2)
    made = [card.parent / name / "model.onnx" for name in ("stopped", "whole")]
    assert made[0].read_bytes() == made[1].read_bytes()
    before = os.stat(made[0]).st_mtime_ns
    assert tuned(card, "stopped", epochs=2) == went_on
    assert os.stat(made[0]).st_mtime_ns == before


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tflite": {"fp32": "m.tflite"}}, "only ONNX files are fine-tuned; name one as model: "),
        ({"tflite": {"fp32": "m.tflite"}, "torch_export": "m.pt2"}, "only ONNX files"),
        ({"torch_export": "m.pt2"}, "a card needs model: FILE.onnx, or tflite"),
    ],
    ids=["tflite", "both", "program"],
)
def test_a_card_without_an_onnx_file_is_refused_in_one_line(tmp_path, data, capsys, files, message):
    """Before anything is read or written."""
    card = tiny.card(tmp_path / "model", model=None, **files)
    for name in ("m.tflite", "m.pt2"):
        (card.parent / name).write_bytes(b"no model")
    words = ["--method", "lsq", "--bits", "4", "--epochs", "1", "--out", str(tmp_path / "out")]

    assert cli.main(["quantize", "--model", str(card), "--data", str(data), *words]) == 2

    told = capsys.readouterr().err.strip()
    assert message in told and len(told.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 5}, "--bits: fake_quant_torch offers 8, 6, 4, 2"),
        ({"method": "adaround"}, "--method: fake_quant_torch offers"),
        ({"method": "pact", "weights": "per_channel"}, "--(weights|method): "),
        ({"epochs": 0}, "--epochs: "),
        ({"held_out": 1.0}, "the share held out must be between 0 and 1, got 1.0"),
        ({"held_out": 0.001}, "60 samples cannot be divided with a share of 0.001 held out"),
        ({"seed": -1}, "the seed must be at least 0"),
        ({"learning_rate": 0}, "the learning rate must be above 0, got 0"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(card, options, message):
    if options.get("held_out") == 0.001 and not backend("fake_quant_torch").library.present:
        pytest.skip("needs the backend")
    with pytest.raises(UserError, match=message) as error:
        tuned(card, "out", **options)
    assert len(str(error.value).splitlines()) == 1


def test_samples_without_labels_are_refused(card, tmp_path):
    (tmp_path / "plain").mkdir()
    Image.new("RGB", (32, 32)).save(tmp_path / "plain" / "a.png")

    with pytest.raises(UserError, match="fine-tuning needs a label for every sample"):
        quantize(card, tmp_path / "plain", tmp_path / "out", method="lsq", bits=4, epochs=1)
