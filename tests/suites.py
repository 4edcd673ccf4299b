"""What tests of the suites of checks share: what failed, and that a fault trips one check alone."""

from simulator.testing import Mark


def failed(found):
    """The remarks of the checks that failed, by name."""
    return {one.check: one.remark for one in found if one.mark is Mark.FAILED}


def passes(found, suite=None):
    """Every check passes; with *suite* they are its own, all of them."""
    assert failed(found) == {}
    assert suite is None or [one.check for one in found] == suite.names


def trips(found, check):
    """Exactly one check fails, in one line that says what was expected."""
    problems = failed(found)

    assert set(problems) == {check}, problems
    assert "expected" in problems[check]
    assert "\n" not in problems[check]
