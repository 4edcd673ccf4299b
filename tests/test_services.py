"""Backends that serve the engine itself are listed, so that no other is imported to find them."""

import pytest

from simulator import registry
from simulator.entry_points import of_group


def test_a_service_is_an_offer_of_the_backend_that_it_names():
    for point in of_group(registry.SERVICES):
        stage, _, name = point.name.rpartition(".")
        assert point.value == registry.BACKENDS.points[name].value
        assert registry.backend(name).of(stage), point.name


@pytest.mark.parametrize(
    "stage", sorted({point.name.rpartition(".")[0] for point in of_group(registry.SERVICES)})
)
def test_every_backend_with_such_an_offer_is_listed(stage):
    able = [backend.name for backend in registry.backends() if backend.of(stage)]

    assert [backend.name for backend in registry.serving(stage)] == able
