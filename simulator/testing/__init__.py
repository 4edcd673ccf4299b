"""The conformance suite: checks that every backend must pass.

``simulate backends prove NAME`` runs it, pytest runs it for every entry point, and other packages
can call `prove`. ``docs/conformance.md`` lists the checks; the docstring of each says what it
demands.
"""

from simulator.testing.prove import Finding, checks_of, prove, proved_stages, registered
from simulator.testing.subject import Check, Failed, Subject
from simulator.testing.suite import Mark
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
