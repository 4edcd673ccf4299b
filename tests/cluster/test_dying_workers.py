"""What the driver makes of workers that Ray ends, and of what Ray refuses; no cluster is needed."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import steps

from simulator.cluster import asking
from simulator.cluster.connection import Cluster
from simulator.cluster.crew import Crew, turn
from simulator.cluster.messages import Node, Stopped, Work
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.modalities.image.modality import IMAGE
from simulator.pipeline.walk import StageError

ANSWERS = {"where": Node("host", "1", "a processor", "3.11"), "missing": [], "open": ()}
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
    """Ray as a crew sees it."""

    def __init__(self, *deadly):
        from ray import exceptions

        self.exceptions = exceptions
        self._deadly = deadly

    def remote(self, **options):
        made = SimpleNamespace(remote=lambda isolate: Actor(self._deadly))
        return lambda hand: SimpleNamespace(options=lambda **options: made)

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


def crew_with(*deadly):
    crew = Crew(Cluster(Ray(*deadly), ""), "deploy", (), 1, "never")
    plan = steps.merged(Chain(()))
    crew.begin(Work(plan, IMAGE, None, False, {}), ITEMS)
    return crew


def turns(crew):
    for _ in range(100):
        crew.fill()
        turn([crew])


@pytest.mark.parametrize("call", ["where", "open"])
def test_a_worker_that_never_opens_is_given_up(call):
    crew = crew_with(call)

    with pytest.raises(UserError, match="3 times before it had opened its stacks: the node is low"):
        turns(crew)


def test_a_sample_for_which_there_is_no_memory_is_skipped():
    crew = crew_with("run")
    turns(crew)

    assert [crew.chunks.pop(), crew.chunks.pop()] == [Stopped("worker", NO_MEMORY)] * 2


def test_a_question_for_which_there_is_no_memory_is_given_up():
    assert asking.again(crew_with("again"), ITEMS[0]) == Stopped("worker", NO_MEMORY)
    with pytest.raises(StageError, match=NO_MEMORY):
        asking.aside(crew_with("aside"), ITEMS[0], "name")


def test_a_runtime_for_which_there_is_no_memory_is_given_up():
    with pytest.raises(UserError, match="killed its worker 3 times while it was opened"):
        asking.look(crew_with("look"), SimpleNamespace(units=()))


def test_a_cluster_that_is_gone_is_said():
    crew = crew_with("again")
    crew.ready()

    def get(ref):
        raise ConnectionError("Failed to reconnect")

    crew.ray.get = get
    with pytest.raises(UserError, match=r"answers no more \(Failed to reconnect\); what"):
        asking.again(crew, ITEMS[0])


def test_nobody_is_called_in_a_cluster_that_is_gone():
    """Else Ray would look for another cluster, or start one, and wait."""
    crew = crew_with()
    crew.ready()
    crew.ray.is_initialized = lambda: False
    crew.ray.kill = pytest.fail
    crew.fill()

    crew.close()


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

    crew = Crew(Nodes(ray, "somewhere"), "deploy", (needs,), 1, "never")

    with pytest.raises(UserError, match=f"deploy needs {{{needs[0]}: .*{said}") as refused:
        crew.settled()

    assert str(refused.value).endswith("; change runtime.resources")
