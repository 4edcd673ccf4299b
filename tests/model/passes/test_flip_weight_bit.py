"""One bit of one stored weight: which, where, and nothing else."""

import math
import shutil
from collections import Counter

import numpy as np
import onnx
import pytest
import tiny
from artifacts import built
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from simulator.contract import Stage
from simulator.contract.passes import PASSES, Request
from simulator.errors import ModelError, UserError
from simulator.model.artifact import Artifact, Feeds, finish, prepare
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.model.passes.flip_weight_bit import Flip, Options, apply, weights
from simulator.profile.implementations import choose
from simulator.profile.load import load

FLOATS = {"float32": 32, "float16": 16, "bfloat16": 16, "float64": 64, "float8_e4m3fn": 8}
CODES = {"int8": 8, "uint8": 8, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "int16": 16}
WIDTHS = FLOATS | CODES
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def dtype_of(name):
    import ml_dtypes

    return np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name))


def stored(name, values, shape, typed):
    """A tensor of a type, its data in ``raw_data`` or in the fields of protobuf."""
    array = np.asarray(values).astype(dtype_of(name)).reshape(shape)
    if not typed:
        return numpy_helper.from_array(array, "w")
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor("w", kind, shape, array.astype(np.float32).ravel().tolist())


def network(tensor):
    """A product with a weight of any type, and tensors that are no weights beside it."""
    name = helper.tensor_dtype_to_np_dtype(tensor.data_type).name
    nodes = [helper.make_node("Add", ["p", "bias"], ["y"])]
    if name in CODES:
        nodes.insert(0, helper.make_node("DequantizeLinear", ["w", "scale"], ["m"]))
    else:
        nodes.insert(0, helper.make_node("Cast", ["w"], ["m"], to=TensorProto.FLOAT))
    nodes.insert(1, helper.make_node("MatMul", ["x", "m"], ["p"]))
    rows, columns = tensor.dims
    constants = {"bias": np.ones(columns, np.float32), "scale": np.float32(0.5)}
    model = tiny.model(nodes, {"x": [1, rows]}, {"y": [1, columns]}, constants, opset=25)
    model.ir_version = 13
    model.graph.initializer.append(tensor)
    return model


def bits(path, folder=None):
    """Every stored tensor's bits as whole numbers, element by element; NumPy reads them."""
    found = {}
    for tensor in onnx.load(path).graph.initializer:
        array = numpy_helper.to_array(tensor)
        width = helper.tensor_dtype_to_np_dtype(tensor.data_type)
        codes = array.reshape(-1).view(UNSIGNED[array.itemsize])
        mask = (1 << WIDTHS.get(width.name, 8 * array.itemsize)) - 1
        found[tensor.name] = codes & codes.dtype.type(mask)
    return found


def flipped(folder, source, bit, trial=0, condition="flip", number=0):
    target = folder / f"{number}" / "model.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    return target, apply(source, target, Options(bit=bit, condition=condition, trial=trial))


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_exactly_one_bit_differs_and_flipping_twice_restores_it(data, tmp_path_factory):
    name = data.draw(st.sampled_from(sorted(WIDTHS)), label="type")
    bit = data.draw(st.integers(0, WIDTHS[name] - 1), label="bit")
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)), label="shape")
    low, high = {"uint2": (0, 3), "int2": (-2, 1), "uint4": (0, 15)}.get(name, (-8, 7))
    low = 0 if name.startswith("u") else low
    values = data.draw(
        st.lists(st.integers(low, high), min_size=math.prod(shape), max_size=math.prod(shape))
    )
    typed = data.draw(st.booleans(), label="typed") and name in ("float32", "float64", "int8")
    trial = data.draw(st.integers(0, 99), label="trial")
    folder = tmp_path_factory.mktemp("flip")
    source = folder / "model.onnx"
    onnx.save(network(stored(name, values, shape, typed)), source)

    target, report = flipped(folder, source, bit, trial)
    again, back = flipped(folder, target, bit, trial, number=1)

    before, after = bits(source), bits(target)
    changed = {n: before[n] ^ after[n] for n in before if (before[n] != after[n]).any()}
    place = int(np.ravel_multi_index(report.index, shape))
    (mask,) = changed.values()
    assert set(changed) == {"w"} == {report.tensor}
    assert [(i, int(v)) for i, v in enumerate(mask) if v] == [(place, 1 << bit)]
    assert {n: v.tolist() for n, v in bits(again).items()} == {
        n: v.tolist() for n, v in before.items()
    }
    assert (report.stored, report.bit, report.before) == (name, bit, values[place])
    assert (back.index, back.after) == (report.index, report.before)
    assert Flip.model_validate_json(report.model_dump_json()).model_dump_json() == (
        report.model_dump_json()
    )


@pytest.mark.parametrize(
    ("name", "value", "bit", "after"),
    [
        ("float32", 1.0, 30, math.inf),
        ("float32", 1.0, 31, -1.0),
        ("float32", 1.0, 23, 0.5),
        ("float32", 1.0, 0, 1 + 2**-23),
        ("float16", 1.0, 14, math.inf),
        ("bfloat16", 1.0, 6, 1.5),
        ("int8", 5, 7, -123),
        ("uint8", 5, 7, 133),
        ("int4", 5, 3, -3),
        ("uint4", 5, 0, 4),
        ("int2", 1, 1, -1),
    ],
)
def test_numbers_worked_out_by_hand(tmp_path, name, value, bit, after):
    """IEEE 754: the exponent of 1.0 is 127 of 255; a two's complement's top bit weighs -2^(n-1)."""
    source = tmp_path / "model.onnx"
    onnx.save(network(stored(name, [value], (1, 1), False)), source)

    target, report = flipped(tmp_path, source, bit)

    (tensor,) = (t for t in onnx.load(target).graph.initializer if t.name == "w")
    assert float(numpy_helper.to_array(tensor)[0, 0]) == report.after == after
    assert (report.before, report.index, report.layer) == (value, (0, 0), "p")


def test_what_is_no_number_can_be_recorded(tmp_path):
    """The exponent of 1.5 becomes all ones, and its fraction is not zero."""
    source = tmp_path / "model.onnx"
    onnx.save(network(stored("float32", [1.5], (1, 1), False)), source)

    _, report = flipped(tmp_path, source, 30)

    assert math.isnan(report.after)
    assert math.isnan(Flip.model_validate_json(report.model_dump_json()).after)


def test_every_element_of_every_weight_is_as_likely(tmp_path):
    """90 elements of one weight and 10 of another: of 600 draws 540 and 60, deviation 7.3."""
    rng = np.random.default_rng(0)
    nodes = [helper.make_node("MatMul", ["x", "a"], ["m"]),
             helper.make_node("MatMul", ["m", "b"], ["y"])]  # fmt: skip
    constants = {n: rng.normal(size=s).astype("f4") for n, s in (("b", (10, 1)), ("a", (9, 10)))}
    source = tmp_path / "model.onnx"
    onnx.save(tiny.model(nodes, {"x": [1, 9]}, {"y": [1, 1]}, constants), source)

    found = [flipped(tmp_path, source, 0, trial)[1] for trial in range(600)]

    tensors = Counter(report.tensor for report in found)
    assert abs(tensors["a"] - 540) < 4 * 7.3
    assert len({(report.tensor, report.index) for report in found}) > 95


def test_a_draw_depends_on_the_condition_and_the_trial(tmp_path):
    source = tmp_path / "model.onnx"
    onnx.save(network(stored("float32", range(2500), (50, 50), False)), source)

    def places(**options):
        return [flipped(tmp_path, source, 3, trial=t, **options)[1].index for t in range(5)]

    assert places() == places()
    assert len({*places(), *places(condition="other")}) == 10
    assert places() == [
        flipped(tmp_path, source, 9, trial=t)[1].index for t in range(5)
    ]  # whatever the bit


PLACED = [
    ("Conv", ["x", "w", "bias"], {}),
    ("ConvTranspose", ["x", "w"], {}),
    ("Gemm", ["x", "w", "bias"], {}),
    ("Gemm", ["w", "x"], {}),
    ("MatMul", ["w", "x"], {}),
    ("QLinearConv", ["x", "bias", "zero", "w", "bias", "zero", "bias", "zero"], {}),
    ("QLinearMatMul", ["x", "bias", "zero", "w", "bias", "zero", "bias", "zero"], {}),
    ("ConvInteger", ["x", "w"], {}),
    ("MatMulInteger", ["x", "w"], {}),
    ("LSTM", ["x", "w", "r", "bias"], {}),
    ("MatMulNBits", ["x", "w", "scale"], {"domain": "com.microsoft"}),
]


@pytest.mark.parametrize(("kind", "inputs", "more"), PLACED, ids=str)
def test_which_stored_tensors_are_weights(kind, inputs, more):
    """Neither biases nor scales nor zero points; both matrices of a recurrent layer."""
    names = dict.fromkeys(name for name in inputs if name != "x")
    constants = {name: np.ones((2, 2), np.float32) for name in names}
    model = tiny.model([helper.make_node(kind, inputs, ["y"], **more)], constants=constants)

    assert [one.name for one in weights(model)] == [name for name in names if name in ("w", "r")]


@pytest.mark.parametrize(
    "way",
    [
        ["DequantizeLinear"],
        ["QuantizeLinear", "DequantizeLinear"],
        ["Cast"],
        ["DequantizeLinear", "Reshape", "Slice", "Reshape", "Transpose"],
    ],
    ids="-".join,
)
def test_a_weight_is_found_behind_what_unpacks_it(way):
    nodes = [
        helper.make_node(kind, [f"v{i}", "scale"], [f"v{i + 1}"]) for i, kind in enumerate(way)
    ]
    nodes.append(helper.make_node("Conv", ["x", f"v{len(way)}", "bias"], ["y"], name="first"))
    constants = dict.fromkeys(("bias", "scale", "v0"), np.ones((2, 2), np.float32))

    (weight,) = weights(tiny.model(nodes, constants=constants))

    assert (weight.name, weight.layer) == ("v0", "first")


def test_a_weight_in_a_constant_node(tmp_path):
    constant = helper.make_node("Constant", [], ["w"], value=stored("float32", [1], (1, 1), False))
    nodes = [constant, helper.make_node("MatMul", ["x", "w"], ["y"])]
    source = tmp_path / "model.onnx"
    onnx.save(tiny.model(nodes, {"x": [1, 1]}, {"y": [1, 1]}), source)

    target, _ = flipped(tmp_path, source, 31)

    value = onnx.load(target).graph.node[0].attribute[0].t
    assert numpy_helper.to_array(value).tolist() == [[-1.0]]


def test_a_shared_weight_counts_once():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]),
             helper.make_node("MatMul", ["m", "w"], ["y"])]  # fmt: skip

    assert len(weights(tiny.model(nodes, constants={"w": np.eye(3, dtype="f4")}))) == 1


def test_external_data_stay_external(tmp_path):
    """Of two tensors in files of their own, the changed one moves into the model."""
    folder = tmp_path / "source"
    (folder / "deep").mkdir(parents=True)
    model = tiny.model(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])],
        {"x": [1, 2]}, {"y": [1, 2]},
        {"w": np.array([[1, 2], [3, 4]], "f4"), "b": np.array([5, 6], "f4")},
    )  # fmt: skip
    for tensor, location in zip(model.graph.initializer, ("w.bin", "deep/b.bin"), strict=True):
        (folder / location).write_bytes(b"pad." + tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", 4)):
            tensor.external_data.add(key=key, value=str(value))
    onnx.save(model, folder / "model.onnx")
    kept = (folder / "w.bin").read_bytes()

    target, report = flipped(tmp_path, folder / "model.onnx", 31)

    shutil.rmtree(folder)
    got = {t.name: numpy_helper.to_array(t).ravel() for t in onnx.load(target).graph.initializer}
    want = np.array([1, 2, 3, 4], "f4")
    want[np.ravel_multi_index(report.index, (2, 2))] *= -1
    assert got["w"].tolist() == want.tolist()
    assert got["b"].tolist() == [5, 6]
    assert sorted(str(p.relative_to(target.parent)) for p in target.parent.rglob("*.bin")) == [
        "deep/b.bin"
    ]
    assert kept == b"pad." + np.array([1, 2, 3, 4], "f4").tobytes()


def request(bit=0, trial=0, **more):
    return Request("flip_weight_bit", {"bit": bit, "condition": "flip", "trial": trial, **more})


def made(path, *after, base="pillow_fp32"):
    rng = np.random.default_rng(0)

    def tensors():
        for _ in range(4):
            yield {"x": rng.random((1, 3, 32, 32), np.float32)}

    return built(path, base=base, feeds=Feeds(0, tensors), after=after)


@pytest.fixture
def convolved(tmp_path, cache):
    """The card of a convolution and a matrix product, of 162 and 18 weights."""
    rng = np.random.default_rng(1)
    nodes = [
        helper.make_node("Conv", ["x", "k", "kb"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "w", "wb"], ["y"], name="fc"),
    ]
    sizes = {"w": (6, 3), "wb": (3,), "k": (6, 3, 3, 3), "kb": (6,)}
    constants = {name: rng.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    return tiny.card(tmp_path / "convolved", tiny.model(nodes, constants=constants))


@pytest.mark.parametrize(
    ("base", "stored", "top"),
    [
        ("pillow_fp32", "float32", 31),
        ("openvino_fp16", "float16", 15),
        ("ort_int8", "int8", 7),
        ("openvino_int8", "int8", 7),
    ],
)
def test_the_file_that_runs_is_the_one_that_is_changed(convolved, base, stored, top):
    """A quantized weight is an INT8 code; the runtime opens the file, and answers otherwise."""
    golden, choices = made(convolved, base=base)
    faulty, _ = made(convolved, request(top), base=base)
    (report,) = faulty.reports

    before, after = bits(golden.path), bits(faulty.path)
    assert [n for n in before if (before[n] != after[n]).any()] == [report.tensor]
    assert golden.path.read_bytes() != faulty.path.read_bytes()
    assert report.stored == stored
    x = {"x": np.random.default_rng(2).random((1, 3, 32, 32), np.float32)}
    outputs = []
    for artifact in (golden, faulty):
        runtime = choices[Stage.RUNTIME].make(artifact.path)
        outputs += runtime.run(x).values()
        runtime.close()
    assert not np.array_equal(*outputs)


@pytest.mark.parametrize("trial", range(8))
def test_files_of_one_network_get_the_flip_in_the_same_place(convolved, trial):
    """The quantizer renames and reorders its tensors; the layers stay what they are."""
    plain, quantized = (
        made(convolved, request(1, trial), base=base)[0].reports[0]
        for base in ("pillow_fp32", "ort_int8")
    )

    assert (plain.index, plain.layer) == (quantized.index, quantized.layer)
    assert plain.tensor != quantized.tensor


def test_weights_that_are_only_stored_narrow(convolved):
    """Codes of 4 bits behind DequantizeLinear and Reshape: the code is what memory holds."""
    card, profile = Card(convolved), load(
        "pillow_fp32",
        ["precision={storage: int4, compute: fp32, cast: {backend: weight_only, "
         "granularity: per_channel, symmetric: true}}"],
    )  # fmt: skip
    choices = choose(profile)
    made = prepare(card, check(card), profile, choices, None)

    artifact = finish(card, made, choices, [request(3)])

    before, after = bits(made.path), bits(artifact.path)
    (name,) = [n for n in before if (before[n] != after[n]).any()]
    assert name == artifact.reports[0].tensor
    assert artifact.reports[0].stored in ("int4", "int8")


def test_an_artifact_is_made_once_and_its_report_is_read_again(convolved, monkeypatch):
    first, _ = made(convolved, request(30, 4))
    monkeypatch.setattr("simulator.model.passes.flip_weight_bit._write", None)

    second, _ = made(convolved, request(30, 4))

    assert str(first) == str(second)  # one may hold what is no number, equal to nothing
    assert first.reports and first.notes == ()


def test_the_key_covers_what_was_asked_for(convolved):
    keys = {
        made(convolved)[0].key,
        made(convolved, request(1))[0].key,
        made(convolved, request(2))[0].key,
        made(convolved, request(1, trial=1))[0].key,
        made(convolved, request(1), request(2))[0].key,
        made(convolved, request(1), base="ort_int8")[0].key,
    }

    assert len(keys) == 6


def test_several_flips_are_reported_in_their_order(convolved):
    artifact, _ = made(convolved, request(1), request(2))

    assert [report.bit for report in artifact.reports] == [1, 2]
    assert made(convolved)[0].path == convolved.parent / "model.onnx"


def test_a_compiled_form_is_made_of_the_changed_file(convolved, cache, monkeypatch):
    make = choose(load("pillow_fp32"))[Stage.RUNTIME].offer.make
    monkeypatch.setattr(make, "compiled_by", ())
    monkeypatch.setattr(
        make, "compile", classmethod(lambda cls, s, folder, o: shutil.copy(s, folder / "own"))
    )

    artifact, _ = made(convolved, request(1))

    assert artifact.format == "compiled"
    assert artifact.path.is_relative_to(cache / "compiled")
    golden, after = bits(convolved.parent / "model.onnx"), bits(artifact.path / "own")
    assert [n for n in golden if (golden[n] != after[n]).any()] == [artifact.reports[0].tensor]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (request(32), "model.onnx stores the weight 'k' as float32, whose bits are 0 to 31"),
        (request(-1), "flip_weight_bit: bit: input should be greater than or equal to 0, got -1"),
        (request(1, byte=2), "flip_weight_bit: byte: unknown key 'byte' (offered: bit, cond"),
        (Request("flip_weight_bit", {"bit": 1, "trial": 0}), "condition: required"),
        (Request("flip_weight_byte"), "unknown graph pass 'flip_weight_byte'; did you mean"),
        (Request("pooling"), "pooling is a pass of the phase graph; request it with graph.pooling"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for(convolved, asked, words):
    with pytest.raises(UserError) as caught:
        made(convolved, asked)

    assert words in str(caught.value).splitlines()[0]


def test_a_bit_that_the_quantized_file_has_not(convolved):
    with pytest.raises(ModelError, match=r"as int8, whose bits are 0 to 7$"):
        made(convolved, request(8), base="ort_int8")


def test_a_model_without_weights(tmp_path, cache):
    path = tiny.card(tmp_path, tiny.model([helper.make_node("GlobalAveragePool", ["x"], ["g"]),
                                           helper.make_node("Flatten", ["g"], ["y"])]))  # fmt: skip

    with pytest.raises(ModelError, match=r"model.onnx has no stored weights of a Conv, Gemm or M"):
        made(path, request(0))


def test_a_file_that_is_not_onnx_is_refused(convolved):
    card, choices = Card(convolved), choose(load("pillow_fp32"))

    with pytest.raises(ModelError) as caught:
        finish(card, Artifact(convolved, "key", "tflite"), choices, [request(0)])

    assert str(caught.value) == (
        "flip_weight_bit changes only onnx files, but onnxruntime opens a file of the format tflite"
    )


def test_the_table_lists_it():
    assert PASSES["flip_weight_bit"].phase == "after"
    assert PASSES["pooling"].phase == "graph"
