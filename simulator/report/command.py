"""Command lines: that of a run, and those that follow from it, as a shell takes them."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.command.experiment import EXPERIMENTS
from simulator.command.options import declared
from simulator.data import example
from simulator.data.card import FILE
from simulator.profile.lookup import name_of, shipped_folder
from simulator.results.json_text import JsonObject

INPUTS = ("model", "data", "limit", "seed", "under", "trial")
PAIR = (
    "train", "deploy", "train_artifact", "deploy_artifact", "pixels", "overrides", "python",
    "allow_code", *INPUTS,
)  # fmt: skip
"""Arguments that commands on the same stacks and samples share."""


def words(command: str, arguments: JsonObject) -> list[list[str]]:
    """Return the words of a command line: the command, then each option with its value.

    Args:
        command: of a run.
        arguments: of its request.
    """
    arguments = dict(arguments)
    every = declared(EXPERIMENTS[command].Options) if command in EXPERIMENTS else {}
    flags = {name: one.flag for name, one in every.items()}
    for name, one in every.items():
        flag, _, also = one.about.instead or ("", "", {})
        if also and also.items() <= arguments.items():
            flags[name] = f"--{flag}"
        arguments = {key: value for key, value in arguments.items() if key not in also}
    lines = [["simulate", *([] if command == "run" else [command])]]
    for name, value in arguments.items():
        flag = flags.get(name, "--" + name.replace("_", "-"))
        values = value if isinstance(value, list) else [value]
        placed = name in every and every[name].about.positional
        write = every[name].about.write if name in every else str
        for one in values:
            if one is True:
                lines.append([flag])
            elif one is not None and one is not False:
                lines.append([write(one)] if placed else [flag, write(one)])
    return lines


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run was asked, from which the next command follows.

    Attributes:
        arguments: of its request.
        folder: of the run.
    """

    arguments: JsonObject
    folder: Path

    def line(self, command: str, keep: Collection[str], **own: Any) -> str:
        """Return a command line.

        Args:
            command: what follows.
            keep: the arguments that it takes from this run.
            own: those that it has besides, or instead.
        """
        kept = {name: value for name, value in self.arguments.items() if name in keep} | own
        for name in ("seed", "trial"):
            if kept.get(name) == 0:
                del kept[name]  # the default
        kept = {name: _short(name, value) for name, value in _exemplified(kept).items()}
        return " ".join(map(shlex.join, words(command, kept)))


def checked(asked: Asked) -> str | None:
    """Return the command that checks a run's card with its data; None of the built-in model."""
    card, data = asked.arguments.get("model"), asked.arguments.get("data")
    if card is None:
        return None
    more = [] if data is None else ["--data", str(data)]
    return shlex.join(["simulate", "model", "check", str(card), *more])


def _exemplified(arguments: JsonObject) -> JsonObject:
    """Name a built-in example in place of its files in the cache."""
    card = arguments.get("model")
    name = example.name_of(Path(card)) if isinstance(card, str) else None
    if card is None or name is None:
        return dict(arguments)
    own = {"model": card, "data": str(Path(card).parent / FILE)}
    return {k: v for k, v in arguments.items() if own.get(k) != v} | {"example": name}


def _short(name: str, value: Any) -> Any:
    """A built-in profile or suite by its name, and a place below the current folder from there."""
    if not isinstance(value, str) or name not in ("train", "deploy", "suite", "model", "data"):
        return value
    place = Path(value)
    if name == "suite" and place.parent == shipped_folder("suites").resolve():
        return place.stem
    known = name_of(place) if name in ("train", "deploy") else None
    below = place.is_absolute() and place.is_relative_to(Path.cwd())
    return known or (str(place.relative_to(Path.cwd())) if below else value)
