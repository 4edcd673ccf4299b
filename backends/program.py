"""The user's own program, which reads an image's file and writes what the network gets or gives."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from simulator.contract import (
    MOST,
    Above,
    Array,
    AtLeast,
    Backend,
    Evidence,
    File,
    FrontEnd,
    Implied,
    Offer,
    Options,
    OwnRuntime,
    SampleError,
    SampleFile,
    Stage,
    Tail,
    Text,
    Unsupported,
)

PLACE = re.compile(
    r"\{(?P<list>list:?)?(?P<kind>tensor|outputs|answer)?"
    r"(?::raw,(?P<type>\w+),(?P<shape>\d+(?:x\d+)*))?\}"
)
"""Where a program writes, or where it reads what it shall read and where to write that; ``raw`` is
bytes without a header, of a type and a shape."""
_SUFFIX = {"tensor": ".npy", "outputs": ".npz", "answer": ".txt"}


class ProgramFrontEnd(FrontEnd):
    """Starts a program for each image, or for each list of images."""

    runs_code: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._name = self.called(options)
        if started_in := os.environ.get("PIPELINE_SIMULATOR_FOLDER"):
            os.chdir(started_in)
        for variable in ("PYTHONSAFEPATH", "PYTHONPATH"):  # ours, and not for what it starts
            os.environ.pop(variable, None)
        self._words = shlex.split(options["arguments"])
        found = [one for word in self._words for one in PLACE.finditer(word) if one[0] != "{}"]
        images = sum("{image}" in word for word in self._words)
        if len(found) != 1 or bool(images) == bool(found[0]["list"]):
            raise Unsupported(
                f"{self._name}: write {{image}} and one of {{tensor}}, {{outputs}}, {{answer}} in "
                "its arguments; or {list} alone, see docs/your-code.md"
            )
        self._place, self._kind = found[0], found[0]["kind"] or "tensor"

    @classmethod
    def called(cls, options: Options) -> str:
        """Return the name of the program's file."""
        return os.path.basename(str(options["program"]))

    @classmethod
    def seconds(cls, options: Options) -> float:
        """Return somewhat more than the time limit, after which the program is ended."""
        return float(options["timeout_s"]) + 10

    @classmethod
    def at_once(cls, options: Options) -> int:
        """Return how many samples a call takes: several where it takes a list."""
        return int(options["samples"]) if "{list" in options["arguments"] else 1

    def tensors(self, sample: SampleFile) -> Array | Mapping[str, Array]:
        """Run the program on one sample."""
        return self.several([sample])[0]

    def several(self, samples: Sequence[SampleFile]) -> list[Array | Mapping[str, Array]]:
        """Run the program once, on samples of which there is one unless it takes a list."""
        with tempfile.TemporaryDirectory(prefix="simulate-") as made:
            folder = Path(made)
            images = [_file(one, folder / str(at)) for at, one in enumerate(samples)]
            suffix = ".raw" if self._place["type"] else _SUFFIX[self._kind]
            targets = [folder / f"{at}{suffix}" for at in range(len(samples))]
            listed = folder / "list.txt"
            pairs = zip(images, targets, strict=True)
            listed.write_text("".join(f"{image}\t{target}\n" for image, target in pairs))
            place = str(listed if self._place["list"] else targets[0])
            words = [
                word.replace(self._place[0], place).replace("{image}", str(images[0]))
                for word in self._words
            ]
            said = self._run([self.options["program"], *words])
            return [self._read(target, said) for target in targets]

    def _run(self, words: Sequence[str]) -> Callable[[], str]:
        """Run it to its end; return what gives its last line on stderr, or else on stdout."""
        limit = float(self.options["timeout_s"])
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            more = " (a script begins with #!)" if error.errno == errno.ENOEXEC else ""
            raise SampleError(f"{self._name} cannot be started: {error.strerror}{more}") from error
        assert process.stdout and process.stderr
        tails = [Tail(os.dup(pipe.fileno())) for pipe in (process.stderr, process.stdout)]
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise SampleError(f"{self._name} did not end within {limit:g} s") from None
        finally:
            process.kill()  # what it has left behind ends with the worker
            process.wait()
            process.stdout.close()
            process.stderr.close()

        def said() -> str:
            return next((line for tail in tails if (line := tail.last())), "")

        if code:
            why = f"was killed by {_signal(-code)}" if code < 0 else f"ended with exit code {code}"
            raise SampleError(f"{self._name} {why}: {said()}".removesuffix(": "))
        return said

    def _read(self, target: Path, said: Callable[[], str]) -> Array | Mapping[str, Array]:
        """Read what the program wrote; NumPy's own functions add a suffix to a name without it."""
        names = (target, Path(f"{target}.npy"), Path(f"{target}.npz"))
        found = next((name for name in names if name.is_file()), None)
        what = "its place in the list" if self._place["list"] else self._place[0]
        if found is None:
            more = f" (it said: {line})" if (line := said()) else ""
            raise SampleError(f"{self._name} wrote nothing to {what}{more}")
        if (size := found.stat().st_size) > MOST:
            raise SampleError(f"{self._name} wrote {size:,} bytes to {what}; at most {MOST:,}")
        if self._place["type"]:
            return self._raw(found, self._place["type"], self._place["shape"])
        try:
            if found.suffix == ".txt":
                return _written(found.read_text("utf-8"))
            if not _starts(found, (b"\x93NUMPY", b"PK")):
                raise ValueError("it is no .npy and no .npz")
            made = np.load(found, allow_pickle=False)
            if not isinstance(made, np.lib.npyio.NpzFile):
                return np.asarray(made)
            with zipfile.ZipFile(found) as packed:
                whole = sum(one.file_size for one in packed.infolist())
            if whole > MOST:
                raise ValueError(f"its arrays are {whole:,} bytes, and at most {MOST:,} are read")
            return dict(made)
        except Exception as error:  # of a file that is cut, NumPy says so in many ways
            why = " ".join(str(error).split())[:200]
            raise SampleError(
                f"{self._name} wrote {size:,} bytes to {what} that cannot be read: {why}"
            ) from error

    def _raw(self, found: Path, dtype: str, shape: str) -> Array:
        try:
            kind, sides = np.dtype(dtype), [int(side) for side in shape.split("x")]
        except TypeError:
            kind, sides = np.dtype(object), []
        if kind.kind not in "fiub":
            raise SampleError(f"{self._name}: {dtype!r} is no type of numbers")
        size, wanted = found.stat().st_size, kind.itemsize * int(np.prod(sides))
        if size != wanted:
            raise SampleError(
                f"{self._name} wrote {size:,} bytes; {dtype} {shape} has {wanted:,} bytes"
            )
        return np.fromfile(found, kind).reshape(sides)


class ProgramRuntime(OwnRuntime):
    """A program whose outputs are those of the network, or answers."""

    runs_code: ClassVar[bool] = True


def _starts(file: Path, magic: tuple[bytes, ...]) -> bool:
    with file.open("rb") as opened:
        return opened.read(8).startswith(magic)


def _written(text: str) -> Array:
    """An answer that was written as text: rows of numbers, or a label and its score."""
    rows = [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]
    try:
        return np.array(rows, np.float64)
    except ValueError:
        if len(rows) != 1:
            raise
    label, _, last = text.strip().rpartition(" ")
    try:
        return np.array([label.rstrip(" ,"), str(float(last))])
    except ValueError:
        return np.array([text.strip()])


def _file(sample: SampleFile, folder: Path) -> Path:
    if sample.path is not None:
        return sample.path
    folder.mkdir()
    place = folder / os.path.basename(sample.name)
    place.write_bytes(sample.data or b"")
    return place


def _signal(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"


_OPTIONS: dict[str, Any] = {
    "program": File("", lambda path: None),
    "arguments": Text(),
    "samples": Implied(AtLeast(1), 32),
    "timeout_s": Implied(Above(0), 120),
}
BACKEND = Backend(
    name="program",
    summary="a program of your own, which reads an image and writes a tensor",
    offers=(
        Offer(Stage.FRONT_END, _OPTIONS, ProgramFrontEnd, Evidence.NATIVE),
        Offer(Stage.RUNTIME, {**_OPTIONS, **OwnRuntime.OPTIONS}, ProgramRuntime, Evidence.NATIVE),
    ),
    fields={
        "program": "the path of the program",
        "arguments": "its arguments, with {image} or {list} for what it reads, and {tensor}, "
        "{outputs} or {answer} for where it writes: docs/your-code.md",
        "gives": "what it writes: the network's outputs, or the answer",
        "samples": "of a call, where it takes a list",
        "timeout_s": "seconds that a call may take",
    },
)
