"""Runs every command that some pages show, and holds what it prints against what is shown.

python tools/readme.py           run the commands and write their output into the pages
python tools/readme.py --check   exit 1 if a command fails or prints something else

Numbers, spacing and absolute paths are not compared: latencies and run folders differ from run to
run.
A command on a card of tests/cards needs ../shared/data; without that folder it is left alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "conditions.md", ROOT / "docs" / "api.md")
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)
GATE_FAILED = 1
CARDS, DATA = "tests/cards/", ROOT.parent / "shared" / "data"


def output(command: str, kind: str) -> str:
    """Run one shell command or Python program in the checkout and return what it prints."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run = ["bash", "-c", command] if kind == "console" else [sys.executable, "-c", command]
    done = subprocess.run(
        run, cwd=ROOT, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, GATE_FAILED):
        sys.exit(f"{command}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def rerun(block: re.Match[str]) -> str:
    """Return a block with the output that its commands print now."""
    kind, body = block.groups()
    if CARDS in body and not DATA.is_dir():
        print(f"not run, {DATA} is not there: {body.splitlines()[0]}")
        return block.group()
    if kind == "python":
        program = body.partition("\n# prints\n")[0]
        printed = "".join(f"# {line}\n" for line in output(program, kind).splitlines())
        return f"```python\n{program}\n# prints\n{printed}```"
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", body, re.MULTILINE)
    return "```console\n" + "".join(f"$ {c}\n{output(c, kind)}\n" for c in commands) + "```"


def masked(text: str) -> str:
    """Leave only what is the same from run to run."""
    text = re.sub(r"(?<= )/\S+", "/", text)  # a place on the machine
    text = re.sub(r"[-+]?\d[\d.,:e-]*", "#", text)
    return re.sub(r"[\s─]+", " ", text)


def main() -> int:
    """Rewrite or check every page."""
    return max(map(page, PAGES))


def page(path: Path) -> int:
    """Rewrite or check one page."""
    old = path.read_text()
    new = BLOCK.sub(rerun, old)
    if "--check" not in sys.argv:
        path.write_text(new)
        return 0
    if masked(old) == masked(new):
        return 0
    for shown, got in zip(old.splitlines(), new.splitlines(), strict=False):
        if masked(shown) != masked(got):
            print(f"{path.name} shows: {shown}\nit prints: {got}", file=sys.stderr)
            break
    return 1


if __name__ == "__main__":
    sys.exit(main())
