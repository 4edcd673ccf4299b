"""The command on everything that people have lying around: one clear line, never a traceback."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import zlib

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
from damaged_png import joined
from onnx import helper
from PIL import Image
from warm import ended

from simulator.cli import main
from simulator.contract.installing import install

SAME = ("--train", "pillow_fp32", "--deploy", "pillow_fp32")
NEAREST = (*SAME, "--set", "deploy.resize.interpolation=nearest")
ANSI = "\x1b["


@pytest.fixture(autouse=True)
def _own_cache(cache, tmp_path, monkeypatch):
    """Nothing of these tests lands in the user's cache or in the checkout's runs/."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def simulate(card, data, tmp_path, capsys):
    """Run the command on the tiny model; returns (exit code, standard output and error)."""

    def run(*arguments, pair=NEAREST, images=data, model=card, out="run"):
        given = [*pair, "--model", str(model), "--data", str(images), *arguments]
        try:
            code = main([*given, "--out", str(tmp_path / out)] if out else given)
        except SystemExit as left:  # argparse
            code = left.code
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, printed.out, printed.err

    return run


def summary(tmp_path, out="run"):
    return json.loads((tmp_path / out / "summary.json").read_text(encoding="utf-8"))


def one_line(result):
    """The one line of an error of the user's."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", err), err
    return err.removeprefix("error: ").rstrip("\n")


def gray16():
    return tiny.encoded(Image.fromarray(np.full((40, 40), 40_000, np.uint16)), "png")


def exif(image):
    tags = Image.Exif()
    tags[0x0112] = 6
    return tiny.encoded(image, exif=tags.tobytes())


def bomb():
    """A PNG of 65,535 x 65,535 pixels in a hundred bytes."""

    header = struct.pack(">IIBBBBB", 65_535, 65_535, 8, 2, 0, 0, 0)
    return joined([(b"IHDR", header), (b"IDAT", zlib.compress(b"\0")), (b"IEND", b"")])


RED = tiny.picture(tiny.COLORS["red"])
WHOLE = tiny.encoded(RED)
GOOD = {
    "gray.jpg": tiny.encoded(RED[..., 0]),
    "cmyk.jpg": tiny.encoded(Image.fromarray(RED).convert("CMYK")),
    "gray16.png": gray16(),
    "alpha.png": tiny.encoded(np.dstack([RED, np.full(RED.shape[:2], 9, np.uint8)]), "png"),
    "palette.png": tiny.encoded(Image.fromarray(RED).quantize(16), "png"),
    "rotated.jpg": exif(RED),
    "one.jpg": tiny.encoded(RED[:1, :1]),
    "one.png": tiny.encoded(RED[:1, :1], "png"),
    "progressive.jpg": tiny.encoded(RED, progressive=True),
    "thin.png": tiny.encoded(np.resize(RED, (1, 999, 3)), "png"),
    "UPPER.JPEG": WHOLE,
    "really_a_png.jpg": tiny.encoded(RED, "png"),
}
BAD = {
    "empty.jpg": (b"", "the file is empty"),
    "truncated.jpg": (WHOLE[:-50], "the JPEG is truncated"),
    "cut.png": (tiny.encoded(RED, "png")[:200], "the PNG is truncated"),
    "text.jpg": (b"I am not an image\n" * 40, "no image of a known format"),
    "gif.png": (b"GIF88a" + bytes(40), "no image of a known format"),
    "header.jpg": (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", "ends too early"),
    "bomb.png": (bomb(), "refused as a decompression bomb"),
}


def test_good_ones_are_scored_and_bad_ones_counted_and_listed(simulate, tmp_path):
    folder = tmp_path / "mixed" / "red"
    folder.mkdir(parents=True)
    for name, content in {**GOOD, **{k: v for k, (v, _) in BAD.items()}}.items():
        (folder / name).write_bytes(content)
    (folder / "dangling.jpg").symlink_to("nowhere.jpg")
    (folder / "folder.jpg").mkdir()

    code, out, err = simulate(images=folder.parent)

    found = summary(tmp_path)
    reasons = {s["sample"]: s["why"] for s in found["skipped_samples"]}
    assert (code, err) == (0, "")
    assert (found["samples"], found["skipped"]) == (len(GOOD), len(BAD) + 1)
    assert set(reasons) == {f"red/{name}" for name in (*BAD, "dangling.jpg")}
    for name, (_, why) in BAD.items():
        assert why in reasons[f"red/{name}"], name
        assert f"red/{name}" in out
    records = pq.read_table(tmp_path / "run" / "records.parquet").to_pylist()
    assert len(records) == 2 * (len(GOOD) + len(BAD) + 1)
    assert {r["sample"] for r in records if r["skipped"]} == set(reasons)
    colours = ("progressive.jpg", "UPPER.JPEG", "palette.png", "rotated.jpg", "really_a_png.jpg")
    right = {r["sample"] for r in records if r["correct"]}
    assert {f"red/{name}" for name in colours} <= right


@pytest.mark.parametrize(
    ("train", "deploy"), [("opencv_fp32", "ffmpeg_fp32"), ("dali_fp32", "nv12_fp32")]
)
def test_whatever_decodes_them(simulate, tmp_path, train, deploy):
    folder = tmp_path / "mixed"
    folder.mkdir()
    for name, content in {**GOOD, **{k: v for k, (v, _) in BAD.items()}}.items():
        (folder / name).write_bytes(content)

    code, _, _ = simulate(images=folder, pair=("--train", train, "--deploy", deploy))

    found = summary(tmp_path)
    assert code == 0
    assert {s["sample"] for s in found["skipped_samples"]} >= set(BAD)
    assert found["samples"] + found["skipped"] == len(GOOD) + len(BAD)
    assert found["samples"] >= len(GOOD) - 2


def test_one_pixel_through_a_stack_that_drops_odd_rows(simulate, tmp_path):
    """DVPP rounds odd sizes down; of a 1 x 1 image nothing would be left."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "one.jpg").write_bytes(GOOD["one.jpg"])
    (folder / "thin.png").write_bytes(GOOD["thin.png"])
    (folder / "good.jpg").write_bytes(WHOLE)
    over = ("--set", "deploy.color.odd_size=drop")

    code, _, _ = simulate(*over, images=folder, pair=(*SAME[:3], "nv12_fp32"))

    found = summary(tmp_path)
    assert code == 0
    assert found["samples"] >= 1
    assert found["samples"] + found["failed"]["deploy"]["count"] == 3


def test_only_bad_images(simulate, tmp_path):
    folder = tmp_path / "bad"
    folder.mkdir()
    for name in ("empty.jpg", "text.jpg"):
        (folder / name).write_bytes(BAD[name][0])

    message = one_line(simulate(images=folder))

    assert "none of 2 images could go through" in message and "empty.jpg" in message
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    assert not (tmp_path / "run" / "records.parquet").exists()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda f: f.mkdir(), "has no image; expected .avif, .bmp, .dng, .gif, "),
        (lambda f: None, "there is no such folder"),
        (lambda f: f.write_text(""), "is a file; give the folder that holds the images"),
        (lambda f: (f / "a").mkdir(parents=True), "has no image"),
    ],
)
def test_a_folder_without_images(simulate, tmp_path, make, why):
    make(tmp_path / "images")

    assert why in one_line(simulate(images=tmp_path / "images"))


def test_labels_that_do_not_match(simulate, data):
    (data / "green").rename(data / "gren")

    message = one_line(simulate())

    assert "no class of the model for 1 of 3 class folders" in message
    assert "unknown class 'gren'; did you mean 'green'?" in message


def test_a_label_that_the_model_does_not_know(simulate, data, tmp_path):
    model = tiny.card(tmp_path / "bare", labels=None)
    for index, name in enumerate(("red", "green", "blue")):
        (data / name).rename(data / str(index + 1))

    message = one_line(simulate(model=model))

    assert "the label is class 3, and the model knows 0 to 2" in message


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--set", "deploy.resize.interpolation"], "KEY=VALUE expected"),
        (["--set", "both.resize.interpolation=box"], "STACK.KEY=VALUE expected with STACK train"),
        (["--set", "deploy=x"], "STACK.KEY=VALUE expected"),
        (["--set", "deploy.resize.interpolation=bilinaer"],
         "got bilinaer; did you mean 'bilinear'"),
        (["--set", "deploy.resize.interpolation=area"], "pillow offers bilinear, bicubic"),
        (["--set", "train.rezise.backend=opencv"], "unknown key 'rezise'; did you mean 'resize'?"),
        (["--fail-on", "flips are bad"], "cannot read the rule 'flips are bad'"),
        (["--fail-on", "flip_rate > 1"], "write 1% or 100%"),
        (["--fail-on", "flip_raet > 1%"], "did you mean flip_rate"),
        (["--fail-on", "deploy.latency.p98 > 1ms"], "which this run does not have"),
        (["--workers", "0"], "at least 1"),
        (["--workers", "-1"], "at least 1"),
        (["--train", "pillow_fp23"], "unknown profile 'pillow_fp23'; did you mean 'pillow_fp32'?"),
        (["--limit", "0"], "limit must be at least 1, got 0"),
        (["--limit", "-3"], "limit must be at least 1, got -3"),
        (["--seed", "-1"], "seed must be at least 0, got -1"),
        (
            ["--under", "gaussian_noise:1", "--trial", f"{10**20}"],
            f"--trial {10**20}: 0 to 2,147,483,647 expected",
        ),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_meant(simulate, tmp_path, arguments, why):
    assert why in one_line(simulate(*arguments, pair=SAME))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--limit", "many"], "argument --limit: invalid int value: 'many'"),
        (["--imit=3"], "unknown option --imit; did you mean --limit?"),
        (["stray"], "'stray' stands behind no option"),
    ],
)
def test_arguments_that_do_not_parse(simulate, arguments, why):
    assert why in one_line(simulate(*arguments))


def test_problems_of_both_profiles_come_at_once(simulate, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(
            f"schema: 1\nname: {name}\nsummary: s\nextends: pillow_fp32\ndecoed: 1\nresize: 2\n"
        )

    code, _, err = simulate(pair=("--train", "a", "--deploy", "b.yaml"))

    assert code == 2
    assert [line.split(": ")[:3] for line in err.splitlines()] == [
        ["error", "a.yaml:6", "resize"], ["error", "a.yaml:5", "decoed"],
        ["error", "b.yaml:6", "resize"], ["error", "b.yaml:5", "decoed"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("card", "why"),
    [
        ("a: [", "expected"),
        ("a:\n\tb: 1\n", ":2: a tab; YAML indents with spaces"),
        (None, "cannot be read: No such file or directory"),
    ],
    indirect=[],
)
def test_a_bad_card(simulate, tmp_path, card, why):
    path = tmp_path / "bad.yaml"
    if card is not None:
        path.write_text(card)

    message = one_line(simulate(model=path))

    assert message.startswith(f"{path}:") and why in message


def test_a_corrupt_model(simulate, card):
    (card.parent / "model.onnx").write_bytes(b"corrupt")

    assert "not an ONNX model" in one_line(simulate())


def test_a_model_that_the_runtime_cannot_open(simulate, tmp_path):
    """ONNX's checker lets operators of unknown domains pass; the runtime does not."""
    node = helper.make_node("Own", ["x"], ["y"], domain="com.example")
    model = tiny.card(tmp_path / "own", tiny.model([node], domains=["com.example"]))

    message = one_line(simulate(model=model))

    assert message.startswith("onnxruntime cannot open ") and "com.example" in message


def test_a_model_that_gives_nan_skips_every_sample(simulate, tmp_path):
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Div", ["f", "zero"], ["q"]),
        helper.make_node("Sub", ["q", "q"], ["y"]),
    ]
    proto = tiny.model(nodes, constants={"zero": np.zeros(1, np.float32)})

    assert "NaN" in one_line(simulate(model=tiny.card(tmp_path / "nan", proto)))


def test_without_out_the_run_folder_says_when_and_what(simulate, tmp_path):
    assert simulate(out=None)[0] == 0
    assert simulate(out=None)[0] == 0

    names = sorted(p.name for p in (tmp_path / "runs").iterdir())
    assert len(names) == 2
    assert all(re.match(r"\d{8}-\d{6}-pillow_fp32-vs-pillow_fp32", name) for name in names)


def test_a_gate_that_fails_is_exit_code_1(simulate, tmp_path):
    code, out, _ = simulate("--fail-on", "samples > 3", "--fail-on", "flip_rate > 99%")

    assert code == 1
    assert "gate FAILED samples > 3: got 6" in out
    assert "gate passed flip_rate > 99%" in out
    assert summary(tmp_path)["gate"]["passed"] is False


def test_a_stack_against_itself(simulate, tmp_path):
    """Issue 2, point 11: exactly 0 flips and bit-equal outputs; and the colours are right."""
    assert simulate("--fail-on", "flip_rate > 0%", pair=SAME)[0] == 0

    found = summary(tmp_path)
    assert found["gate"]["passed"] is True
    assert (found["flips"]["count"], found["samples"]) == (0, 6)
    assert found["train"]["metric"]["top1"] == found["deploy"]["metric"]["top1"] == 1.0
    assert found["controls"]["self"] == {"samples": 4, "flips": 0, "bit_equal": True}
    records = pq.read_table(tmp_path / "run" / "records.parquet").to_pylist()
    assert [r["digest"] for r in records[::2]] == [r["digest"] for r in records[1::2]]


def test_without_labels_it_says_what_is_left_out_and_a_gate_on_it_fails(simulate, data, tmp_path):
    flat = tmp_path / "flat"
    flat.mkdir()
    for file in data.rglob("*.jpg"):
        file.rename(flat / file.name)

    code, out, _ = simulate("--fail-on", "delta.top1 < -0.5%", images=flat)

    assert code == 1
    assert "no labels: top1 and what follows from it are left out" in " ".join(out.split())
    assert "has no value in this run" in " ".join(out.split())
    assert "McNemar" not in out
    assert summary(tmp_path)["delta"]["top1"] is None


def test_json_is_all_there_is(simulate, tmp_path):
    code, out, err = simulate("--json")

    assert (code, err) == (0, "")
    assert json.loads(out) == summary(tmp_path)


def test_what_is_piped_is_plain_and_names_that_look_like_markup_are_as_they_are(simulate, data):
    (data / "red" / "[bold]x[nope].jpg").write_bytes(b"")

    code, out, err = simulate()

    assert code == 0
    assert ANSI not in out and ANSI not in err
    assert "flips" in out and "[bold]x[nope].jpg" in out


@pytest.mark.parametrize(
    ("module", "override", "extra"),
    [
        ("cv2", "deploy.resize=opencv-area", "opencv"),
        ("av", "deploy.decode={backend: ffmpeg, swscale_flags: [bicubic]}", "ffmpeg"),
    ],
)
def test_a_missing_library_says_which_extra(card, data, module, override, extra):
    """In a process of its own: here the library is loaded already."""
    done = command(
        *SAME, "--set", override, "--model", card, "--data", data,
        before=f"sys.modules[{module!r}] = None",
    )  # fmt: skip

    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(
        rf"error: {module} is needed, but '{module}' is not installed; "
        rf"try: {re.escape(install(extra))}\n",
        done.stderr,
    )


def script(before=""):
    return f"import sys; {before or 'pass'}; from simulator.cli import main; sys.exit(main())"


def command(*arguments, before="", **options):
    return subprocess.run(
        [sys.executable, "-c", script(before), *map(str, arguments)],
        capture_output=True, text=True, timeout=600, **options,
    )  # fmt: skip


def test_output_that_the_terminal_cannot_show_is_no_traceback(card, data):
    """A terminal of an old encoding has no arrows."""
    done = command(
        *NEAREST, "--model", card, "--data", data, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_leaves_no_run(card, tmp_path):
    """A run of 600 links to a few images is interrupted in its midst: after its first chunk."""
    few = tiny.data(tmp_path / "few")
    many = tmp_path / "many"
    many.mkdir()
    for number in range(600):
        (many / f"{number:05}.jpg").symlink_to(few / "red" / f"red{number % 2}.jpg")
    out = tmp_path / "run"
    manifest = out / "manifest.json"
    arguments = [*NEAREST, "--model", card, "--data", many, "--out", out]

    done = ended(signal.SIGINT, out, "parts/*.parquet", 1, *arguments)

    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr and "interrupted" in done.stderr
    assert done.stdout == ""
    assert json.loads(manifest.read_text())["status"] == "interrupted"
    assert not (out / "records.parquet").exists()
    assert not (out / "summary.json").exists()
