"""What the tests of data share."""

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Let no test see what another one has unpacked or indexed."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PIPELINE_SIMULATOR_CACHE", str(folder))
    return folder
