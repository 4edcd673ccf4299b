"""What is said of a diagnosis: its verdict, its screen, and its sections of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import yaml
from pydantic import JsonValue
from rich.console import Console
from rich.markup import escape

from simulator.diagnose.layers.shown import section as layer_section
from simulator.diagnose.layers.shown import sentences
from simulator.diagnose.layers.shown import table as layer_table
from simulator.report import terminal
from simulator.report.reading import Run
from simulator.report.rendering import LOOKS
from simulator.report.sections.section import Code, Section, fitting, part
from simulator.report.table import NOTHING, Cell, Column, Table, screen
from simulator.report.verdicts.told import Told
from simulator.report.words import count
from simulator.results.diagnose import DiagnoseSummary, FindingResult, InputPictures, PartResult
from simulator.typed import Unit

INNOCENT = ("equal", "rounding")
NAMED, SURE = 2, 3
"""Likely and sure names at most that the verdict has."""
_SAME = {
    "front end": "both stacks give the network the same input",
    "network": "fed the same input both agree",
    "postprocessing": "the same outputs give the same answers",
}
"""Why a part is innocent."""


def verdict(summary: DiagnoseSummary) -> Told:
    """Return which part is to blame, by what name, and which parts are innocent."""
    parts = summary.parts
    guilty = [one for one in parts if one.state == "differs"]
    innocent = [one for one in parts if one.state in INNOCENT]
    unknown = [one.part for one in parts if one.state == "unknown"]
    lost = []
    if not (guilty or summary.changed) and unknown:
        lost.append(_alike(summary))
    if guilty:
        lost.append(_guilty(summary, guilty))
    elif summary.findings and unknown:
        names = "; ".join(one.name for one in summary.findings[:NAMED])
        lost.insert(0, f"Most likely the {summary.findings[0].part}: {names}.")
    elif not unknown:
        how = (
            "equal to the bit"
            if all(one.state == "equal" for one in parts)
            else "equal up to rounding"
        )
        lost.append(f"The two stacks are {how}: no part is to blame.")
    if guilty or unknown:
        lost += [_innocent(one) for one in innocent if not one.same]
        same = [one.part for one in innocent if one.same]
        if any(one.assumed for one in innocent):
            lost.append(
                f"The {_and(same)} {_is(same)} the same on both sides here: of the device only "
                "the input was recorded."
            )
        elif same:
            lost.append(f"The {_and(same)} {_is(same)} the same on both sides.")
    if unknown:
        lost.append(f"Not known of the {_and(unknown)}: the data end before.")
    if guilty or summary.changed or not unknown:
        lost.append(_answers(summary))
    return Told(lost)


def _guilty(summary: DiagnoseSummary, guilty: Sequence[PartResult]) -> str:
    names = [one.part for one in guilty]
    which = f"The {_and(names)} {_is(names)} to blame"
    own = [one for one in summary.findings if one.part in names]
    sure = [one for one in own if one.certainty in ("exact", "rounding")]
    said = {one.part for one in sure}
    near = [one for one in own if one.part not in said]
    likely = _some(near, NAMED)
    if not own:
        return f"{which}; no name was found for it."
    if not sure:
        if all(one.certainty == "none" for one in near):
            return f"{which}; no name was found for it: {likely}."
        how = ", most likely" if names == ["network"] else "; the nearest that was found"
        return f"{which}{how}: {likely}."
    of = f"; of the {near[0].part} most likely: {likely}" if near else ""
    return f"{which}: {_some(sure, SURE)}{of}."


def _some(found: Sequence[FindingResult], most: int) -> str:
    """The first names."""
    more = f"; {len(found) - most} more below" if len(found) > most else ""
    return "; ".join(one.name for one in found[:most]) + more


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _innocent(one: PartResult) -> str:
    if one.gap is None and one.part != "postprocessing":
        return f"The {one.part} is innocent."
    agree = ""
    if one.part == "network":
        apart = one.gap.largest if one.gap else None
        agree = " to the bit" if one.state == "equal" else f" to {apart:.2g}" if apart else ""
    return f"The {one.part} is innocent: {_SAME[one.part]}{agree}."


def _answers(summary: DiagnoseSummary) -> str:
    units = count(summary.units, summary.unit)
    images = count(summary.samples, summary.sample_unit)
    of = units if summary.unit == summary.sample_unit else f"{units} in {images}"
    if not summary.changed:
        return f"No answer changes: {of}."
    return f"{summary.changed:,} of {of} {'changes' if summary.changed == 1 else 'change'}."


def _alike(summary: DiagnoseSummary) -> str:
    """What is said where no answer has changed, and not all parts are known."""
    said = _answers(summary).removesuffix(".")
    if summary.explained:
        return f"{said}, and they are equal up to rounding."
    found = "" if summary.findings else ", and no name was found for it"
    return f"{said}, but scores or places differ{found}."


def _and(names: Sequence[str]) -> str:
    return " and the ".join([", the ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def show(summary: DiagnoseSummary, folder: str, console: Console) -> None:
    """Print which part is to blame, what it is called, and what to change."""
    terminal.stacks(summary, console, summary.train.profile, summary.deploy.profile)
    console.print(screen(blame(summary)), highlight=False)
    for one in summary.parts:
        for line in one.told:
            console.print(f"{one.part}: {escape(line)}", highlight=False)
    if summary.layers:
        for words in sentences(summary.layers):
            console.print(f"layers: {words}", markup=False, highlight=False)
        console.print(screen(layer_table(summary.layers)), highlight=False)
    for words in [*named(summary), *to_change(summary)]:
        console.print(words, markup=False, highlight=False, soft_wrap=True)
    terminal.end([*notes(summary), *summary.warnings], folder, console)


def named(summary: DiagnoseSummary) -> list[str]:
    """Return what the differences are called, with their evidence."""
    found = []
    for one in summary.findings:
        found.append(f"{one.part}: {one.name} ({_how(one)})")
        found += [f"    {line}" for line in one.evidence]
        found += [f"    in code: {one.code}"] if one.code else []
    return found


def _how(one: FindingResult) -> str:
    """How well a finding explains what was seen."""
    if not one.left:
        return one.certainty
    if one.certainty == "rounding":
        return f"up to rounding of {one.left:.2g}"
    return f"{one.certainty}, {one.left:.3g} is left"


def to_change(summary: DiagnoseSummary) -> list[str]:
    """Return the change of the deployment's profile, and what is left with it."""
    repair = summary.repair
    if repair is None:
        return []
    lines = [f"--- {summary.deploy.profile}", "+++ with the training stack's values"]
    for key, value in repair.change.items():
        old = repair.before[key]
        lines += [f"-{key}: {written(old)}"] if old is not None else []
        lines += [f"+{key}: {written(value)}"] if value is not None else []
    if repair.state == "unknown":
        return [*lines, f"not tried: {repair.why}"]
    left = {
        "equal": "equal to the bit",
        "rounding": f"equal up to rounding ({repair.left:.2g})" if repair.left else "",
        "differs": f"{repair.left:.3g} apart" if repair.left else "of other shapes",
    }[repair.state]
    return [*lines, f"So changed and run: {repair.of} {left}, {repair.changed:,} answers differ."]


def written(value: JsonValue) -> str:
    """Return a value as a profile has it, on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")


def blame(summary: DiagnoseSummary) -> Table:
    """Return a row for each part: what it is, and what it does to the answers."""
    rows: list[Sequence[Cell]] = [
        [one.part, one.state, one.alone, one.repaired, one.share] for one in summary.parts
    ]
    columns = [
        Column("part"), Column("same values in"), Column("alone", Unit.COUNT),
        Column("repaired", Unit.COUNT), Column("share", Unit.NUMBER),
    ]  # fmt: skip
    title = f"{summary.changed:,} of {count(summary.units, summary.unit)} changed"
    return Table(columns, rows, title, 1)


def findings(summary: DiagnoseSummary) -> Table:
    """Return a row for each name: how sure it is, what to do in code, what shows it."""
    rows = [
        [one.name, one.part, _how(one), one.code or NOTHING, "; ".join(one.evidence)]
        for one in summary.findings
    ]
    return Table(["finding", "part", "how sure", "in code", "what shows it"], rows, "Findings")


def notes(summary: DiagnoseSummary) -> list[str]:
    """Return what the figures mean, and what was left out."""
    found = [*summary.notes]
    known = {one.part for one in summary.parts if one.state != "unknown"}
    if "network" not in known and not summary.explained:
        found.append(
            "record the network's input on the device as well (docs/recordings.md), and front end "
            "and network are told apart"
        )
    if any(one.share is not None for one in summary.parts) and summary.changed:
        found.append(
            "alone: answers that change where only this part is the deployment's; repaired: those "
            "that it takes back where only it is the training's; share: its Shapley value, which "
            "sum to all that changed"
        )
    if summary.absent:
        found.append(f"{summary.absent:,} {summary.sample_unit}s of the data were not recorded")
    return found


def _inputs(run: Run[DiagnoseSummary], shown: InputPictures) -> Section:
    """What each network saw."""
    wanted = [
        (shown.train, "training"), (shown.deploy, "deployment"),
        (shown.difference, "difference, the largest is white"),
    ]  # fmt: skip
    pictures, _ = fitting(run, wanted, LOOKS)
    return Section(
        "inputs", "What each network saw", "Does one look at the same picture?",
        [f"{shown.sample}, normalization undone as in training."], pictures=pictures,
    )  # fmt: skip


@part(order=20)
def sections(run: Run[DiagnoseSummary]) -> Iterator[Section]:
    """Show which part is to blame."""
    summary = run.summary
    yield Section(
        "parts",
        "Which part is to blame?",
        "What does each part do alone, fed with the same values?",
        [f"{one.part}: {line}" for one in summary.parts for line in one.told],
        tables=[blame(summary)],
        notes=notes(summary),
    )
    if summary.inputs:
        yield _inputs(run, summary.inputs)
    tables = [findings(summary)] if summary.findings else []
    if lines := to_change(summary):
        tables.append(Table(["change"], [[Code("\n".join(lines))]], "Change of the profile"))
    if tables:
        title = "What is it called, and what is to change?"
        yield Section("names", title, "What undoes the difference?", tables=tables)
    if summary.layers:
        yield layer_section(summary.layers)
