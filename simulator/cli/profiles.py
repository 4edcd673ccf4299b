"""Profiles: list the built-in ones, show where each value comes from, diff two, check one."""

from __future__ import annotations

import argparse
import json
from typing import Any

from simulator import cli


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("list", help="the built-in profiles")
    show = verbs.add_parser("show", help="a profile as resolved, each value with its origin")
    show.add_argument("name")
    show.add_argument("--json", action="store_true", help="the resolved values as JSON")
    diff = verbs.add_parser("diff", help="the axes on which two profiles differ")
    diff.add_argument("a")
    diff.add_argument("b")
    check = verbs.add_parser("check", help="whether a profile is valid and can run here")
    check.add_argument("path")


def run(options: argparse.Namespace) -> int:
    """Run one verb."""
    return int(globals()[f"_{options.verb}"](options))


def _console() -> Any:
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=140, highlight=False)


def _table(*columns: str) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(*columns, box=SIMPLE_HEAD, pad_edge=False)


def _list(_: argparse.Namespace) -> int:
    from simulator.profile.load import builtin_names, load

    table = _table("profile", "summary")
    for name in builtin_names():
        table.add_row(name, load(name).spec.summary)
    _console().print(table)
    return cli.PASS


def _show(options: argparse.Namespace) -> int:
    from rich.markup import escape

    from simulator.profile import axes
    from simulator.profile.choose import choose
    from simulator.profile.load import load

    profile = load(options.name)
    choices = choose(profile)
    if options.json:
        print(json.dumps(profile.spec.model_dump(by_alias=True, exclude_none=True), indent=2))
        return cli.PASS
    console = _console()
    console.print(f"[bold]{escape(profile.name)}[/]: {escape(profile.spec.summary)}")
    table = _table("key", "value", "origin")
    document = profile.spec.model_dump(by_alias=True, exclude_none=True, exclude={"evidence"})
    silent: dict[str, Any] = {}
    for key, value in axes.flat(document).items():
        if tuple(key.split(".")) in profile.origins:
            origin = profile.where(tuple(key.split(".")))
            table.add_row(key, escape(str(value)), escape(origin))
        else:
            silent[f"{key.split('.')[0]}, all other fields"] = value
    for choice in choices.values():
        for fact in choice.facts:
            origin = f"implied by {choice.backend.name}"
            table.add_row(f"{choice.stage}.{fact}", str(choice.options[fact]), origin)
    for key, value in silent.items():
        table.add_row(key, escape(str(value)), "not written: as the model has it")
    console.print(table)
    table = _table("section", "evidence", "source")
    for section, claim in profile.spec.evidence.items():
        table.add_row(section, claim.kind, escape(claim.source))
    console.print(table)
    return cli.PASS


def _diff(options: argparse.Namespace) -> int:
    from rich.markup import escape

    from simulator.profile import axes
    from simulator.profile.choose import choose
    from simulator.profile.load import load

    pair = [(profile, choose(profile)) for profile in (load(options.a), load(options.b))]
    table = _table("axis", "key", pair[0][0].name, pair[1][0].name)
    differing = axes.differing(*pair)
    for axis in differing:
        flats = [axes.flat(axes.value(*side, axis)) for side in pair]
        for key in dict.fromkeys([*flats[0], *flats[1]]):
            a, b = (flat.get(key, "-") for flat in flats)
            if a != b:
                table.add_row(axis, key, escape(str(a)), escape(str(b)))
    if differing:
        _console().print(table)
    else:
        _console().print("the two profiles describe the same stack")
    return cli.PASS


def _check(options: argparse.Namespace) -> int:
    from rich.markup import escape

    from simulator import registry
    from simulator.errors import ProfileError
    from simulator.profile import axes
    from simulator.profile.choose import choose
    from simulator.profile.load import load

    profile = load(options.path)
    choices = choose(profile)
    problems = axes.claims_problem(profile, choices)
    if problems:
        raise ProfileError(problems)
    console = _console()
    absent = []
    for choice in choices.values():
        versions = registry.versions(choice.backend)
        names = ", ".join(f"{name} {version or 'missing'}" for name, version in versions.items())
        console.print(f"{choice.stage:<9}{choice.backend.name:<18} {escape(names)}")
        if None in versions.values():
            absent.append(f"{choice.backend.name}: {registry.remedy(choice.backend)}")
    for line in dict.fromkeys(absent):
        console.print(f"[yellow]to run it here:[/] {escape(line)}")
    verdict = "valid" if not absent else "valid, and cannot run here"
    console.print(f"{escape(profile.name)}: {verdict}")
    return cli.PASS
