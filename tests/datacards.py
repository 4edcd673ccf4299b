"""Tiny annotated data sets: images, and a card for them."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from simulator.data.card import read_card
from simulator.data.folder import Dataset
from simulator.data.format import DataCard
from simulator.data.labels import Labels
from simulator.errors import DataError
from simulator.places import read


def images(folder: Path, *names: str, size: tuple[int, int] = (40, 30)) -> Path:
    """Write images, *size* = (width, height), into ``folder/images``."""
    for name in names:
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        Image.new("RGB", size).save(buffer, "PNG" if path.suffix == ".png" else "JPEG")
        path.write_bytes(buffer.getvalue())
    return folder


def png(path: Path, indices: Any, palette: list[int] | None = None) -> Path:
    """Write an index mask, with a palette where one is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mask = Image.fromarray(np.asarray(indices))
    if palette is not None:
        mask.putpalette(palette)
    mask.save(path)
    return path


def card(folder: Path, **fields: Any) -> Path:
    """Write a card; *fields* are added to its common ones."""
    common = {"schema": 1, "name": "tiny", "images": "images"}
    path = folder / "data.yaml"
    path.write_text(yaml.safe_dump(common | fields, sort_keys=False))
    return path


def card_of(folder: Path, task: str, format: str, **fields: Any) -> DataCard:
    """Write a card that has these fields only, and read it."""
    path = folder / "data.yaml"
    document = {"schema": 1, "name": "tiny", "task": task, "format": format, **fields}
    path.write_text(yaml.safe_dump(document))
    return read_card(path)


def tar(path: Path, *members: Any, format: int = tarfile.PAX_FORMAT) -> Path:
    """Write (name, bytes) or TarInfo into an archive."""
    with tarfile.open(path, "w", format=format) as file:
        for one in members:
            info, data = (one, b"") if isinstance(one, tarfile.TarInfo) else (None, one[1])
            if info is None:
                info = tarfile.TarInfo(one[0])
                info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return path


def content(found: Dataset) -> list[tuple[str, bytes, Any]]:
    """The name, the bytes and the truth of each sample."""
    return [(item.name, read(item.path, 2**23), item.truth) for item in found.items]


@contextmanager
def refused(why: str, error: type[Exception] = DataError) -> Iterator[None]:
    """What is done here is refused, in one line that says why (a regular expression)."""
    with pytest.raises(error, match=why) as raised:
        yield
    assert "\n" not in str(raised.value)


def load(path: Path, *labels: str):
    """Load a card for a model with these labels; without any, for one that has no label file."""
    return read_card(path).load(Labels(labels) if labels else None)


def coco(folder: Path, listed, annotations, categories=((1, "cat"), (2, "dog")), **fields: Any):
    """Write a COCO file and its detection card; *listed* is id → (file name, width, height)."""
    document = {
        "images": [
            {"id": key, "file_name": name, "width": width, "height": height}
            for key, (name, width, height) in listed.items()
        ],
        "categories": [{"id": key, "name": name} for key, name in categories],
        "annotations": annotations,
    }
    (folder / "coco.json").write_text(json.dumps(document))
    return card(
        folder, **{"task": "detection", "format": "coco", "annotations": "coco.json"} | fields
    )


def box(number: int, image: int, category: int, *xywh: Any, **fields: Any) -> dict[str, Any]:
    """A COCO annotation."""
    return {"id": number, "image_id": image, "category_id": category, "bbox": list(xywh)} | fields
