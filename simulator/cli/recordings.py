"""Recordings of a real device: what the board needs to make one.

simulate recordings capture-kit [--model CARD]   write capture.py, which needs numpy only
simulate recordings probes DIR [--model CARD]    write images that tell stacks apart, and how to use
                                                 them on a board
"""

from __future__ import annotations

import argparse
from pathlib import Path

from simulator import cli


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    kit = verbs.add_parser("capture-kit", help="write the script that records on a board")
    kit.set_defaults(run=_capture_kit)
    kit.add_argument("--out", default="capture.py", metavar="FILE", help="default: capture.py")
    kit.add_argument("--model", metavar="CARD", help="the model card: whose stack is recorded")
    probes = verbs.add_parser("probes", help="write images that tell stacks apart")
    probes.set_defaults(run=_probes)
    probes.add_argument("folder", metavar="DIR", help="a new folder")
    probes.add_argument("--model", metavar="CARD", help="the model card: whose stack is recorded")


def _capture_kit(options: argparse.Namespace) -> int:
    from simulator.identify import kit

    path = Path(options.out)
    kit.write_capture(path, options.model)
    print(f"{path}: copy it to the board; its first lines say how it is called")
    return cli.PASS


def _probes(options: argparse.Namespace) -> int:
    from simulator.identify import kit

    folder = Path(options.folder)
    count = kit.write_probes(folder, options.model)
    print(f"{folder}: {count} probe images; read {folder / 'README.md'} and run them on the board")
    return cli.PASS
