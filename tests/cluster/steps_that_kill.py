"""Steps for workers of a cluster: slow ones, one that kills its process; and a place here."""

import ctypes
import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.contract.recipe import Recipe
from simulator.files import read_file
from simulator.pipeline.inference import Answered
from simulator.places import ByteSource


@dataclass(frozen=True, eq=False)
class Slow(Recipe):
    """Takes a while; a process that has done a sample leaves a file with its number in a folder.

    Before that it makes no progress: a machine that is slow enough would see none at all.
    """

    folder: Path
    seconds: float
    stage = "decode"

    def identity(self) -> Any:
        return ["slow", self.seconds]

    def open(self, runtimes: Any) -> Any:
        def apply(value: Any, context: Any) -> Any:
            time.sleep(self.seconds)
            (self.folder / str(os.getpid())).touch()
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
    """Answers with the name of the sample, behind a word."""

    word: str = ""
    stage = "postprocess"

    def identity(self) -> Any:
        return ["named", self.word]

    def open(self, runtimes: Any) -> Any:
        return lambda value, context: Answered(self.word + context.sample, value.name)


@dataclass(frozen=True, eq=False)
class Late(Recipe):
    """Is opened at once by one process, and by every other one after a while."""

    folder: Path
    seconds: float
    stage = "decode"

    def identity(self) -> Any:
        return ["late"]

    def open(self, runtimes: Any) -> Any:
        try:
            (self.folder / "first").touch(exist_ok=False)
        except FileExistsError:
            (self.folder / "second").touch()
            time.sleep(self.seconds)
        return lambda value, context: value


@dataclass(frozen=True, slots=True)
class Here(ByteSource):
    """A file that no other process sees."""

    path: Path
    process: int

    @property
    def suffix(self) -> str:
        return self.path.suffix

    def read(self, most: int) -> bytes:
        if os.getpid() != self.process:
            raise FileNotFoundError(errno.ENOENT, "is on another machine", str(self))
        return read_file(self.path, most)

    def __str__(self) -> str:
        return str(self.path)
