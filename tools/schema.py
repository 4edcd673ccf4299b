"""Write ``profiles/schema.json``, by which editors complete and check profile documents.

  python tools/schema.py           write it
  python tools/schema.py --check   exit 1 if it is not current

A document is not yet a profile: with ``extends`` it may leave out whatever it inherits, take a
field away with ``null``, and ``resize`` may be one of the paper's short names.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from simulator.profile.paper_names import RESIZE
from simulator.profile.schema import ProfileSpec

TARGET = Path(__file__).parent.parent / "profiles" / "schema.json"
NOTHING = {"type": "null"}


def document_schema() -> dict[str, Any]:
    """The JSON Schema of a profile document, from the model of a merged profile."""
    schema = _plain(ProfileSpec.model_json_schema(by_alias=True))
    for section in schema["$defs"].values():
        section.pop("required", None)
        section["properties"] = {k: _or(NOTHING, v) for k, v in section["properties"].items()}
    fields = schema["properties"]
    short = {"enum": sorted(RESIZE), "description": "SysNoise's short name (MLSys 2023, Table 1)"}
    fields["resize"] = _or(short, fields["resize"])
    fields["evidence"]["additionalProperties"] = _or(
        NOTHING, fields["evidence"]["additionalProperties"]
    )
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A profile of pipeline-simulator",
    }
    return {**head, **schema, "required": ["schema", "name", "summary"]}


def _plain(node: Any) -> Any:
    """Leave out what pydantic adds: titles made from names, and defaults, which are all null."""
    if isinstance(node, list):
        return [_plain(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _named(inner) if key in ("properties", "$defs") else _plain(inner)
        for key, inner in node.items()
        if key not in ("title", "default")
    }


def _named(nodes: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(inner) for name, inner in nodes.items()}


def _or(other: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that also takes *other*; the description stays outside."""
    about = {key: value for key, value in schema.items() if key == "description"}
    bare = {key: value for key, value in schema.items() if key != "description"}
    options = bare["anyOf"] if set(bare) == {"anyOf"} else [bare]
    return {"anyOf": options if other in options else [*options, other], **about}


def main(arguments: list[str]) -> int:
    text = json.dumps(document_schema(), indent=2, ensure_ascii=False) + "\n"
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
