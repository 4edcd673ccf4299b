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
from simulator.tasks.figures import Flips
from simulator.tasks.task import TASKS

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
    found = plain(shape.model_json_schema(mode="serialization"))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **of_tasks(found)}


def of_tasks(found: dict[str, Any]) -> dict[str, Any]:
    """Say which figures the flips of each task have, where a schema has those of any task."""
    parts = found.get("$defs", {})
    if Flips.__name__ not in parts:
        return found
    own = sorted({TASKS[name].Flips.__name__: TASKS[name].Flips for name in TASKS.names}.items())
    any_of = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name, _ in own]}
    text = json.dumps(found).replace(f'{{"$ref": "#/$defs/{Flips.__name__}"}}', json.dumps(any_of))
    whole: dict[str, Any] = json.loads(text)
    for name, shape in own:
        more = plain(shape.model_json_schema(mode="serialization"))
        whole["$defs"] |= more.pop("$defs", {}) | {name: more}
    return whole


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
