"""Write ``profiles/schema.json``, by which editors complete and check profile documents.

  python tools/schema.py           write it
  python tools/schema.py --check   exit 1 if it is not current

What is in it: :mod:`simulator.profile.json_schema`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from simulator.profile.json_schema import document_schema

TARGET = Path(__file__).parent.parent / "profiles" / "schema.json"


WIDTH = 100


def text_of(schema: object, depth: int = 0) -> str:
    """JSON in which whatever fits a line stands on one."""
    line = json.dumps(schema, ensure_ascii=False)
    if len(line) + depth <= WIDTH or not isinstance(schema, (dict, list)):
        return line
    opening, closing = "{}" if isinstance(schema, dict) else "[]"
    inner = f"\n{' ' * (depth + 1)}"
    if isinstance(schema, dict):
        pairs = schema.items()
        parts = [f"{json.dumps(key)}: {text_of(value, depth + 1)}" for key, value in pairs]
    else:
        parts = [text_of(value, depth + 1) for value in schema]
    return f"{opening}{inner}{f',{inner}'.join(parts)}\n{' ' * depth}{closing}"


def main(arguments: list[str]) -> int:
    text = text_of(document_schema()) + "\n"
    if arguments == ["--check"]:
        current = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text
        if not current:
            print(f"{TARGET} is not current; run: python tools/schema.py", file=sys.stderr)
        return 0 if current else 1
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
