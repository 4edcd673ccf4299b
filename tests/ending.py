"""A command that is ended in its midst by a signal: always at the same place, on any machine."""

from __future__ import annotations

from warm import command


def ended(how, folder, pattern, count, *arguments):
    """Run a command that gets a signal at the first step after so many files are there.

    Args:
        how: the signal.
        folder: where the files appear.
        pattern: what they are called.
        count: how many of them there must be.
        arguments: of ``simulate``.
    """
    return command(*arguments, ends=(int(how), folder, pattern, count))
