"""What a confined worker holds: nothing that was closed, or that nobody uses."""

import gc
from contextlib import closing

import numpy as np
import pytest

from simulator import registry
from simulator.contract import Stage
from simulator.contract.injection import BitFault
from simulator.profile.implementations import implementation

torch = pytest.importorskip("torch")
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
EAGER = {
    "device": "cpu", "threads": 1, "compute": "fp32", "mode": "eager",
    "memory_format": "contiguous", "storage": "fp32",
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    place = tmp_path_factory.mktemp("program") / "model.pt2"
    made = torch.export.export(torch.nn.Linear(3, 4).eval(), (torch.ones(2, 3),))
    torch.export.save(made, str(place))
    yield place
    registry.dismiss(confined())
    registry._worker.cache_clear()


def opened(kind, program):
    backend = registry.backend("pytorch")
    if kind == "gradients":
        options = {"format": "torch_export"}
        found = implementation(Stage.GRADIENT, backend, options).make(program)
        assert found.scores(X).shape == (8,)
        return found
    choice = implementation(Stage.RUNTIME, backend, EAGER)
    if kind == "runtime":
        found = choice.make(program)
        assert found.run({found.inputs[0].name: X})
        return found
    found = registry.injector(backend, choice.offer, program, choice.options)
    trace = found.trace({"input": X})
    with found.at(found.sites[0]) as rest:
        assert rest.run(trace, [BitFault(0, 3)])
    return found


def confined():
    return registry._worker(registry._confined(registry.backend("pytorch")))


def held():
    return confined().call("held")


@pytest.mark.parametrize("kind", ["gradients", "injector", "runtime"])
def test_what_is_closed_is_held_no_longer(program, kind):
    first = opened(kind, program)
    before = held()
    for _ in range(3):
        with closing(opened(kind, program)) as found:
            assert held() == before + 1
        found.close()
        assert held() == before
    first.close()
    assert held() == before - 1


@pytest.mark.parametrize("kind", ["gradients", "injector", "runtime"])
def test_what_nobody_uses_is_held_no_longer(program, kind):
    kept = [opened(kind, program) for _ in range(3)]
    before = held()
    del kept
    gc.collect()
    assert held() == before - 3


def test_closed_gradients_are_refused(program):
    found = opened("gradients", program)
    found.close()
    with pytest.raises(ValueError, match="it was closed"):
        found.scores(X)
