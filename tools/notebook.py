"""Runs the notebook of the documents, and holds what it prints against what it shows.

python tools/notebook.py           run it and write its outputs into it
python tools/notebook.py --check   exit 1 if a cell fails or prints something else

Numbers with a decimal point and names of run folders differ from run to run and are not compared.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "docs" / "first-steps.ipynb"
VARIES = re.compile(r"\d+\.\d+|\d{8}-\d{6}")


def ran(notebook: Any) -> Any:
    """Run a notebook in an empty folder, as the Python that runs this."""
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        done = NotebookClient(notebook, timeout=None, resources=resources).execute()
    for cell in done.cells:
        cell.metadata.pop("execution", None)  # when it ran
    return done


def shown(notebook: Any) -> str:
    """Return what the cells print, without what varies."""
    said = [cell.get("outputs") for cell in notebook.cells]
    return VARIES.sub("#", json.dumps(said, indent=1, sort_keys=True, ensure_ascii=False))


def main() -> int:
    """Rewrite or check the notebook."""
    old = nbformat.read(NOTEBOOK, as_version=4)
    before = shown(old)
    new = ran(old)
    if "--check" not in sys.argv:
        nbformat.write(new, NOTEBOOK)
        return 0
    if before != shown(new):
        print(f"the notebook shows:\n{before}\nit prints:\n{shown(new)}", file=sys.stderr)
    return int(before != shown(new))


if __name__ == "__main__":
    sys.exit(main())
