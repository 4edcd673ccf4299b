"""torch.export programs that would run code: refused before PyTorch reads them."""

import io
import json
import pickle
import zipfile

import pytest
import torch

from backends.litert.torch_exporter import LiteRtTorchExporter
from backends.pytorch import TorchRuntime
from backends.pytorch_executorch import ExecutorchRuntime
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


HOSTILE = (
    weight, old_weight, constant, custom, inputs, inputs_of_protocol_4, inputs_unzipped, legacy,
    expression, without_a_string, factory,
)  # fmt: skip


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


@pytest.mark.parametrize("change", [weight, inputs, expression])
def test_these_programs_do_run_code_where_pytorch_reads_them(program, tmp_path, change):
    """So that the refusals above are of something."""
    mark = tmp_path / "it_ran"
    place = changed(program, tmp_path / "model.pt2", change, mark)

    with pytest.raises(Exception):  # noqa: B017, PT011  what it then fails with is its own
        torch.export.load(str(place)).module()(torch.ones(2, 3)).backward()

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
