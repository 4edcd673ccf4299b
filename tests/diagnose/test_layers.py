"""Layer by layer: one layer of a small graph is broken on purpose, and is named with its reason."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
import tiny
from onnx import TensorProto, helper

from simulator.diagnose.layers.part import part
from simulator.errors import ModelError
from simulator.experiments.common import stacks_of, variants
from simulator.experiments.session import Session
from simulator.model.artifact import Artifact

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (1, 3, 32, 32)).astype(np.float32)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A session, a stack of ONNX Runtime in FP32, and a folder."""
    home = tmp_path_factory.mktemp("layers")
    pair = stacks_of({"train": "pillow_fp32"}, ["train.runtime.threads=1"])
    with Session.open(
        tiny.card(home / "m"), tiny.data(home / "data"), None, 0, 1, None, None
    ) as session:
        (stack,) = session.stacks(variants(pair).values())
        yield session, stack, home


@pytest.fixture
def compared(opened):
    session, stack, home = opened

    def stack_of(model, name):
        onnx.checker.check_model(model)
        onnx.save(model, str(home / f"{name}.onnx"))
        return replace(stack, artifact=Artifact(home / f"{name}.onnx", name, "onnx"))

    def run(train, deploy, *inputs, **more):
        sides = stack_of(train, "train"), stack_of(deploy, "deploy")
        return part(*sides, inputs or (X,), session, **more)

    return run


def net(*nodes, **constants):
    """Nodes before a head; each is (operator, inputs, output, attributes)."""
    made = [
        helper.make_node(kind, inputs, [output], name=f"{kind.lower()}_{output}", **attributes)
        for kind, inputs, output, attributes in nodes
    ]
    last = made[-1].output[0]
    made += [
        helper.make_node("GlobalAveragePool", [last], ["g"], name="head"),
        helper.make_node("Flatten", ["g"], ["y"], name="flat"),
    ]
    return tiny.model(made, outputs={"y": [1, "n"]}, constants=constants)


def pair_of(tensor, step, zero=0, kind=np.int8):
    """QuantizeLinear and DequantizeLinear behind a tensor, with their constants."""
    names = [f"{tensor}_s", f"{tensor}_z"]
    nodes = [
        ("QuantizeLinear", [tensor, *names], f"{tensor}_q", {}),
        ("DequantizeLinear", [f"{tensor}_q", *names], f"{tensor}_dq", {}),
    ]
    return nodes, {names[0]: np.float32(step), names[1]: kind(zero)}


def pointwise(out, into, scale=1.0):
    return (RNG.standard_normal((out, into, 1, 1)) * scale).astype(np.float32)


def conv(x, w):
    """A 1x1 convolution in float64."""
    return np.einsum("oi,nihw->nohw", w[:, :, 0, 0].astype(np.float64), x.astype(np.float64))


def far(values, right):
    return np.sqrt(np.mean((values - right) ** 2)) / np.sqrt(np.mean(right**2))


def row(found, layer):
    return next(one for one in found.figures.rows if one.layer == layer)


W = pointwise(4, 3)
V = pointwise(3, 4)
PLAIN = [("Conv", ["x", "w"], "a", {}), ("Relu", ["a"], "b", {}), ("Conv", ["b", "v"], "c", {})]


def test_equal_networks_have_no_first_layer_and_no_finding(compared):
    found = compared(net(*PLAIN, w=W, v=V), net(*PLAIN, w=W, v=V))

    assert found.figures.first is None
    assert found.findings == ()
    assert [one.accumulated.largest for one in found.figures.rows] == [0] * 5
    assert (found.figures.unmatched, found.figures.extra) == (0, 0)


def test_one_scale_for_unlike_channels_of_the_weights_is_named(compared):
    weights = pointwise(4, 3) * np.float32([[[[100]]], [[[1]]], [[[0.1]]], [[[0.1]]]])
    step = np.float32(np.abs(weights).max() / 127)
    codes = np.rint(weights / step).astype(np.int8)
    rounded = [("DequantizeLinear", ["codes", "s", "z"], "wd", {}),
               ("Conv", ["x", "wd"], "a", {}), *PLAIN[1:]]  # fmt: skip
    later = pointwise(3, 4) * np.float32([0, 1, 1, 1])[None, :, None, None]

    found = compared(
        net(*PLAIN, w=weights, v=later), net(*rounded, codes=codes, s=step, z=np.int8(0), v=later)
    )

    right, given = (conv(X, one) for one in (weights, codes * step.astype(np.float64)))
    assert row(found, "conv_a").alone.rms == pytest.approx(far(given, right), rel=1e-3)
    assert row(found, "conv_a").alone.channel > 0.3
    assert row(found, "conv_c").alone.rms < 1e-5
    assert row(found, "conv_c").accumulated.rms > 0.1
    assert found.figures.first == "conv_a"
    (finding,) = found.findings
    assert finding.name == "one scale for all channels of the weights"
    assert f"step of {step:.4g}" in finding.evidence[0]
    assert finding.left < 1e-6


def test_one_scale_over_a_concat_of_unlike_ranges_is_named(compared):
    start = [("Conv", ["x", "w"], "a", {}), ("Conv", ["x", "u"], "b", {}),
             ("Concat", ["a", "b"], "j", {"axis": 1})]  # fmt: skip
    one, other = W / np.abs(conv(X, W)).max(), W * (1000 / np.abs(conv(X, W)).max())
    constants = {"w": np.float32(one), "u": np.float32(other), "v": pointwise(3, 8)}
    step = 2000 / 255
    nodes, more = pair_of("j", step)

    found = compared(
        net(*start, ("Conv", ["j", "v"], "c", {}), **constants),
        net(*start, *nodes, ("Conv", ["j_dq", "v"], "c", {}), **constants, **more),
    )

    (finding,) = (one for one in found.findings if "'concat_j'" in one.evidence[0])
    assert finding.name == "one scale for tensors of unlike ranges"
    assert "'a' reaches 1 (" in finding.evidence[0]
    assert (
        ") and loses 100 % and 'b' reaches 1000 (" in finding.evidence[0]
    )  # 1 is below a step / 2
    assert row(found, "concat_j").alone.rms < 0.05 < row(found, "concat_j").alone.channel


def test_an_overflow_of_fp16_is_named(compared):
    half = {"w": W.astype(np.float16), "k": np.float16(60000), "v": V.astype(np.float16)}
    whole = {name: value.astype(np.float32) for name, value in half.items()}
    nodes = [("Conv", ["x", "w"], "a", {}), ("Mul", ["a", "k"], "m", {}),
             ("Div", ["m", "k"], "d", {}), ("Conv", ["d", "v"], "c", {})]  # fmt: skip
    narrow = [("Cast", ["x"], "h", {"to": TensorProto.FLOAT16}),
              ("Conv", ["h", "w"], "a", {}), *nodes[1:3], ("Conv", ["d", "v"], "n", {}),
              ("Cast", ["n"], "c", {"to": TensorProto.FLOAT})]  # fmt: skip

    found = compared(net(*nodes, **whole), net(*narrow, **half))

    product = conv(X, whole["w"]).astype(np.float16).astype(np.float64) * 60000
    above = np.count_nonzero(np.abs(product) >= 65520)  # from here on FP16 rounds to infinity
    assert found.figures.first == "mul_m"
    assert row(found, "mul_m").alone.not_finite == above
    assert found.findings[0].name == "FP16 overflow"
    assert found.findings[0].evidence[0].startswith("Mul 'mul_m': ")
    assert "65,504" in found.findings[0].evidence[0]


def test_what_is_infinite_as_an_output_only_is_no_overflow(compared):
    """ONNX Runtime's CPU has no FP16 kernels for these: it computes them in FP32."""
    half = {"w": (W * 300).astype(np.float16), "v": V.astype(np.float16)}
    whole = {name: value.astype(np.float32) for name, value in half.items()}
    nodes = [("Conv", ["x", "w"], "a", {}), ("Mul", ["a", "a"], "m", {}), ("Sqrt", ["m"], "q", {}),
             ("Conv", ["q", "v"], "c", {})]  # fmt: skip
    narrow = [("Cast", ["x"], "h", {"to": TensorProto.FLOAT16}), ("Conv", ["h", "w"], "a", {}),
              *nodes[1:3], ("Conv", ["q", "v"], "n", {}),
              ("Cast", ["n"], "c", {"to": TensorProto.FLOAT})]  # fmt: skip

    found = compared(net(*nodes, **whole), net(*narrow, **half))

    assert row(found, "mul_m").accumulated.not_finite > 0
    assert row(found, "sqrt_q").accumulated.not_finite == 0
    assert found.figures.first is None
    assert found.findings == ()
    assert any(one.startswith("1 tensors are infinite as outputs") for one in found.figures.notes)


SIZES = np.int64([1, 3, 21, 21])
RESIZE = {"mode": "nearest", "coordinate_transformation_mode": "half_pixel",
          "nearest_mode": "round_prefer_floor"}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"coordinate_transformation_mode": "asymmetric"},
         "a resize takes its samples from other places"),
        ({"nearest_mode": "ceil"}, "a resize rounds its coordinates otherwise"),
    ],
)  # fmt: skip
def test_a_changed_resize_is_named(compared, changed, name):
    def resized(**options):
        return net(("Resize", ["x", "", "", "n"], "r", RESIZE | options),
                   ("Conv", ["r", "w"], "a", {}), n=SIZES, w=W)  # fmt: skip

    found = compared(resized(), resized(**changed))

    (finding,) = found.findings
    assert finding.name == name
    assert finding.evidence[0].startswith("Resize 'resize_r': ")
    assert finding.left == 0
    assert finding.certainty == "exact"
    assert found.figures.first == "resize_r"


def test_a_pool_that_rounds_its_size_otherwise_is_named(compared):
    def pooled(**options):
        return net(("MaxPool", ["x"], "p", {"kernel_shape": [3, 3], "strides": [2, 2], **options}),
                   ("Conv", ["p", "w"], "a", {}), w=W)  # fmt: skip

    found = compared(pooled(), pooled(ceil_mode=1))

    (finding,) = found.findings
    assert finding.name == "a pool rounds its size otherwise"
    assert finding.left == 0
    assert row(found, "maxpool_p").accumulated is None
    assert row(found, "maxpool_p").shape == [1, 3, 16, 16]
    assert found.figures.first == "maxpool_p"


def test_another_activation_is_named(compared):
    bounded = [PLAIN[0], ("Clip", ["a", "zero", "six"], "b", {}), PLAIN[2]]
    large = {"w": W * 10, "v": V}

    found = compared(
        net(*bounded, **large, zero=np.float32(0), six=np.float32(6)), net(*PLAIN, **large)
    )

    assert [one.name for one in found.findings] == ["Relu is in place of Relu6"]
    assert row(found, "relu_b").reasons == ["Relu is in place of Relu6"]


def test_a_range_of_calibration_that_clips_is_named(compared):
    nodes, more = pair_of("b", 0.5 / 255, -128)

    found = compared(
        net(*PLAIN, w=W, v=V),
        net(*PLAIN[:2], *nodes, ("Conv", ["b_dq", "v"], "c", {}), w=W, v=V, **more),
    )

    right = np.maximum(conv(X, W), 0)
    assert row(found, "relu_b").alone.rms == pytest.approx(
        far(np.clip(right, 0, 0.5), right), rel=1e-2
    )
    assert found.findings[0].name == "the calibrated range clips activations"
    outside = np.mean(right > 0.5)
    assert f"{100 * outside:.3g} % of its values outside" in found.findings[0].evidence[0]
    assert found.findings[0].code.endswith(
        "keep these layers in floating point when the file is made"
    )


def test_a_batch_normalization_folded_with_another_epsilon_is_named(compared):
    scale, shift, mean = (RNG.uniform(0.5, 1.5, 4).astype(np.float32) for _ in range(3))
    variance = np.float32([1e-4, 2e-4, 5e-4, 1e-3])
    nodes = [("Conv", ["x", "w"], "a", {}),
             ("BatchNormalization", ["a", "s", "b", "m", "v"], "n", {"epsilon": 1e-5})]  # fmt: skip
    factor = scale / np.sqrt(variance + 1e-3)
    folded = {"w": W * factor[:, None, None, None], "b": shift - mean * factor}

    found = compared(
        net(*nodes, w=W, s=scale, b=shift, m=mean, v=variance),
        net(("Conv", ["x", "w", "b"], "n", {}), **{k: np.float32(v) for k, v in folded.items()}),
    )

    (finding,) = found.findings
    assert finding.name == "a batch normalization was folded with another epsilon"
    assert "has 1e-05 in training; the deployed weights are those of 0.001" in finding.evidence[0]


def test_an_ignored_zero_point_is_named(compared):
    step, zero = 2 / 255, 100
    nodes, more = pair_of("x", step, zero, np.uint8)
    nodes[1] = ("DequantizeLinear", ["x_q", "x_s", "none"], "x_dq", {})
    found = compared(
        net(*PLAIN, w=W, v=V),
        net(*nodes, ("Conv", ["x_dq", "w"], "a", {}), *PLAIN[1:], w=W, v=V, **more,
            none=np.uint8(0)),
        np.clip(X, -0.7, 1),
    )  # fmt: skip

    assert found.findings[0].name == "a zero point is ignored"
    assert "+100.0 steps" in found.findings[0].evidence[0]


def test_layers_with_other_names_are_matched_by_their_order(compared):
    train, deploy = net(*PLAIN, w=W, v=V), net(*PLAIN, w=W, v=V * np.float32(1.01))
    for node in deploy.graph.node:
        node.output[:] = [name if name == "y" else f"other_{name}" for name in node.output]
        node.input[:] = [n if n in ("x", "w", "v") else f"other_{n}" for n in node.input]
    deploy.graph.output[0].name = deploy.graph.node[-1].output[0] = "z"

    found = compared(train, deploy)

    rows = {one.tensor: one for one in found.figures.rows}
    assert set(rows) >= {"a", "b", "c"}
    assert rows["b"].accumulated.rms == 0
    assert rows["c"].accumulated.rms == pytest.approx(0.01, rel=1e-3)
    assert rows["c"].alone.rms == pytest.approx(0.01, rel=1e-3)
    assert "matched by their order" in found.figures.notes[0]
    assert [one.name for one in found.findings] == ["the weights are multiplied by 1.01"]


def test_networks_without_a_common_layer_are_refused(compared):
    other = net(("Conv", ["x", "w"], "q", {"strides": [3, 3]}), w=-W)
    for node in other.graph.node:
        node.output[:] = [f"other_{name}" for name in node.output]
        node.input[:] = [name if name in ("x", "w") else f"other_{name}" for name in node.input]
    other.graph.output[0].name = "other_y"
    other.graph.output.append(helper.make_tensor_value_info("other_g", 1, ["n", "c", "h", "w"]))

    with pytest.raises(ModelError, match="no layer of onnxruntime's network has a counterpart"):
        compared(net(*PLAIN[:2], w=W), other)
