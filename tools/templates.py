"""Write ``simulator/report/compiled/``: the templates of the report as jinja2 compiles them.

python tools/templates.py           write them
python tools/templates.py --check   exit 1 if one of them is not current
"""

from __future__ import annotations

import sys
from pathlib import Path

import generated

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


if __name__ == "__main__":
    sys.exit(generated.main(sys.argv[1:], compiled(), FOLDER, ".py"))
