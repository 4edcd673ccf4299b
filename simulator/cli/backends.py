"""The backends: what each offers, whether it runs here, and whether it does what it says.

simulate backends                        a table; no library is imported
simulate backends check [NAME ...]       load each library, each in its own process
simulate backends prove NAME             run the conformance suite, one line per check
    --out FILE                           and write an evidence bundle: results, recordings, versions
simulate backends evidence FILE          check a bundle from a device, and compare it with what runs
    --profile NAME                       here, or with a profile: which sections are as recorded
simulate backends decode FOLDER          count what every decoder makes of its images,
                                         each in its own process
simulate backends install NAME           install a backend in its own Python environment
simulate backends remove NAME            remove that environment
"""

from __future__ import annotations

import argparse
import json
from typing import Any, TypedDict

from simulator import cli
from simulator.cli import common, decode


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs."""
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.set_defaults(run=_list)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    check = verbs.add_parser("check", help="load libraries and look for devices")
    check.set_defaults(run=_check)
    check.add_argument("names", nargs="*", metavar="NAME", help="default: every backend")
    prove = verbs.add_parser("prove", help="run the conformance suite on a backend")
    prove.set_defaults(run=_prove)
    prove.add_argument("name", metavar="NAME")
    prove.add_argument("--out", metavar="FILE", help="write an evidence bundle, a new .zip file")
    evidence = verbs.add_parser("evidence", help="check an evidence bundle, and compare it")
    evidence.set_defaults(run=_evidence)
    evidence.add_argument("file", metavar="FILE")
    which = evidence.add_mutually_exclusive_group()
    which.add_argument(
        "--profile", metavar="NAME", help="compare with the sections of a profile: a path or a name"
    )
    which.add_argument(
        "--against",
        nargs="+",
        default=(),
        metavar="BACKEND",
        help="compare with these backends only; default: all that run here",
    )
    evidence.add_argument("--json", action="store_true", help="print all of it as JSON")
    decode.arguments(
        verbs.add_parser("decode", help="read a folder with every decoder, and count what comes")
    )
    install = verbs.add_parser("install", help="install a backend in its own Python environment")
    install.set_defaults(run=_install)
    install.add_argument("name", metavar="NAME")
    install.add_argument(
        "--python",
        metavar="PATH",
        help="a Python that has the library; default: create an environment",
    )
    remove = verbs.add_parser("remove", help="remove a backend's own Python environment")
    remove.set_defaults(run=_remove)
    remove.add_argument("name", metavar="NAME")


def _list(options: argparse.Namespace) -> int:
    from rich.markup import escape

    from simulator import registry

    rows = [_row(name) for name in registry.BACKENDS.points]
    if options.json:
        print(json.dumps(rows, indent=2))
        return cli.PASS
    table = common.table("backend", "library, where it runs, evidence, and what it offers")
    for row in rows:
        library = " ".join(filter(None, (row["library"] or "our own arithmetic", row["version"])))
        where = escape(row["device"] or "") or f"[yellow]{escape(row['problem'] or '')}[/]"
        head = "; ".join(filter(None, (escape(library), where, ", ".join(row["evidence"]))))
        offers = [escape(f"{stage}: {what}") for stage, what in row["offers"].items()]
        if row["batches"]:
            offers.append(escape(f"batches: {row['batches']}"))
        table.add_row(f"[bold]{escape(row['name'])}[/]", "\n".join([head, *offers]))
    common.console().print(table, highlight=False)
    return cli.PASS


def _check(options: argparse.Namespace) -> int:
    import sys

    from rich.markup import escape

    from simulator import registry
    from simulator.worker import environments
    from simulator.worker.home import Home

    names = options.names or list(registry.BACKENDS.points)
    table = common.table("backend", "version and device, or the problem")
    failed = False
    for name in names:
        backend = registry.backend(name)
        here = Home(name, sys.executable, registry.BACKENDS.points[name].value)
        found = environments.check(registry.home(name) or here)
        versions = ", ".join(version or "-" for version in found.versions.values())
        failed |= found.problem is not None
        default = "cpu" if backend.device is None and not found.problem else "-"
        problem = found.problem or ""
        if "not installed" in problem and backend.environment is not None:
            problem = f"not installed: {registry.remedy(backend)}"
        ran = f"{versions or '-'}; {found.device or default}"
        table.add_row(f"[bold]{name}[/]", f"[yellow]{escape(problem)}[/]" if problem else ran)
    common.console().print(table, highlight=False)
    return cli.USER_ERROR if failed and options.names else cli.PASS


def _prove(options: argparse.Namespace) -> int:
    from pathlib import Path

    from simulator.cli import evidence, prove

    if options.out is not None:
        return evidence.write(options.name, Path(options.out))
    return prove.backend(options.name)


def _evidence(options: argparse.Namespace) -> int:
    from simulator.cli import evidence

    return evidence.read(options)


def _install(options: argparse.Namespace) -> int:
    from simulator import registry
    from simulator.worker import environments

    backend = registry.backend(options.name)
    entry = registry.BACKENDS.points[options.name].value
    made = environments.install(backend, entry, options.python, print)
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    print(f"{options.name} runs in {made.python} ({versions or 'no library'})")
    return cli.PASS


def _remove(options: argparse.Namespace) -> int:
    from simulator import registry
    from simulator.worker import environments

    registry.BACKENDS.require(options.name)
    environments.remove(options.name)
    print(f"{options.name} runs in the simulator's own Python again")
    return cli.PASS


def _batches(backend: Any) -> str | None:
    """What its runtimes say of batches; None where it has no runtime."""
    from simulator.contract import Stage
    from simulator.profile.agreement import batches_of

    offers = backend.of(Stage.RUNTIME)
    if not offers:
        return None
    taken = dict.fromkeys(kind for offer in offers for kind in batches_of(offer))
    if not taken:
        return "single samples only"
    stable = dict.fromkeys(kind for offer in offers for kind in offer.make.bit_stable)
    bits = (
        f"bits of single samples on EfficientNet-Lite0 on a CPU in {' and '.join(stable)}, "
        "elsewhere maybe other bits"
        if stable
        else "maybe other bits"
    )
    return f"{' and '.join(taken)}; {bits}"


class Row(TypedDict):
    """What the table says of a backend."""

    name: str
    summary: str | None
    library: str | None
    version: str | None
    offers: dict[str, str]
    batches: str | None
    device: str | None
    problem: str | None
    evidence: list[str]


def _row(name: str) -> Row:
    from simulator import registry
    from simulator.errors import UserError

    try:
        backend = registry.backend(name)
    except UserError as error:
        return {
            "name": name, "summary": None, "library": None, "version": None, "offers": {},
            "batches": None, "device": None, "problem": str(error), "evidence": [],
        }  # fmt: skip
    versions = registry.versions(backend)
    offers: dict[str, dict[str, list[str]]] = {}
    for offer in backend.offers:
        field, values = _headline(offer.options)
        offers.setdefault(str(offer.stage), {}).setdefault(field, []).extend(values)
    device, problem = _place(backend, versions)
    return {
        "name": backend.name,
        "summary": backend.summary,
        "library": next(iter(versions), None),
        "version": next(iter(versions.values()), None),
        "offers": {
            stage: "; ".join(
                f"{field} {', '.join(dict.fromkeys(values))}" for field, values in fields.items()
            ).strip()
            or "yes"
            for stage, fields in offers.items()
        },
        "batches": _batches(backend),
        "device": device,
        "problem": problem,
        "evidence": sorted({str(offer.evidence) for offer in backend.offers}),
    }


def _place(backend: Any, versions: dict[str, str | None]) -> tuple[str | None, str | None]:
    """Where a backend runs, or why it does not; nothing is imported."""
    from simulator import registry
    from simulator.errors import SimulatorError

    home = registry.home(backend.name)
    device = "cpu"
    if backend.device is not None and home is None:
        try:
            device = backend.device()
        except SimulatorError as error:
            return None, str(error)
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        return None, f"not installed: {registry.remedy(backend)}"
    return (device if home is None else f"its own Python, {home.python}"), None


def _headline(options: Any) -> tuple[str, list[str]]:
    """The most telling option of an implementation, and its values."""
    for name in ("interpolation", "compute", "method", "preset", "matrix", "idct", "storage"):
        admits = options.get(name)
        if isinstance(admits, tuple):
            return name, [str(value) for value in admits]
    return "", []
