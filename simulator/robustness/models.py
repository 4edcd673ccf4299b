"""The page of several models under one suite: Figures 4 and 5 of Kamann and Rother."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from simulator.errors import UserError
from simulator.report import charts, page
from simulator.report.sections.head import Head
from simulator.report.sections.section import Panel, Section
from simulator.report.sections.style import Look, error_bars, figure, looks, text
from simulator.report.words import between, count, share, title
from simulator.results.read import read_run
from simulator.results.robustness import RobustnessSummary
from simulator.results.shared import Profile
from simulator.robustness import papers

PAGE, CHARTS = "models.html", "charts"
Arm = tuple[RobustnessSummary, str]
"""A model on a stack."""


def compare(
    runs: Sequence[Path],
    place: Path,
    console: Console,
    form: str = "text",
    allow_failed: str | None = None,
) -> int:
    """Write the page of several models' runs, and its charts as SVG files; return 0.

    Args:
        runs: their folders.
        place: a folder for the page.
        console: where that is printed.
        form: ``text`` prints where it is.
        allow_failed: not used: each run has judged what failed.

    Raises:
        UserError: the runs are of several suites or tasks.
    """
    read = [read_run(run) for run in runs]
    summaries = [summary for _, summary, _ in read if isinstance(summary, RobustnessSummary)]
    if len(summaries) < len(runs) or len({(one.suite, one.task) for one in summaries}) > 1:
        raise UserError("give runs of simulate robustness with one suite and one task")
    manifest = read[0][0]
    made = page.Page(
        _head(summaries), sections(summaries), manifest.machine, str(manifest.created),
        [f"{one.model}: {count(one.samples, one.sample_unit)}; CE by {one.reference}"
         for one in summaries],
    )  # fmt: skip
    page.put(made.html(), place / PAGE)
    charts_of = page.drawn(made.sections, place / CHARTS)
    if form == "text":
        for line in (f"report: {place / PAGE}", *(f"chart: {chart}" for chart in charts_of)):
            console.print(line, soft_wrap=True, markup=False)
    return 0


def sections(summaries: Sequence[RobustnessSummary]) -> list[Section]:
    """Return what the page shows."""
    found, arms = [], named(summaries)
    if arms and all(summary.stacks[side].mce for summary, side in arms.values()):
        found += [_points(summaries, arms), _bars(summaries, arms)]
    if any(len(one.losses) > 1 for one in summaries):
        found.append(Section(
            "losses", "What each kind of noise takes",
            "Do other stacks lose more than the first one, whatever the model?",
            tables=[papers.losses(summaries)],
        ))  # fmt: skip
    return found


def named(summaries: Sequence[RobustnessSummary]) -> dict[str, Arm]:
    """Return what is drawn: every model on each of its stacks that converged.

    Raises:
        UserError: two runs have a stack of one name for one model.
    """
    differ = len({one.model for one in summaries}) == len(summaries)
    alone = differ and all(len(one.stacks) == 1 for one in summaries)
    found: dict[str, Arm] = {}
    for one in summaries:
        for side in one.stacks:
            name = one.model if alone else f"{one.model}, {side}"
            if name in found:
                raise UserError(f"two runs are of {name}; give each model and stack once")
            if side not in one.nc:
                found[name] = one, side
    return found


def _points(summaries: Sequence[RobustnessSummary], arms: Mapping[str, Arm]) -> Section:
    """The form of Figure 4: a point a model."""
    metric, ce = title(summaries[0].task, summaries[0].metric), _ratio(summaries)
    panels = []
    for kind, name in (("mCE", f"m{ce}"), ("relative_mCE", f"mr{ce}")):
        traces = []
        for look, (summary, side) in zip(_looks(arms), arms.values(), strict=True):
            clean, own = summary.stacks[side].clean, summary.stacks[side][kind]
            if own is not None:
                traces.append(charts.scatter(
                    x=[clean.value], y=[own.value], name=look.label, mode="markers",
                    marker=look.marker, error_x=error_bars([clean.value], [clean.ci95]),
                    error_y=error_bars([own.value], [own.ci95]),
                    hovertemplate=f"{text(look.name)}: %{{x:.1%}}, %{{y:.1%}}<extra></extra>",
                ))  # fmt: skip
        if not traces:
            continue
        drawn = figure(traces, 340, f"clean {metric}", name, showlegend=True)
        drawn.update_xaxes(tickformat=charts.SHARE)
        drawn.update_yaxes(tickformat=charts.SHARE)
        panels.append(Panel(drawn, name))
    references = " or ".join(dict.fromkeys(one.reference for one in summaries))
    return Section(
        "models", f"Clean {metric} and m{ce}", "Are better models more robust?",
        [f"Below 100 %: more robust than {references}. Lines: 95 % intervals."],
        panels=panels,
        tables=[replace(papers.conditions(summaries), title=f"{metric}, mean over severities, %")],
    )  # fmt: skip


def _bars(summaries: Sequence[RobustnessSummary], arms: Mapping[str, Arm]) -> Section:
    """The form of Figure 5: bars by category."""
    ce, traces = _ratio(summaries), []
    for look, (summary, side) in zip(_looks(arms), arms.values(), strict=True):
        found = {name: one for name, one in summary.stacks[side].category_ce.items() if one}
        values = [one.value for one in found.values()]
        traces.append(charts.bar(
            x=[text(name) for name in found], y=values, name=look.label,
            marker={"color": look.color, "pattern": {"shape": look.hatch}},
            error_y=error_bars(values, [one.ci95 for one in found.values()]),
            hovertemplate="%{x}: %{y:.1%}<extra></extra>",
        ))  # fmt: skip
    drawn = figure(traces, 340, "category", ce, showlegend=True, barmode="group")
    drawn.update_yaxes(tickformat=charts.SHARE)
    return Section(
        "categories", f"{ce} by category", "Which kind costs a model more than the reference?",
        panels=[Panel(drawn)],
        tables=[replace(papers.categories(summaries), title=f"{ce} by category, %")],
    )  # fmt: skip


def _looks(arms: Mapping[str, Arm]) -> list[Look]:
    return list(looks({name: Profile(profile=name) for name in arms}).values())


def _ratio(summaries: Sequence[RobustnessSummary]) -> str:
    return "CD" if summaries[0].metric == "mIoU" else "CE"


def _head(summaries: Sequence[RobustnessSummary]) -> Head:
    """Name the models, the one that loses least first."""
    known = {name: summary.stacks[side].mce for name, (summary, side) in named(summaries).items()}
    ordered = sorted(
        ((name, one) for name, one in known.items() if one), key=lambda found: found[1].value
    )
    return Head(
        f"{summaries[0].suite}: {count(len(summaries), 'model')}",
        f"Which model keeps most under {summaries[0].suite}?",
        [f"{name}: m{_ratio(summaries)} {share(one.value)}{between(one.ci95)}."
         for name, one in ordered],
        [], None, [],
    )  # fmt: skip
