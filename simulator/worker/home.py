"""Where a backend's worker runs: its interpreter, its imports, its environment."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from simulator.errors import UserError

STARTED_IN = "PIPELINE_SIMULATOR_FOLDER"
"""The environment variable of a worker that has the folder in which it was started."""
IN_FORCE = "PIPELINE_SIMULATOR_CONFINED"
"""The environment variable of a confined worker that says what it gave up."""
_FOR_LIBRARIES = re.compile(
    r"(PATH|LD_LIBRARY_PATH|LANG|TZ|CC|CXX|PYTHONPATH|PYTHONHASHSEED|PIPELINE_SIMULATOR_\w+)$"
    r"|LC_|OMP_|KMP_|GOMP_|MKL_|OPENBLAS_|ONEDNN_|DNNL_|ATEN_|TORCH_|CUDA_|CUBLAS_|NVIDIA_"
)
"""The environment variables of a confined worker."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where a backend's worker runs.

    Attributes:
        name: the backend's name.
        python: the path of the interpreter.
        backend: ``module:attribute`` of the Backend.
        writes: of a worker that is confined (:mod:`simulator.worker.confined`), the folders that it
            may write to besides its own; None: the worker is not confined.
    """

    name: str
    python: str
    backend: str
    writes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of loading a backend's libraries.

    Attributes:
        versions: of the libraries, by distribution.
        device: that was found; None without one.
        device_missing: whether a missing device is the reason why it cannot run.
        problem: why the backend cannot run there; None if it can.
    """

    versions: dict[str, str | None]
    device: str | None = None
    device_missing: bool = False
    problem: str | None = None


def command(home: Home, folder: Path) -> Sequence[str]:
    """Return the command that starts a worker; only our packages are linked into *folder*."""
    ours = Path(__file__).parents[1]
    module = home.backend.partition(":")[0]
    tops = {"simulator": ours, module.partition(".")[0]: _package(module.partition(".")[0])}
    for name, place in tops.items():
        link = folder / (name if place.is_dir() else place.name)
        if not link.exists():
            link.symlink_to(place)
    if home.writes is None:
        return [home.python, "-m", "simulator.worker.serve", home.backend]
    writes = ":".join((str(folder), *home.writes))
    return [home.python, "-m", "simulator.worker.confined", writes, home.backend]


def environment(home: Home, folder: Path) -> dict[str, str]:
    """Return the environment variables of a worker: ours, with imports from *folder*.

    Our own import path is removed, because it belongs to our interpreter. A confined worker gets
    only those that tell libraries how to compute, no keys and tokens.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
    if home.writes is not None:
        kept = {name: value for name, value in kept.items() if _FOR_LIBRARIES.match(name)}
        kept |= dict.fromkeys(("HOME", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR"), str(folder))
    kept["PYTHONSAFEPATH"] = "1"
    kept[STARTED_IN] = os.getcwd()
    ours = [kept["PYTHONPATH"]] if home.python == sys.executable and "PYTHONPATH" in kept else []
    ours = [os.path.abspath(place) for place in os.pathsep.join(ours).split(os.pathsep) if place]
    return {**kept, "PYTHONPATH": os.pathsep.join([str(folder), *ours])}


def first_to_go() -> None:
    """Let the system end this process before the one that it works for, where memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _package(name: str) -> Path:
    """Return the path of a top-level module, without importing it."""
    import importlib.util

    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise UserError(f"there is no module {name!r}; install the package that provides it")
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin
