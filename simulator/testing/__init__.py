"""The conformance suite: plain functions that any backend of the contract has to pass.

``simulate backends prove NAME`` runs it, pytest runs it over every entry point, and so can a
third party, with `prove`. What each check demands, and why, is in ``docs/conformance.md``.
"""

from simulator.testing.prove import (
    Check,
    Finding,
    Mark,
    checks_of,
    prove,
    proved_stages,
    registered,
)
from simulator.testing.subject import Failed, Subject
from simulator.testing.workshop import Workshop

__all__ = [
    "Check",
    "Failed",
    "Finding",
    "Mark",
    "Subject",
    "Workshop",
    "checks_of",
    "prove",
    "proved_stages",
    "registered",
]
