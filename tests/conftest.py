"""What the tests share: a machine like any other, and a tiny classifier with a few photographs."""

import gc
import os
from itertools import islice

import pytest
import tiny
from hypothesis import HealthCheck, settings

from simulator import machine
from simulator.cache import VARIABLE, folder
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
THE_USERS = str(folder())
MASKS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""Hide instructions from oneDNN. OpenVINO's own kernels do not obey them and disagree with it:
without AVX-512 for the one and with it for the other, OpenVINO crashes (2026.4; its pull request
38257 is about that)."""
NARROW = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2")


def too_narrow():
    """The masks that hide AVX-512 where there is one."""
    wide = "avx512f" in machine.processor()["flags"]
    return [name for name in MASKS if wide and os.environ.get(name, "").upper() in NARROW]


def pytest_report_header():
    """Tell which masks are left out."""
    return [f"{name} is left out: OpenVINO crashes with it here" for name in too_narrow()]


LONGEST = (
    "test_ray_workers.py",
    "test_papers.py",
    "test_backends.py",
    "test_readme_commands.py",
    "test_ray_boxes.py",
    "test_golden_tasks.py",
    "test_shipped_runtimes.py",
    "test_cases.py",
    "test_quantizers.py",
    "test_readme.py",
    "test_prove_kinds.py",
    "test_fuzz_corpus.py",
    "test_layers_runtimes.py",
)
"""What has tests of a quarter of a minute and more, the longest first."""


LONG = (
    "test_nodes_are_lost", "test_each_stack_runs_on_its_own_box",
    "test_a_driver_is_killed_and_resumed", "test_workers_are_killed_at_random_moments",
    "test_a_lost_node_is_no_failed_gate", "test_a_run_on_a_cluster_is_interrupted_like_others[",
    "test_a_sample_that_kills_its_worker_is_skipped", "test_a_process_starts_a_second_cluster",
    "test_our_executors_pass[ray]", "test_workers_of_a_cluster_find_what_one_process_finds",
    "test_a_backend_passes[iree]", "test_a_backend_passes[pytorch]",
    "test_a_backend_passes[tensorflow]", "test_a_backend_passes[litert]",
    "test_a_backend_passes[openvino]", "test_a_backend_passes[ncnn]",
    "test_a_backend_passes[ai_edge_quantizer]", "test_a_backend_passes[litert_torch]",
    "test_a_processor_without_vnni_is_told_of",
    "test_pytorch_channels_last_and_compiled_give_the_same_answers[{'mode': 'compile'}]",
    "test_a_card_of_any_size_gives_the_answers_of_pytorch[deeplab_native",
    "test_hooks_give_the_answers_of_the_rows",
    "test_it_answers_as_the_training_stack_does[qnn_int8]",
    "test_ten_minutes_end_at_once[",
)  # fmt: skip
"""Tests of 20 seconds and more (backends: 10), but for those of pages: ``make prove`` runs them, CI
does not. LoadGen's abandoned test ends otherwise about once in 50 runs on a loaded machine, and
nobody knows yet why."""


def pytest_collection():
    """Collect no garbage while tests are collected: nearly all that is made there stays."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what is long; let each process begin with its share of the long files, not end so.

    xdist first gives each an equal part of the list.
    """
    for item in items:
        if item.name.startswith(LONG):
            item.add_marker("long")
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    of = {name: number % processes for number, name in enumerate(LONGEST)}
    others = iter([item for item in items if item.path.name not in of])
    order = []
    for process in range(processes):
        part = (len(items) - len(order)) // (processes - process)
        own = [item for item in items if of.get(item.path.name) == process]
        order += [*own, *islice(others, max(0, part - len(own)))]
    items[:] = [*order, *others]


def pytest_collection_finish():
    """From here on garbage is collected."""
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def old_objects():
    """Let no collection look again at a million objects that were there before, most of libraries.

    Garbage of the module before is collected first. Where a job has thawed the old ones, that
    would take a second, and they are only frozen.
    """
    if gc.get_freeze_count():
        gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def kept_by_the_system():
    """No test cuts the power, so none waits for the disk: ``os.fsync`` does nothing here.

    What the tests start still waits. A process that is killed loses nothing that it has written.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda number: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory):
    """The cache of every test and of what it starts; what the user's holds is seen by none.

    Exports and quantizations of shipped models are made once, for all processes of xdist. Tests
    that are about the cache take `cache`, which is empty. Libraries have settings in the home
    folder, and PyTorch keeps compiled code that is wrong for a processor with other instructions.
    """
    home = tmp_path_factory.mktemp("home")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        for name in (*OF_A_USER, *too_narrow()):
            patch.delenv(name, raising=False)
            os.unsetenv(name)  # readline, which pytest imports, sets COLUMNS behind Python's back
        patch.setenv("HOME", str(home))
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(shared / "inductor"))
        patch.setenv(VARIABLE, str(shared / "shared-cache"))
        yield


@pytest.fixture(scope="module")
def users_cache(shared_cache):
    """The user's own cache, for what ``simulate backends install`` left there: `make extras`."""
    with pytest.MonkeyPatch.context() as patch:
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


@pytest.fixture
def ninety(tmp_path):
    """30 labelled JPEGs of each colour, enough for a race; BGR makes red blue and blue red."""
    return tiny.data(tmp_path / "ninety", each=30)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """In CI nothing may be skipped: what is skipped there is proved nowhere."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
