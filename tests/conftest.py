"""What the tests share: a machine like any other, and a tiny classifier with a few photographs."""

import os

import pytest
import tiny
from hypothesis import HealthCheck, settings

from simulator.cache import VARIABLE
from simulator.worker.client import TIMEOUT

# No test has a time limit: a busy machine is no reason to fail.
settings.register_profile(
    "any machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

OF_A_USER = (
    "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", TIMEOUT,
)  # fmt: skip
"""What a user may have set that changes what is printed, or how long is waited."""


THE_USERS = os.environ.get(VARIABLE)


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory):
    """The cache of every test and of what it starts; what the user's holds is seen by none.

    Exports and quantizations of shipped models are made once. Tests that are about the cache
    take `cache`, which is empty.
    """
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder))
        for name in OF_A_USER:
            patch.delenv(name, raising=False)
        yield folder


@pytest.fixture(scope="module")
def users_cache(shared_cache):
    """The user's own cache, for what ``simulate backends install`` left there: `make extras`."""
    with pytest.MonkeyPatch.context() as patch:
        if THE_USERS is None:
            patch.delenv(VARIABLE)
        else:
            patch.setenv(VARIABLE, THE_USERS)
        yield


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


@pytest.fixture
def card(tmp_path):
    """The model card of a network that answers with the strongest of red, green and blue."""
    return tiny.card(tmp_path / "model")


@pytest.fixture
def data(tmp_path):
    """Two labelled JPEGs of each colour."""
    return tiny.data(tmp_path / "data")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """In CI nothing may be skipped: what is skipped there is proved nowhere."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
