"""The server of tests/warm.py leaves no process behind, and its children end as Python would."""

import os
import subprocess
import sys

import pytest
import warm


def test_a_command_ends_with_the_tests(monkeypatch):
    reading, writing = os.pipe()
    child = subprocess.Popen(["sleep", "600"])
    os.close(writing)  # as when a process of xdist dies

    with os.fdopen(reading) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        with pytest.raises(SystemExit):
            warm._ended(child.pid)

    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, os.WNOHANG)


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (SystemExit, 0, ""),
        (SystemExit(3), 3, ""),
        (SystemExit("why"), 1, "why\n"),
        (ValueError("what"), 1, "ValueError: what\n"),
    ],
)
def test_a_command_that_leaves_has_the_exit_code_of_python(
    error, code, printed, monkeypatch, capfd
):
    def leaves(main):
        raise error

    monkeypatch.setattr(warm, "_run", leaves)
    assert warm._code(None) == code
    assert capfd.readouterr().err.endswith(printed)
