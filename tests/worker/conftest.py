"""A backend that is really installed, by its entry point, for the time of a test."""

import sys
from pathlib import Path

import pytest

from simulator import registry


def forget():
    registry.BACKENDS.forget()
    registry._worker.cache_clear()


@pytest.fixture
def fragile_here(tmp_path, monkeypatch, cache):
    """The name of the fragile backend, which has no Python of its own."""
    info = tmp_path / "site" / "fragile-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[simulator.backends]\nfragile = fragile:BACKEND\n")
    monkeypatch.syspath_prepend(str(info.parent))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    forget()
    yield "fragile"
    forget()


@pytest.fixture
def fragile(fragile_here):
    """The name of the fragile backend; its worker runs in this Python."""
    from simulator.worker import environments

    backend = registry.backend(fragile_here)
    environments.install(backend, "fragile:BACKEND", sys.executable, lambda line: None)
    return fragile_here
