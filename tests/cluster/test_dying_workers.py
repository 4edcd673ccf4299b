"""What the driver makes of workers that Ray ends, and of what Ray refuses; no cluster is needed."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import steps

from simulator.cluster.connection import Cluster
from simulator.cluster.messages import JobWork, Node, Work
from simulator.cluster.pool import WorkerPool
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.modalities.image.modality import IMAGE
from simulator.pipeline.jobs import Job
from simulator.pipeline.walk import StageError

ANSWERS = {"missing": [], "open": Node("host", "1", "a processor", "3.11", ())}
ITEMS = [Item(name, Path(name), None) for name in "ab"]
NO_MEMORY = "killed its worker 3 times: its node had no memory left"


class Actor:
    """A worker that Ray ends, for want of memory, as soon as it is called by one of some names."""

    def __init__(self, deadly):
        self._deadly = deadly

    def __getattr__(self, name):
        from ray.exceptions import OutOfMemoryError

        found = OutOfMemoryError("the node is low on memory")
        ref = found if name in self._deadly else ANSWERS.get(name)
        return SimpleNamespace(remote=lambda *given: [ref])


class Ray:
    """Ray as a pool sees it."""

    def __init__(self, *deadly):
        from ray import exceptions

        self.exceptions = exceptions
        self._deadly = deadly

    def remote(self, **options):
        made = SimpleNamespace(remote=lambda isolate: Actor(self._deadly))
        return lambda actor: SimpleNamespace(options=lambda **options: made)

    def put(self, value):
        return value

    def kill(self, actor):
        pass

    def wait(self, refs, **how):
        return refs, []

    def get(self, ref):
        if isinstance(ref[0], Exception):
            raise ref[0]
        return ref[0]

    def is_initialized(self):
        return True


def pool_with(*deadly, items=()):
    pool = WorkerPool(Cluster(Ray(*deadly), ""), "deploy", (), 1, "never")
    pool.begin(Work(steps.merged(Chain(())), IMAGE, None, False, {}), items)
    return pool


@pytest.mark.parametrize("call", ["missing", "open"])
def test_a_worker_that_never_opens_is_given_up(call):
    pool = pool_with(call, items=ITEMS)

    with pytest.raises(UserError, match="3 times before it had opened its stacks: the node is low"):
        pool.chunks.pop()


def test_a_sample_for_which_there_is_no_memory_is_skipped():
    pool = pool_with("run", items=ITEMS)

    assert [str(pool.chunks.pop()) for _ in ITEMS] == [f"worker: {NO_MEMORY}"] * 2


def test_a_job_for_which_there_is_no_memory_is_skipped():
    pool = pool_with("do")
    jobs = [Job(tuple(ITEMS), number) for number in range(3)]
    pool.begin_jobs(JobWork(None, IMAGE, {}), jobs)

    assert [str(pool.chunks.pop()) for _ in jobs] == [f"worker: {NO_MEMORY}"] * 3


def test_a_question_for_which_there_is_no_memory_is_given_up():
    with pytest.raises(StageError, match=NO_MEMORY):
        pool_with("again").again(ITEMS[0])
    with pytest.raises(StageError, match=NO_MEMORY):
        pool_with("aside").aside(ITEMS[0], "name")


def test_a_runtime_for_which_there_is_no_memory_is_given_up():
    with pytest.raises(UserError, match="killed its worker 3 times while it was opened"):
        pool_with("probe").probe(SimpleNamespace(units=()))


def test_a_cluster_that_is_gone_is_said():
    pool = pool_with("again")

    def get(ref):
        raise ConnectionError("Failed to reconnect")

    pool._ray.get = get
    with pytest.raises(UserError, match=r"answers no more \(Failed to reconnect\); what"):
        pool.again(ITEMS[0])


def test_nobody_is_called_in_a_cluster_that_is_gone():
    """Else Ray would look for another cluster, or start one, and wait."""
    pool = pool_with("again")
    pool._ray.is_initialized = lambda: False
    pool._ray.kill = pytest.fail

    pool.close()


class Nodes(Cluster):
    """A cluster of one node with a processor, a GPU and a board."""

    def nodes(self):
        return {"one": {"CPU": 8.0, "GPU": 1.0, "board": 1.0, "memory": 2.0**30}}


@pytest.mark.parametrize("amount", [0.05, 0.1, 0.2, 0.7])
def test_how_many_workers_share_a_gpu(amount):
    """1 // 0.1 is 9 in floating point."""
    expected = {0.05: 20, 0.1: 10, 0.2: 5, 0.7: 1}[amount]

    assert Nodes(Ray(), "somewhere").capacity((("gpu", amount),)) == expected


@pytest.mark.parametrize(
    ("needs", "said"), [(("CPU", 1.0), "num_cpus"), (("board", 1e-5), "precision")]
)
def test_resources_that_ray_refuses(needs, said):
    import ray

    pool = WorkerPool(Nodes(ray, "somewhere"), "deploy", (needs,), 1, "never")

    with pytest.raises(UserError, match=f"deploy needs {{{needs[0]}: .*{said}") as refused:
        pool.probe(SimpleNamespace(units=()))

    assert str(refused.value).endswith("; change runtime.resources")
