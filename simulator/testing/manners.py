"""Side effects: checks that inputs, earlier results and other instances do not change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.contract import Array
from simulator.testing.subject import Subject, expect
from simulator.testing.work import Job, Running, digest, work, working


def inputs_are_left_alone(subject: Subject) -> None:
    """A call does not write to its input."""
    at = work(subject)
    with at.open() as made:
        for job in at.jobs():
            before = digest(job)
            at.do(made, job)
            expect(digest(job) == before, "the input was written to")


def outputs_are_kept(subject: Subject) -> None:
    """A later call does not change an earlier result."""
    at = work(subject)
    with at.open() as made:
        first, *others = at.jobs()
        kept = at.fresh(made, first)
        before = digest(kept)
        for job in others:
            at.fresh(made, job)
        expect(digest(kept) == before, "a result changed when the next input was processed")


def any_strides_will_do(subject: Subject) -> None:
    """Transposed, reversed, sliced and read-only inputs give what a plain copy of them gives."""
    at = work(subject)
    with at.open() as made:
        job = at.jobs()[0]
        want = digest(at.fresh(made, job))
        for how, laid_out in _layouts(job):
            got = digest(at.do(made, laid_out))
            expect(got == want, f"a {how} input gives another result than its plain copy")


def instances_do_not_mix(subject: Subject) -> None:
    """Opening, using and closing another instance changes nothing; no state is shared."""
    at = work(subject)
    other = work([subject, *working(subject)][-1])
    if isinstance(other, Running):
        other = Running(subject)
        other.model = "other"
    job = at.jobs()[0]
    with at.open() as made:
        want = digest(at.fresh(made, job))
        with other.open() as second:
            other.fresh(second, other.jobs()[1])
            got = digest(at.fresh(made, job))
            expect(got == want, "the result changed when another instance was opened and used")
        got = digest(at.fresh(made, job))
        expect(got == want, "the result changed when another instance was closed")


def _layouts(job: Job) -> Iterator[tuple[str, Job]]:
    yield "transposed", tuple(np.array(a.T, order="C").T for a in job)
    yield "reversed", tuple(np.ascontiguousarray(a[..., ::-1])[..., ::-1] for a in job)
    yield "sliced", tuple(_sliced(a) for a in job)
    frozen = tuple(np.array(a) for a in job)
    for array in frozen:
        array.flags.writeable = False
    yield "read-only", frozen


def _sliced(array: Array) -> Array:
    """The same values, every second of a larger array along each axis."""
    larger = np.zeros([2 * n for n in array.shape], array.dtype)
    view = larger[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view
