"""Write ``docs/schemas/``: the JSON Schema of every summary.json and manifest.json.

python tools/result_schemas.py           write them
python tools/result_schemas.py --check   exit 1 if one of them is not current
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import generated
from pydantic import BaseModel

from simulator.results.checkpoints import Checkpoints
from simulator.results.manifest import AuditManifest, RunManifest
from simulator.results.summaries import commands, shape_of

FOLDER = Path(__file__).parent.parent / "docs" / "schemas"


def schemas() -> dict[str, dict[str, Any]]:
    """Return every schema by the name of its file."""
    shapes: dict[str, type[BaseModel]] = {
        "manifest.json": RunManifest,
        "manifest-audit.json": AuditManifest,
        "checkpoints.json": Checkpoints,
        **{f"summary-{command}.json": shape_of(command) for command in commands()},
    }
    return {name: schema(shape) for name, shape in shapes.items()}


def schema(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of what we write: every field is there."""
    found = shape.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **plain(found)}


def plain(node: Any) -> Any:
    """Leave out the titles that pydantic makes of names."""
    if isinstance(node, list):
        return [plain(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    found = {key: plain(inner) for key, inner in node.items() if not _is_title(key, inner)}
    if "properties" in found:
        found["required"] = list(found["properties"])
    return found


def _is_title(key: str, value: Any) -> bool:
    return key == "title" and isinstance(value, str)


def texts() -> dict[Path, str]:
    """Return the content of every file."""
    return {
        FOLDER / name: json.dumps(found, indent=2, ensure_ascii=False) + "\n"
        for name, found in schemas().items()
    }


if __name__ == "__main__":
    sys.exit(generated.main(sys.argv[1:], texts(), FOLDER, ".json"))
