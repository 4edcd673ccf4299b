"""Write and read evidence bundles, for ``simulate backends prove --out`` and ``evidence``."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator import cli
from simulator.cli import common

if TYPE_CHECKING:
    from simulator.evidence.compare import Bundle, Row, Section
    from simulator.evidence.match import Match
    from simulator.profile.profile import Profile

_STRONGER = ("native", "vendor_simulator")
"""Kinds of evidence that a recording would only weaken."""


def write(name: str, path: Path) -> int:
    """Prove a backend with a line per check, and write the bundle.

    Returns:
        The exit code of ``simulate backends prove``.

    Raises:
        UserError: the backend cannot run here, or the file cannot be written; there is no file.
    """
    from simulator import registry
    from simulator.cli.prove import Line, line, told
    from simulator.evidence import record

    lines: list[Line] = []

    def tell(finding: Any) -> None:
        lines.append(line(finding))
        print(f"{lines[-1][0]:<7} {lines[-1][1]}", flush=True)

    found = record.gather(registry.backend(name), path, tell)
    code = told(name, lines, silent=True)
    size = f"{path.stat().st_size / 2**20:.1f} MB"
    inputs = sum(len(recording.inputs) for recording in found.recordings)
    print(f"{path}: {len(found.recordings)} recordings of {inputs} inputs, {size}; send this file")
    return code


def read(options: argparse.Namespace) -> int:
    """Check a bundle and compare it; print a page or JSON.

    Returns:
        0: it is whole, and every check that ran on the device passed; 1: one failed.

    Raises:
        UserError: it is no bundle, or not as it was written; a backend or the profile is unknown.
    """
    from simulator import registry
    from simulator.evidence import compare
    from simulator.profile.implementations import choose
    from simulator.profile.load import load
    from simulator.results.json_text import json_text

    for name in options.against:
        registry.backend(name)
    profile = load(options.profile) if options.profile else None
    choices = choose(profile) if profile else {}
    with compare.load(Path(options.file)) as bundle:
        sections = bundle.sections(profile, choices) if profile else []
        rows = [] if profile else list(bundle.rows(options.against))
    if options.json:
        print(json_text(_document(bundle, rows, sections)), end="")
    else:
        _page(bundle, rows)
        if profile:
            _against(bundle, profile, sections)
    failed = any(finding.mark == "failed" for finding in bundle.evidence.findings)
    return cli.GATE_FAILED if failed else cli.PASS


def _document(bundle: Bundle, rows: list[Row], sections: list[Section]) -> dict[str, object]:
    from dataclasses import asdict

    def plain(match: Match | None) -> dict[str, object] | None:
        return None if match is None else {**asdict(match), "exact": match.exact}

    found = bundle.evidence.model_dump(mode="json", by_alias=True, exclude={"recordings"})
    return {
        "file": str(bundle.path),
        "sha256": bundle.sha256,
        **found,
        "recordings": [
            {
                "stage": row.recorded.stage,
                "options": row.recorded.options,
                "what": row.recorded.what,
                "inputs": len(row.recorded.inputs),
                "refused": row.recorded.refused,
                "nearest": plain(row.nearest),
                "same": plain(row.same),
            }
            for row in rows
        ],
        "sections": [
            {
                "section": section.name,
                "recorded": section.exact,
                "missing": list(section.missing),
                "stages": {
                    stage: {"options": recorded.options, **(plain(match) or {})}
                    for stage, (recorded, match) in section.stages.items()
                },
            }
            for section in sections
        ],
    }


def _page(bundle: Bundle, rows: list[Row]) -> None:
    from rich.markup import escape

    found = bundle.evidence
    say = common.console().print
    counts = Counter(finding.mark for finding in found.findings)
    libraries = ", ".join(f"{name} {version}" for name, version in found.libraries.items())
    drivers = "; ".join(f"{name}: {said}" for name, said in found.drivers.items())
    cpu = found.machine.get("cpu")
    model = cpu.get("model") if isinstance(cpu, dict) else None
    heads = [
        f"{bundle.path}: whole, {bundle.members} members, SHA-256 {bundle.sha256}",
        "its digests show that nothing changed since it was written, not who wrote it",
        f"{found.backend} ({libraries or 'no library'}), pipeline-simulator {found.simulator}, "
        f"{found.made}, {found.seconds:g} s",
        f"device: {found.device}" + (f"; {drivers}" if drivers else ""),
        f"machine: {found.machine.get('platform')}, {model or 'unknown processor'}",
        f"conformance: {counts['passed']} passed, {counts['failed']} failed, "
        f"{counts['cannot']} cannot",
    ]
    heads += [
        f"{finding.mark}: {finding.stage} {finding.options} {finding.check}: {finding.remark}"
        for finding in found.findings
        if finding.mark != "passed"
    ]
    for head in heads:
        say(_printable(head), markup=False, highlight=False, soft_wrap=True)
    if not rows:
        return
    shown = common.table("recorded", "the same backend here", "nearest of the others here")
    for row in rows:
        options = " ".join(f"{k}={v}" for k, v in row.recorded.options.items())
        what = "" if row.recorded.what == "result" else f" {row.recorded.what}"
        refused = f"; {len(row.recorded.refused)} refused" if row.recorded.refused else ""
        shown.add_row(
            f"[bold]{escape(row.recorded.stage)}{what}[/] {escape(_printable(options))}{refused}",
            str(row.same or "does not run here"),
            f"{escape(row.nearest.name)}: {row.nearest}" if row.nearest else "none",
        )
    common.console().print(shown, highlight=False)


def _against(bundle: Bundle, profile: Profile, sections: list[Section]) -> None:
    """Print which sections of a profile the bundle shows to be as on the device."""
    from rich.markup import escape

    from simulator.profile import axes

    shown = common.table("section", f"{profile.name} against the recording", "so it is")
    for section in sections:
        claim = axes.claims(profile).get(section.name)
        kind = str(claim.kind) if claim else "not claimed"
        lines = [
            f"{stage}: {escape(match.name)}: {match}; recorded "
            + escape(_printable(" ".join(f"{k}={v}" for k, v in recorded.options.items())))
            for stage, (recorded, match) in section.stages.items()
        ]
        lines += [f"{stage}: no such recording" for stage in section.missing]
        word = f"{kind}, as recorded" if kind in _STRONGER else "recorded"
        verdict = f"[green]{word}[/]" if section.exact else f"still {kind}"
        shown.add_row(f"[bold]{section.name}[/]", "\n".join(lines), verdict)
    common.console().print(shown, highlight=False)
    claims = axes.claims(profile)
    exact = [
        section
        for section in sections
        if section.exact and not (section.name in claims and claims[section.name].kind in _STRONGER)
    ]
    if exact:
        print("If the device of the bundle is the device of the profile, its evidence may say:")
        for section in exact:
            print(f"  {section.name}:")
            print("    kind: recorded")
            print(f"    source: {json.dumps(_printable(_ran(bundle, section)))}")
            print(f"    bundle: {{file: {bundle.path.name}, sha256: {bundle.sha256}}}")


def _ran(bundle: Bundle, section: Section) -> str:
    from simulator.evidence.compare import where

    found = bundle.evidence
    versions = " ".join(filter(None, found.libraries.values()))
    parts = dict.fromkeys(where(recorded) for recorded, _ in section.stages.values())
    ran = " ".join(filter(None, (found.backend, versions, *parts)))
    return f"{ran} on {found.device}, recorded {found.made[:10]}"


def _printable(text: str) -> str:
    """What a stranger wrote, without control characters."""
    return "".join(char if char.isprintable() else "?" for char in text)[:2000]
