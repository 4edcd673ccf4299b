"""Samples as files, for what is not ours."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from simulator.contract import SampleFile
from simulator.contract.recipe import Context


def file_of(context: Context) -> SampleFile:
    """Return a sample as a file: its own, where no condition has changed its bytes."""
    place, data = getattr(context.item, "path", None), context.source.data
    if isinstance(place, Path):
        known = context.item.sha256
        same = hashlib.sha256(data).hexdigest() == known if known else place.read_bytes() == data
        if same:
            return SampleFile(context.sample, Path(os.path.abspath(place)), None)
    return SampleFile(context.sample, None, data)
