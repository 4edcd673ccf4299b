"""Run folders of ``simulate`` and ``simulate explain``, of answers that a test has made up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from made_results import manifest as made_manifest
from made_results import report

from simulator.experiments.summary import latency
from simulator.results.json_text import finite
from simulator.results.times import MAP
from simulator.tasks.classification.compare import compare

SIDES = ("train", "deploy")


def pair(
    folder: Path,
    train: Sequence[int],
    deploy: Sequence[int],
    labels: Sequence[int | None] | None = None,
    margins: Sequence[float] | None = None,
    names: Sequence[str] | None = None,
    classes: Sequence[str] = ("red", "green", "blue"),
    digests: Sequence[str] | None = None,
    summary: Mapping[str, Any] | None = None,
) -> Path:
    """Write a finished run of a classification.

    Args:
        folder: where.
        train: the class that each image gets.
        deploy: likewise.
        labels: the right ones, None where nobody knows.
        margins: of the training stack.
        names: of the images.
        classes: their names.
        digests: of each output, 2n.
        summary: what is otherwise in it.
    """
    n = len(train)
    names = names or [f"{at:05d}.jpg" for at in range(n)]
    labels = [None] * n if labels is None else labels
    margins = [0.5] * n if margins is None else margins
    right = [[None if t is None else s == t for s, t in zip(own, labels, strict=True)]
             for own in (train, deploy)]  # fmt: skip
    answers = {
        side: [{"prediction": s, "label": t, "correct": c, "best": None, "top5": None}
               for s, t, c in zip(own, labels, judged, strict=True)]
        for side, own, judged in zip(SIDES, (train, deploy), right, strict=True)
    }  # fmt: skip
    flips = [at for at in range(n) if train[at] != deploy[at]][:10]
    compared = compare(answers["train"], answers["deploy"])
    times, missing = latency([{"infer": np.full(n, 2_000_000)}] * 2, "image")
    found = {
        "command": "run", "task": "classification", "metric": "top1", "unit": "image",
        "model": "colors", "samples": n, "skipped": 0, "skipped_samples": [], **compared,
        "axes": [], "worst_flips": [_flip(at, names, classes, answers, margins) for at in flips],
        "latency_ms": times, "missing": missing, "workers": 2, "warnings": [],
        "controls": {"self": {"bit_equal": True, "samples": 1, "flips": 0}},
    }  # fmt: skip
    for side in SIDES:
        found[side] = {
            "profile": f"{side}_fp32", "overrides": [], "effective": {"compute": "fp32"},
            **compared[side],
        }  # fmt: skip
    said = np.stack([train, deploy], axis=1).ravel()
    truth = pa.array(np.repeat(np.array([-1 if one is None else one for one in labels]), 2))
    known = pa.array(np.repeat([one is not None for one in labels], 2))
    void = pa.nulls(2 * n, pa.int64())
    records = pa.table({
        "sample": np.repeat(np.array(names, object), 2),
        "side": list(SIDES) * n,
        "label": pa.compute.if_else(known, truth, void),
        "prediction": said,
        "correct": pa.compute.if_else(known, pa.compute.equal(truth, said), None),
        "score": np.full(2 * n, 0.75),
        "margin": np.stack([margins, np.full(n, 0.25)], axis=1).ravel(),
        "best": [[int(one), *range(900, 904)] for one in said],
        "top5": pa.nulls(2 * n, pa.bool_()),
        "digest": digests or ["0" * 64] * (2 * n),
        "skipped": pa.nulls(2 * n, pa.string()),
        "condition": pa.nulls(2 * n, pa.string()),
        "trial": np.zeros(2 * n, np.int32),
        "ns": pa.array([[("infer", 2_000_000)]] * (2 * n), MAP),
    })  # fmt: skip
    return write(folder, found | dict(summary or {}), "run", records, names, classes)


def _flip(at, names, classes, answers, margins):
    sides = {
        side: {"prediction": _name(own[at]["prediction"], classes), "score": 0.75,
               "margin": margins[at], "correct": own[at]["correct"]}
        for side, own in answers.items()
    }  # fmt: skip
    truth = answers["train"][at]["label"]
    label = None if truth is None else _name(truth, classes)
    return {"sample": names[at], "label": label, **sides}


def _name(index, classes):
    return classes[index] if index < len(classes) else str(index)


def effect(value: Any, low: Any = None, high: Any = None, holm: Any = 1.0) -> dict[str, Any]:
    """What a run says of an effect; *value* and the ends of its interval are fractions."""
    return {"value": value, "ci95": [low, high], "p": holm, "p_holm": holm}


def _plain(value: Any) -> dict[str, Any]:
    """An effect that is not one of a family."""
    return {key: one for key, one in effect(value).items() if key != "p_holm"}


def explained(folder: Path, axes: Sequence[str], blame: Mapping[str, Any], **changed: Any) -> Path:
    """Write a finished run of ``simulate explain``, whose figures are those given."""
    summary = {
        "command": "explain", "model": "colors", "task": "classification",
        "metric": "top1", "unit": "image", "train": {"profile": "train_fp32"},
        "deploy": {"profile": "deploy_fp32"}, "samples": 2, "skipped": 0, "axes": list(axes),
        "null": [], "blame": blame, "warnings": [], "stacks": 2 ** len(axes),
        "unique_steps": 8,
    }  # fmt: skip
    records = pa.table({"sample": ["a.jpg", "b.jpg"], "side": ["train"] * 2, "skipped": [None] * 2})
    return write(folder, summary | changed, "explain", records, ["a.jpg", "b.jpg"], ["red"])


def blamed(
    axes: Sequence[str],
    waterfall: Sequence[Any],
    shapley: Sequence[Mapping[str, Any]],
    interactions: Mapping[tuple[str, str], Mapping[str, Any]],
    total: Any,
) -> dict[str, Any]:
    """The figures of one metric."""
    steps = {axis: _plain(value) for axis, value in zip(axes, waterfall, strict=True)}
    return {
        "total": _plain(total), "swap_in": steps, "swap_out": steps, "waterfall": steps,
        "shapley": dict(zip(axes, shapley, strict=True)),
        "interactions": [{"axes": list(two), **one} for two, one in interactions.items()],
        "family": len(axes), "sampling_error": 0.0, "residual": 0.0,
    }  # fmt: skip


def write(
    folder: Path,
    summary: Mapping[str, Any],
    command: str,
    records: pa.Table,
    names: Sequence[str],
    classes: Sequence[str],
) -> Path:
    """Write the files of a run, with what JSON cannot hold as it is in ours."""
    folder.mkdir(parents=True)
    manifest = made_manifest(command, SIDES, names)
    manifest["model"]["labels"] = list(classes)
    pq.write_table(records, folder / "records.parquet")
    for name, content in (("summary", report(summary)), ("manifest", manifest)):
        text = json.dumps(finite(content), ensure_ascii=False)
        (folder / f"{name}.json").write_text(text, encoding="utf-8", errors="surrogatepass")
    return folder
