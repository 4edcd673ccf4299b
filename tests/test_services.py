"""Backends that serve the engine itself are listed, so that no other is imported to find them."""

from types import SimpleNamespace

import pytest

from simulator import registry
from simulator.contract import Stage
from simulator.entry_points import of_group
from simulator.errors import UserError


@pytest.mark.parametrize("group", [registry.SERVICES, registry.REFERENCES])
def test_a_service_is_an_offer_of_the_backend_that_it_names(group):
    for point in of_group(group):
        stage, _, name = point.name.rpartition(".")
        assert point.value == registry.BACKENDS.points[name].value
        assert registry.backend(name).of(stage), point.name


def test_each_reference_is_one(monkeypatch):
    stages = {point.name.rpartition(".")[0] for point in of_group(registry.REFERENCES)}
    assert stages == {Stage.DECODE, Stage.RESIZE, Stage.WRITE, Stage.RUNTIME}
    for stage in stages:
        assert registry.reference(stage).of(stage)
    two = [SimpleNamespace(name=f"decode.{name}") for name in ("opencv", "pillow")]
    monkeypatch.setattr(registry, "of_group", lambda group: two)

    with pytest.raises(
        UserError, match="the reference for decode is one backend, not opencv and pillow"
    ):
        registry.reference(Stage.DECODE)


def test_a_decoder_serves_where_the_reference_does_not_read():
    def reads(backend):
        return {name for offer in backend.of(Stage.DECODE) for name in offer.make.reads}

    own = reads(registry.reference(Stage.DECODE))
    further = {one.name: reads(one) - own for one in registry.serving(Stage.DECODE)}
    assert further == {"pillow_heif": {"heic"}, "pillow_jxl": {"jxl"}}


@pytest.mark.parametrize(
    "stage",
    sorted({point.name.rpartition(".")[0] for point in of_group(registry.SERVICES)} - {"decode"}),
)
def test_every_backend_with_such_an_offer_is_listed(stage):
    able = [backend.name for backend in registry.backends() if backend.of(stage)]

    assert [backend.name for backend in registry.serving(stage)] == able
