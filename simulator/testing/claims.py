"""Offers must be exact: all values that an offer supports work, and all others are refused."""

from __future__ import annotations

from simulator.contract import Offer
from simulator.errors import MissingLibrary, ProcessWideError, Unsupported, UserError
from simulator.profile.implementations import implementation as choose
from simulator.testing.subject import Failed, Subject, expect, words
from simulator.testing.values import CannotMake, one_line, outside
from simulator.testing.work import first_job


def every_admitted_value_works(subject: Subject) -> str | None:
    """Each value of each field builds an implementation that does its first job.

    In a list, a name may need the first name beside it; alone it is then refused in one line.
    """
    remarks = []
    for alternatives in subject.variants():
        alone, *together = alternatives
        told = words(alone, subject) or "the first values"
        try:
            _works(alone, together)
        except (MissingLibrary, CannotMake, ProcessWideError) as error:
            if alone is subject:
                raise
            remarks.append(f"{told} cannot run here: {one_line(error)}")
        except Failed as error:
            raise Failed(f"{told}: {error}") from error
        except Exception as error:
            raise Failed(f"{told} is offered but does not work: {one_line(error)}") from error
    return "; ".join(remarks) or None


def what_is_not_admitted_is_refused(subject: Subject) -> None:
    """A profile finds this offer by its values, and not with other values or fields."""
    options = dict(subject.options)
    expect(
        _chosen(subject, options) is subject.offer,
        f"{words(subject)} is offered, but a profile with these values gets another offer",
    )
    for name, admits in subject.offer.options.items():
        wrong = outside(admits)
        got = _chosen(subject, options | {name: wrong})
        expect(got is not subject.offer, f"{name}={wrong!r} is not refused")
    got = _chosen(subject, options | {"no_such_field": 1})
    expect(got is not subject.offer, "a field that no offer has is not refused")


def _works(alone: Subject, together: list[Subject]) -> None:
    try:
        first_job(alone)
    except Unsupported:
        if not together:
            raise
        first_job(together[0])


def _chosen(subject: Subject, fields: dict[str, object]) -> Offer | None:
    try:
        return choose(subject.offer.stage, subject.backend, fields).offer
    except UserError:
        return None
