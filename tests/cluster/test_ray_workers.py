"""The executor ``ray`` with a cluster of its own: what comes out, whatever dies."""

import os
import random
import signal
import stat
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import steps
import tiny
from drivers import PAIR, STACKS, ended, records, started, wait_for_more
from failing import TURBO, mixed
from steps_that_kill import Deadly, Here, Late, Named, Slow
from web_server import serving

from simulator import cli, compare
from simulator.cluster import connection
from simulator.cluster.connection import leave
from simulator.cluster.executor import RayExecutor
from simulator.cluster.temporary import clean
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.modalities.image.modality import IMAGE
from simulator.pipeline.adapted import Adapted
from simulator.pipeline.runtimes import RuntimePool

pytestmark = pytest.mark.prove

KILLS = 8
AGENTS = ("DashboardAgent", "RuntimeEnvAgent", "dashboard/agent.py", "runtime_env/agent/main.py")


@pytest.fixture(scope="module", autouse=True)
def own():
    """One cluster for the module, whose workers find our steps."""
    import ray  # noqa: F401 - before any cluster is started, as a user's program may

    leave()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
        yield
        leave()


@pytest.fixture
def items(data):
    """Many samples: six photographs under many names."""
    files = sorted(data.rglob("*.jpg"))
    return [Item(f"{at:03}.jpg", files[at % len(files)], None) for at in range(300)]


def ran(plan, items, workers=2, watch=None):
    with RuntimePool() as runtimes:
        executor = RayExecutor(IMAGE, runtimes, workers)
        try:
            return list(executor.run(plan, items, watch))
        finally:
            executor.close()


def test_workers_are_killed_at_random_moments(items, tmp_path):
    """Nothing is lost, nothing comes twice, and the order stays."""
    pids = tmp_path / "pids"
    pids.mkdir()
    plan = steps.merged(Chain((Slow(pids, 0.02), Named())))
    dice, killed, over = random.Random(0), [], threading.Event()

    def kill():
        while len(killed) < KILLS and not over.wait(dice.uniform(0.0, 0.5)):
            alive = [int(file.name) for file in pids.iterdir() if running(int(file.name))]
            if alive:
                killed.append(dice.choice(sorted(alive)))
                os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = []
    while len(killed) < KILLS:
        found.append(ran(plan, items))
    over.set()
    killer.join()

    for one in found:
        assert [done.item for done in one] == items
        assert [done.skipped for done in one] == [None] * len(items)
        assert [done.outcomes[0].digest for done in one] == [item.name for item in items]


def running(pid):
    """Whether a process runs; one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_plan_that_was_left_while_a_worker_opened_it_answers_no_more(items, tmp_path):
    before = steps.merged(Chain((Late(tmp_path, 3.0), Slow(tmp_path, 0.2), Named("before "))))
    after = steps.merged(Chain((Slow(tmp_path, 0.05), Named("after "))))
    with RuntimePool() as runtimes:
        executor = RayExecutor(IMAGE, runtimes, 2)
        try:
            begun = executor.run(before, items)
            while not (tmp_path / "second").exists():
                next(begun)
            begun.close()
            found = list(executor.run(after, items[:100]))
        finally:
            executor.close()

    assert [done.outcomes[0].digest for done in found] == [
        f"after {item.name}" for item in items[:100]
    ]


def test_bytes_are_sent_to_workers_that_do_not_see_them(items):
    there = [replace(item, path=Here(item.path, os.getpid())) for item in items[:20]]
    broken = replace(items[20], path=Here(Path("nowhere.jpg"), os.getpid()))

    found = ran(steps.merged(Chain((Named(),))), [*there, broken])

    assert [done.outcomes[0].digest for done in found[:-1]] == [item.name for item in there]
    assert found[-1].skipped.startswith("read: cannot be read")


def test_a_sample_that_kills_its_worker_is_skipped(items, tmp_path):
    deadly = Deadly((("003.jpg", "segv"), ("008.jpg", "exit")))
    plan = steps.merged(Chain((Slow(tmp_path, 0.2), deadly, Named())))

    found = ran(plan, items[:10])

    skipped = {done.item.name: done.skipped for done in found if done.skipped}
    why = "worker: killed its worker 3 times"
    assert skipped == {"003.jpg": f"{why}: SIGSEGV", "008.jpg": why}
    assert [done.item for done in found] == items[:10]


def test_a_process_starts_a_second_cluster(items):
    """Ray reads the secret of a cluster once in a process; ours keeps one for all of its own."""
    plan = steps.merged(Chain((Named(),)))
    before = ran(plan, items[:2])
    leave()
    after = ran(plan, items[:2])

    for found in (before, after):
        assert [done.outcomes[0].digest for done in found] == ["000.jpg", "001.jpg"]


def test_samples_behind_a_url_are_read_by_the_workers(card, data, tmp_path):
    quick = {"model": card, "quick": True}
    here = compare(*PAIR, data=data, out=tmp_path / "here", **quick)
    with serving(data) as web:
        there = compare(
            *PAIR, data=web.url, out=tmp_path / "there", executor="ray", workers=2, **quick
        )

    assert records(there.folder).equals(records(here.folder))


@pytest.fixture
def short():
    """A folder with a path that is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def many(tmp_path):
    """So many links to images that a run takes seconds."""
    data = tmp_path / "many"
    (data / "red").mkdir(parents=True)
    files = sorted(tiny.data(tmp_path / "some").rglob("*.jpg"))
    for at in range(4_000):
        (data / "red" / f"{at:05}.jpg").symlink_to(files[at % len(files)])
    return data


@pytest.fixture
def begun(card, many, short):
    """Starts a run into a folder, which has done some samples."""

    def begin(folder):
        own = ("--model", card, "--data", many, "--out", folder, "--quick", "--workers", "2")
        driver = started(*STACKS, *own, TMPDIR=str(short))
        wait_for_more(driver, folder)
        assert driver.poll() is None, driver.stderr.read()
        return driver

    return begin


def test_a_driver_is_killed_and_resumed(card, many, tmp_path, short, begun):
    """Records are those of a run that nobody interrupted; its workers end with it.

    Two agents of Ray's look for their cluster for a minute, and end then. The folder that is left
    is removed by who starts the next cluster.
    """
    whole = compare(*PAIR, model=card, data=many, out=tmp_path / "whole", quick=True)
    folder = tmp_path / "out"
    driver = begun(folder)
    children = [pid for pid in offspring(driver.pid) if not titled(pid, AGENTS)]
    clean(short)
    (left,) = short.iterdir()
    driver.kill()
    driver.wait()

    assert cli.main(["resume", str(folder), "--workers", "2"]) == 0

    assert records(folder).equals(records(whole.folder))
    assert len(children) > 2
    until = time.monotonic() + 60
    while any(map(running, children)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [pid for pid in children if running(pid)]
    clean(short)
    assert not left.exists()


def test_nobody_else_reaches_a_cluster_of_our_own(items, tmp_path):
    """Neither by its files nor from another machine: its servers listen on 127.0.0.1."""
    ran(steps.merged(Chain((Named(),))), items[:2])
    folder = connection.connect("").logs.resolve()

    processes = {os.getpid(), *offspring(os.getpid())}
    found = [address for pid in processes for address in listening(pid)]

    assert len(found) > 3
    assert {address.partition(":")[0] for address in found} == {"127.0.0.1"}
    above = next(one for one in folder.parents if one.name.startswith("sim-ray-"))
    assert stat.S_IMODE(above.stat().st_mode) == 0o700


def listening(pid):
    """The addresses at which a process listens, from the kernel's tables; none if it has ended."""
    place = Path(f"/proc/{pid}")
    try:
        links = [os.readlink(one) for one in (place / "fd").iterdir()]
        tables = [(place / "net" / name).read_text() for name in ("tcp", "tcp6")]
    except OSError:
        return
    for line in [line for table in tables for line in table.splitlines()[1:]]:
        local, state, inode = (line.split()[at] for at in (1, 3, 9))
        if state == "0A" and f"socket:[{inode}]" in links:
            address, _, port = local.partition(":")
            # The last 32 bits, in the order of this machine; ::ffff:127.0.0.1 ends in them too.
            four = reversed(bytes.fromhex(address[-8:]))
            yield f"{'.'.join(map(str, four))}:{int(port, 16)}"


def test_a_lost_node_is_no_failed_gate(tmp_path, begun):
    """Ray ends its driver with 1, the exit code of a gate that failed, and says nothing."""
    driver = begun(tmp_path / "a run")
    (agent,) = {pid for pid in offspring(driver.pid) if titled(pid, ("DashboardAgent",))}
    os.kill(agent, signal.SIGKILL)
    code, said = ended(driver)

    assert code == 2
    (told,) = [one for one in said.splitlines() if one.startswith("error: ")]  # Ray logs around it
    if "is lost" in told:  # we heard of it before Ray ended the driver
        assert "what was done stays for simulate resume" in told
    else:
        assert "--executor ray: the process of this command ended with code 1" in told
        assert told.endswith(f"; to continue: simulate resume '{tmp_path / 'a run'}'")
    assert cli.main(["resume", str(tmp_path / "a run"), "--executor", "local"]) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_on_a_cluster_is_interrupted_like_others(tmp_path, begun, number):
    driver = begun(tmp_path / "out")
    driver.send_signal(number)
    code, said = ended(driver)

    assert code == 2
    assert f"interrupted; to continue: simulate resume {tmp_path / 'out'}\n" in said
    assert not (tmp_path / "out" / "run.lock").exists()


def titled(pid, words):
    """Whether one of some words is in the title of a process."""
    try:
        title = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
    return any(word in title for word in words)


def offspring(pid):
    """The processes that a process has started, and those that they have started."""
    found = []
    for task in Path("/proc").glob(f"{pid}/task/*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            found += [int(child) for child in task.read_text().split()]
    return [*found, *(one for child in set(found) for one in offspring(child))]


@dataclass(frozen=True, eq=False)
class Adapting(Adapted):
    """A step that adapts, of which nothing is opened."""

    def identity(self):
        return ["adapting"]


def test_a_network_that_adapts_is_refused(items):
    plan = steps.merged(Chain((Adapting(None, None, {}, None, IMAGE, ()), Named())))

    with pytest.raises(UserError, match="adapts to the samples in their order"):
        ran(plan, items)


def test_a_step_that_is_no_data_is_refused(items):
    plan = steps.merged(steps.answering(("decode", lambda value, context: value)))

    with pytest.raises(UserError, match=r"a step is no plain data.*use --executor local$"):
        ran(plan, items)


def test_a_stack_fails_alone_as_in_one_process(card, tmp_path):
    images = mixed(tmp_path / "mixed", pngs=3, jpegs=3)
    here, there = (
        compare(
            "pillow_fp32", "pillow_fp32", overrides=[TURBO], model=card, data=images, quick=True,
            out=tmp_path / name, executor=name, workers=1,
        )
        for name in ("local", "ray")
    )  # fmt: skip
    assert records(there.folder).equals(records(here.folder))
    assert there.summary.failed == here.summary.failed
    assert there.summary.failed["deploy"].count == 3
