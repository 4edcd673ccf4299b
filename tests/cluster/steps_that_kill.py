"""Steps for workers of a cluster: slow ones, and one that kills its process."""

import ctypes
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.contract.recipe import Recipe
from simulator.pipeline.inference import Answered


@dataclass(frozen=True, eq=False)
class Slow(Recipe):
    """Takes a while, and leaves a file with the number of its process in a folder."""

    folder: Path
    seconds: float
    stage = "decode"

    def identity(self) -> Any:
        return ["slow", self.seconds]

    def open(self, runtimes: Any) -> Any:
        (self.folder / str(os.getpid())).touch()

        def apply(value: Any, context: Any) -> Any:
            time.sleep(self.seconds)
            return value

        return apply


@dataclass(frozen=True, eq=False)
class Deadly(Recipe):
    """Kills its process at some samples: ``segv`` as a bug in a library does, or ``exit``."""

    samples: tuple[tuple[str, str], ...]
    stage = "infer"

    def identity(self) -> Any:
        return ["deadly", self.samples]

    def open(self, runtimes: Any) -> Any:
        def apply(value: Any, context: Any) -> Any:
            match dict(self.samples).get(context.sample):
                case "segv":
                    ctypes.string_at(0)
                case "exit":
                    os._exit(3)
            return value

        return apply


@dataclass(frozen=True, eq=False)
class Named(Recipe):
    """Answers with the name of the sample."""

    stage = "postprocess"

    def identity(self) -> Any:
        return ["named"]

    def open(self, runtimes: Any) -> Any:
        return lambda value, context: Answered(context.sample, value.name)
