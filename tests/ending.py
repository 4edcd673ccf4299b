"""A command that is ended in its midst by a signal: always at the same place, on any machine."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, signal, sys
from pathlib import Path
from simulator import cli
from simulator.cli.progress import Bar

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell's child is deaf
number, folder, pattern, count, *arguments = sys.argv[1:]


def ends(tell):
    def told(*words):
        tell(*words)
        if len(list(Path(folder).glob(pattern))) >= int(count):
            os.kill(os.getpid(), int(number))

    return told


Bar.say, Bar.advance = ends(Bar.say), ends(Bar.advance)
sys.exit(cli.main(arguments))
"""


def ended(how, folder, pattern, count, *arguments):
    """Run a command that gets a signal at the first step after so many files are there.

    Args:
        how: the signal.
        folder: where the files appear.
        pattern: what they are called.
        count: how many of them there must be.
        arguments: of ``simulate``.
    """
    given = [str(word) for word in (int(how), folder, pattern, count, *arguments)]
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *given], capture_output=True, text=True, timeout=600
    )
