"""A pair's page: the worst flips with what was asked, and when the gate was decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from simulator.experiments.compare.report import worst as worst_of
from simulator.report import charts
from simulator.report.charts import Figure
from simulator.report.colors import FAINT, STACKS, band
from simulator.report.reading import Run
from simulator.report.rendering import PICTURES
from simulator.report.sections.section import Panel, Section, Table, fitting, part
from simulator.report.sections.style import figure
from simulator.report.words import SIDES, count, decided
from simulator.results.pair import PairSummary
from simulator.results.shared import Bound, RuleOutcome
from simulator.tasks.task import TASKS
from simulator.tasks.view import View
from simulator.typed import plain

_SHOWN = {"\n": "\u23ce", "\t": "\u21e5", "\r": "\u240d", " ": "\u2423"}
"""What stands for a character that cannot be seen."""


@part(order=65)
def bounds(run: Run[PairSummary]) -> Section | None:
    """Draw how the bound of each rule closed in; None where every sample was to run."""
    summary, found = run.summary, run.summary.decided
    if found is None:
        return None
    panels = [
        Panel(_drawn(found.bounds[rule.rule], rule), rule.rule)
        for rule in summary.gate.rules
        if found.bounds.get(rule.rule)
    ]
    return Section(
        "decided",
        "When the gate was decided",
        "How many samples did the verdict need?",
        [decided(found, summary.sample_unit)],
        panels,
        [
            "Line: the figure so far; band: where the true one lies; dotted: the limit. All bounds "
            f"hold at once with a probability of {1 - found.alpha:.0%}, so the run may stop at any "
            "of them.",
            "Intervals of flips and deltas are these bounds, each end with 95 %. Others, and all "
            "p-values, are those of a fixed number of samples: a run that stops early makes them "
            "too short.",
        ],
    )


def _drawn(bounds: list[Bound], rule: RuleOutcome) -> Figure:
    seen, color = [bound.samples for bound in bounds], STACKS[0][0]
    drawn = figure(
        [
            charts.scatter(
                x=[*seen, *reversed(seen)],
                y=[*(bound.low for bound in bounds), *(bound.high for bound in reversed(bounds))],
                fill="toself", fillcolor=band(color), line={"width": 0}, mode="lines",
                hoverinfo="skip", showlegend=False,
            ),
            charts.scatter(
                x=seen, y=[bound.value for bound in bounds], mode="lines", showlegend=False,
                line={"color": color, "width": 2}, name="so far",
                customdata=[[bound.low, bound.high] for bound in bounds],
                hovertemplate="%{x} samples: %{y:.2%}<br>between %{customdata[0]:.2%} and "
                "%{customdata[1]:.2%}<extra></extra>",
            ),
            charts.scatter(
                x=[seen[0], seen[-1]], y=[rule.limit] * 2, mode="lines", showlegend=False,
                line={"color": FAINT, "dash": "dot", "width": 2}, hovertemplate="limit %{y:.2%}",
            ),
        ],
        300,
        "samples",
        "figure",
    )  # fmt: skip
    drawn.update_xaxes(type="log")
    drawn.update_yaxes(tickformat=charts.SHARE)
    return drawn


@part(order=55)
def worst(run: Run[PairSummary]) -> Iterator[Section]:
    """Show the worst flips, with their pictures, questions and tokens where there are any."""
    summary, view = run.summary, TASKS[run.summary.task].view()
    flips = [plain(flip) for flip in summary.worst_flips]
    worst = worst_of(summary)
    shown = replace(worst, title=f"{worst.title}, the worst one first")
    wanted = [
        (flip.get("preview"), f"{name}: {about}")
        for flip, (name, *words) in zip(flips, shown.lines(), strict=True)
        for about in [", ".join(f"{t} {w}" for t, w in zip(view.titles[:2], words, strict=False))]
    ]
    pictures, left = fitting(run, wanted, PICTURES)
    question = "Which answers changed most"
    if any(flip.moment for flip in summary.worst_flips):
        seen = ", and what is seen then, train above deploy" if pictures else ""
        question = f"When did answers change most{seen}"
    elif summary.sample_unit == "image":
        question = "Which answers changed most, and what is on those images"
    yield Section(
        "worst",
        worst.title,
        f"{question}?",
        () if flips else ["No answer changed."],
        notes=[f"{count(left, 'more picture')} in the run's folder."] if left else [],
        tables=[
            *([shown] if flips else []),
            *(table for flip in flips for table in _asked(flip, view)),
        ],
        pictures=pictures,
    )
    tokens = [
        [f"{flip['sample']}, request {one['request']}",
         *(_pieces(*side) for side in zip(one["pieces"], one["tokens"], strict=True))]
        for flip in flips
        for one in flip.get("beside") or ()
    ]  # fmt: skip
    if tokens:
        yield Section(
            "tokens",
            "Tokens that differ",
            "Where do the two stacks read another text?",
            ["A bar stands between two tokens. Only what differs is shown; \u2423 is a blank."],
            tables=[Table(["text", *SIDES], tokens, "Tokens of the worst flips")],
        )


def _pieces(pieces: list[str], count: int) -> str:
    shown = ["".join(_SHOWN.get(letter, letter) for letter in piece) for piece in pieces]
    return f"{' | '.join(shown)} ({count:,} tokens)"


def _asked(flip: Mapping[str, Any], view: View) -> list[Table]:
    """What a flip's sample asked, and who picked which; none where its modality keeps no words."""
    asked = list(flip.get("asked") or [])
    if not asked:
        return []
    if view.asks_first:
        question: str | None = asked.pop(0)["context"]
    else:
        alike = len({one["context"] for one in asked}) == 1
        question = asked[0]["context"] if alike else None
    kept = view.asks_first or question is None  # whether contexts tell the choices apart
    texts = [one["context"] * kept + one["continuation"] for one in asked]
    several = view.asks_first or len(asked) > 1
    rows = [] if question is None else [["question", question, ""]]
    for number, text in enumerate(texts):
        if text:
            name = f"choice {number + 1}" if several else "continuation"
            rows.append([name, text.strip(), _picked(flip, view, number) if several else ""])
    return [Table(["", "text", "picked by"], rows, f"What {flip['sample']} asks")] if rows else []


def _picked(flip: Mapping[str, Any], view: View, number: int) -> str:
    *picks, right = view.picks(flip)
    sides = [side for side, pick in zip(SIDES, picks, strict=True) if pick == number]
    return "; ".join(filter(None, (" and ".join(sides), "right" * (right == number))))
