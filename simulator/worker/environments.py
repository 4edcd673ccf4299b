"""Environments: which backends run in a separate Python, and how that is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from simulator import cache
from simulator.contract import Backend
from simulator.errors import MissingLibrary, ModelError, RunError, UserError
from simulator.worker.client import Worker
from simulator.worker.home import Checked, Home


@dataclass(frozen=True, slots=True)
class Installed:
    """The separate Python of a backend.

    Attributes:
        python: the path of the interpreter.
        versions: the versions of the backend's libraries there, by distribution.
    """

    python: str
    versions: dict[str, str | None]


def installed(name: str) -> Installed | None:
    """Return the separate Python of a backend; None if it has none."""
    try:
        return Installed(**json.loads((_folder(name) / "environment.json").read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise RunError(
            f"{_folder(name)}/environment.json cannot be used ({error}); "
            f"try: simulate backends install {name}"
        ) from error


def install(
    backend: Backend, entry: str, python: str | None, say: Callable[[str], None]
) -> Installed:
    """Install a separate Python for a backend.

    Args:
        backend: the backend.
        entry: its entry point, ``module:attribute``.
        python: an interpreter that has the library; None creates an environment from the
            backend's pinned requirements.
        say: called with a message for each step.

    Raises:
        UserError: the backend pins no requirements, pip failed, or the library does not load.
    """
    folder = _folder(backend.name)
    python = _made(backend, folder, say) if python is None else os.path.abspath(python)
    found = check(Home(backend.name, python, entry))
    if found.problem and not found.device_missing:
        raise MissingLibrary(f"{python}: {found.problem}")
    made = Installed(python, found.versions)
    keep(backend.name, made)
    return made


def keep(name: str, made: Installed) -> None:
    """Save where a backend runs, and with which versions."""
    folder = _folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.json").write_text(json.dumps(asdict(made), indent=2))


def remove(name: str) -> None:
    """Remove the separate Python of a backend; it then runs in ours again.

    Raises:
        UserError: the backend has none.
    """
    if not _folder(name).is_dir():
        raise UserError(f"{name} has no separate environment")
    shutil.rmtree(_folder(name))


def check(home: Home) -> Checked:
    """Load a backend's libraries in a worker, where a crash does no harm."""
    worker = Worker(home)
    try:
        found: Checked = worker.call("check")
        return found
    except ModelError as error:
        return Checked({}, problem=str(error))
    finally:
        worker.stop()


def _made(backend: Backend, folder: Path, say: Callable[[str], None]) -> str:
    wanted = backend.environment
    if wanted is None:
        raise UserError(
            f"{backend.name} runs in our interpreter; to run it in another one, "
            "give its path: --python PATH"
        )
    say(f"{backend.name}: {wanted.why}")
    if folder.is_dir():
        shutil.rmtree(folder)
    venv = folder / "venv"
    python = str(venv / "bin" / "python")
    say(f"making {venv}")
    _run([sys.executable, "-m", "venv", str(venv)])
    for flags, requirements in ((["--no-deps"], wanted.no_deps), ([], wanted.requirements)):
        if requirements:
            say(f"pip install {' '.join([*flags, *requirements])}")
            _run([python, "-m", "pip", "install", "--quiet", *flags, *requirements])
    return python


def _run(arguments: list[str]) -> None:
    done = subprocess.run(arguments, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"{' '.join(arguments)}: {said[-1] if said else done.returncode}")


def _folder(name: str) -> Path:
    return Path(os.path.abspath(cache.folder())) / "environments" / name
