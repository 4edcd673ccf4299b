"""The runs below a folder: what each asked, what came of it, and when."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from simulator.errors import RunError, UserError
from simulator.files import TEXT, open_file, write_whole
from simulator.report.words import PAGE
from simulator.results.layout import MANIFEST
from simulator.results.read import read_manifest, read_summary

DEPTH = 2
"""How far below the folder runs are looked for: ``runs/NAME``, and ``runs/SWEEP/MODEL``."""
SHOWN = 10
"""Characters of a commit that are shown."""
INDEX = "index.html"
_HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8">'
    '<meta name="generator" content="simulate runs --html">'
)
"""How a page begins, by which it is known as ours."""
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8886 }
.failed { font-weight: bold }
"""


@dataclass(frozen=True, slots=True)
class Listed:
    """A run in a list.

    Attributes:
        folder: of the run.
        question: what was asked; runs that asked the same have the same text.
        verdict: ``passed`` or ``FAILED`` where there are gate rules; ``no rules``; or that the run
            is ``interrupted``, ``running``, or ``damaged``.
        created: when it began, ISO 8601; empty where it is damaged.
        commit: the first characters of the commit in whose checkout it was started, with a ``+``
            where tracked files were changed; empty where that is not known.
    """

    folder: Path
    question: str
    verdict: str
    created: str
    commit: str = ""


def listed(folder: Path) -> list[Listed]:
    """Return the runs below a folder, the newest first.

    Raises:
        UserError: there is no such folder.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder; runs are in runs/ by default")
    found = [_listed(place) for place in _places(folder, DEPTH)]
    return sorted(found, key=lambda listed: (listed.created, str(listed.folder)), reverse=True)


def write_index(runs: list[Listed], folder: Path) -> Path:
    """Write an HTML page: for each question its runs, so that each gate has its history.

    Args:
        runs: the newest first.
        folder: where the page goes; links are relative to it.

    Raises:
        RunError: it cannot be written, or another file has its name.
    """
    place = folder / INDEX
    try:
        if os.path.lexists(place) and (place.is_symlink() or not _is_ours(place)):
            raise RunError(
                f"{place}: is no page of `simulate runs --html`, so it stays as it is; rename or "
                "remove it"
            )
        write_whole(place, _page(runs, folder).encode())
    except OSError as error:
        raise RunError(f"{place}: cannot be written: {error.strerror or error}") from error
    return place


def _is_ours(place: Path) -> bool:
    with open_file(place, TEXT) as file:
        return file.read(len(_HEAD)) == _HEAD.encode()


def _page(runs: list[Listed], folder: Path) -> str:
    questions: dict[str, list[Listed]] = {}
    for run in runs:
        questions.setdefault(run.question, []).append(run)
    tables = "".join(
        f"<h2>{escape(question)}</h2><table><tr><th>begun</th><th>commit</th><th>gate</th><th>run</th></tr>"
        f"{''.join(_row(run, folder) for run in same)}</table>"
        for question, same in questions.items()
    )
    return (
        f"{_HEAD}<title>Runs</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style><h1>Runs</h1>{tables or '<p>There is no run here.</p>'}</html>\n"
    )


def _places(folder: Path, depth: int) -> Iterator[Path]:
    for place in sorted(folder.iterdir()):
        if (place / MANIFEST).is_file():
            yield place
        elif depth > 1 and place.is_dir() and not place.is_symlink():
            yield from _places(place, depth - 1)


def _listed(folder: Path) -> Listed:
    try:
        manifest = read_manifest(folder)
        question, created = _question(manifest), str(manifest.get("created", ""))
        commit = _commit(manifest.get("commit"))
        if manifest["status"] != "complete":
            return Listed(folder, question, str(manifest["status"]), created, commit)
        gate = read_summary(folder)[1].gate
    except RunError:
        return Listed(folder, "a run of another version, or a damaged one", "damaged", "")
    verdict = (
        ("passed" if gate.passed else "FAILED") if gate.rules or not gate.passed else "no rules"
    )
    return Listed(folder, question, verdict, created, commit)


def _commit(found: Any) -> str:
    """How a commit is shown; a manifest is a file that anyone may have edited."""
    if not isinstance(found, Mapping) or not isinstance(found.get("sha"), str):
        return ""
    return str(found["sha"])[:SHOWN] + ("+" if found.get("dirty") is True else "")


def _question(manifest: Mapping[str, Any]) -> str:
    """What a run asked, in the words of its command line; paths by their last part."""
    request = manifest.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("arguments"), dict):
        return "unknown"
    asked = request["arguments"]

    def name(key: str) -> str:
        return Path(str(asked[key])).stem

    words = ["compare" if request.get("command") == "run" else str(request.get("command"))]
    words += [name(key) for key in ("document", "bundle", "suite") if asked.get(key)]
    if asked.get("train") and asked.get("deploy"):
        words.append(f"{name('train')} → {name('deploy')}")
    words += [Path(str(one)).stem for one in asked.get("profiles") or ()]
    words += [str(one) for one in asked.get("overrides") or ()]
    words += [f"{key} {name(key)}" for key in ("model", "data") if asked.get(key)]
    return " ".join(words)


def _row(run: Listed, folder: Path) -> str:
    name = escape(os.path.relpath(run.folder, folder))
    page = run.folder / PAGE
    link = quote(os.path.relpath(page, folder))
    shown = f'<a href="{link}">{name}</a>' if page.is_file() else name
    style = ' class="failed"' if run.verdict == "FAILED" else ""
    begun = escape(run.created)
    commit = f"<td><code>{escape(run.commit)}</code></td>"
    return f"<tr><td>{begun}</td>{commit}<td{style}>{escape(run.verdict)}</td><td>{shown}</td></tr>"
