"""Commands in processes of their own that cost no start of Python: forked from one that has it all.

A process of xdist starts one server at its first command. The server imports what most commands
need and forks a child for each: another process with the environment and the folder of the test,
which a signal can kill and whose exit code is its own. What is about the start itself, about what
Python reads from its environment, or about an order that differs from start to start (all children
of a server hash alike), starts ``python -m simulator.cli``. Commands are given one after another.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

LONGEST = 600
"""Seconds that a command may take before an alarm ends it."""
TICK = 0.01
"""Seconds between two looks at whether a command has ended."""
ENVIRONMENT = dict(os.environ)
"""What libraries see while the server imports them, whichever test comes first."""


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
        said = server.stdout.readline()
        assert said, f"the server of tests/warm.py ended with {server.wait()}; see its stderr"
        printed = out.read_text(errors="replace"), err.read_text(errors="replace")
    return subprocess.CompletedProcess(given, int(said), *printed)


def ended(how, folder, pattern, count, *arguments):
    """Run a command that gets a signal in its midst: at the same place on any machine.

    Args:
        how: the signal, at the first step after so many files are there.
        folder: where the files appear.
        pattern: what they are called.
        count: how many of them there must be.
        arguments: of ``simulate``.
    """
    return command(*arguments, ends=(int(how), folder, pattern, count))


@cache
def _server():
    """It ends when this process does, and with it the pipe that it reads."""
    return subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent,
        env=ENVIRONMENT,
    )


def serve():
    """Fork a child for every line; write how each of them ended."""
    import onnxruntime  # noqa: F401
    import PIL.Image  # noqa: F401

    from simulator import cli, registry
    from simulator.cli import experiment, progress, resume  # noqa: F401
    from simulator.experiments.compare import run  # noqa: F401
    from simulator.report import page, terminal  # noqa: F401
    from simulator.report.sections.section import PARTS

    for name in registry.BACKENDS.points:
        registry.backend(name)
    list(PARTS)
    gc.freeze()  # else a child copies every page that its collector looks at
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and so the pipe
    for line in sys.stdin:
        number = os.fork()
        if number == 0:
            os._exit(_code(cli.main, **json.loads(line)))
        print(_ended(number), flush=True)


def _ended(number):
    """Wait for a child, and return its exit code; kill it when nobody waits for that any more."""
    while not (found := os.waitpid(number, os.WNOHANG))[0]:
        if select.select([sys.stdin], [], [], TICK)[0]:
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)
            sys.exit()
    return os.waitstatus_to_exitcode(found[1])


def _code(main, **asked):
    """Run a command; return its exit code, as Python would end with it.

    What ONNX Runtime began in the server it would end here, so Python may not end by itself.
    """
    try:
        code = _run(main, **asked)
    except SystemExit as left:
        if isinstance(left.code, str):
            print(left.code, file=sys.stderr)
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _run(main, arguments, ends, out, err, folder, environment):
    for name, number in ((os.devnull, 0), (out, 1), (err, 2)):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(LONGEST)
    if ends:
        _end(int(ends[0]), Path(ends[1]), ends[2], int(ends[3]))
    return main(arguments)


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
