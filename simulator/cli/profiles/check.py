"""Check that a profile runs here, and show what it claims: one screen."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simulator import cli
from simulator.cli import common
from simulator.notices import Kind, Notice

if TYPE_CHECKING:
    from simulator.experiments.check_profile import Proof
    from simulator.pipeline.stack import ResolvedProfile
    from simulator.profile.implementations import Choices
    from simulator.profile.profile import Profile


def run(options: argparse.Namespace) -> int:
    """Check one profile.

    Returns:
        0: it is valid, and if it can be run here at all, it ran.

    Raises:
        UserError: it is not valid, a stage refused, or ``--strict`` found something.
    """
    from simulator.errors import ProfileError, UserError
    from simulator.evidence import cite
    from simulator.profile import axes, template
    from simulator.profile.implementations import choose
    from simulator.profile.load import load

    profile = load(options.path)
    choices = choose(profile)
    cited, wrong = cite.check(profile, choices)
    problems = [*axes.claims_problem(profile, choices), *wrong]
    if problems:
        raise ProfileError(problems)
    proof, why = _proof((profile, choices), options.model)
    _table(profile, choices, proof)
    notes = _notes(proof) if proof else []
    unfinished = template.unfinished(profile)
    _lines(profile, choices, proof, notes)
    _labelled("cited", cited)
    _labelled("to fill in", [", ".join(unfinished)] if unfinished else [])
    _labelled("to run it here", why)
    asked = [note.text for note in notes if note.is_strict]
    open_lines = [f"{where}: {key}: still to be written" for key, where in unfinished.items()]
    if options.strict and (lines := [*why, *asked, *open_lines]):
        raise UserError("\n".join(f"--strict: {line}" for line in lines))
    ran = f"and runs here: {proof.card} on {proof.sample}" if proof else "and cannot run here"
    common.console().print(f"{profile.name}: valid, {ran}", markup=False)
    return cli.PASS


def _proof(chosen: ResolvedProfile, model: str | None) -> tuple[Proof | None, list[str]]:
    """The result of running it, or why that is not possible here."""
    from simulator.cli.progress import Bar
    from simulator.errors import MissingLibrary
    from simulator.experiments import check_profile as proof
    from simulator.model.card import load

    if missing := proof.absent(chosen[1]):
        return None, missing
    if proof.is_recorded(chosen):
        return None, ["it replays a recording: run it on the images that were recorded"]
    try:
        with Bar() as bar:
            return proof.prove(chosen, load(model) if model else None, bar.say), []
    except MissingLibrary as error:
        return None, str(error).splitlines()


def _notes(proof: Proof) -> list[Notice]:
    """The stack's notices; those about calibration are replaced, as it had one image only."""
    notes = [note for note in proof.stack.notices if note.kind is not Kind.CALIBRATION]
    if proof.stack.profile.spec.precision.quantizer:
        words = "INT8 was calibrated on that one image, so nothing is known of its accuracy"
        notes.append(Notice(Kind.CALIBRATION, words))
    return notes


def _table(profile: Profile, choices: Choices, proof: Proof | None) -> None:
    """Print for each section its implementation, its value for the sample, and its evidence."""
    from rich.markup import escape

    from simulator import registry
    from simulator.contract.stage import stages as all_stages
    from simulator.profile.modality import at, filled, sections
    from simulator.profile.resolved import is_written

    behind = {spec.step: spec.section[0] for spec in all_stages() if spec.section}
    gave: dict[str, list[str]] = {}
    for step, words in proof.gave if proof else ():
        gave.setdefault(behind.get(step, step), []).append(words)
    shown = common.table("section", "by what, its evidence, and what it gave")
    modality = profile.spec.modality
    for section in sections(modality):
        own = [spec.name for spec in filled(modality) if spec.section[0] == section]
        stages = [stage for stage in own if stage in choices]
        absent = at(profile.spec, (section,)) is None
        if (absent or own) and not stages and not is_written(profile, (section,)):
            continue
        by = []
        for stage in stages:
            backend = choices[stage].backend
            versions = [f"{n} {v or 'missing'}" for n, v in registry.versions(backend).items()]
            by.append(f"{backend.name} ({', '.join(versions)})" if versions else backend.name)
        came = " → ".join(dict.fromkeys(gave.get(section, ())))
        kind, claimed = _known(profile, choices, section)
        words = kind or "[dim]the model's[/]"
        if kind and not claimed:
            words = f"[dim]not claimed; here it is {kind}[/]"
        made = escape(", ".join(dict.fromkeys(by)))
        head = "; ".join(filter(None, (made, words)))
        shown.add_row(f"[bold]{section}[/]", "\n".join(filter(None, (head, escape(came)))))
    common.console().print(shown)


def _known(profile: Profile, choices: Choices, section: str) -> tuple[str, bool]:
    """The kind of evidence of a section, and whether the profile claims it.

    The kind is empty for a section that the model card decides. Where the profile claims nothing,
    it is the weakest of its backends' evidence.
    """
    from simulator.contract import Evidence
    from simulator.profile import axes
    from simulator.profile.modality import axes_of
    from simulator.profile.resolved import is_written

    if section in axes.claims(profile):
        return str(axes.claims(profile)[section].kind), True
    if not is_written(profile, (section,)):
        return "", False
    own = [
        axes.evidence(profile, choices, axis)[0]
        for axis, place in axes_of(profile.spec).items()
        if place[0] == section
    ]
    return str(max(own, key=list(Evidence).index)), False


def _lines(profile: Profile, choices: Choices, proof: Proof | None, notes: list[Notice]) -> None:
    """Print what is in force, what is only emulated, and what is not claimed."""
    from simulator.contract import Evidence
    from simulator.profile.modality import sections

    if proof:
        _labelled("in force", [_in_force(proof)])
    known = {
        section: _known(profile, choices, section) for section in sections(profile.spec.modality)
    }
    for kind in Evidence:
        if kind is not Evidence.NATIVE:
            found = [section for section, (word, _) in known.items() if word == kind]
            _labelled(f"only {kind}", [", ".join(found)] if found else [])
    bare = [section for section, (word, claimed) in known.items() if word and not claimed]
    _labelled("not claimed", [", ".join(bare)] if bare else [])
    _labelled("note", [note.text for note in notes])


def _in_force(proof: Proof) -> str:
    """The settings that are in force, as the runtime reports them."""
    effective = proof.stack.effective
    products = ", ".join(f"{count} in {kind}" for kind, count in effective.products.items())
    detail = f" (convolutions and matrix products: {products})" if products else ""
    options = "".join(f", {name} {value}" for name, value in effective.options.items())
    return f"compute {effective.compute or 'unknown'}{detail}{options}"


def _labelled(label: str, lines: list[str]) -> None:
    """Print lines, each after a label."""
    from rich.markup import escape
    from rich.table import Table

    shown = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column(min_width=14, no_wrap=True)
    shown.add_column(overflow="fold")
    for line in lines:
        shown.add_row(f"[bold]{label}[/]", escape(line))
    if lines:
        common.console().print(shown)
