"""Where the test data lies that is too large, or not ours, to commit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1].parent / "shared" / "data"


def shared(name: str) -> Path:
    """Return a folder of the shared data; without it skip the test, or fail it in CI."""
    folder = ROOT / name
    if not folder.is_dir():
        reason = f"{folder} is not there: the project's shared test data, which CI has"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
