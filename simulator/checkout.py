"""The commit of the checkout in which a command was started, so that a run can be found again.

A repository may be hostile: its configuration can name programs that git would start. So its HEAD
is read without git, and git, which says whether files were changed, gets a configuration of ours.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypedDict

CI = ("GITHUB_SHA", "CI_COMMIT_SHA")
"""Variables in which a CI service gives the commit."""
PATIENCE = 1.0
"""Seconds that git may take to say whether files were changed."""
_MOST = 2**24
"""Bytes that are read of a file of git."""
_DEEP = 64
"""Folders upwards in which a checkout is looked for."""
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REF = re.compile(r"refs/[\w./+@-]{1,250}")


class Commit(TypedDict):
    """A commit; whether tracked files were changed, if known; ``checkout``, or a variable of CI."""

    sha: str
    dirty: bool | None
    source: str


def commit() -> Commit | None:
    """Return the commit of the checkout around the working directory, else that of the CI job."""
    try:
        return _commit(os.getcwd(), tuple(os.environ.get(name, "") for name in CI))
    except OSError:
        return None


@cache
def _commit(here: str, given: tuple[str, ...]) -> Commit | None:
    found = next(_checkouts(Path(here)), None)
    sha = _head(*found[1:]) if found else None
    if found and sha:
        return {"sha": sha, "dirty": _dirty(*found, sha), "source": "checkout"}
    for name, value in zip(CI, given, strict=True):
        if _SHA.fullmatch(value):
            return {"sha": value, "dirty": None, "source": name}
    return None


def _checkouts(here: Path) -> Iterator[tuple[Path, Path, Path]]:
    """Each checkout from here upwards: its root, its git folder, and what worktrees share."""
    for root in [here, *here.parents][:_DEEP]:
        place = root / ".git"
        if not place.is_dir():
            said = _text(place)
            if not said.startswith("gitdir: "):
                continue
            place = root / said.removeprefix("gitdir: ")
        shared = _text(place / "commondir")
        yield root, place, place / shared if shared else place


def _head(own: Path, shared: Path) -> str | None:
    said = _text(own / "HEAD")
    if said.startswith("ref: "):
        ref = said.removeprefix("ref: ")
        if not _REF.fullmatch(ref) or ".." in ref:
            return None
        said = _text(own / ref) or _text(shared / ref) or _packed(shared, ref)
    return said if _SHA.fullmatch(said) else None


def _packed(shared: Path, ref: str) -> str:
    lines = _text(shared / "packed-refs").splitlines()
    return next((line.partition(" ")[0] for line in lines if line.partition(" ")[2] == ref), "")


def _text(place: Path) -> str:
    """The content of a small ordinary file; empty where there is none."""
    try:
        file = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return ""
        return os.read(file, _MOST).decode(errors="replace").strip()
    except OSError:
        return ""
    finally:
        os.close(file)


def _dirty(root: Path, own: Path, shared: Path, sha: str) -> bool | None:
    """Whether tracked files differ from the commit; None where git is absent, slow or fails."""
    with tempfile.TemporaryDirectory(prefix="checkout-") as scratch:
        ours = Path(scratch)
        for name in ("objects", "refs"):
            (ours / name).mkdir()
        (ours / "HEAD").write_text(f"{sha}\n")
        version = "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectformat = sha256\n"
        (ours / "config").write_text(version if len(sha) == 64 else "")
        surroundings: Mapping[str, str] = {
            "PATH": os.environ.get("PATH", os.defpath),
            "GIT_DIR": scratch,
            "GIT_WORK_TREE": str(root),
            "GIT_INDEX_FILE": str(own / "index"),
            "GIT_OBJECT_DIRECTORY": str(shared / "objects"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        words = ["git", "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"]
        try:
            done = subprocess.run(
                words, env=surroundings, cwd=root, timeout=PATIENCE, check=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return None
        return bool(done.stdout)
