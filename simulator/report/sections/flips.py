"""Changed answers: how many of which kind, and the worst ones with their pictures."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from simulator.analysis.figures import of_run
from simulator.report.reading import Run
from simulator.report.rendering import PICTURES
from simulator.report.rules import number
from simulator.report.sections.questions import questions
from simulator.report.sections.section import Section, Table, fitting, part
from simulator.report.words import SIDES, between, count, ends, figure, points, share
from simulator.tasks.task import TASKS
from simulator.typed import Typed, plain


@part(order=60)
def answer(run: Run) -> Section | None:
    """Show the metrics of both stacks, and the flips by kind."""
    summary, view = run.summary, TASKS[run.summary["task"]].view()
    rows, alone = [], []
    for metric in summary["train"]["metric"]:
        known = [summary[side]["metric"][metric] for side in SIDES]
        shares = [share(value, 2) for value in known]
        if metric not in summary["delta"]:
            alone.append([view.metric(metric), *shares])
        elif metric == summary["metric"] or known != [None, None]:
            delta = summary["delta"][metric]
            p = figure(delta and delta["p"], ".3g")
            interval = ends(delta and delta["ci95"])
            rows.append([view.metric(metric), *shares, points(delta), interval, p])
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
            Table(["metric", "train", "deploy", "delta, points", "95 % interval", "p"], rows,
                  f"Metrics of both stacks on the same {sample}s{_annotated(summary)}", 1),
            Table(["answers", "count"], [every, *kinds], "Changed answers by kind", 1),
            *([Table(["metric", "train", "deploy"], alone, "Metrics of parts", 1, folded=True)]
              if alone else []),
            *_failed(summary),
            *_further(summary, {"count", "units", "rate", "ci95", *view.parts(), *view.besides}),
        ],
    )  # fmt: skip


def _annotated(summary: Typed) -> str:
    """How many samples have a truth, where some have none."""
    labelled = summary["labelled"]
    return "" if labelled == summary["samples"] else f", {labelled:,} of them with a truth"


def _failed(summary: Typed) -> list[Table]:
    """Samples that one stack cannot answer, where there are any."""
    rows = [
        [name, f"{one.count:,} of {one.of:,}", share(one.rate, 2), between(one.ci95).strip(" ()")]
        for name, one in summary["failed"].items()
    ]
    if not any(one.count for one in summary["failed"].values()):
        return []
    head = ["stack", f"{summary['sample_unit']}s", "share", "interval"]
    return [Table(head, rows, "What one stack cannot answer while the other can", 1)]


def _further(summary: Typed, shown: Set[str]) -> list[Table]:
    """The task's own figures of the changed answers, as the task declares them."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in of_run(summary):
        part, name, *inner = (*one.path.split("."), "")
        if part == "flips" and name not in shown and one.value is not None:
            key = "" if inner[0].isdecimal() else ".".join(inner[:-1])
            words = one.title.partition("; None")[0]
            found.setdefault((words, key), []).append(number(one.value, one.about.unit))
    rows = [
        [f"{key}: {words}" if key else words, " to ".join(values)]
        for (words, key), values in found.items()
    ]
    head = ["figure", "value"]
    return [Table(head, rows, "Further figures of the answers", 1, folded=True)] if rows else []


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
