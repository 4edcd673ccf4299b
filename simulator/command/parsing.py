"""Options on a command line: arguments that argparse takes, and the values that it has read."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any, Literal, get_args, get_origin

from simulator.command.options import Declared, Group, declared


def add_options(parser: argparse.ArgumentParser, shape: type[Group]) -> None:
    """Give a parser the options of a group."""
    every = declared(shape)
    for one in every.values():
        if one.about.shell:
            _add(parser, one, every)


def values_of(given: argparse.Namespace, shape: type[Group]) -> dict[str, Any]:
    """Return the values of a group's options by their names in Python."""
    every = declared(shape)
    values = {name: getattr(given, name) for name, one in every.items() if one.about.shell}
    for one in every.values():
        if one.about.instead:
            flag, _, also = one.about.instead
            if (other := getattr(given, flag.replace("-", "_"))) is not None:
                values |= {one.name: other, **also}
    return values


def _add(parser: argparse.ArgumentParser, one: Declared, every: Mapping[str, Declared]) -> None:
    about, group = one.about, parser
    said: dict[str, Any] = {"help": about.help.replace("%", "%%")}
    if about.positional:
        parser.add_argument(one.name, metavar=about.metavar, **said)
        return
    excluded = next((o for o in every.values() if o.about.excludes == one.name), None)
    if about.excludes or (about.instead and not excluded):
        group = parser.add_mutually_exclusive_group(required=one.required)  # type: ignore[assignment]
    elif excluded:
        return  # it is added with the other
    if one.required and group is parser:
        said["required"] = True
    group.add_argument(one.flag, dest=one.name, **said, **_taken(one))
    if about.instead:
        flag, words, _ = about.instead
        group.add_argument(f"--{flag}", metavar=about.metavar, help=words.replace("%", "%%"))
    if about.excludes:
        other = every[about.excludes]
        text = other.about.help.replace("%", "%%")
        group.add_argument(other.flag, dest=other.name, help=text, **_taken(other))


def _taken(one: Declared) -> dict[str, Any]:
    """How argparse reads an option: its values, its default, what it is called."""
    about, kind = one.about, one.one
    default = None if one.default is MISSING else one.default
    if one.several and default is not None:
        default = list(default)
    if kind is bool:
        return {"action": "store_true"}
    found: dict[str, Any] = {"default": default}
    if one.several:
        found["action"] = "extend" if about.parse else "append"
    if about.parse:
        found["type"] = about.parse
    elif get_origin(kind) is Literal:
        found["choices"] = get_args(kind)
    elif kind is not str:
        found["type"] = kind
    if about.alone:
        found |= {"nargs": "?", "const": about.alone}
    if about.metavar:
        found["metavar"] = about.metavar
    return found
