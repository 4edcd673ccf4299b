"""Write the schemas in ``profiles/``, by which editors complete and check our documents.

  python tools/schema.py           write them
  python tools/schema.py --check   exit 1 if one of them is not current

Profiles have one for each modality: ``schema.json`` is that of images, ``text.schema.json`` that
of texts. What is in them: ``profile_schema.py`` for profiles, and
``document_schemas.py`` for model cards, data cards, audits and suites.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from document_schemas import schemas
from profile_schema import document_schema

from simulator.profile.modality import SCHEMAS
from simulator.profile.modeline import schema_name

FOLDER = Path(__file__).parent.parent / "profiles"
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
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    wrong = 0
    ours = (kind for kind in SCHEMAS.names if SCHEMAS.is_ours(kind))
    profiles = {schema_name(kind): document_schema(kind) for kind in ours}
    for name, schema in {**profiles, **schemas()}.items():
        target, text = FOLDER / name, text_of(schema) + "\n"
        if not arguments:
            target.write_text(text, encoding="utf-8")
        elif not target.is_file() or target.read_text(encoding="utf-8") != text:
            print(f"{target} is not current; run: python tools/schema.py", file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
