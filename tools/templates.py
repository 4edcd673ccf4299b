"""Write ``simulator/report/compiled/``: the templates of the report as jinja2 compiles them.

python tools/templates.py           write them
python tools/templates.py --check   exit 1 if one of them is not current
"""

from __future__ import annotations

import sys
from pathlib import Path

from simulator.contract.library import installed_version
from simulator.report import rendering

FOLDER = Path(rendering.__file__).parent / "compiled"
HEAD = '''"""Written by tools/templates.py of {name}: do not edit."""

VERSION = "{version}"

{code}'''


def compiled() -> dict[Path, str]:
    """Return the content of every file."""
    found = {FOLDER / "__init__.py": '"""Templates as jinja2 compiles them."""\n'}
    environment = rendering.environment()
    for place in sorted((FOLDER.parent / "templates").glob("*.j2")):
        name, source = place.name, rendering.content(place.name)
        code = environment.compile(source, name, name, raw=True, defer_init=True).rstrip() + "\n"
        words = HEAD.format(name=name, version=installed_version("jinja2"), code=code)
        found[FOLDER / f"{rendering.module_name(name)}.py"] = words
    return found


def main(arguments: list[str]) -> int:
    texts = compiled()
    if arguments == ["--check"]:
        there = set(FOLDER.glob("*.py"))
        wrong = [p for p, text in texts.items() if p not in there or p.read_text("utf-8") != text]
        wrong += there - set(texts)
        for place in wrong:
            print(f"{place} is not current; run: python tools/templates.py", file=sys.stderr)
        return 1 if wrong else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    FOLDER.mkdir(exist_ok=True)
    for place, text in texts.items():
        place.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
