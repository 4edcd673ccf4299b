"""Labels, boxes and masks beside rendered samples, and the data card by which --data takes them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from simulator.data.card import FILE
from simulator.data.masks import IGNORE
from simulator.files import write_whole
from simulator.model.card import Card
from simulator.render.experiment import Form
from simulator.render.kept import MASKS, Row

LABELS, ANNOTATIONS, ARRAY, TEXTS = "labels.csv", "annotations.json", "labels.npy", "labels.json"


def write_truths(home: Path, format: Form, card: Card, rows: Sequence[Row], folder: str) -> None:
    """Write what is known of the samples, in their order.

    Args:
        home: the folder of the rendered data.
        format: of the samples.
        card: of the model.
        rows: the samples.
        folder: where they are, below *home*.
    """
    truths = [row.truth for row in rows]
    labelled = any(truth is not None for truth in truths)
    fields: dict[str, object] | None = None
    if (home / MASKS).exists():
        fields = {
            "format": "index_masks", "images": folder, "annotations": MASKS, "ignore": IGNORE,
        }  # fmt: skip
    elif card.task.in_pixels and labelled:
        write_whole(home / ANNOTATIONS, json.dumps(_coco(card, rows)).encode())
        fields = {"format": "coco", "images": folder, "annotations": ANNOTATIONS}
    elif format == "tar":
        fields = {"format": "webdataset", "files": folder, "label": "cls" if labelled else None}
    elif labelled and format == "folder":
        labels = [(row.name, row.truth) for row in rows if row.truth is not None]
        write_whole(home / LABELS, table(("file", "label"), labels))
        fields = {"format": "table", "files": folder, "table": LABELS}
    elif labelled and all(isinstance(truth, int) for truth in truths):
        out = io.BytesIO()
        np.save(out, np.array(truths, np.int64))
        write_whole(home / ARRAY, out.getvalue())
    elif labelled:
        write_whole(home / TEXTS, json.dumps(truths).encode())
    if fields is not None and format != "npy":
        about = {"schema": 1, "name": f"{card.spec.name}-rendered", "task": card.task.name}
        known = {key: value for key, value in fields.items() if value is not None}
        write_whole(home / FILE, yaml.safe_dump({**about, **known}, sort_keys=False).encode())


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return a table as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([head, *rows])
    return out.getvalue().encode()


def _coco(card: Card, rows: Sequence[Row]) -> dict[str, Any]:
    """COCO's document; an image's id is its number among the rows, from 0."""
    labels = card.task.network.labels
    known = [(number, row) for number, row in enumerate(rows) if row.truth is not None]
    used = {index for _, row in known for index in row.truth["classes"]}
    count = len(labels) if labels else max(used, default=-1) + 1
    names = labels.names if labels else [str(index) for index in range(count)]
    objects = [one for number, row in known for one in _objects(number, row.truth)]
    return {
        "images": [
            {"id": number, "file_name": row.name, "height": row.truth["size"][0],
             "width": row.truth["size"][1]}
            for number, row in known
        ],
        "annotations": [{"id": at, **one} for at, one in enumerate(objects, 1)],
        "categories": [{"id": index, "name": name} for index, name in enumerate(names)],
    }  # fmt: skip


def _objects(image: int, truth: Any) -> Iterator[dict[str, object]]:
    keys = ("xywh", "classes", "crowd", "area", "difficult")
    for box, index, crowd, area, difficult in zip(*(truth[key] for key in keys), strict=True):
        yield {
            "image_id": image, "category_id": index, "bbox": box, "area": area,
            "iscrowd": int(crowd), "difficult": int(difficult),
        }  # fmt: skip
