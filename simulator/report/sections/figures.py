"""Every figure of a run, by the name that rules have for it; no figure is in the summary alone."""

from __future__ import annotations

from simulator.analysis.figures import of_run
from simulator.report.reading import Run
from simulator.report.rules import number
from simulator.report.sections.section import Section, Table, part
from simulator.report.words import count


@part(order=220)
def figures(run: Run) -> Section | None:
    """List what the summary holds; None where it has no figures."""
    found = [figure for figure in of_run(run.summary) if figure.held and not figure.about.hidden]
    if not found:
        return None
    rows = [[one.names[0], number(one.value, one.about.unit), _words(one.title)] for one in found]
    table = Table(["name in rules", "value", "what it is"], rows, count(len(rows), "figure"),
                  folded=True)  # fmt: skip
    return Section(
        "figures", "All figures", "Under which name does a rule of the gate know a figure?",
        tables=[table],
    )  # fmt: skip


def _words(title: str) -> str:
    """What a schema says of a figure, without what a reader of JSON has to know."""
    return "; ".join(part for part in title.split("; ") if "None" not in part)
