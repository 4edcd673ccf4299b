"""Checks of records, comparisons, report texts and verdicts on faults of a task."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.contract import Key, Painter, Panel
from simulator.results.record_table import schema
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.impact import Decoded, Due
from simulator.tasks.score import Record, Values
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task
from simulator.testing.subject import Failed, expect
from simulator.testing.task_cases import Case, changed, close, perfect, plain, rows, scores
from simulator.testing.values import one_line

RESAMPLES = 8
PARTS = ("labelled", "train", "deploy", "delta", "flips")
CHANGES = ("changed", "units")


def every_column_is_recorded(subject: Specimen) -> None:
    """A record has exactly the task's columns, with truth and without."""
    columns = {field.name for field in subject.task.columns}
    for truth in (subject.truth, None):
        (record,) = subject.task.records([subject.answer()], truth)
        odd = sorted(columns ^ record.keys())
        expect(not odd, f"a record of the columns expected, got more or fewer: {', '.join(odd)}")


def records_survive_parquet(subject: Specimen) -> None:
    """Records that were written and read are the same, types included, and score the same."""
    task, cases = subject.task, [*perfect(subject), *changed(subject)]
    cases += [Case(None, case.before, case.after) for case in cases]
    records = [after for _, after in rows(task, cases)]
    names = [field.name for field in task.columns]
    read = [{name: row[name] for name in names} for row in _stored(task, records)]
    for record, back in zip(records, read, strict=True):
        for name in names:
            got, expected = repr(back[name]), repr(record[name])
            told = f"{expected[:100]} expected, got {got[:100]}"
            expect(got == expected, f"column {name} after Parquet: {told}")
    truths = [case.truth for case in cases]
    before, after = (task.score(some, truths).metrics for some in (records, read))
    expect(close(before, after), f"metrics {before} expected after Parquet, got {after}")


def an_answer_is_like_itself(subject: Specimen) -> None:
    """An answer held against itself, and the first stack's, has no change of any kind."""
    cases = [*perfect(subject), *(Case(c.truth, c.after, c.after) for c in changed(subject))]
    for number, case in enumerate(cases):
        for record in rows(subject.task, [case])[0]:
            kinds = {name: record.get(name) for name in ("changed", *subject.task.kinds)}
            told = f"no change expected, got {kinds}"
            expect(not any(kinds.values()), f"answer {number} against itself: {told}")


def the_same_answer_is_the_same(subject: Specimen) -> None:
    """Two runs with equal records gave the same answer; with a changed one, another answer."""
    task = subject.task
    for number, case in enumerate(changed(subject)):
        before, after = rows(task, [case])[0]
        again = rows(task, [case])[0][0]
        expect(task.same(before, again), f"answer {number}, again: the same expected, got another")
        if after["changed"]:
            same = task.same(before, {**after, **{name: before[name] for name in CHANGES}})
            expect(not same, f"answer {number}, changed: another expected, got the same")


def changes_count_both_ways_alike(subject: Specimen) -> None:
    """With the stacks swapped, the numbers of units and changed units stay equal."""
    for number, case in enumerate(changed(subject)):
        swapped = Case(case.truth, case.after, case.before)
        ((_, one), (_, other)) = rows(subject.task, [case, swapped])
        for name in CHANGES:
            told = f"{name} {one[name]} expected, got {other[name]}"
            expect(one[name] == other[name], f"pair {number}, swapped: {told}")
        told = f"0 to {one['units']} expected, got {one['changed']}"
        expect(0 <= one["changed"] <= one["units"], f"pair {number}: changed units: {told}")


def stamps_tell_truths_apart(subject: Specimen) -> None:
    """A stamp is JSON: one of equal truths, two of different ones, None where there is none."""
    task = subject.task
    got = task.stamp(None)
    expect(got is None, f"stamp of no truth: None expected, got {got!r}")
    stamps: list[Any] = []
    for number, (truth, _) in enumerate(task.examples()):
        one, again = task.stamp(truth), task.stamp(deepcopy(truth))
        back = json.loads(json.dumps(one, allow_nan=False))
        told = f"{one!r} expected again and after JSON, got {again!r} and {back!r}"
        expect(one == again == back, f"stamp of example {number}: {told}")
        told = f"another than those of {stamps} expected, got {one!r}"
        expect(one not in stamps, f"stamp of example {number}: {told}")
        stamps.append(one)


def a_comparison_has_its_parts(subject: Specimen) -> None:
    """All parts, metrics, deltas and kinds of flips are there, and fit the records."""
    task, cases = subject.task, [*perfect(subject), *changed(subject)]
    found = _compared(task, cases)
    _has(found, PARTS, "a comparison")
    _has(found["flips"], ("count", "units", "rate", "ci95", *task.kinds), "flips")
    sides = [found[side]["metric"] for side in ("train", "deploy")]
    for part, what in (*zip(sides, ("train", "deploy"), strict=True), (found["delta"], "delta")):
        _has(part, task.metrics, what)
    for name in task.metrics:
        before, after = (side[name] for side in sides)
        _is(found["delta"][name]["value"], after - before, f"delta of {name}")
    records = [after for _, after in rows(task, cases)]
    count, units = (sum(record[name] for record in records) for name in CHANGES)
    flips, expected = found["flips"], {"count": count, "units": units, "rate": count / units}
    for name, value in expected.items():
        _is(flips[name], value, f"flips: {name}")


def a_comparison_is_json(subject: Specimen) -> None:
    """A comparison goes into JSON and back, with truth, without, and where nothing changed."""
    for what, cases in _sets(subject).items():
        found = _finite(_compared(subject.task, cases))
        try:
            back = json.loads(json.dumps(found, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise Failed(f"{what}: plain values expected, got {one_line(error)}") from error
        expect(plain(back) == plain(found), f"{what}: {found} expected after JSON, got {back}")


def reports_get_their_words(subject: Specimen) -> None:
    """Titles, lines and a flip's words are strings, as many as documented; severities are finite.

    The view gets what was read back from JSON, as in a report.
    """
    task = subject.task
    view = task.view()
    _texts(view.titles, 3, "titles")
    _texts(tuple(map(view.metric, task.metrics)), len(task.metrics), "metrics")
    _texts(tuple(map(view.kind, task.kinds)), len(task.kinds), "kinds of flips")
    for what, cases in _sets(subject).items():
        found = _finite(_compared(task, cases))
        summary = {"task": task.name, "unit": task.unit, "samples": len(cases), **found}
        lines = view.lines(_from_json(summary))
        expect(isinstance(lines, list), f"{what}: a list of lines expected, got {lines!r}")
        for line in lines:
            _texts(line, 2, f"{what}: a line")
        told = _from_json({**summary, "controls": {}})
        _texts(tuple(view.findings(told)), len(view.findings(told)), f"{what}: findings")
        for train, deploy in rows(task, cases):
            if deploy["changed"]:
                severity = task.severity(train, deploy)
                fits = isinstance(severity, float) and isfinite(severity)
                expect(fits, f"{what}: severity: a finite float expected, got {severity!r}")
                flip = _from_json(_finite(task.flip(train, deploy)))
                _has(flip, ("train", "deploy"), f"{what}: a flip")
                for more in ({}, {"picture": "flips/01-a.png"}):
                    _texts(view.words({**flip, **more}), 3, f"{what}: words of a flip")


def changes_can_be_drawn(subject: Specimen) -> str | None:
    """Panels of any change can be painted, with truth and without, and leave the images alone."""
    view = subject.task.view()
    if not view.drawn:
        return "the task does not draw"
    place = subject.placement
    image = np.full((place.height, place.width, 3), 128, np.uint8)
    for number, case in enumerate(changed(subject)):
        for truth in (None, subject.task.opened(case.truth)):
            images = image.copy(), image.copy()
            panels = view.panels(subject.task, images, case.before, case.after, truth)
            what = f"pair {number}, {'without' if truth is None else 'with'} truth"
            expect(panels, f"{what}: panels expected, got none")
            _Sketch({}).png(panels)
            same = all(np.array_equal(image, one) for one in images)
            expect(same, f"{what}: images as they were expected, got drawings on them")
    return None


def faults_have_a_verdict(subject: Specimen) -> None:
    """The same answer is masked; any row has the declared columns, with truth and without."""
    task, placement = subject.task, subject.placement
    size = (placement.height, placement.width) if hasattr(placement, "height") else None
    for truth in (subject.truth, None):
        opened = None if truth is None else task.opened(truth)
        case = task.Impact(task, task.Impact.Options(), subject.answer(), opened, size)
        same = case.row(Decoded(subject.answer()))
        expect(same["sdc"] is False, f"sdc of the same answer: False expected, got {same['sdc']!r}")
        found = [same, case.row(Decoded(subject.answer(1))), case.row(Decoded(None, Due.OUTPUT))]
        expect(found[2]["due"] is True, "due: True expected where the outputs have NaN")
        again = case.row(Decoded(subject.answer(1)))
        expect(plain(found[1]) == plain(again), "a fault again: the same row expected")
        for row in found:
            _fits(row, pa.schema(case.schema()))


class _Sketch(Painter):
    """Looks at every part that a painter uses, and paints nothing."""

    def _png(self, panels: Sequence[Panel], legend: Sequence[Key]) -> bytes:
        for panel in panels:
            expect(panel.title, "a title over each panel expected, got none")
        rectangles = [rectangle for panel in panels for rectangle in panel.rectangles]
        colors = [*(entry.color for entry in legend), *(one.color for one in rectangles)]
        for color in colors:
            fits = len(color) == 3 and all(0 <= value <= 255 for value in color)
            expect(fits, f"a color of three numbers, 0 to 255, expected, got {color}")
        for entry in legend:
            expect(entry.words, f"words for the color {entry.color} expected, got none")
        return b""

    _jpeg = _png

    def _gif(self, panels: Sequence[Panel], legend: Sequence[Key], each: int) -> bytes:
        return self._png(panels, legend)


def _sets(subject: Specimen) -> dict[str, list[Case]]:
    cases = changed(subject)
    return {
        "changed answers": [*perfect(subject), *cases],
        "no truth": [Case(None, case.before, case.after) for case in cases],
        "no change": perfect(subject),
        "the last example alone": perfect(subject)[-1:],
    }


def _compared(task: Task, cases: Sequence[Case]) -> Any:
    return task.compare(*scores(task, cases), Resamples(len(cases), number=RESAMPLES))


def _stored(task: Task, records: Sequence[Record]) -> list[Values]:
    """Write records as a run does, and read them."""
    named = [{"sample": str(i), "side": "deploy", "trial": 0, **r} for i, r in enumerate(records)]
    file, columns = io.BytesIO(), schema(task.columns)
    pq.write_table(pa.Table.from_pylist(named, columns), file)
    read: list[Values] = pq.read_table(io.BytesIO(file.getvalue())).to_pylist()
    return read


def _finite(value: Any) -> Any:
    """A comparison with None for what is not finite; other values stay, whatever they are."""
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _from_json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=float))


def _has(part: Record, names: Sequence[str], what: str) -> None:
    missing = [name for name in names if name not in part]
    told = f"{', '.join(names)} expected, got none of {', '.join(missing)}"
    expect(not missing, f"{what}: {told}")


def _is(got: Any, expected: Any, what: str) -> None:
    expect(close(got, expected), f"{what}: {expected} expected, got {got}")


def _texts(got: Any, number: int, what: str) -> None:
    fits = isinstance(got, tuple) and len(got) == number and all(isinstance(t, str) for t in got)
    expect(fits, f"{what}: a tuple of {number} strings expected, got {got!r}")


def _fits(row: Values, columns: pa.Schema) -> None:
    odd = sorted(set(columns.names) ^ row.keys())
    expect(not odd, f"a row of the columns expected, got more or fewer: {', '.join(odd)}")
    ordered = {name: row[name] for name in columns.names}
    try:
        (back,) = pa.Table.from_pylist([row], columns).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise Failed(f"a row that fits its columns expected, got {one_line(error)}") from error
    expect(repr(back) == repr(ordered), f"{ordered} expected after a table, got {back}")
