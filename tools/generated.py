"""Files of a folder that a tool makes: write them, or hold them against what it would write."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def main(arguments: list[str], texts: Mapping[Path, str], folder: Path, ending: str) -> int:
    """Write the files, and remove others of the ending; with ``--check`` compare, and write none.

    Args:
        arguments: of the command line.
        texts: what each file says.
        folder: where they are; the tool owns all files of the ending there.
        ending: of their names, with the dot.

    Returns:
        The exit code: 1 where a file is not current, 2 for other arguments.
    """
    tool = Path(sys.argv[0]).name
    there = set(folder.glob(f"*{ending}"))
    left = there - set(texts)
    if arguments == ["--check"]:
        wrong = [p for p, text in texts.items() if p not in there or p.read_text("utf-8") != text]
        for place in (*wrong, *left):
            print(f"{place} is not current; run: python tools/{tool}", file=sys.stderr)
        return 1 if wrong or left else 0
    if arguments:
        print(f"usage: python tools/{tool} [--check]", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    for place in left:
        place.unlink()
    for place, text in texts.items():
        place.write_text(text, "utf-8")
    return 0
