"""The first line of a document that we write: with which schema an editor checks it."""

from __future__ import annotations

import os
from pathlib import Path

from simulator.profile.lookup import builtin_folder
from simulator.profile.modality import IMAGE

MODEL_CARD = "model-card.schema.json"


def schema_name(modality: str) -> str:
    """Return the name of the schema file of a modality's profiles."""
    return "schema.json" if modality == IMAGE else f"{modality}.schema.json"


def modeline(schema: str, path: Path) -> str:
    """Return the comment by which editors with a YAML language server find a schema.

    Args:
        schema: the file's name beside the built-in profiles.
        path: of the document. In a checkout the schema's path is relative to it, so that the
            document can be committed; elsewhere it is that of the installed package.
    """
    place, folder = (builtin_folder() / schema).resolve(), path.resolve().parent
    is_near = folder.is_relative_to(place.parents[1])
    return f"yaml-language-server: $schema={os.path.relpath(place, folder) if is_near else place}"
