"""The capture script runs with numpy alone, and what it writes is read as a recording."""

import ast
import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import simulator
from simulator import cli
from simulator.contract.stage import device_steps
from simulator.data import capture
from simulator.data.capture import Capture
from simulator.data.folder import Item
from simulator.data.recording import load_recording
from simulator.errors import DataError, SampleError

MODEL = "5" * 64


def test_it_is_python_3_7():
    ast.parse(Path(capture.__file__).read_text(), feature_version=(3, 7))


def numpy_alone(folder):
    """A folder for sys.path that has numpy and nothing else."""
    folder.mkdir()
    home = Path(np.__file__).parent
    for name in ("numpy", "numpy.libs"):
        if (home.parent / name).is_dir():
            (folder / name).symlink_to(home.parent / name)
    return folder


def on_a_board(tmp_path, code):
    """Run the script's text in a Python without site-packages."""
    alone = numpy_alone(tmp_path / "alone")
    head = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(alone)!r}]\n"
    run = subprocess.run(
        [sys.executable, "-S", "-I", "-c", head + code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert not run.returncode, run.stderr
    return run.stdout


BOARD = """
import numpy as np
from capture import Capture

with Capture("board", kind="tensors", device="Board 7") as found:
    for name in NAMES:
        tensor = np.full((1, 3, 32, 32), -1, np.float32)
        tensor[0, 0] = 1
        found.add(name, tensor, latency={"decode": 3000000})
print([name for name in sys.modules if name in ("yaml", "pyarrow", "simulator")])
"""


def test_tensors_of_a_board_are_replayed(cache, tmp_path, card, data, capsys):
    """Every tensor is the strongest red, so that the four images of other colours flip."""
    script = tmp_path / "capture.py"
    kit = ["recordings", "capture-kit", "--model", str(card), "--out", str(script)]
    assert cli.main(kit) == 0
    names = sorted(str(path.relative_to(data)) for path in data.rglob("*.jpg"))

    out = on_a_board(tmp_path, BOARD.replace("NAMES", repr(names)))

    assert out.strip() == "[]"
    digest = hashlib.sha256((card.parent / "model.onnx").read_bytes()).hexdigest()
    assert f'MODEL = "{digest}"' in script.read_text()
    side = f"deploy.front_end={{backend: recorded, recording: {tmp_path}/recording.yaml}}"
    summary = simulator.compare(
        "pillow_fp32", "pillow_fp32", model=card, data=data, out=tmp_path / "run", overrides=[side]
    ).summary
    assert summary["flips"]["right_to_wrong"] == 4
    (item, *_) = every(data)
    assert load_recording(tmp_path / "recording.yaml").latency(item, "decode") == 3_000_000


@pytest.fixture
def items(data):
    return every(data)


def every(data):
    return [Item(str(p.relative_to(data)), p, None) for p in sorted(data.rglob("*.jpg"))]


def captured(tmp_path, kind, add, **options):
    with Capture("b", kind, "Board 7", MODEL, folder=str(tmp_path / "out"), **options) as found:
        add(found)
    return load_recording(tmp_path / "out" / "recording.yaml")


def test_several_outputs(tmp_path, items):
    boxes, scores = np.ones((1, 2, 4), np.float16), np.full((1, 2), 0.5, np.float32)

    found = captured(
        tmp_path, "outputs", lambda c: [c.add(i.name, {"b": boxes, "s": scores}) for i in items]
    )

    found.check(MODEL, items, ("b", "s"))
    both = found.outputs(items[0], ("b", "s"))
    assert both["b"].tolist() == boxes.tolist()
    assert both["s"].tolist() == scores.tolist()


def test_predictions_by_the_digest_of_files(tmp_path, items):
    found = captured(
        tmp_path, "predictions",
        lambda c: [c.add(str(item.path), (2, 0.75, 0.5)) for item in items],
        match="sha256",
    )  # fmt: skip

    found.check(MODEL, items)
    assert found.prediction(items[3]) == (2, 0.75, 0.5)


def test_frames_as_pixels_and_as_planes(tmp_path, items):
    rgb = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    planes = {"y": rgb[..., 0], "u": rgb[::2, ::2, 1], "v": rgb[::2, ::2, 2]}

    def add(capture):
        capture.add(items[0].name, rgb)
        capture.add(items[1].name, planes)

    found = captured(tmp_path, "frames", add, after="decode")

    assert found.spec.after == "decode"
    found.check(MODEL, items[:2])
    assert np.array_equal(found.frame(items[0])["rgb"], rgb)
    assert {k: v.tolist() for k, v in found.frame(items[1]).items()} == {
        k: v.tolist() for k, v in planes.items()
    }
    with pytest.raises(DataError, match="1 of 1 images are not in it"):
        found.check(MODEL, items[2:3])


def test_a_frame_that_is_no_picture(tmp_path, items):
    found = captured(
        tmp_path, "frames", lambda c: c.add(items[0].name, np.zeros((2, 2, 3), np.uint8)),
        after="resize",
    )  # fmt: skip
    np.savez(tmp_path / "out" / "recording.npz", **{items[0].name: np.zeros((2, 2), np.uint8)})

    with pytest.raises(SampleError, match=r"rgb: expected uint8 \(H, W, 3\), got uint8 \(2, 2\)"):
        found.frame(items[0])


@pytest.mark.parametrize(
    ("kind", "options", "value", "message"),
    [
        ("tensors", {}, np.zeros(3, np.int8), "floats, got int8; dequantize INT8 before"),
        ("tensors", {}, {"a": np.zeros(3)}, "a tensor is one array"),
        ("predictions", {}, 1.5, "a class index, and a score and a margin; got 1.5"),
        ("frames", {"after": "decode"}, np.zeros((2, 2), np.uint8), r"uint8 or float32 "),
        ("frames", {"after": "decode"}, {"y": np.zeros((2, 2))}, "planes are called y, u and v"),
        (
            "frames", {"after": "decode"}, dict.fromkeys("yuv", np.zeros((2, 2), np.float32)),
            r"uint8 \(h, w\), got float32",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_where_it_is_added(tmp_path, kind, options, value, message):
    with pytest.raises(ValueError, match=f"a.jpg: {message}"):
        captured(tmp_path, kind, lambda c: c.add("a.jpg", value), **options)


@pytest.mark.parametrize(
    ("kind", "after", "stage"),
    [("tensors", None, "infer"), ("frames", "decode", "resize"), ("outputs", None, "decoding")],
)
def test_a_latency_that_no_reader_takes(tmp_path, kind, after, stage):
    value = np.zeros((2, 2, 3), np.uint8 if after else np.float32)
    with pytest.raises(ValueError, match=f"latency: nanoseconds of .*; got {stage}: 5"):
        captured(tmp_path, kind, lambda c: c.add("a.jpg", value, {stage: 5}), after=after)


def test_stages_are_those_of_the_reader():
    assert device_steps() == capture.STAGES


def test_a_folder_with_a_recording_is_left_as_it_is(tmp_path, items):
    found = captured(tmp_path, "outputs", lambda c: c.add(items[0].name, np.zeros(3, np.float32)))
    before = found.path.with_name("recording.npz").read_bytes()

    with pytest.raises(ValueError, match=r"has a recording.yaml; give a new folder"):
        captured(tmp_path, "tensors", lambda c: None)

    assert found.path.with_name("recording.npz").read_bytes() == before


def test_an_image_twice(tmp_path):
    with pytest.raises(ValueError, match=r"a/b\.jpg: was added before"):
        captured(tmp_path, "predictions", lambda c: [c.add("a/b.jpg", 1), c.add("a/b.jpg", 1)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("b", "pixels", "d", MODEL), "kind: 'pixels' is none of tensors"),
        (("b", "tensors", "d"), "model: the ONNX file whose stack is recorded"),
        (("b", "frames", "d", MODEL), "after: for kind frames one of decode, resize, geometry"),
        (("b", "tensors", "d", MODEL, "decode"), "after: for kind frames"),
        (("b", "tensors", "d", MODEL, None, "path"), "match: 'path' is neither"),
    ],
)
def test_arguments_that_are_refused(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        Capture(*arguments)


def test_a_manifest_of_frames_says_after_which_stage(tmp_path, items):
    found = captured(tmp_path, "outputs", lambda c: c.add(items[0].name, np.zeros(3, np.float32)))
    text = found.path.read_text().replace('"outputs"', '"frames"')
    found.path.write_text(text)

    with pytest.raises(DataError, match="after is for kind frames, and needed there"):
        load_recording(found.path)
