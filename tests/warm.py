"""Commands in processes of their own that cost no start of Python: forked from one that has it all.

A process of xdist starts one server at its first command. The server imports what most commands
need and forks a child for each: another process with the environment and the folder of the test,
which a signal can kill and whose exit code is its own. What is about the start itself, or about
what Python reads from its environment, starts ``python -m simulator.cli``.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

LONGEST = 600
"""Seconds that a command may take before an alarm ends it."""


def command(*arguments, ends=()):
    """Run a command of ``simulate``; return its exit code and what it printed.

    Args:
        arguments: of ``simulate``.
        ends: the signal that it gets, and the folder, the pattern and the number of files there
            after which it gets it.
    """
    server = _server()
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        given = [str(word) for word in arguments]
        asked = {
            "arguments": given, "ends": [str(one) for one in ends], "out": str(out),
            "err": str(err), "folder": os.getcwd(), "environment": dict(os.environ),
        }  # fmt: skip
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        printed = out.read_text(errors="replace"), err.read_text(errors="replace")
    return subprocess.CompletedProcess(given, code, *printed)


@cache
def _server():
    """It ends when this process does, and with it the pipe that it reads."""
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def serve():
    """Fork a child for every line; write how each of them ended."""
    import onnxruntime  # noqa: F401
    import PIL.Image  # noqa: F401
    import plotly.graph_objects  # noqa: F401

    from simulator import cli, registry
    from simulator.cli import progress, resume, run  # noqa: F401
    from simulator.experiments import compare  # noqa: F401
    from simulator.report import page, terminal  # noqa: F401

    for name in registry.entry_points():
        registry.backend(name)
    gc.freeze()  # else a child copies every page that its collector looks at
    for line in sys.stdin:
        number = os.fork()
        if number == 0:
            code = _run(cli.main, **json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # ONNX Runtime would end threads here that it began there
        print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), flush=True)


def _run(main, arguments, ends, out, err, folder, environment):
    for name, number in ((os.devnull, 0), (out, 1), (err, 2)):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell's child is deaf
    signal.alarm(LONGEST)
    if ends:
        _end(int(ends[0]), Path(ends[1]), ends[2], int(ends[3]))
    try:
        return main(arguments)
    except SystemExit as left:
        return left.code


def _end(number, folder, pattern, count):
    """Send this process a signal at the first step after so many files are there."""
    from simulator.cli.progress import Bar

    def after(tell):
        def told(*words):
            tell(*words)
            if len(list(folder.glob(pattern))) >= count:
                os.kill(os.getpid(), number)

        return told

    Bar.say, Bar.advance = after(Bar.say), after(Bar.advance)


if __name__ == "__main__":
    serve()
