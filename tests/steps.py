"""Steps made of functions, and what walks them, for tests of the pipeline and of its clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulator.contract.recipe import Boundary, Chain, Recipe
from simulator.modalities.image.modality import IMAGE
from simulator.pipeline.inference import Answered
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.walk import Opened
from simulator.tasks.classification.answer import Answer

ANSWER = Answer(0, 1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Step(Recipe):
    """A function (value, context) as a recipe; *name* is its identity."""

    stage: str
    name: str
    function: Callable[[Any, Any], Any]
    timed: bool = True
    gives: Boundary | None = None
    shares_equal_inputs: bool = False

    def identity(self):
        return [self.stage, self.name]

    def open(self, runtimes):
        return self.function


def nothing(value, context):
    return value


def chain(*steps):
    """A chain of (stage, function) steps, each with a name of its own."""
    return Chain(
        tuple(Step(stage, f"{at}", function) for at, (stage, function) in enumerate(steps))
    )


def answering(*steps, digest="d"):
    """The same, and a step that gives an answer in no time at its end."""
    end = Step("postprocess", "end", lambda *_: Answered(digest, ANSWER), timed=False)
    return Chain((*chain(*steps).recipes, end))


def merged(*chains, **options):
    """A plan of chains whose arms are called 0, 1, 2, ..."""
    return plan({Arm(str(at)): one for at, one in enumerate(chains)}, **options)


def executor(workers=1, **options):
    """The local executor over images, with no runtime open."""
    return LocalExecutor(IMAGE, RuntimePool(), workers, **options)


def opened(plan):
    """A plan that is opened here."""
    return Opened(plan, RuntimePool())


def run(plan, items, workers=1):
    """Take samples down a plan."""
    return list(executor(workers).run(plan, items))


def busy(ns):
    """Work for so many nanoseconds."""
    until = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < until:
        pass
