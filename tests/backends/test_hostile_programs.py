"""torch.export programs that would run code: refused before PyTorch reads them."""

import io
import json
import pickle
import socket
import subprocess
import sys
import zipfile
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
import torch

import simulator
from backends.litert.torch_exporter import LiteRtTorchExporter
from backends.pytorch import TorchRuntime
from backends.pytorch_executorch import ExecutorchRuntime
from simulator import registry
from simulator.contract import Stage
from simulator.contract.program import plain_program
from simulator.errors import ModelError

CONFIG = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
INPUTS, GRAPH, WEIGHT = "data/sample_inputs/model.pt", "models/model.json", "data/weights/weight_0"


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)
        self.register_buffer("shift", torch.tensor([1.0, 2, 3, 4]))

    def forward(self, x):
        return self.linear(x) + self.shift


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A program whose first size is free."""
    place = tmp_path_factory.mktemp("program") / "model.pt2"
    free = ({0: torch.export.Dim("n", max=64)},)
    made = torch.export.export(Layer().eval(), (torch.ones(2, 3),), dynamic_shapes=free)
    torch.export.save(made, str(place))
    return place


class Command:
    """Makes a file when it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return exec, (f"open({str(self.place)!r}, 'w')",)


def saved(value, protocol=2):
    buffer = io.BytesIO()
    torch.save(value, buffer, pickle_protocol=protocol)
    return buffer.getvalue()


def pickled(members, config, key=None, name="weight_0"):
    """Say of a payload that it is pickled."""
    found = json.loads(members[config])
    entry = {"path_name": name, "is_param": False, "use_pickle": True, "tensor_meta": None}
    first = key or next(iter(found["config"]))
    found["config"][first] = {**found["config"].get(first, {}), **entry}
    members[config] = json.dumps(found).encode()


def weight(members, place):
    pickled(members, CONFIG)
    members[WEIGHT] = saved(Command(place))


def old_weight(members, place):
    pickled(members, CONFIG)
    members[WEIGHT] = pickle.dumps(Command(place), protocol=0)


def constant(members, place):
    pickled(members, CONSTANTS, "c", "tensor_0")
    members["data/constants/tensor_0"] = saved(Command(place))


def custom(members, place):
    pickled(members, CONSTANTS, "c", "opaque_obj_0")
    members["data/constants/opaque_obj_0"] = pickle.dumps(Command(place))


def inputs(members, place):
    members[INPUTS] = saved(((torch.ones(2, 3), Command(place)), {}))


def inputs_of_protocol_4(members, place):
    members[INPUTS] = saved(((torch.ones(2, 3), Command(place)), {}), 4)


def inputs_unzipped(members, place):
    members[INPUTS] = pickle.dumps(Command(place))


def legacy(members, place):
    members["data/weights/model.pt"] = saved(Command(place))


def expression(members, place):
    text = members[GRAPH].decode()
    at = text.index("Symbol(")
    old = text[at : text.index(")", at) + 1]
    code = json.dumps(f"exec(\"open({str(place)!r}, 'w')\")")[1:-1]
    members[GRAPH] = text.replace(old, code).encode()


def without_a_string(members, place):
    """No quotes, no dots: the text of the command is made of numbers."""
    text = members[GRAPH].decode()
    at = text.index("Symbol(")
    old = text[at : text.index(")", at) + 1]
    command = "+".join(f"chr({ord(letter)})" for letter in f"open({str(place)!r}, 'w')")
    members[GRAPH] = text.replace(old, f"exec({command})").encode()


def factory(members, place):
    """The shape of the inputs is that of a defaultdict of a module, which would be imported."""
    spec = {
        "type": "collections.defaultdict",
        "context": json.dumps(
            {"default_factory_module": "antigravity", "default_factory_name": "x",
             "dict_context": []}
        ),
        "children_spec": [],
    }  # fmt: skip
    found = json.loads(members[GRAPH])
    signature = found["graph_module"]["module_call_graph"][0]["signature"]
    signature["in_spec"] = json.dumps([1, spec])
    members[GRAPH] = json.dumps(found).encode()


def graph_of(members):
    return json.loads(members[GRAPH])


def keep(members, graph):
    members[GRAPH] = json.dumps(graph).encode()


def code(place):
    """An expression that makes the file, without quotes that JSON or Python would end."""
    return f"__import__('pathlib').Path({str(place)!r}).touch()"


def renamed(members, old, new):
    """Rename a value wherever the graph speaks of it."""
    members[GRAPH] = members[GRAPH].replace(json.dumps(old).encode(), json.dumps(new).encode())


def name_of_input(members, place):
    renamed(members, "x", f"x={code(place)}")


def name_of_first_weight(members, place):
    renamed(members, "p_linear_weight", f"p, q={code(place)}")


def name_of_node(members, place):
    renamed(members, "linear", f"linear={code(place)};y")


def name_of_output(members, place):
    renamed(members, "add", f"add=linear+b_shift;{code(place)};add")


def name_of_argument(members, place):
    graph = graph_of(members)
    signature = graph["graph_module"]["module_call_graph"][0]["signature"]
    signature["forward_arg_names"] = [f"x={code(place)}"]
    keep(members, graph)


def key_of_inputs(members, place):
    graph = graph_of(members)
    signature = graph["graph_module"]["module_call_graph"][0]["signature"]
    leaf = {"type": None, "context": None, "children_spec": []}
    kwargs = {"type": "builtins.dict", "context": json.dumps([f"x={code(place)}"]),
              "children_spec": [leaf]}  # fmt: skip
    args = {"type": "builtins.tuple", "context": "null", "children_spec": []}
    both = {"type": "builtins.tuple", "context": "null", "children_spec": [args, kwargs]}
    signature |= {"in_spec": json.dumps([1, both]), "forward_arg_names": None}
    keep(members, graph)


def guard(members, place):
    graph = graph_of(members)
    graph["guards_code"] = [f"{code(place)} or True"]
    keep(members, graph)


def guard_of_one_symbol(members, place):
    graph = graph_of(members)
    graph["guards_code"] = [f"L['x'].size()[0] == 2 or L['{code(place)}']"]
    keep(members, graph)


def called(members, target, *given):
    """Put a call between the layers; what it gives is not used."""
    graph = graph_of(members)
    inside = graph["graph_module"]["graph"]
    inputs = [{"name": "", "arg": arg, "kind": 1} for arg in given]
    inside["nodes"].insert(
        0,
        {"target": target, "inputs": inputs, "outputs": [{"as_none": True}], "metadata": {},
         "is_hop_single_tensor_return": None, "name": None},
    )  # fmt: skip
    keep(members, graph)


def system(members, place):
    called(members, "torch.os.system", {"as_string": f"touch {place}"})


def spawned(members, place):
    called(members, "torch.os.spawnlp", {"as_int": 0}, {"as_string": "touch"},
           {"as_string": "touch"}, {"as_string": str(place)})  # fmt: skip


def made_directory(members, place):
    called(members, "torch.os.mkdir", {"as_string": str(place)})


def math_globals(members, place):
    called(members, "math.__loader__.load_module", {"as_string": "antigravity"})


def operator_call(members, place):
    called(members, "_operator.call", {"as_operator": "torch.os.mkdir"}, {"as_string": str(place)})


def from_file(members, place):
    """ATen itself makes a file."""
    graph = graph_of(members)
    node = graph["graph_module"]["graph"]["nodes"][0]
    node["target"] = "torch.ops.aten.from_file.default"
    texts = {"filename": {"as_string": str(place)}, "shared": {"as_bool": True},
             "size": {"as_int": 4}}  # fmt: skip
    node["inputs"] = [{"name": n, "arg": arg, "kind": 1} for n, arg in texts.items()]
    keep(members, graph)


def saved_by_aten(members, place):
    graph = graph_of(members)
    node = graph["graph_module"]["graph"]["nodes"][0]
    node["target"] = "torch.ops.aten.save.default"
    node["inputs"] = [
        {"name": "item", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
        {"name": "filename", "arg": {"as_string": str(place)}, "kind": 1},
    ]
    keep(members, graph)


def library(members, place):
    called(members, "torch.ops.load_library", {"as_string": str(place)})


def extension(members, place):
    called(members, f"#{place}:x")


def source_of_node(members, place):
    graph = graph_of(members)
    graph["graph_module"]["graph"]["nodes"][0]["metadata"]["source_fn_stack"] = "x,torch.os.abort"
    renamed_to = f"y={code(place)}"
    graph["graph_module"]["graph"]["nodes"][0]["name"] = renamed_to
    keep(members, graph)


def name_of_weight(members, place):
    """The path of a weight is put between quotes."""
    for member in (CONFIG, GRAPH):
        members[member] = members[member].replace(
            b'"linear.weight"', json.dumps(f'linear.w", {code(place)}) or ("').encode()
        )


def name_of_size(members, place):
    members[GRAPH] = members[GRAPH].replace(b'"s77": {', json.dumps(code(place)).encode() + b": {")


def path_of_weight(members, place):
    found = json.loads(members[CONFIG])
    next(iter(found["config"].values()))["path_name"] = f"../../{place}"
    members[CONFIG] = json.dumps(found).encode()


def object_of_torchscript(members, place):
    graph = graph_of(members)
    graph["graph_module"]["graph"]["custom_obj_values"] = {
        "x": {"name": "x", "class_fqn": f"__torch__.{place}"}
    }
    keep(members, graph)


def method_in_expression(members, place):
    sized(members, f"Symbol('s77').__class__.__init__.__globals__['{place}']")


def sized(members, new):
    text = members[GRAPH].decode()
    at = text.index("Symbol(")
    members[GRAPH] = text.replace(text[at : text.index(")", at) + 1], new).encode()


def endless_power(members, place):
    sized(members, "9**9**9**9")


def endless_shift(members, place):
    sized(members, "LShift(1, Mul(s77, 2))")


HOSTILE = (
    weight, old_weight, constant, custom, inputs, inputs_of_protocol_4, inputs_unzipped, legacy,
    expression, without_a_string, factory, name_of_input, name_of_first_weight, name_of_node,
    name_of_output, name_of_argument, key_of_inputs, guard, guard_of_one_symbol, system, spawned,
    made_directory, math_globals, operator_call, from_file, saved_by_aten, library, extension,
    source_of_node, name_of_weight, name_of_size, path_of_weight, object_of_torchscript,
    method_in_expression, endless_power, endless_shift,
)  # fmt: skip
RUN = (weight, inputs, expression, name_of_input, guard, from_file)
"""Those that PyTorch 2.13 does run. Its own check refuses operators such as torch.os.system."""


def changed(program, place, change, *given):
    """The program with other members, as PyTorch's own reader takes them."""
    with zipfile.ZipFile(program) as packed:
        top = packed.namelist()[0].partition("/")[0]
        members = {name.partition("/")[2]: packed.read(name) for name in packed.namelist()}
    change(members, *given)
    with zipfile.ZipFile(place, "w") as packed:
        for name, content in members.items():
            packed.writestr(f"{top}/{name}", content)
    return place


@pytest.mark.parametrize("change", HOSTILE)
def test_a_program_that_runs_code_is_refused(program, tmp_path, change):
    mark = tmp_path / "it_ran"
    place = changed(program, tmp_path / "model.pt2", change, mark)

    with pytest.raises(ModelError, match=r"save it again with torch\.export\.save"):
        plain_program(place)

    assert not mark.exists()


@pytest.mark.parametrize("change", RUN)
def test_these_programs_do_run_code_where_pytorch_reads_them(program, tmp_path, change):
    mark = tmp_path / "it_ran"
    place = changed(program, tmp_path / "model.pt2", change, mark)

    with suppress(Exception):  # what it then fails with is its own
        torch.export.load(str(place)).module()(torch.ones(2, 3))

    assert mark.exists()


def by_executorch(place, folder):
    ExecutorchRuntime.compile(place, folder, {"compute": "fp32"})


def by_litert(place, folder):
    LiteRtTorchExporter({}).export(place, folder / "model.tflite")


def by_pytorch(place, folder):
    options = {
        "device": "cpu", "threads": 1, "compute": "fp32", "mode": "eager",
        "memory_format": "contiguous",
    }  # fmt: skip
    TorchRuntime(place, options)


@pytest.mark.parametrize("read", [by_pytorch, by_executorch, by_litert])
def test_every_backend_refuses_it(program, tmp_path, read):
    mark = tmp_path / "it_ran"
    place = changed(program, tmp_path / "model.pt2", inputs, mark)

    with pytest.raises(ModelError, match="a pickle in it"):
        read(place, tmp_path)

    assert not mark.exists()


@pytest.mark.parametrize("content", [b"", b"PK", b"x" * 999, b"PK\x05\x06" + bytes(18)])
def test_what_is_no_program_is_one_line(tmp_path, content):
    place = tmp_path / "model.pt2"
    place.write_bytes(content)

    with pytest.raises(ModelError) as error:
        torch.export.load(plain_program(place))

    assert "\n" not in str(error.value)


def test_a_plain_program_computes_what_it_did(program):
    x = torch.linspace(-1, 1, 15).reshape(5, 3)

    read = torch.export.load(plain_program(program))

    expected = torch.export.load(str(program)).module()(x)
    assert torch.equal(read.module()(x), expected)
    assert torch.equal(read.example_inputs[0][0], torch.ones(2, 3))


def test_inputs_whose_sizes_depend_on_each_other_are_read(tmp_path):
    """The conditions on their sizes are code in the file: arithmetic stays, and is in force."""

    class Pairs(torch.nn.Module):
        def forward(self, x, *, scale):
            return {"a.b": x.reshape(-1, 2, 3).sum(1) * scale}

    place = tmp_path / "model.pt2"
    free = {"x": {0: torch.export.Dim.DYNAMIC}, "scale": None}
    made = torch.export.export(
        Pairs(), (torch.ones(4, 3),), {"scale": torch.ones(3)}, dynamic_shapes=free
    )
    made.example_inputs = None
    torch.export.save(made, str(place))

    read = torch.export.load(plain_program(place))

    assert read._guards_code
    assert torch.equal(
        read.module()(torch.ones(4, 3), scale=torch.ones(3))["a.b"], torch.ones(2, 3) * 2
    )


CONFINED = (
    "import sys; sys.path.insert(0, {here!r}); "
    "from simulator.worker.confined import confine; print(confine([{own!r}]), flush=True); "
)


@pytest.mark.parametrize(
    "deed",
    [
        "open({mark!r}, 'w')",
        "import os; os.system('touch {mark}')",
        "import os; os.mkdir({mark!r})",
        "import os; os.rename({kept!r}, {mark!r})",
        "import os; os.unlink({kept!r})",
        "import os; os.truncate({kept!r}, 0)",
        "import socket; socket.create_connection(('127.0.0.1', {port}), 5)",
        "import socket; socket.socket(socket.AF_UNIX)",
        "import os; os.kill(os.getppid(), 0)",
        "import os; open(f'/proc/{{os.getppid()}}/mem', 'rb')",
    ],
)
def test_what_a_file_could_do_after_all(tmp_path, deed):
    """A confined process cannot write elsewhere, connect, or reach the process that started it."""
    mark, kept, own = tmp_path / "it_ran", tmp_path / "kept", tmp_path / "own"
    kept.write_text("kept")
    own.mkdir()
    here = str(Path(simulator.__file__).parents[1])
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = deed.format(mark=str(mark), kept=str(kept), port=port)
        code = CONFINED.format(here=here, own=str(own)) + done
        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
    assert "no new privileges" in ran.stdout
    if "no sockets" not in ran.stdout or "own folder only" not in ran.stdout:
        pytest.skip(f"this system offers only: {ran.stdout}")

    assert ran.returncode or "os.system" in deed
    assert not mark.exists()
    assert kept.read_text() == "kept"


def test_a_program_runs_in_a_confined_worker(program, monkeypatch):
    """With the numbers that it has here; no secret of ours is in its environment."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    backend = registry.backend("pytorch")
    offer = backend.of(Stage.RUNTIME)[0]
    options = {
        "device": "cpu", "threads": 1, "compute": "fp32", "mode": "eager",
        "memory_format": "contiguous", "storage": "fp32",
    }  # fmt: skip
    x = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)

    with closing(registry.make(backend, offer, program, options)) as runtime:
        found = runtime.run({"x": x})
        told = runtime.effective({"x": x}).details
        worker = registry._worker(registry._confined(backend))
        secrets = Path(f"/proc/{worker._process.pid}/environ").read_bytes()

    expected = torch.export.load(str(program)).module()(torch.from_numpy(x))
    assert np.array_equal(found["add"], expected.detach().numpy())
    assert "no new privileges" in told["confined"]
    assert b"secret" not in secrets
    assert b"PATH=" in secrets


def test_its_gradients_come_from_the_worker(program):
    backend = registry.backend("pytorch")
    offer = backend.of(Stage.GRADIENT)[0]
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

    found = registry.make(backend, offer, program, {"format": "torch_export"}).gradient(
        x, 1, "logits"
    )

    here = offer.make(program, {"format": "torch_export"}).gradient(x, 1, "logits")
    assert found.loss == here.loss
    assert np.array_equal(found.gradient, here.gradient)
