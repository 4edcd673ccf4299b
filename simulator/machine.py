"""What a run ran on: versions and processor."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def describe(versions: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the machine and the versions of every library in use.

    Args:
        versions: of the libraries that the backends use, by distribution.
    """
    core = ("numpy", "onnx", "pyarrow", "pydantic", "scipy", "pipeline-simulator")
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "versions": dict(sorted({**versions, **{n: _version(n) for n in core}}.items())),
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu() -> dict[str, Any]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return {"model": platform.processor(), "flags": []}
    found: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    return {"model": found.get("model name", ""), "flags": sorted(found.get("flags", "").split())}


def sha256(path: Path) -> str | None:
    """Return the digest of a file, or None if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
