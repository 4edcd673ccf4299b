"""What a score has to be: from perfect answers, from worthless ones, of any images in any order."""

from __future__ import annotations

from math import nan

import numpy as np

from simulator.errors import DataError
from simulator.statistics.bootstrap import Resamples
from simulator.testing.subject import Failed, expect, one_line
from simulator.testing.task_subject import (
    Case,
    TaskSubject,
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

RESAMPLES = 8


def the_perfect_scores_1(subject: TaskSubject) -> None:
    """Perfect answers to all examples score 1 in every metric."""
    expect_metrics(subject.task, perfect(subject), [1.0], "all examples, answered perfectly")


def the_worthless_scores_0(subject: TaskSubject) -> None:
    """Empty, wrong and boundless answers crash nothing and score 0, alone and together."""
    cases = worthless(subject)
    expect(cases, "the subject has no worthless answer to try")
    for number, case in enumerate(cases):
        what = f"worthless answer {number}, alone"
        expect_metrics(subject.task, [case], [0.0, None], what)
    expect_metrics(subject.task, cases, [0.0], "all worthless answers")


def what_comes_too_late_is_worthless(subject: TaskSubject) -> None:
    """Perfect answers that came too late score as worthless ones do."""
    task = subject.task
    cases = [case for case in perfect(subject) if metrics(task, [case])[task.headline] is not None]
    late = [task.late(after) for _, after in rows(task, cases)]
    found = task.score(late, [case.truth for case in cases]).metrics
    for name, expected in metrics(task, worthless(subject)).items():
        told = f"{name} {expected} expected, got {found[name]}"
        expect(close(found[name], expected), f"all examples, answered too late: {told}")


def what_is_absent_is_left_out(subject: TaskSubject) -> None:
    """An example alone scores as all do, or None: a class that it lacks is no class missed."""
    cases = perfect(subject)
    together = metrics(subject.task, cases)
    for number, case in enumerate(cases):
        for name, value in metrics(subject.task, [case]).items():
            fits = value is None or close(value, together[name])
            told = f"{name} None or {together[name]}, as of all examples, expected, got {value}"
            expect(fits, f"example {number}, alone and answered perfectly: {told}")


def nothing_to_find_changes_nothing(subject: TaskSubject) -> str | None:
    """Images in which nothing is to be judged, answered perfectly, change no metric of others."""
    bare: list[Case] = []
    others: list[Case] = []
    for case in perfect(subject):
        alone = metrics(subject.task, [case]).values()
        (bare if all(value is None for value in alone) else others).append(case)
    if not bare:
        return "no example of the task is without anything to judge"
    others += worthless(subject)
    without, beside = metrics(subject.task, others), metrics(subject.task, [*others, *bare])
    for name, value in without.items():
        told = f"{name} {value} expected, as without them, got {beside[name]}"
        expect(close(value, beside[name]), f"beside {len(bare)} images of nothing: {told}")
    return None


def the_order_does_not_matter(subject: TaskSubject) -> None:
    """Permuted images change no metric, count or rate; intervals see the draws permuted."""
    task, cases = subject.task, [*perfect(subject), *changed(subject)]
    n = len(cases)
    order = np.arange(n)[::-1]
    draws = Resamples(n, number=RESAMPLES)
    counts = np.concatenate(list(draws))
    found = []
    for some, drawn in (cases, counts), ([cases[i] for i in order], counts[:, order]):
        train, deploy = scores(task, some)
        flips = task.compare(train, deploy, draws)["flips"]
        told = {name: value for name, value in flips.items() if not name.startswith("ci95")}
        figure = deploy.figure(drawn).tolist() if deploy.figure else None
        found.append({**deploy.metrics, **told, "resamples of the headline": figure})
    for name, value in found[0].items():
        other = found[1].get(name)
        expect(close(value, other), f"images in reverse: {name} {value} expected, got {other}")


def a_resample_is_a_data_set(subject: TaskSubject) -> str | None:
    """The headline of a resample is what the images score when each is there so often.

    Each is there at least once, in time or too late: what becomes of a class that was not drawn is
    for the task to say.
    """
    task, cases = subject.task, [*perfect(subject), *changed(subject)]
    n = len(cases)
    records, truths = [after for _, after in rows(task, cases)], [case.truth for case in cases] * 2
    records += [task.late(record) for record in records]
    figure = task.score(records, truths).figure
    if figure is None:
        raise Failed("all images are annotated, and there is no figure to be resampled")
    draws = 1 + np.concatenate(list(Resamples(2 * n, number=RESAMPLES)))
    in_time = np.concatenate([np.ones((1, n), np.int64), 1 - np.eye(n, dtype=np.int64)])
    counts = np.concatenate([np.concatenate([in_time, 1 - in_time], axis=1), draws])
    for drawn, got in zip(counts, figure(counts).tolist(), strict=True):
        value = task.score(*repeated(records, truths, drawn)).metrics[task.headline]
        expected = nan if value is None else value
        what = f"images drawn {' '.join(map(str, drawn))} times"
        expect(close(expected, got), f"{what}: {task.headline} {expected} expected, got {got}")
    return None


def without_truth_flips_still_count(subject: TaskSubject) -> None:
    """Where nothing is annotated, metrics and deltas are None and changes are counted as ever."""
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
        expect(got == labelled, f"{len(some)} images: {labelled} labelled expected, got {got}")


def no_image_is_a_data_error(subject: TaskSubject) -> None:
    """Stacks that no image went through can be scored, and comparing them is a DataError."""
    nothing = subject.task.score([], [])
    for name in subject.task.metrics:
        got = nothing.metrics[name]
        expect(got is None, f"no image: {name} None expected, got {got}")
    try:
        subject.task.compare(nothing, nothing, Resamples(0, number=RESAMPLES))
    except DataError:
        return
    except Exception as error:
        raise Failed(f"no image: a DataError expected, got {one_line(error)}") from error
    raise Failed("no image: a DataError expected, got a comparison")
