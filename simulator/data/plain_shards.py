"""Shards that are given without a data card."""

from __future__ import annotations

from functools import partial

from simulator.data.address import Root
from simulator.data.folder import Dataset, Files
from simulator.data.folder_labels import label_of
from simulator.data.labels import Labels
from simulator.data.parquet import Columns, class_of, load_parquet
from simulator.data.shards import TAR
from simulator.data.webdataset import CLASS, load_tars


def load_shards(
    root: Root, kind: str, files: Files, labels: Labels | None, labelled: bool
) -> Dataset:
    """Open tar archives or Parquet files.

    Args:
        root: see :func:`simulator.data.shards.kind_of`.
        kind: ``.tar`` or ``.parquet``.
        files: the files that are samples.
        labels: the classes of the model.
        labelled: whether a label is a class: of a tar archive the ``.cls`` file, of a Parquet file
            the column that its metadata say has classes, or ``label``. Else nothing is annotated.

    Raises:
        DataError: they cannot be read, or a label is no class of the model.
    """
    if kind == TAR:
        label = CLASS if labelled else None
        return load_tars(root, files, label, lambda text, where: label_of(text, labels, where))
    return load_parquet(root, Columns(labelled=labelled), partial(class_of, labels))
