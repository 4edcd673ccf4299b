"""The pooling axis: sizes worked out by hand, values held against PyTorch and ONNX's reference."""

import numpy as np
import official
import onnx
import pytest
import tiny
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from simulator.errors import ModelError
from simulator.model.passes.graph.change import difference
from simulator.model.passes.pooling import apply
from simulator.profile.graph import Pooling

CEIL, FLOOR = Pooling(ceil_mode="ceil"), Pooling(ceil_mode="floor")
CROP = Pooling(ceil_mode="ceil", on_shape_change="crop")
SIDES = st.integers(1, 12)
F = torch.nn.functional


def pool(op="MaxPool", kernel=2, stride=2, pad=0, given="x", made="y", **more):
    return helper.make_node(
        op, [given], [made], name=made,
        kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4, **more,
    )  # fmt: skip


def network(*nodes, size=7, out=None, **more):
    return tiny.model(list(nodes), {"x": [1, 3, size, size]}, {"y": out}, **more)


def output_size(model):
    return [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim]


def counts(change):
    return change.found, change.rewritten, change.effective


def noise(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


SIZES = [(7, 2, 2, 0, 3, 4), (8, 3, 2, 0, 3, 4), (6, 3, 2, 1, 3, 4), (112, 3, 2, 1, 56, 57),
         (10, 3, 3, 0, 3, 4)]  # fmt: skip
"""(input, kernel, stride, pad) → floor and ceil of (input + 2 pad - kernel) / stride, plus 1."""


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(("size", "kernel", "stride", "pad", "floor", "ceil"), SIZES)
def test_the_output_grows_by_one(op, size, kernel, stride, pad, floor, ceil):
    model = network(pool(op, kernel, stride, pad), size=size, out=[1, 3, floor, floor])

    change = apply(model, CEIL)

    assert counts(change) == (1, 1, 1)
    assert str(change) == f"1 of 1 {op} changed"
    assert output_size(model) == [1, 3, ceil, ceil]
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize(("size", "kernel", "stride", "pad", "floor", "ceil"), SIZES)
def test_back_to_floor(size, kernel, stride, pad, floor, ceil):
    model = network(pool("MaxPool", kernel, stride, pad, ceil_mode=1), size=size)

    assert apply(model, FLOOR).effective == 1
    assert output_size(model) == [1, 3, floor, floor]


@given(kernel=st.integers(1, 4), stride=st.integers(1, 4), size=SIDES, data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_ceil_mode_of_pytorch(kernel, stride, size, data):
    """``torch.nn.functional`` pools with ``ceil_mode=True`` know nothing of our rewrite."""
    pad = data.draw(st.integers(0, kernel // 2))
    assume(size + 2 * pad >= kernel)
    x = noise(1, 3, size, size)
    given_ = torch.from_numpy(x)
    for op in ("MaxPool", "AveragePool"):
        model = network(pool(op, kernel, stride, pad), size=size)
        apply(model, CEIL)
        if op == "MaxPool":
            wanted = F.max_pool2d(given_, kernel, stride, pad, ceil_mode=True)
        else:
            wanted = F.avg_pool2d(given_, kernel, stride, pad, True, count_include_pad=False)
        got = official.runtime(model, {"x": x})
        np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-5, atol=1e-6, strict=True)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pad"),
    [*(row[:4] for row in SIZES[:-1]), (7, 2, 2, 1), (5, 2, 3, 1)],
)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_onnxs_reference_and_runtime_agree(op, size, kernel, stride, pad):
    """Left out is (10, 3, 3, 0): there the reference (1.23) shifts an AveragePool's windows."""
    model = network(pool(op, kernel, stride, pad), size=size)
    feeds = {"x": noise(1, 3, size, size)}

    apply(model, CEIL)

    got = official.runtime(model, feeds)
    np.testing.assert_allclose(official.reference(model, feeds), got, rtol=1e-6, atol=1e-6)
    assert list(got.shape) == output_size(model)


@given(kernel=st.integers(2, 4), stride=st.integers(1, 3), size=SIDES, ceil=st.booleans())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_count_include_pad_of_pytorch(kernel, stride, size, ceil):
    pad = kernel // 2
    assume(size + 2 * pad >= kernel)
    x = noise(1, 3, size, size)
    for word, include in (("include", True), ("exclude", False)):
        model = network(pool("AveragePool", kernel, stride, pad), size=size)
        change = apply(
            model, Pooling(count_include_pad=word, ceil_mode="ceil" if ceil else "floor")
        )
        wanted = F.avg_pool2d(torch.from_numpy(x), kernel, stride, pad, ceil, include)
        got = official.runtime(model, {"x": x})
        np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-5, atol=1e-6, strict=True)
        assert change.effective >= include


@given(kernel=st.integers(2, 5), stride=st.integers(1, 3), size=st.integers(5, 12))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_same_pads_as_onnx_runtime_reads_it(kernel, stride, size):
    """ONNX Runtime works SAME_UPPER and SAME_LOWER out by itself, unless stride > kernel."""
    assume(stride <= kernel)
    feeds = {"x": noise(1, 3, size, size)}
    for word in ("same_upper", "same_lower"):
        for op in ("MaxPool", "AveragePool"):
            model = network(pool(op, kernel, stride, 1, ceil_mode=1), size=size)
            node = helper.make_node(
                op, ["x"], ["y"], kernel_shape=[kernel] * 2, strides=[stride] * 2,
                auto_pad=word.upper(),
            )  # fmt: skip
            apply(model, Pooling(auto_pad=word))
            wanted = official.runtime(network(node, size=size), feeds)
            got = official.runtime(model, feeds)
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6, strict=True)


@given(size=st.integers(5, 20))
@settings(max_examples=16, deadline=None, derandomize=True)
def test_symmetric_is_how_pytorch_pads(size):
    """TensorFlow's 3 x 3 pool of stride 2 pads (0, 1) where PyTorch's has padding=1."""
    x = noise(1, 3, size, size)
    node = helper.make_node(
        "MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"
    )
    model = network(node, size=size)

    change = apply(model, Pooling(auto_pad="symmetric"))

    wanted = F.max_pool2d(torch.from_numpy(x), 3, 2, 1).numpy()
    np.testing.assert_array_equal(official.runtime(model, {"x": x}), wanted, strict=True)
    assert change.effective == (size % 2 == 0)


def test_a_pool_without_padding_is_tensorflows_valid():
    change = apply(network(pool()), Pooling(auto_pad="same_upper"))

    assert counts(change) == (1, 0, 0)


def test_same_against_symmetric_without_effect():
    """8 wide, kernel 3, stride 2: the last window of (1, 1) ends at 7, its right pad is unused."""
    change = apply(network(pool(kernel=3, pad=1), size=8), Pooling(auto_pad="same_lower"))

    assert counts(change) == (1, 1, 0)
    assert "1 without effect because the sizes divide evenly or padding" in str(change)


def test_same_needs_a_known_size():
    model = tiny.model([pool(pad=1)], {"x": [1, 3, "h", "w"]}, {"y": None})

    with pytest.raises(ModelError, match="auto_pad: the input of MaxPool 'y' has no fixed size"):
        apply(model, Pooling(auto_pad="same_upper"))


@pytest.mark.parametrize("start", ["test_maxpool", "test_averagepool"])
def test_official_models_come_back(start):
    """Changed to the opposite of every field and back, ONNX's models give what ONNX says."""
    names = official.names(start, without=("argmax", "use_ref_impl"), modules=official.POOLS)

    assert len(names) > 10
    for name in names:
        there_and_back(name)


def there_and_back(name):
    """ONNX's reference (1.23) takes the pads (0, 1) of a MaxPool for those of another axis."""
    model, feeds, wanted = official.case(name, official.POOLS)
    values = {a.name: helper.get_attribute_value(a) for a in model.graph.node[0].attribute}
    auto = values.get("auto_pad", b"NOTSET").decode().lower()
    ceil = ("floor", "ceil")[values.get("ceil_mode", 0)]
    include = ("exclude", "include")[values.get("count_include_pad", 0)]
    other = {"same_upper": "same_lower", "same_lower": "same_upper"}.get(auto, "keep")

    apply(model, Pooling(
        auto_pad=other, ceil_mode="floor" if ceil == "ceil" else "ceil",
        count_include_pad="exclude" if include == "include" else "include",
    ))  # fmt: skip
    back = auto if other != "keep" else "keep"
    apply(model, Pooling(auto_pad=back, ceil_mode=ceil, count_include_pad=include))

    close = {"rtol": 1e-3, "atol": 1e-7, "err_msg": name}
    if "maxpool_2d_same" not in name:
        np.testing.assert_allclose(official.reference(model, feeds), wanted, **close)
    np.testing.assert_allclose(official.runtime(model, feeds), wanted, **close)


@pytest.mark.parametrize(("size", "kernel", "stride", "pad"), [(7, 2, 2, 1), (5, 2, 3, 1)])
def test_a_window_that_would_start_in_the_padding_does_not_count(size, kernel, stride, pad):
    """PyTorch: the last window must start inside the input or the left padding.

    7 wide, kernel 2, stride 2, pad 1: ceil(7 / 2) + 1 = 5 windows, and the fifth would start
    at 8 of 1 + 7. ONNX 1.23's shape inference says 5, and a Gemm sized for 4 would be refused.
    """
    fits = torch.nn.functional.max_pool2d(
        torch.zeros(1, 3, size, size), kernel, stride, pad, ceil_mode=True
    ).numel()
    nodes = [
        pool("MaxPool", kernel, stride, pad, made="p"),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], name="fc"),
    ]
    model = network(*nodes, size=size, out=[1, 5], constants={"w": np.zeros((fits, 5), np.float32)})

    change = apply(model, CEIL)

    assert (change.rewritten, change.effective) == (1, 0)
    assert "1 without effect because" in str(change)


def test_sizes_that_divide_do_not_change():
    model = network(pool(made="a"), pool(given="a"), size=8, out=[1, 3, 2, 2])

    change = apply(model, CEIL)

    assert counts(change) == (2, 2, 0)


def test_a_later_pool_sees_the_new_size():
    """7 → 4 → 2 where it was 7 → 3 → 1: the second divides after the first has grown."""
    model = network(pool(made="a"), pool(given="a"), out=[1, 3, 1, 1])

    assert apply(model, CEIL).effective == 2
    assert output_size(model) == [1, 3, 2, 2]


def test_what_is_so_already():
    change = apply(network(pool(ceil_mode=1)), CEIL)

    assert str(change) == "none of 1 pooling nodes needs a change"


def test_other_attributes_stay():
    node = pool("AveragePool", 3, 2, 1, count_include_pad=1)
    model = network(node)

    apply(model, CEIL)

    values = {a.name: helper.get_attribute_value(a) for a in model.graph.node[0].attribute}
    assert values == {
        "kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1,
        "ceil_mode": 1,
    }  # fmt: skip


def test_a_gemm_that_no_longer_fits_is_named():
    """27 = 3 channels of 3 x 3; with ceil_mode they are 48 = 3 of 4 x 4."""
    nodes = [
        pool(made="p"),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], name="fc"),
    ]
    model = network(*nodes, out=[1, 5], constants={"w": np.zeros((27, 5), np.float32)})

    with pytest.raises(ModelError, match=r"ceil_mode ceil breaks .* node name: fc\).* 27 and 48"):
        apply(model, CEIL)


def test_a_reshape_that_no_longer_fits_is_named():
    """Shape inference believes a Reshape whatever it is given."""
    nodes = [pool(made="p"), helper.make_node("Reshape", ["p", "s"], ["y"], name="view")]
    model = network(*nodes, out=[1, 27], constants={"s": np.array([1, 27])})

    with pytest.raises(ModelError, match=r"node name: view\): \[1, 3, 4, 4\] to \[1, 27\]"):
        apply(model, CEIL)


def test_a_reshape_that_asks_for_the_rest_fits():
    nodes = [pool(made="p"), helper.make_node("Reshape", ["p", "s"], ["y"], name="view")]
    model = network(*nodes, out=[1, 27], constants={"s": np.array([1, -1])})

    assert apply(model, CEIL).effective == 1
    assert output_size(model) == [1, 48]


def test_operators_of_others_do_not_stop_it():
    nodes = [pool(made="p"), helper.make_node("Own", ["p"], ["y"], domain="com.example")]

    change = apply(network(*nodes, domains=["com.example"]), CEIL)

    assert change.effective == 1


def test_an_old_opset_is_refused():
    with pytest.raises(ModelError, match="ceil_mode needs opset 10 or later, the model has 9"):
        apply(network(pool(), opset=9), CEIL)


def grown():
    """7 → pool → convolution that keeps the size → Flatten → Gemm for 3 x 3."""
    nodes = [
        pool(made="p"),
        helper.make_node("Conv", ["p", "k"], ["c"], name="conv", pads=[1] * 4),
        helper.make_node("Flatten", ["c"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "w"], ["y"], name="fc"),
    ]
    weights = {"k": noise(3, 3, 3, 3), "w": noise(27, 5)}
    return network(*nodes, out=[1, 5], constants=weights)


def test_cropping_cuts_just_before_what_does_not_fit():
    """The convolution sees the fourth row and column, the Gemm does not."""
    model, x = grown(), noise(1, 3, 7, 7)
    weights = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in model.graph.initializer}

    change = apply(model, CROP)

    big = F.max_pool2d(torch.from_numpy(x), 2, 2, ceil_mode=True)
    seen = F.conv2d(big, weights["k"], padding=1)[:, :, :3, :3]
    wanted = seen.flatten(1) @ weights["w"]
    np.testing.assert_allclose(official.runtime(model, {"x": x}), wanted.numpy(), atol=1e-4)
    assert str(change) == "1 of 1 MaxPool changed; cropped before Flatten 'flat'"
    assert output_size(model) == [1, 5]
    onnx.checker.check_model(model, full_check=True)


def test_without_cropping_the_message_offers_it():
    with pytest.raises(ModelError, match="on_shape_change: crop would cut the map back"):
        apply(grown(), CEIL)


def test_cropping_where_two_maps_meet():
    """One branch grows to 4, the other stays 3; the sum wants both alike."""
    nodes = [
        pool(made="a"),
        helper.make_node("Conv", ["x", "k"], ["b"], strides=[2, 2], name="conv"),
        helper.make_node("Add", ["a", "b"], ["y"], name="sum"),
    ]
    model = network(*nodes, out=[1, 3, 3, 3], constants={"k": noise(3, 3, 3, 3)})

    change = apply(model, CROP)

    assert change.notes == ("cropped before Add 'sum'",)
    assert output_size(model) == [1, 3, 3, 3]


def test_cropping_is_not_done_where_all_fits():
    model = network(pool(made="p"), helper.make_node("GlobalAveragePool", ["p"], ["y"]))

    assert apply(model, CROP).notes == ()
    assert output_size(model) == [1, 3, 1, 1]


def test_two_stacks_are_compared():
    model = network(pool(made="a"), pool(given="a"))
    sides = [apply(official.copied(model), asked) for asked in (CEIL, FLOOR, Pooling())]

    assert difference(*sides[:2]) == (2, "2 of 2 pooling nodes give another output size")
    assert difference(*sides[1:])[0] == 0


def test_padding_that_counts_gives_other_values():
    model = network(pool("AveragePool", 3, 2, 1))
    keep, include = (
        apply(official.copied(model), Pooling(count_include_pad=word))
        for word in ("keep", "include")
    )

    assert difference(keep, include) == (1, "1 of 1 pooling nodes compute other values")
