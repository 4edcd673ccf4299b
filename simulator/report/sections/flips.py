"""Changed answers: how many of which kind, and the worst ones with their pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.report.reading import Run
from simulator.report.rendering import PICTURES
from simulator.report.sections.questions import questions
from simulator.report.sections.section import Section, Table, fitting, part
from simulator.report.words import SIDES, between, count, ends, points, share
from simulator.tasks.task import TASKS
from simulator.typed import plain


@part(order=60)
def answer(run: Run) -> Section | None:
    """Show the metrics of both stacks, and the flips by kind."""
    summary, view = run.summary, TASKS[run.summary["task"]].view()
    rows = []
    for metric, delta in summary["delta"].items():
        known = [summary[side]["metric"][metric] for side in SIDES]
        if metric == summary["metric"] or known != [None, None]:
            interval = ends(delta and delta["ci95"])
            shares = [share(value, 2) for value in known]
            rows.append([view.metric(metric), *shares, points(delta), interval])
    flips, unit, sample = summary["flips"], summary["unit"], summary["sample_unit"]
    kinds = [[words, f"{number:,}"] for words, number in view.counts(plain(flips))]
    every = [f"changed {unit}s", f"{flips['count']:,} of {flips['units']:,}"]
    lines = [f"{name}: {words}".lstrip(": ") for name, words in view.lines(plain(summary)) if words]
    return Section(
        "answer",
        "The answer in numbers",
        "How much does the metric change, and how many answers?",
        [*lines, f"Flip rate {share(flips['rate'], 2)}{between(flips['ci95'])}."],
        tables=[
            Table(["metric", "train", "deploy", "delta, points", "95 % interval"], rows,
                  f"Metrics of both stacks on the same {sample}s", 1),
            Table(["answers", "count"], [every, *kinds], "Changed answers by kind", 1),
        ],
    )  # fmt: skip


@part(order=180)
def worst(run: Run) -> Section | None:
    """Show the worst flips, with their pictures where there are any."""
    view = TASKS[run.summary["task"]].view()
    flips = [plain(flip) for flip in run.summary["worst_flips"]]

    def caption(flip: Mapping[str, Any]) -> str:
        said = zip(view.titles[:2], view.words(flip), strict=False)
        return f"{flip['sample']}: {', '.join(map(' '.join, said))}"

    wanted = [(flip.get("preview"), caption(flip)) for flip in flips]
    pictures, left = fitting(run, wanted, PICTURES)
    sample = run.summary["sample_unit"]
    head = [sample, *view.titles][: 3 if pictures else 4]
    rows = [[flip["sample"], *view.words(flip)][: len(head)] for flip in flips]
    return Section(
        "worst",
        "Worst flips",
        "Which answers changed most, and what is on those images?"
        if sample == "image"
        else "Which answers changed most?",
        () if flips else ["No answer changed."],
        notes=[f"{count(left, 'more picture')} in the run's folder."] if left else [],
        tables=[
            *([Table(head, rows, "The worst flips, the worst one first")] if flips else []),
            *(table for flip in flips for table in questions(flip, view)),
        ],
        pictures=pictures,
    )
