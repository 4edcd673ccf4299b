"""Several faults in one inference, in any layers, against NumPy and the module's own hooks."""

from contextlib import closing

import faulted
import numpy as np
import pytest
import torch
from torch import nn

from backends.intel.openvino_runtime import OpenVinoRuntime
from backends.ort.runtime import OrtRuntime
from backends.pytorch import TorchRuntime
from simulator.contract import BitFault, Kind, Target

NAMES = {
    "first": ("w1", "b1", "y1"), "deep": ("w2", "b2", "y2"), "point": ("w3", "b3", "y3"),
    "head": ("w4", "b4", "z"), "x": ("", "", "x"),
}  # fmt: skip
ORDER = {Target.WEIGHTS: 0, Target.BIASES: 1, Target.NEURONS: 2, Target.INPUT: 2}
BITS = (21, 22, 23, 31)


def by_hand(hits):
    """Outputs with faults; *hits* are names of tensors, elements, bits and kinds."""

    def one(name, values):
        values = values.astype(np.float32)
        for _, index, bit, kind in (hit for hit in hits if hit[0] == name):
            values.flat[index] = faulted.disturbed(values.flat[index], bit, kind)
        return values

    parameters = {name: one(name, values) for name, values in faulted.parameters().items()}
    return faulted.network(
        faulted.picture(), parameters, lambda name, values: one(name, values).astype(np.float64)
    )


@pytest.mark.parametrize(
    ("runtime", "level"), [(OrtRuntime, "extended"), (OrtRuntime, "all"), (OpenVinoRuntime, "")]
)
def test_faults_in_any_layers_together(tmp_path, runtime, level):
    """Numbers stay small integers and halves of them, so that sums are exact in any order."""
    path = faulted.save(tmp_path / "small.onnx")
    options = {**faulted.ORT, "graph_optimization_level": level}
    rng, changed = np.random.default_rng(4), 0
    with closing(runtime.injector()(path, options)) as made:
        trace = made.trace({"x": faulted.picture()})
        golden = trace["z"]
        for count in (2, 2, 2, 3, 3, 4, 6, 13):
            chosen = [made.sites[at] for at in rng.choice(len(made.sites), count, replace=False)]
            faults = [
                BitFault(int(rng.integers(site.elements)), BITS[rng.integers(4)], kind, at)
                for at, site in enumerate(chosen)
                for kind in list(Kind)[: 1 + at % 2]
            ]
            hits = [
                (NAMES[chosen[f.site].layer][ORDER[chosen[f.site].target]], f.index, f.bit, f.kind)
                for f in faults
            ]
            with made.at(*chosen) as rest:
                before, found, after = rest.run(trace), rest.run(trace, faults), rest.run(trace)
            wanted = by_hand(hits)
            assert faulted.equal(found.outputs["z"], wanted, exact=False), (hits,)
            assert len(found.changes) == len(faults)
            assert np.array_equal(before.outputs["z"], golden)
            assert np.array_equal(after.outputs["z"], golden)
            changed += not np.array_equal(found.outputs["z"], golden)
    assert changed >= 5


def test_a_layer_that_follows_is_hit_after_the_first_fault_has_reached_it(tmp_path):
    """The value before the second fault is the one that the first fault made of it."""
    path = faulted.save(tmp_path / "small.onnx")
    with closing(OrtRuntime.injector()(path, faulted.ORT)) as made:
        by = {(site.layer, site.target): site for site in made.sites}
        early, late = by["deep", Target.NEURONS], by["point", Target.NEURONS]
        signs = [BitFault(9 * channel, 31, site=1) for channel in range(8)]
        trace = made.trace({"x": faulted.picture()})
        with made.at(late, early) as rest:
            alone = rest.run(trace, [BitFault(0, 31)])
            both = rest.run(trace, [BitFault(0, 31), *signs])

    bias = faulted.parameters()["b3"][0]
    assert alone.changes == ((trace["y3"].flat[0], -trace["y3"].flat[0]),)
    before, after = both.changes[0]
    assert before - bias == -(trace["y3"].flat[0] - bias) != 0
    assert after == -before


class Net(nn.Module):
    """Two branches that meet, and a product."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.side = nn.Conv2d(8, 8, 1)
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        a = torch.relu(self.stem(x))
        return self.last((torch.tanh(self.deep(a)) + self.side(a)).mean((2, 3)))


def flip(values, fault):
    place = tuple(int(k) for k in np.unravel_index(fault.index, values.shape))
    code = np.float32(values[place].item()).view(np.uint32) ^ np.uint32(1 << fault.bit)
    values[place] = float(code.view(np.float32))


def test_in_pytorch_as_with_hooks_and_changed_parameters(tmp_path):
    torch.manual_seed(3)
    net, x = Net().eval(), torch.rand(1, 3, 9, 7)
    torch.save(net.state_dict(), tmp_path / "kept.pt")
    torch.export.save(torch.export.export(net, (x,)), str(tmp_path / "m.pt2"))
    options = {
        "device": "cpu", "threads": 1, "mode": "eager", "memory_format": "contiguous",
        "compute": "fp32", "storage": "fp32",
    }  # fmt: skip
    rng = np.random.default_rng(5)
    with closing(TorchRuntime.injector()(tmp_path / "m.pt2", options)) as made:
        trace = made.trace({made.sites[0].layer: x.numpy()})
        for count in (2, 2, 3, 4, 6, 13):
            chosen = [made.sites[at] for at in rng.choice(len(made.sites), count, replace=False)]
            faults = [
                BitFault(int(rng.integers(one.elements)), int(rng.integers(20, 30)), site=at)
                for at, one in enumerate(chosen)
            ]
            with made.at(*chosen) as rest:
                first = rest.run(trace, faults)
                again = rest.run(trace, faults)
            hooks, given = [], x.clone()
            for one, fault in zip(chosen, faults, strict=True):
                module = dict(net.named_modules()).get(one.layer)
                if one.target is Target.INPUT:
                    flip(given, fault)
                elif one.target is Target.NEURONS:
                    hooks.append(
                        module.register_forward_hook(lambda m, i, out, f=fault: flip(out, f))
                    )
                else:
                    name = {Target.WEIGHTS: "weight", Target.BIASES: "bias"}[one.target]
                    flip(getattr(module, name).data, fault)
            with torch.inference_mode():
                wanted = net(given).numpy()
            for hook in hooks:
                hook.remove()
            net.load_state_dict(torch.load(tmp_path / "kept.pt"))
            for found in (first, again):
                (got,) = found.outputs.values()
                np.testing.assert_array_equal(got, wanted)
            assert len(first.changes) == count
