"""Faults in ONNX Runtime, held against NumPy, onnx.reference and full inferences."""

from concurrent.futures import ThreadPoolExecutor

import faulted
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from backends.ort.runtime import OrtRuntime
from simulator.contract import BitFault, Kind, Site, Target
from simulator.errors import Unsupported

BITS = (0, 21, 22, 23, 26, 29, 30, 31)
LEVELS = ("disable_all", "basic", "extended", "layout", "all")
TENSORS = {
    "first": ("w1", "b1", "y1"), "deep": ("w2", "b2", "y2"), "point": ("w3", "b3", "y3"),
    "head": ("w4", "b4", "z"), "x": ("", "", "x"),
}  # fmt: skip
ORDER = {Target.WEIGHTS: 0, Target.BIASES: 1, Target.NEURONS: 2, Target.INPUT: 2}


def injector(path, **changes):
    return OrtRuntime.injector()(path, {**faulted.ORT, **changes})


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return faulted.save(tmp_path_factory.mktemp("small") / "small.onnx")


def site_of(made, layer, target):
    (found,) = (s for s in made.sites if (s.layer, s.target) == (layer, target))
    return found


def name_of(site, fused):
    name = TENSORS[site.layer][ORDER[site.target]]
    return name if fused else {"y1": "c1", "y2": "c2"}.get(name, name)


def expected(name, index, bit, kind, fused):
    """Outputs and whether all neurons are finite, with one fault, by NumPy."""
    parameters, seen = faulted.parameters(), []

    def one(values):
        values = values.astype(np.float32)
        values.flat[index] = faulted.disturbed(values.flat[index], bit, kind)
        return values

    def hit(layer, values):
        values = one(values).astype(np.float64) if layer == name else values
        if layer in (("y1", "y2", "y3") if fused else ("c1", "c2", "y3")):
            seen.append(np.isfinite(values).all())
        if layer == name == "z":
            seen.append(np.isfinite(values).all())
        return values

    if name in parameters:
        parameters[name] = one(parameters[name])
    return faulted.network(faulted.picture(), parameters, hit), all(seen)


def simple(value):
    return float(value).is_integer() and abs(value) < 1000


@pytest.mark.parametrize("level", LEVELS)
def test_every_target_kind_and_bit_as_numpy_computes_it(small, level):
    """To the last bit where the hit value stays a small integer."""
    made = injector(small, graph_optimization_level=level)
    fused = level not in ("disable_all", "basic")
    trace, rng = made.trace({"x": faulted.picture()}), np.random.default_rng(0)
    exactly = finite = 0
    for site in made.sites:
        name = name_of(site, fused)
        with made.at(site) as rest:
            for kind, bit in ((k, b) for k in Kind for b in BITS):
                index = int(rng.integers(site.elements))
                found = rest.run(trace, [BitFault(index, bit, kind)])
                outputs, all_finite = expected(name, index, bit, kind, fused)
                exact = simple(found.changes[0][1])
                exactly, finite = exactly + exact, finite + all_finite
                assert faulted.equal(found.outputs["z"], outputs, exact), (site, index, bit, kind)
                assert found.finite == all_finite, (site, index, bit, kind)
    assert len(made.sites) == 13
    assert exactly > 100
    assert 0 < finite < 13 * 24


def test_sites_are_what_the_optimized_graph_has(small):
    made = injector(small)

    assert [(s.layer, s.operator, s.target, s.shape) for s in made.sites[:4]] == [
        ("x", "Input", "input", (1, 3, 6, 6)),
        ("first", "FusedConv", "weights", (8, 3, 3, 3)),
        ("first", "FusedConv", "biases", (8,)),
        ("first", "FusedConv", "neurons", (1, 8, 6, 6)),
    ]
    assert {s.storage for s in made.sites} == {"float32"}


@pytest.mark.parametrize("level", LEVELS)
def test_without_faults_it_answers_as_the_runtime_does(small, level):
    options = {**faulted.ORT, "graph_optimization_level": level}
    deployed = OrtRuntime(small, options).run({"x": faulted.picture()})["z"]
    made = injector(small, graph_optimization_level=level)

    trace = made.trace({"x": faulted.picture()})

    assert np.array_equal(made.golden(trace).outputs["z"], deployed)
    assert made.golden(trace).finite
    for site in made.sites:
        with made.at(site) as rest:
            assert np.array_equal(rest.run(trace).outputs["z"], deployed)


def test_without_faults_nan_between_layers_is_known_of_the_trace(tmp_path):
    """Weights of Inf make Inf and NaN in the first layer."""
    weights = faulted.parameters()
    weights["w1"][0] = np.inf
    path = faulted.save(tmp_path / "m.onnx", weights)
    made = injector(path, graph_optimization_level="disable_all")

    found = made.golden(made.trace({"x": faulted.picture()}))

    assert not found.finite


def test_several_faults_follow_each_other_and_are_gone_afterwards(small):
    made = injector(small)
    trace = made.trace({"x": faulted.picture()})
    kept = {name: array.copy() for name, array in trace.items()}
    for site in made.sites:
        with made.at(site) as rest:
            golden = rest.run(trace)
            twice = rest.run(trace, [BitFault(1, 31), BitFault(1, 31)])
            many = rest.run(trace, [BitFault(i, 30) for i in range(4)])
            after = rest.run(trace)

        assert golden.changes == ()
        assert twice.changes[0] == twice.changes[1][::-1]
        assert len(many.changes) == 4
        for one in (twice, after):
            assert np.array_equal(one.outputs["z"], golden.outputs["z"])
            assert one.finite
    assert all(np.array_equal(trace[name], kept[name]) for name in kept)


def test_a_wrong_bit_or_element_changes_nothing(small):
    made = injector(small)
    trace = made.trace({"x": faulted.picture()})
    with made.at(site_of(made, "point", Target.WEIGHTS)) as rest:
        golden = rest.run(trace).outputs["z"]
        with pytest.raises(ValueError, match="bits 0 to 31"):
            rest.run(trace, [BitFault(0, 31), BitFault(0, 32)])
        with pytest.raises(ValueError, match="element 64 of 64"):
            rest.run(trace, [BitFault(0, 31), BitFault(64, 0)])

        assert np.array_equal(rest.run(trace).outputs["z"], golden)


def test_samples_do_not_mix(small):
    made = injector(small)
    traces = [made.trace({"x": faulted.picture(seed)}) for seed in range(3)]
    with made.at(site_of(made, "first", Target.NEURONS)) as rest:
        for trace in (*traces, *traces):
            rest.run(trace, [BitFault(5, 31)])
            assert np.array_equal(rest.run(trace).outputs["z"], trace["z"])


def test_threads_use_different_sites_at_once(small):
    made = injector(small)

    def work(site):
        trace = made.trace({"x": faulted.picture()})
        with made.at(site) as rest:
            return [rest.run(trace, [BitFault(i, 31)]).outputs["z"] for i in range(5)]

    alone = [work(site) for site in made.sites]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(work, made.sites * 4))

    assert np.array_equal(together, alone * 4)


def test_a_free_batch_becomes_one(tmp_path):
    made = injector(faulted.save(tmp_path / "free.onnx", batch="N"))

    assert made.sites[0].shape == (1, 3, 6, 6)


def quantized(path):
    """Two convolutions in QDQ form; all scales are powers of 2, so that rounding is exact."""
    stored = {
        "s0": np.float32(1), "s1": np.float32(2**-6), "s2": np.float32(2**-6),
        "sb1": np.float32(2**-6), "sb2": np.float32(2**-12),
        "s3": np.float32(2**-4), "zero": np.uint8(0), "none": np.int8(0), "nothing": np.int32(0),
        "w1": faulted.integers((4, 3, 3, 3), -63, 63, 1).astype(np.int8),
        "b1": faulted.integers(4, -99, 99, 2).astype(np.int32),
        "w2": faulted.integers((2, 4, 1, 1), -63, 63, 3).astype(np.int8),
        "b2": faulted.integers(2, -99, 99, 4).astype(np.int32),
    }  # fmt: skip
    stored["s4"] = np.float32(0.25)

    def pair(name, scale):
        return [
            helper.make_node("QuantizeLinear", [name, scale, "zero"], [f"{name}q"]),
            helper.make_node("DequantizeLinear", [f"{name}q", scale, "zero"], [f"{name}d"]),
        ]

    nodes = [
        *pair("x", "s0"),
        helper.make_node("DequantizeLinear", ["w1", "s1", "none"], ["w1d"]),
        helper.make_node("DequantizeLinear", ["b1", "sb1", "nothing"], ["b1d"]),
        helper.make_node("Conv", ["xd", "w1d", "b1d"], ["c1"], "one", pads=[1] * 4),
        *pair("c1", "s3"),
        helper.make_node("DequantizeLinear", ["w2", "s2", "none"], ["w2d"]),
        helper.make_node("DequantizeLinear", ["b2", "sb2", "nothing"], ["b2d"]),
        helper.make_node("Conv", ["c1d", "w2d", "b2d"], ["c2"], "two"),
        *pair("c2", "s4"),
    ]
    stored["sb2"] = np.float32(2**-10)
    faulted.write(path, nodes, {"x": (1, 3, 5, 5)}, ["c2d"], stored)
    return {name: stored[name] for name in ("w1", "b1", "w2", "b2")}


def integer_network(x, p, hit):
    def layer(x, weights, bias, pad, shift):
        total = faulted.conv(x, weights, np.zeros(len(weights)), pad=pad).astype(np.int64)
        total += bias.astype(np.int64)[:, None, None]
        total = total.astype(np.int32)  # wraps
        return np.clip(np.rint(total / 2.0**shift), 0, 255)

    q = hit("x", np.clip(np.rint(x), 0, 255))
    q = hit("y1", layer(q, p["w1"], p["b1"], 1, 2))
    return hit("y2", layer(q, p["w2"], p["b2"], 0, 8)) * 0.25


@pytest.mark.parametrize("level", ["extended", "all"])
def test_bits_of_integer_kernels_to_the_last_bit(tmp_path, level):
    """At ``extended`` a QDQ file is QLinearConv: INT8 weights, INT32 biases, UINT8 activations."""
    parameters = quantized(tmp_path / "int8.onnx")
    made = injector(tmp_path / "int8.onnx", graph_optimization_level=level)
    x = faulted.integers((1, 3, 5, 5), 0, 20, 9)
    trace, rng = made.trace({"x": x}), np.random.default_rng(0)
    types = {"weights": "int8", "biases": "int32", "neurons": "uint8"}
    names = {
        ("one", "weights"): "w1", ("one", "biases"): "b1", ("one", "neurons"): "y1",
        ("two", "weights"): "w2", ("two", "biases"): "b2", ("two", "neurons"): "y2",
    }  # fmt: skip
    sites = [site for site in made.sites if site.target is not Target.INPUT]
    assert [(s.operator, s.storage) for s in sites] == [
        ("QLinearConv", types[s.target.value]) for s in sites
    ]
    assert len(sites) == 6

    changed = 0
    for site in sites:
        name = names[site.layer, site.target.value]
        with made.at(site) as rest:
            for kind, bit in ((k, b) for k in Kind for b in range(site.bits)):
                index = int(rng.integers(site.elements))

                def one(values, site=site, index=index, bit=bit, kind=kind):
                    values = np.array(values).astype(site.storage)
                    raw = values.reshape(-1).view(f"u{values.itemsize}")
                    raw[index] = faulted.changed(int(raw[index]), bit, kind)
                    return values

                own = {n: one(v) if n == name else v for n, v in parameters.items()}
                wanted = integer_network(
                    x, own, lambda n, v, name=name, one=one: one(v) if n == name else v
                )
                found = rest.run(trace, [BitFault(index, bit, kind)])
                changed += not np.array_equal(found.outputs["c2d"], trace["c2d"])
                assert np.array_equal(found.outputs["c2d"], wanted), (site, index, bit, kind)
                assert found.finite
    assert changed > 80


def layers():
    """One layer of each further operator: its node, its stored tensors, the expected storage."""
    import ml_dtypes

    small = faulted.integers
    return {
        "ConvTranspose": (
            [helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], "layer", strides=[2, 2])],
            {"w": small((4, 3, 2, 2), -3, 3, 1), "b": small(3, -3, 3, 2)},
            "float32",
        ),
        "MatMul": (
            [helper.make_node("MatMul", ["x", "w"], ["y"], "layer")],
            {"w": small((5, 3), -3, 3, 1)},
            "float32",
        ),
        "MatMul from the left": (
            [helper.make_node("MatMul", ["w", "x"], ["y"], "layer")],
            {"w": small((3, 5), -3, 3, 1)},
            "float32",
        ),
        "FP16": (
            [
                helper.make_node("Cast", ["w"], ["c"], to=TensorProto.FLOAT),
                helper.make_node("Conv", ["x", "c"], ["y"], "layer"),
            ],
            {"w": small((3, 4, 2, 2), -3, 3, 1).astype(np.float16)},
            "float16",
        ),
        "BF16": (
            [
                helper.make_node("Cast", ["w"], ["c"], to=TensorProto.FLOAT),
                helper.make_node("Conv", ["x", "c"], ["y"], "layer"),
            ],
            {"w": small((3, 4, 2, 2), -3, 3, 1).astype(ml_dtypes.bfloat16)},
            "bfloat16",
        ),
        "INT8 behind DequantizeLinear": (
            [
                helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
                helper.make_node("Conv", ["x", "d"], ["y"], "layer"),
            ],
            {"w": small((3, 4, 2, 2), -99, 99, 1).astype(np.int8), "s": np.float32(0.25)},
            "int8",
        ),
        "INT4 behind DequantizeLinear and Reshape": (
            [
                helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
                helper.make_node("Reshape", ["d", "shape"], ["r"]),
                helper.make_node("Conv", ["x", "r"], ["y"], "layer"),
            ],
            {
                "w": small((3, 16), -8, 7, 1).astype(ml_dtypes.int4),
                "s": np.float32(0.25),
                "shape": np.array([3, 4, 2, 2]),
            },
            "int4",
        ),
        "UINT4 behind DequantizeLinear": (
            [
                helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
                helper.make_node("Conv", ["x", "d"], ["y"], "layer"),
            ],
            {
                "w": small((3, 4, 2, 2), 0, 15, 1).astype(ml_dtypes.uint4),
                "s": np.float32(0.25),
            },
            "uint4",
        ),
        "ConvInteger": (
            [
                helper.make_node("Cast", ["x"], ["i"], to=TensorProto.UINT8),
                helper.make_node("ConvInteger", ["i", "w"], ["c"], "layer"),
                helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
            ],
            {"w": small((3, 4, 2, 2), -63, 63, 1).astype(np.int8)},
            "int8",
        ),
        "MatMulInteger": (
            [
                helper.make_node("Cast", ["x"], ["i"], to=TensorProto.UINT8),
                helper.make_node("MatMulInteger", ["i", "w"], ["c"], "layer"),
                helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
            ],
            {"w": small((5, 3), -63, 63, 1).astype(np.int8)},
            "int8",
        ),
        "QLinearMatMul": (
            [
                helper.make_node("Cast", ["x"], ["i"], to=TensorProto.UINT8),
                helper.make_node(
                    "QLinearMatMul", ["i", "s", "z", "w", "s", "n", "s", "z"], ["c"], "layer"
                ),
                helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
            ],
            {
                "w": small((5, 3), -63, 63, 1).astype(np.int8),
                "s": np.float32(0.25), "z": np.uint8(0), "n": np.int8(0),
            },
            "int8",
        ),
    }  # fmt: skip


LOADED = ("FP16", "BF16")
"""What ONNX Runtime converts to FP32 when it loads, unless it optimizes nothing."""


@pytest.mark.parametrize(
    ("name", "level"),
    [
        *((name, "disable_all") for name in layers()),
        *((name, "all") for name in layers() if name not in LOADED),
    ],
)
def test_every_operator_as_the_file_with_another_weight(tmp_path, name, level):
    """Held against onnx.reference on a file whose stored weight has the bit changed."""
    nodes, stored, storage = layers()[name]
    path = faulted.write(tmp_path / "one.onnx", nodes, {"x": (1, 4, 5, 5)}, ["y"], stored, opset=21)
    made = injector(path, graph_optimization_level=level)
    x = faulted.integers((1, 4, 5, 5), 0, 5, 3)
    trace, rng = made.trace({"x": x}), np.random.default_rng(0)
    site = next(s for s in made.sites if s.target is Target.WEIGHTS)
    model = onnx.load(path)
    own = next(t for t in model.graph.initializer if t.name == "w")
    assert site.storage == storage
    assert site.shape == stored["w"].shape

    with made.at(site) as rest:
        for bit in range(site.bits):
            index = int(rng.integers(site.elements))
            found = rest.run(trace, [BitFault(index, bit)])
            values = np.array(stored["w"])
            raw = values.reshape(-1).view(f"u{values.itemsize}")
            code = faulted.changed(int(raw[index]) & (2**site.bits - 1), bit, "flip")
            raw[index] = code | (0xF0 if storage == "int4" and code & 8 else 0)
            own.CopyFrom(numpy_helper.from_array(values, "w"))
            with np.errstate(all="ignore"):
                (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
            assert found.changes[0][1] == pytest.approx(float(values.flat[index]), nan_ok=True)
            exact = simple(found.changes[0][1] * 4)
            assert faulted.equal(found.outputs["y"], wanted, exact), (index, bit)


@pytest.mark.parametrize("name", LOADED)
def test_weights_converted_on_loading_are_hit_as_they_are_then(tmp_path, name):
    nodes, stored, _ = layers()[name]
    path = faulted.write(tmp_path / "m.onnx", nodes, {"x": (1, 4, 5, 5)}, ["y"], stored, opset=21)

    made = injector(path, graph_optimization_level="basic")

    assert site_of(made, "layer", Target.WEIGHTS).storage == "float32"


def test_a_stored_tensor_of_two_layers_is_one_site(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "one"),
        helper.make_node("MatMul", ["a", "w"], ["y"], "two"),
    ]
    weights = faulted.integers((4, 4), -3, 3, 0)
    path = faulted.write(tmp_path / "m.onnx", nodes, {"x": (1, 4)}, ["y"], {"w": weights})
    made = injector(path)
    x = faulted.integers((1, 4), -3, 3, 1)
    sites = [s for s in made.sites if s.target is Target.WEIGHTS]

    with made.at(sites[0]) as rest:
        found = rest.run(made.trace({"x": x}), [BitFault(5, 31)]).outputs["y"]

    weights.flat[5] *= -1
    assert [s.layer for s in sites] == ["one"]
    assert np.array_equal(found, x @ weights @ weights)


def test_nan_that_a_later_layer_does_not_read_is_seen(tmp_path):
    """A 1x1 convolution with stride 2 skips three of four values."""
    nodes = [
        helper.make_node("Conv", ["x", "one"], ["a"], "first"),
        helper.make_node("Conv", ["a", "one"], ["b"], "second", strides=[2, 2]),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    path = faulted.write(
        tmp_path / "m.onnx", nodes, {"x": (1, 1, 4, 4)}, ["y"], {"one": np.ones((1, 1, 1, 1), "f4")}
    )
    made = injector(path)
    trace = made.trace({"x": np.ones((1, 1, 4, 4), np.float32)})

    with made.at(site_of(made, "x", Target.INPUT)) as rest:
        found = rest.run(trace, [BitFault(1, 30)])

    assert found.changes == ((1.0, float("inf")),)
    assert np.array_equal(found.outputs["y"], trace["y"])
    assert not found.finite


def test_inf_that_fused_activations_end_is_seen(tmp_path):
    """1 becomes Inf; then Relu makes 0 of -Inf, or Clip 6 of Inf, and the output is finite."""
    one = np.ones((1, 1, 1, 1), np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "one"], ["a"], "first"),
        helper.make_node("Clip", ["a", "low", "high"], ["b"]),
        helper.make_node("Conv", ["b", "minus"], ["c"], "second"),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "one"], ["e"], "third"),
        helper.make_node("Clip", ["e", "low", "high"], ["f"]),
        helper.make_node("Neg", ["f"], ["y"]),
    ]
    stored = {"one": one, "minus": -one, "low": np.float32(0), "high": np.float32(6)}
    path = faulted.write(tmp_path / "m.onnx", nodes, {"x": (1, 1, 4, 4)}, ["y"], stored)
    made = injector(path)
    trace = made.trace({"x": np.ones((1, 1, 4, 4), np.float32)})

    for faults, layer, target in (
        ([BitFault(0, 30)], "first", Target.NEURONS),
        ([BitFault(0, 30), BitFault(0, 31)], "second", Target.WEIGHTS),
    ):
        with made.at(site_of(made, layer, target)) as rest:
            found = rest.run(trace, faults)
            assert rest.run(trace).finite
        assert np.isfinite(found.outputs["y"]).all()
        assert not found.finite


def test_inf_in_a_sum_is_seen(tmp_path):
    nodes = [
        helper.make_node("Conv", ["x", "one"], ["a"], "first"),
        helper.make_node("Add", ["a", "x"], ["s"]),
        helper.make_node("Conv", ["s", "one"], ["c"], "second"),
        helper.make_node("Clip", ["c", "low", "high"], ["d"]),
        helper.make_node("Neg", ["d"], ["y"]),
    ]
    one = np.ones((1, 1, 1, 1), np.float32)
    stored = {"one": one, "low": np.float32(0), "high": np.float32(6)}
    path = faulted.write(tmp_path / "m.onnx", nodes, {"x": (1, 1, 4, 4)}, ["y"], stored)
    made = injector(path)
    trace = made.trace({"x": np.ones((1, 1, 4, 4), np.float32)})

    with made.at(site_of(made, "first", Target.WEIGHTS)) as rest:
        found = rest.run(trace, [BitFault(0, 30)])
        assert rest.run(trace).finite

    assert np.isfinite(found.outputs["y"]).all()
    assert not found.finite


def test_layers_in_fp16_are_watched_too(tmp_path):
    """ONNX Runtime has a MatMul in FP16; Inf of the first is ended by the Clip of the second."""
    half = np.ones((4, 4), np.float16)
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["h", "w"], ["a"], "one"),
        helper.make_node("Clip", ["a", "low", "high"], ["c"]),
        helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
    ]
    stored = {"w": half, "low": np.float16(0), "high": np.float16(6)}
    path = faulted.write(tmp_path / "m.onnx", nodes, {"x": (1, 4)}, ["y"], stored)
    made = injector(path)
    trace = made.trace({"x": np.ones((1, 4), np.float32)})

    with made.at(site_of(made, "x", Target.INPUT)) as rest:
        found = rest.run(trace, [BitFault(0, 30)])
        assert rest.run(trace).finite

    assert np.isfinite(found.outputs["y"]).all()
    assert not found.finite


def test_what_an_inner_graph_takes_crosses_the_cut(tmp_path):
    """Both branches of the If read tensors of the outer graph, one of them before the cut."""
    nothing = helper.make_tensor_value_info("t", TensorProto.FLOAT, None)
    then = helper.make_graph([helper.make_node("Add", ["a", "x"], ["t"])], "then", [], [nothing])
    other = helper.make_graph([helper.make_node("Sub", ["a", "x"], ["t"])], "else", [], [nothing])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "one"),
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Greater", ["m", "nothing"], ["positive"]),
        helper.make_node("If", ["positive"], ["y"], then_branch=then, else_branch=other),
    ]
    weights = faulted.integers((4, 4), -3, 3, 0)
    stored = {"w": weights, "nothing": np.float32(0)}
    path = faulted.write(tmp_path / "m.onnx", nodes, {"x": (1, 4)}, ["y"], stored)
    made = injector(path)
    changed = weights.copy()
    changed.flat[6] *= -1

    for x in (np.float32([[1, 2, 3, 4]]), np.float32([[-1, -2, -3, -4]])):
        trace = made.trace({"x": x})
        with made.at(site_of(made, "one", Target.WEIGHTS)) as rest:
            found = rest.run(trace, [BitFault(6, 31)])
        expected = x @ changed + (x if x.max() > 0 else -x)
        assert np.array_equal(found.outputs["y"], expected)


def test_neurons_whose_shape_depends_on_values_are_no_sites(tmp_path):
    nodes = [
        helper.make_node("NonZero", ["x"], ["n"]),
        helper.make_node("Transpose", ["n"], ["p"]),
        helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["f", "w"], ["y"], "one"),
    ]
    weights = faulted.integers((2, 3), 1, 3, 0)
    path = faulted.write(tmp_path / "m.onnx", nodes, {"x": (1, 4)}, ["y"], {"w": weights})
    made = injector(path)
    x = np.float32([[0, 5, 0, 7]])

    with made.at(made.sites[1]) as rest:
        found = rest.run(made.trace({"x": x}), [BitFault(3, 31)])

    weights.flat[3] *= -1
    assert [(s.operator, s.target) for s in made.sites] == [
        ("Input", "input"),
        ("FusedMatMul", "weights"),
    ]
    assert np.array_equal(found.outputs["y"], np.float32([[0, 1], [0, 3]]) @ weights)


def test_what_cannot_be_reached_is_refused(small, tmp_path):
    with pytest.raises(Unsupported, match=r"on the CPU only, not with provider: cuda"):
        injector(small, provider="cuda")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "one")]
    path = faulted.write(
        tmp_path / "m.onnx", nodes, {"x": (1, "T", 4)}, ["y"], {"w": np.ones((4, 4), "f4")}
    )
    with pytest.raises(Unsupported, match=r"'x' has free dimensions; faults need fixed sizes"):
        injector(path)
    made = injector(small)
    with pytest.raises(ValueError, match=r"small.onnx has no weights of 'nowhere'"):
        made.at(Site("nowhere", "Conv", Target.WEIGHTS, "float32", (1,)))
    with pytest.raises(ValueError, match=r"inputs \['x'\] expected, got \['z'\]"):
        made.trace({"z": faulted.picture()})
