"""Recordings join a comparison as if they had run here, and are refused when they do not fit."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import simulator
from simulator.errors import UserError

RECORDED = "deploy.runtime={{backend: recorded, recording: {}, graph_optimization_level: null}}"


def names(data):
    return sorted(str(path.relative_to(data)) for path in data.rglob("*.jpg"))


def write(folder, card, kind="outputs", file="dump.npz", **fields):
    """A manifest; the dump is written by the test."""
    model = hashlib.sha256((card.parent / "model.onnx").read_bytes()).hexdigest()
    spec = {
        "schema": 1, "name": "board", "device": "Board 7", "kind": kind, "file": file,
        "match": "name", "model": model,
    }  # fmt: skip
    path = folder / "recording.yaml"
    path.write_text(json.dumps({**spec, **fields}))
    return path


def compare(card, data, manifest, out, *more, side=RECORDED):
    return simulator.compare(
        "pillow_fp32", "pillow_fp32", model=card, data=data, out=out,
        overrides=[side.format(manifest), *more],
    ).summary  # fmt: skip


def logits(data, swap=()):
    """One row per image: its own colour wins, but for the images in *swap*."""
    rows = {}
    for name in names(data):
        row = np.zeros((1, 3), np.float32)
        colour = ["red", "green", "blue"].index(name.split("/")[0])
        row[0, (colour + (name in swap)) % 3] = 5
        rows[name] = row
    return rows


def test_outputs(cache, tmp_path, card, data):
    np.savez(tmp_path / "dump.npz", **logits(data, swap=["red/red1.jpg"]))

    summary = compare(card, data, write(tmp_path, card), tmp_path / "run")

    assert summary["flips"]["count"] == summary["flips"]["right_to_wrong"] == 1
    assert summary["worst_flips"][0]["sample"] == "red/red1.jpg"
    assert summary["deploy"]["effective"]["device"] == "Board 7"
    assert summary["latency_ms"]["deploy"]["total"]["p50"] is None
    (axis,) = summary["axes"]
    assert (axis["axis"], axis["deploy"]["evidence"]) == ("runtime", "recorded")


def test_outputs_by_the_digest_of_the_file(cache, tmp_path, card, data):
    rows = {
        hashlib.sha256((data / name).read_bytes()).hexdigest(): row
        for name, row in logits(data, swap=["blue/blue0.jpg"]).items()
    }
    np.savez(tmp_path / "dump.npz", **rows)

    summary = compare(card, data, write(tmp_path, card, match="sha256"), tmp_path / "run")

    assert summary["worst_flips"][0]["sample"] == "blue/blue0.jpg"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_with_latencies(cache, tmp_path, card, data, suffix):
    """3 ms of decoding and 7 ms of inference were recorded, and stand in the records."""
    rows = [
        {"image": name, "prediction": i // 2, "decode_ns": 3_000_000, "infer_ns": 7_000_000}
        for i, name in enumerate(names(data))
    ]  # sorted by name: blue, blue, green, green, red, red are 0, 0, 1, 1, 2, 2
    file = tmp_path / f"dump.{suffix}"
    if suffix == "csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        file.write_text("\n".join(lines) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist(rows), file)
    manifest = write(tmp_path, card, "predictions", file.name)

    summary = compare(card, data, manifest, tmp_path / "run")

    assert summary["flips"]["right_to_wrong"] == 4  # red as blue and the other way round
    rows = pq.read_table(tmp_path / "run" / "records.parquet").to_pylist()
    recorded = [row for row in rows if row["side"] == "deploy"]
    assert len(recorded) == 6
    times = [dict(row["ns"]) for row in recorded]
    for stage, ns in {"decode": 3_000_000, "infer": 7_000_000}.items():
        found = sorted(one[stage] for one in times)
        assert found[0] >= ns  # what reading the recording took is added
        assert found[0] < 1.5 * ns
    assert not any("resize" in one for one in times)


def test_tensors_go_through_a_real_runtime(cache, tmp_path, card, data):
    """The recorded tensors are of the strongest colour there is, shifted by one."""
    tensors = {}
    for name in names(data):
        tensors[name] = np.full((1, 3, 32, 32), -1, np.float32)
        tensors[name][0, (["red", "green", "blue"].index(name.split("/")[0]) + 1) % 3] = 1
    np.savez(tmp_path / "dump.npz", **tensors)
    side = "deploy.front_end={{backend: recorded, recording: {}}}"
    manifest = write(tmp_path, card, "tensors")

    summary = compare(card, data, manifest, tmp_path / "run", side=side)

    assert summary["flips"]["right_to_wrong"] == 6


def refused(*arguments, **options):
    with pytest.raises(UserError) as caught:
        compare(*arguments, **options)
    (line,) = str(caught.value).splitlines()
    return line


def test_missing_images_are_named(cache, tmp_path, card, data):
    rows = logits(data)
    del rows["red/red0.jpg"]
    np.savez(tmp_path / "dump.npz", **rows)

    line = refused(card, data, write(tmp_path, card), tmp_path / "run")

    assert line.endswith("1 of 6 images are not in it, matched by name: red/red0.jpg")


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"kind": "answers"}, "kind: unknown value 'answers' (offered: frames, outputs"),
        ({"file": "nowhere.npz"}, "file: there is no file"),
        ({"latency": "nowhere.csv"}, "latency: there is no file"),
        ({"kind": "tensors"}, "holds tensors; outputs or predictions expected"),
        ({"kind": "predictions", "file": "table.csv"}, "no column prediction; it has image"),
        ({"kind": "predictions", "file": "twice.csv"}, "image 'a' has more than one row"),
        ({"file": "table.csv"}, "not an NPZ file of plain arrays"),
        ({"speed": 3}, "speed: unknown"),
        ({"model": "0" * 64}, "recorded with 000000000000…"),
    ],
)
def test_manifests_that_do_not_fit(cache, tmp_path, card, data, fields, line):
    np.savez(tmp_path / "dump.npz", **logits(data))
    (tmp_path / "table.csv").write_text("image\na\n")
    (tmp_path / "twice.csv").write_text("image,prediction\na,1\na,2\n")

    assert line in refused(card, data, write(tmp_path, card, **fields), tmp_path / "run")


def test_a_damaged_array_fails_on_its_image(cache, tmp_path, card, data):
    rows = logits(data)
    rows["red/red0.jpg"] = np.full((1, 3), np.nan, np.float32)
    np.savez(tmp_path / "dump.npz", **rows)

    summary = compare(card, data, write(tmp_path, card), tmp_path / "run")

    (one,) = summary["failures"]
    assert (one["stack"], one["samples"]) == ("deploy", ["red/red0.jpg"])
    assert one["why"] == "postprocess: the model gave NaN"


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("total_ns", 5, "column 'total_ns' of its latencies is none of decode_ns, read_ns, "),
        ("infer_ms", 5, "column 'infer_ms'"),
    ],
)
def test_latency_columns_that_mean_nothing(cache, tmp_path, card, data, column, value, why):
    lines = [f"image,prediction,{column}", *(f"{name},1,{value}" for name in names(data))]
    (tmp_path / "dump.csv").write_text("\n".join(lines) + "\n")
    manifest = write(tmp_path, card, "predictions", "dump.csv")

    assert why in refused(card, data, manifest, tmp_path / "run")


def predicted(folder, card, data, written):
    values = [written, *["1"] * 5]
    rows = [f"{name},{value}" for name, value in zip(names(data), values, strict=True)]
    (folder / "dump.csv").write_text("\n".join(["image,prediction", *rows]) + "\n")
    return write(folder, card, "predictions", "dump.csv")


@pytest.mark.parametrize("written", ["cat", "12.7"])
def test_a_column_that_holds_no_class_indices(cache, tmp_path, card, data, written):
    manifest = predicted(tmp_path, card, data, written)

    assert "is not a class index" in refused(card, data, manifest, tmp_path / "run")


@pytest.mark.parametrize("written", ["-5", ""])
def test_a_prediction_that_is_none_fails_on_its_image(cache, tmp_path, card, data, written):
    manifest = predicted(tmp_path, card, data, written)

    (one,) = compare(card, data, manifest, tmp_path / "run")["failures"]

    assert (one["stack"], one["samples"]) == ("deploy", ["blue/blue0.jpg"])
    assert "is not a class index" in one["why"]


def test_tensors_of_another_shape(cache, tmp_path, card, data):
    np.savez(tmp_path / "dump.npz", **{n: np.zeros((3, 8, 8), np.float32) for n in names(data)})
    side = "deploy.front_end={{backend: recorded, recording: {}}}"
    manifest = write(tmp_path, card, "tensors")

    line = refused(card, data, manifest, tmp_path / "run", side=side)

    assert "the model card expects float32 tensors of shape (1, 3, 32, 32)" in line


def test_a_recording_cannot_be_mixed_with_another_stack(cache, tmp_path, card, data):
    np.savez(tmp_path / "dump.npz", **logits(data))
    manifest = write(tmp_path, card)
    from simulator import explain

    with pytest.raises(UserError, match="replays a recording: its axes cannot be swapped"):
        explain(
            "pillow_fp32", "pillow_fp32", model=card, data=data, out=tmp_path / "run",
            overrides=[RECORDED.format(manifest)],
        )  # fmt: skip


def test_the_path_starts_at_the_profile(cache, tmp_path, card, data):
    np.savez(tmp_path / "dump.npz", **logits(data))
    write(tmp_path, card)
    profile = tmp_path / "board.yaml"
    profile.write_text(
        "schema: 1\nname: board\nsummary: s\nextends: pillow_fp32\n"
        "runtime: {backend: recorded, recording: recording.yaml, graph_optimization_level: null}\n"
    )

    result = simulator.compare(
        "pillow_fp32", str(profile), model=card, data=data, out=tmp_path / "run"
    )

    assert result.summary["flips"]["count"] == 0
