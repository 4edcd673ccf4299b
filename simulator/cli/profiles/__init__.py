"""Profiles, one YAML document per stack: list, show, compare, create, import and check them.

simulate profiles list                      the built-in ones, and those of other packages
simulate profiles show NAME [--origins]     a resolved profile; --origins: where values come from
simulate profiles diff A B                  the axes on which two differ
simulate profiles new NAME --from NEAREST   create a profile to be filled in
simulate profiles import FILE               convert another tool's configuration to a profile
simulate profiles check PATH                run it here, and show the evidence for each section
"""

from __future__ import annotations

import argparse
import sys

from simulator import cli
from simulator.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    listed = verbs.add_parser("list", help="the built-in profiles, and those of other packages")
    listed.set_defaults(run=_list)
    show = verbs.add_parser("show", help="a resolved profile: one complete document")
    show.set_defaults(run=_show)
    show.add_argument("name")
    form = show.add_mutually_exclusive_group()
    form.add_argument("--origins", action="store_true", help="where each value was written")
    form.add_argument("--json", action="store_true", help="the resolved values as JSON")
    diff = verbs.add_parser("diff", help="the axes on which two profiles differ")
    diff.set_defaults(run=_diff)
    diff.add_argument("a")
    diff.add_argument("b")
    new = verbs.add_parser("new", help="create a profile to be filled in")
    new.set_defaults(run=_new)
    new.add_argument("name")
    new.add_argument(
        "--from", dest="nearest", required=True, metavar="NEAREST",
        help="the most similar profile: a path or a name",
    )  # fmt: skip
    new.add_argument("--out", metavar="FILE", help="default: NAME.yaml")
    imported = verbs.add_parser("import", help="convert another tool's configuration to a profile")
    imported.set_defaults(run=_import)
    imported.add_argument(
        "file",
        help="of DeepStream, Accuracy Checker, Hugging Face, timm and others: docs/importing.md",
    )
    imported.add_argument("--format", metavar="FORMAT", help="default: detected from the file")
    imported.add_argument("--name", help="name of the profile; default: from the file's name")
    imported.add_argument("--base", metavar="PROFILE", help="a profile that fills in the rest")
    which = imported.add_mutually_exclusive_group()
    which.add_argument("--entry", type=int, metavar="N", help="which of the file's stacks, from 1")
    which.add_argument("--all", action="store_true", help="one profile for each of its stacks")
    imported.add_argument(
        "--out", metavar="FILE", help="default: standard output; with --all a folder, default: ."
    )
    check = verbs.add_parser("check", help="check that a profile is valid and runs here")
    check.set_defaults(run=_check)
    check.add_argument("path")
    check.add_argument("--model", metavar="CARD", help="a model card; default: the built-in model")
    check.add_argument(
        "--strict", action="store_true",
        help="refuse what cannot run here, is not in force, or is still to be written",
    )  # fmt: skip


def _check(options: argparse.Namespace) -> int:
    from simulator.cli.profiles import check

    return check.run(options)


def _list(_: argparse.Namespace) -> int:
    from rich.markup import escape

    from simulator.profile.load import load
    from simulator.profile.lookup import names

    shown = common.table("profile", "summary")
    for name in names():
        shown.add_row(escape(name), escape(load(name).spec.summary))
    common.console().print(shown)
    return cli.PASS


def _show(options: argparse.Namespace) -> int:
    import json

    from simulator.profile.implementations import choose
    from simulator.profile.load import load
    from simulator.profile.resolved import resolved

    profile = load(options.name)
    choices = choose(profile)
    if options.json:
        print(json.dumps(profile.spec.model_dump(by_alias=True, exclude_none=True), indent=2))
    else:
        print(resolved(profile, choices, origins=options.origins), end="")
    return cli.PASS


def _diff(options: argparse.Namespace) -> int:
    from rich.markup import escape

    from simulator.profile import axes
    from simulator.profile.implementations import choose
    from simulator.profile.load import load

    pair = [(profile, choose(profile)) for profile in (load(options.a), load(options.b))]
    shown = common.table("axis", "key", pair[0][0].name, pair[1][0].name)
    differences = axes.differences(*pair)
    for axis, key, a, b in differences:
        shown.add_row(axis, key, escape(str(a)), escape(str(b)))
    if differences:
        common.console().print(shown)
    else:
        common.console().print("the two profiles describe the same stack")
    return cli.PASS


def _new(options: argparse.Namespace) -> int:
    from simulator.profile import template

    path = template.write(options.name, options.nearest, options.out)
    print(f"{path}: fill it in, then: simulate profiles check {path}")
    return cli.PASS


def _import(options: argparse.Namespace) -> int:
    from pathlib import Path

    from simulator.importers import convert
    from simulator.profile.text import write_new

    if options.all:
        return _import_all(options)
    made = convert(
        Path(options.file), options.format, options.name, options.base, entry=options.entry
    )
    if options.out is None:
        print(made, end="")
        _assumed(made)
        return cli.PASS
    write_new(Path(options.out), made)
    _assumed(made)
    print(f"{options.out}: review it, then: simulate profiles check {options.out}")
    return cli.PASS


def _assumed(made: str) -> None:
    """Say which sections of an imported document nothing proves."""
    from simulator.profile.document import read_value

    for section, claim in (read_value(made).get("evidence") or {}).items():
        if claim["kind"] == "assumed":
            print(f"note: {section} is assumed: {claim['source']}", file=sys.stderr)


def _import_all(options: argparse.Namespace) -> int:
    """Write a profile for each stack of a file; those that cannot be imported are named last."""
    from pathlib import Path

    from simulator.errors import ProfileError
    from simulator.importers import convert, entries
    from simulator.importers.importing import stem
    from simulator.profile.text import write_new

    path, folder = Path(options.file), Path(options.out or ".")
    problems: list[str] = []
    offered = entries(path, options.format)
    start = options.name or stem(path)
    for entry, label in enumerate(offered, 1):
        name = f"{start}_{entry}" if len(offered) > 1 else start
        try:
            made = convert(path, options.format, name, options.base, entry=entry)
        except ProfileError as error:
            problems += [f"--entry {entry}, {label}: {line}" for line in error.problems]
            continue
        folder.mkdir(parents=True, exist_ok=True)
        write_new(folder / f"{name}.yaml", made)
        print(f"{folder / f'{name}.yaml'}: {label}")
        _assumed(made)
    if problems:
        raise ProfileError(problems)
    return cli.PASS
