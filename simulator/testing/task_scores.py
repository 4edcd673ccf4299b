"""Checks of scores: perfect and worthless answers, missing annotations, order of samples."""

from __future__ import annotations

from math import nan

import numpy as np

from simulator.errors import DataError
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.specimen import Specimen
from simulator.testing.subject import Failed, expect
from simulator.testing.task_cases import (
    Case,
    changed,
    close,
    expect_metrics,
    metrics,
    perfect,
    repeated,
    rows,
    scores,
    worthless,
)
from simulator.testing.values import one_line

RESAMPLES = 8


def the_perfect_scores_1(subject: Specimen) -> None:
    """Perfect answers to all examples score 1 in every metric."""
    expect_metrics(subject.task, perfect(subject), [1.0], "all examples, answered perfectly")


def the_worthless_scores_0(subject: Specimen) -> None:
    """Empty, wrong and boundless answers crash nothing and score 0, alone and together."""
    cases = worthless(subject)
    expect(cases, "the specimen has no worthless answer to try")
    for number, case in enumerate(cases):
        what = f"worthless answer {number}, alone"
        expect_metrics(subject.task, [case], [0.0, None], what)
    expect_metrics(subject.task, cases, [0.0], "all worthless answers")


def what_comes_too_late_is_worthless(subject: Specimen) -> None:
    """Perfect answers that came too late score like worthless ones."""
    task = subject.task
    cases = [case for case in perfect(subject) if metrics(task, [case])[task.headline] is not None]
    late = [task.late(after) for _, after in rows(task, cases)]
    found = task.score(late, [case.truth for case in cases]).metrics
    for name, expected in metrics(task, worthless(subject)).items():
        told = f"{name} {expected} expected, got {found[name]}"
        expect(close(found[name], expected), f"all examples, answered too late: {told}")


def what_is_absent_is_left_out(subject: Specimen) -> None:
    """An example alone scores what all do, or None: a class that is absent is not missed."""
    cases = perfect(subject)
    together = metrics(subject.task, cases)
    for number, case in enumerate(cases):
        for name, value in metrics(subject.task, [case]).items():
            fits = value is None or close(value, together[name])
            told = f"{name} None or {together[name]}, as of all examples, expected, got {value}"
            expect(fits, f"example {number}, alone and answered perfectly: {told}")


def nothing_to_find_changes_nothing(subject: Specimen) -> str | None:
    """Samples with nothing to judge, answered perfectly, change no metric of others."""
    bare: list[Case] = []
    others: list[Case] = []
    for case in perfect(subject):
        alone = metrics(subject.task, [case]).values()
        (bare if all(value is None for value in alone) else others).append(case)
    if not bare:
        return "every example of the task has something to judge"
    others += worthless(subject)
    without, beside = metrics(subject.task, others), metrics(subject.task, [*others, *bare])
    for name, value in without.items():
        told = f"{name} {value} expected, as without them, got {beside[name]}"
        expect(close(value, beside[name]), f"beside {len(bare)} samples of nothing: {told}")
    return None


def the_order_does_not_matter(subject: Specimen) -> None:
    """Another order of samples changes no metric, count or rate; intervals see other draws."""
    task, cases = subject.task, [*perfect(subject), *changed(subject)]
    n = len(cases)
    order = np.arange(n)[::-1]
    draws = Resamples(n, number=RESAMPLES)
    counts = np.concatenate(list(draws))
    found = []
    for some, drawn in (cases, counts), ([cases[i] for i in order], counts[:, order]):
        train, deploy = scores(task, some)
        flips = task.compare(train, deploy, draws)["flips"]
        told = {name: value for name, value in flips.items() if "ci95" not in name}
        figure = deploy.figure(drawn).tolist() if deploy.figure else None
        found.append({**deploy.metrics, **told, "resamples of the headline": figure})
    for name, value in found[0].items():
        other = found[1].get(name)
        expect(close(value, other), f"samples in reverse: {name} {value} expected, got {other}")


def a_resample_is_a_data_set(subject: Specimen) -> str | None:
    """The headline of a resample is the score of a data set with each sample that often.

    Each sample is drawn at least once, in time or too late, because each task decides how to count
    a class that was not drawn.
    """
    task, cases = subject.task, [*perfect(subject), *changed(subject)]
    n = len(cases)
    records, truths = [after for _, after in rows(task, cases)], [case.truth for case in cases] * 2
    records += [task.late(record) for record in records]
    figure = task.score(records, truths).figure
    if figure is None:
        raise Failed("all samples are annotated: a figure to resample expected, got none")
    draws = 1 + np.concatenate(list(Resamples(2 * n, number=RESAMPLES)))
    in_time = np.concatenate([np.ones((1, n), np.int64), 1 - np.eye(n, dtype=np.int64)])
    counts = np.concatenate([np.concatenate([in_time, 1 - in_time], axis=1), draws])
    for drawn, got in zip(counts, figure(counts).tolist(), strict=True):
        value = task.score(*repeated(records, truths, drawn)).metrics[task.headline]
        expected = nan if value is None else value
        what = f"samples drawn {' '.join(map(str, drawn))} times"
        expect(close(expected, got), f"{what}: {task.headline} {expected} expected, got {got}")
    return None


def without_truth_flips_still_count(subject: Specimen) -> None:
    """Where nothing is annotated, metrics and deltas are None, and changes still count."""
    task, cases = subject.task, changed(subject)
    bare = [Case(None, case.before, case.after) for case in cases]
    draws = Resamples(len(cases), number=RESAMPLES)
    known, unknown = (task.compare(*scores(task, some), draws) for some in (cases, bare))
    for name in ("count", "units", "rate"):
        told = f"{known['flips'][name]} expected, as with it, got {unknown['flips'][name]}"
        same = close(known["flips"][name], unknown["flips"][name])
        expect(same, f"without truth: {name} of flips: {told}")
    for name in task.metrics:
        for part in (unknown["train"]["metric"], unknown["deploy"]["metric"], unknown["delta"]):
            expect(part[name] is None, f"without truth: {name} None expected, got {part[name]}")
    mixed = [*cases, *bare]
    for some in (cases, bare, mixed):
        labelled = sum(case.truth is not None for case in some)
        got = scores(task, some)[1].labelled
        expect(got == labelled, f"{len(some)} samples: {labelled} labelled expected, got {got}")


def no_sample_is_a_data_error(subject: Specimen) -> None:
    """Stacks that no sample went through can be scored; comparing them is a DataError."""
    nothing = subject.task.score([], [])
    for name in subject.task.metrics:
        got = nothing.metrics[name]
        expect(got is None, f"no sample: {name} None expected, got {got}")
    try:
        subject.task.compare(nothing, nothing, Resamples(0, number=RESAMPLES))
    except DataError:
        return
    except Exception as error:
        raise Failed(f"no sample: a DataError expected, got {one_line(error)}") from error
    raise Failed("no sample: a DataError expected, got a comparison")
