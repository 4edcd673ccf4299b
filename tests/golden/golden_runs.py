"""The golden runs: their command lines, how a run folder is read, and how two readings differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from simulator import cli
from simulator.notices import Notice

RECORDED = Path(__file__).with_name("recorded")
TOLERANCE, DIGITS, DIGEST = 1e-6, 7, 16
"""Of figures: a logistic function or a quantile is not the same to the last bit everywhere."""
INEXACT = {"pair_int8"}
"""Runs whose outputs need not be the same to the last bit everywhere: without digests."""
TIMES = {
    "seconds", "workers", "machine", "latency_ms", "percentiles", "ratio", "spread", "conditions",
    "protocol", "times", "missing", "bundle", "source", "claimed", "preview", "schema", "next",
}  # fmt: skip
"""Parts of a summary that are a clock's, the machine's, a path (as in a next command), words
about a library, or the version of its shape."""
PASSING = {"times", "condition", "trial"}
"""Columns of records that are no answers; the times are in ``ns`` besides."""


def _pair(deploy: str, *more: str, model: str = "colors", data: str = "data") -> list[str]:
    stacks = ["--train", "exact.yaml", "--deploy", deploy, *more]
    return [*stacks, "--model", f"{model}/card.yaml", "--data", data]


def _swapped(*overrides: str, **inputs: str) -> list[str]:
    more = [word for one in overrides for word in ("--set", f"deploy.{one}")]
    return _pair("exact.yaml", *more, **inputs)


_BOXES = {"model": "detection", "data": "detection-data/data.yaml"}
_MASKS = {"model": "segmentation", "data": "segmentation-data/data.yaml"}
_INT8 = (
    "precision={storage: int8, compute: int8, quantizer: {backend: onnxruntime, "
    "weights: per_channel, activations: uint8, symmetric: false, reduce_range: false, "
    "method: minmax, calibration: {samples: 12, through: deploy, source: data}}}"
)
_NEAREST_LOGITS = (
    "postprocess.logits_upsample={mode: nearest, coordinate_transformation_mode: half_pixel}"
)


def _sized(kind: str, size: str) -> list[str]:
    own = "geometry={kind: model, rounding: model}"
    overrides = ["--set", f"train.{own}", "--set", f"deploy.{own}",
                 "--set", f"deploy.geometry.input_size={size}"]  # fmt: skip
    return _pair("exact.yaml", *overrides, model=kind, data="sizes-data/data.yaml")


def _suite(command: str, name: str, **inputs: str) -> list[str]:
    model, data = inputs.get("model", "pools"), inputs.get("data", "data")
    return [command, "--suite", f"{name}.yaml", "--model", f"{model}/card.yaml", "--data", data]


RUNS: dict[str, list[list[str]]] = {
    "pair_nearest": [
        [*_swapped("resize=pil-nearest"), "--fail-on", "flip_rate > 1%", "--fail-on",
         "delta.top1 < -50%"],
    ],
    "pair_camera": [[*_pair("camera.yaml"), "--limit", "9", "--seed", "4"]],
    "pair_ceil": [_swapped("graph.pooling.ceil_mode=ceil", "color.order=bgr", model="pools")],
    "pair_int8": [_swapped(_INT8)],
    "pair_broken": [[*_pair("camera.yaml", data="broken"), "--fail-on", "skipped > 0"]],
    "pair_recorded": [_pair("board.yaml")],
    "pair_boxes": [
        [*_swapped("postprocess.box_offset.corners=1", "resize=pil-nearest", **_BOXES),
         "--fail-on", "delta.mAP < -0.5%"],
    ],
    "pair_masks": [_swapped(_NEAREST_LOGITS, "resize=pil-nearest", **_MASKS)],
    "pair_sizes": [
        _sized("rect_letterbox", "{kind: fixed, sizes: [[64, 64]]}"),
        _sized("keep_ratio", "{kind: fixed, sizes: [[48, 64], [64, 48]]}"),
        _sized("native", "{kind: rect, multiple_of: 64}"),
    ],
    "explain": [["explain", *_pair("camera.yaml", "--set", "deploy.color.order=bgr")]],
    "explain_boxes": [
        ["explain", *_pair(
            "camera.yaml", "--set", "deploy.postprocess.nms.score_threshold=0.9", **_BOXES
        )],
    ],
    "sweep": [_suite("sweep", "some")],
    "sweep_boxes": [_suite("sweep", "some-detection", **_BOXES)],
    "worst": [_suite("worst", "some", model="colors")],
    "worst_masks": [_suite("worst", "some-segmentation", **_MASKS)],
    "tail": [
        ["tail", *_pair("camera.yaml"), "--times", "train=log_train.csv",
         "--times", "deploy=log_deploy.csv", "--deadline-ms", "6", "--deadline-ms", "7.5",
         "--fail-on", "deploy.tail_quality@6ms < 70%"],
    ],
    "audit": [
        ["audit", "audit.yaml"],
        ["verify", "audit-0/bundle.zip"],
        ["replay", "audit-0/bundle.zip", "--model", "colors=colors/card.yaml",
         "--model", "pools=pools/card.yaml", "--data", "data"],
    ],
}  # fmt: skip
"""Name → the command lines, run one after another in the folder of the inputs."""


def run(name: str) -> list[dict[str, Any]]:
    """Run a golden run's commands in the current folder, and return what each came to."""
    found = []
    for number, arguments in enumerate(RUNS[name]):
        folder = Path(f"{name}-{number}")
        out = [] if arguments[0] == "verify" else ["--out", str(folder)]
        try:
            code = cli.main([*arguments, *out])
        except SystemExit as left:  # argparse
            code = int(left.code or 0)
        found.append({"exit": code, **(read(folder, name not in INEXACT) if out else {})})
    return found


def read(folder: Path, digests: bool) -> dict[str, Any]:
    """Return the summary and the records of a run; of a run of runs, those of each by its place."""
    return {
        "summary": {
            key: plain(json.loads(place.read_text(encoding="utf-8")))
            for key, place in _places(folder, "summary.json")
        },
        "records": {
            key: _columns(pq.read_table(place), digests)
            for key, place in _places(folder, "records.parquet")
        },
    }


def _places(folder: Path, name: str) -> list[tuple[str, Path]]:
    found = [folder / name] if (folder / name).is_file() else sorted(folder.rglob(name))
    return [(str(place.parent.relative_to(folder)), place) for place in found]


def plain(value: Any) -> Any:
    """Return a summary's part without times; of a notice what people read."""
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            return str(Notice(value["kind"], value["text"], tuple(value["about"])))
        return {key: plain(one) for key, one in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    return round(value, DIGITS) if isinstance(value, float) else value


def _columns(table: pa.Table, digests: bool) -> dict[str, list[Any]]:
    """Return the records by column, in the order of samples and sides."""
    rows = sorted(table.to_pylist(), key=lambda row: (row["sample"], row["side"]))
    kept = {name for name in table.column_names if name != "ns"} - PASSING
    if not digests:
        kept.discard("digest")
    columns = {
        name: [plain(row[name]) for row in rows] for name in table.column_names if name in kept
    }
    if digests:
        columns["digest"] = [one and one[:DIGEST] for one in columns["digest"]]
    return columns


def differences(recorded: Any, found: Any, where: str = "") -> Iterator[str]:
    """Yield what is not as it was recorded; keys and columns that are new are no difference."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key, value in recorded.items():
            if key in found:
                yield from differences(value, found[key], f"{where}/{key}")
            else:
                yield f"{where}/{key} is gone; it was {value!r}"
    elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        for number, (old, new) in enumerate(zip(recorded, found, strict=True)):
            yield from differences(old, new, f"{where}/{number}")
    elif not _same(recorded, found):
        yield f"{where} was {recorded!r}, is {found!r}"


def _same(recorded: Any, found: Any) -> bool:
    if isinstance(recorded, bool) or isinstance(found, bool):
        return recorded is found
    if isinstance(recorded, float) and isinstance(found, (int, float)):
        return abs(recorded - found) <= TOLERANCE
    return bool(recorded == found)


def recorded(name: str) -> list[dict[str, Any]]:
    """Return what was recorded of a run."""
    found: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text())
    return found


def write(name: str, found: list[dict[str, Any]]) -> None:
    """Write what a run came to, a row or a summary's part a line."""
    (RECORDED / f"{name}.json").write_text(_lines(found, 5) + "\n")


def _lines(value: Any, depth: int, indent: str = "") -> str:
    """JSON that is indented down to a depth; a list without objects is on one line."""
    nested = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(one, dict) for one in value)
    )
    if depth == 0 or not value or not nested:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    if isinstance(value, list):
        parts, ends = [_lines(one, depth - 1, inner) for one in value], "[]"
    else:
        ends = "{}"
        parts = [f"{json.dumps(k)}: {_lines(one, depth - 1, inner)}" for k, one in value.items()]
    return f"{ends[0]}\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}{ends[1]}"
