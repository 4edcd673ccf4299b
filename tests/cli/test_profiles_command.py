"""``simulate profiles``: a profile is begun, proved and shown; nothing is claimed by itself."""

import json

import numpy as np
import pytest
import tiny
import yaml
from onnx import helper

from simulator.cli import main
from simulator.contract.installing import install
from simulator.notices import Kind, Notice
from simulator.profile.lookup import builtin_names

HEAD = "schema: 1\nname: mine\nsummary: a test\nextends: opencv_fp32\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, cache):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def check(capsys, card):
    """Check a profile with the tiny model; return the exit code, what is printed, the errors."""

    def run(reference, *options, model=card):
        code = main(["profiles", "check", str(reference), "--model", str(model), *options])
        out, err = capsys.readouterr()
        return code, [" ".join(line.split()) for line in out.splitlines()], err

    return run


def row(lines, head):
    """The two lines of a section: by what, and what it gave."""
    (at,) = [at for at, line in enumerate(lines) if line.split()[:1] == [head]]
    return " ".join(lines[at : at + 2])


def written(here, text):
    (here / "mine.yaml").write_text(text)
    return here / "mine.yaml"


def test_new_and_check(here, capsys, check):
    assert main(["profiles", "new", "mine", "--from", "opencv_fp32"]) == 0
    assert capsys.readouterr().out == (
        "mine.yaml: fill it in, then: simulate profiles check mine.yaml\n"
    )

    code, lines, _ = check("mine.yaml")

    claimed = "decode, color, resize, geometry, normalize, graph, precision, runtime"
    assert code == 0
    assert f"only assumed {claimed}" in lines
    assert "to fill in summary, evidence.decode, evidence.color" in " ".join(lines)
    assert lines[-1] == "mine: valid, and runs here: colors on imagenet_00_243.jpg"
    code, _, err = check("mine.yaml", "--strict")
    assert code == 2
    assert len(err.splitlines()) == 9  # the summary and eight sections
    assert "evidence.runtime: still to be written" in err


def test_a_claim_without_a_source_is_refused(here, check):
    main(["profiles", "new", "mine", "--from", "opencv_fp32"])
    text = (here / "mine.yaml").read_text()
    written(here, text.replace("resize: {kind: assumed", "resize: {kind: native"))

    code, lines, err = check("mine.yaml")

    assert code == 2
    assert not any("valid" in line for line in lines)
    assert "evidence.resize: claims native, but its source is missing" in err


def test_new_goes_where_out_says_and_overwrites_nothing(here, capsys):
    order = ["profiles", "new", "mine", "--from", "opencv_fp32"]
    assert main([*order, "--out", "deep.yaml"]) == 0
    assert yaml.safe_load((here / "deep.yaml").read_text())["name"] == "mine"
    written(here, "mine")

    for more, why in {
        (): "mine.yaml exists already",
        ("--out", "nowhere/mine.yaml"): "nowhere/mine.yaml cannot be written: No such file",
        ("--from", "opencv_fp23"): "did you mean 'opencv_fp32'",
    }.items():
        assert main([*order, *more]) == 2
        assert why in capsys.readouterr().err
    assert (here / "mine.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("acme/board", "is not a valid profile name"),
        ("../board", "is not a valid profile name"),
        ("board.yaml", "is not a valid profile name"),
        ("", "is not a valid profile name"),
        ("-x", "required"),
        ("a b", "is not a valid profile name"),
        ("board\n", "is not a valid profile name"),
        ("nv12_fp32", "a profile nv12_fp32 already exists"),
    ],
)
def test_names_that_cannot_be(here, capsys, name, said):
    try:
        code = main(["profiles", "new", name, "--from", "opencv_fp32"])
    except SystemExit as stopped:  # argparse: an option, not a name
        code = stopped.code

    assert code == 2
    assert said in capsys.readouterr().err
    assert not [*here.glob("*.yaml"), *here.parent.glob("board.yaml")]


def test_check_says_what_each_stage_gave(check):
    """The built-in image has 512x512 pixels; the tiny network takes 32x32 and has 3 classes."""
    code, lines, _ = check("nv12_fp32")

    assert code == 0
    assert "native 512x512 rgb" in row(lines, "decode")
    assert "emulated 512x512 nv12 → 512x512 rgb" in row(lines, "color")
    assert "native 32x32 rgb" in row(lines, "resize")
    assert row(lines, "normalize") == "normalize emulated 1x3x32x32 float32"
    assert "native y 1x3 float32" in row(lines, "runtime")
    assert row(lines, "postprocess") == "postprocess the model's an answer"
    assert any(line.startswith("in force compute fp32") for line in lines)
    assert "only emulated color, normalize" in lines
    assert "not claimed geometry, graph, precision" in lines


def test_check_calibrates_on_the_image_at_hand(check):
    code, lines, _ = check("ort_int8")

    assert code == 0
    assert any(line.startswith("in force compute int8") for line in lines)
    assert any("INT8 was calibrated on that one image" in line for line in lines)
    assert not any("the profile asks for 128" in line for line in lines)


def test_a_color_that_is_taken_for_another_is_said(here, check):
    """It is done as it is written, so --strict has nothing against it."""
    color = (
        "color: {format: nv12, order: model, source: encode, odd_size: keep, "
        "encode: {backend: itu, matrix: bt601, range: full, chroma_downsampling: average}, "
        "convert: {backend: itu, matrix: bt601, range: limited, chroma_upsampling: nearest}}\n"
    )

    code, lines, _ = check(written(here, f"{HEAD}{color}evidence: {{}}\n"), "--strict")

    assert code == 0
    assert any("itu assumes bt601 limited range" in line for line in lines)


def test_strict_refuses_what_is_not_in_force(check, monkeypatch):
    from simulator.pipeline import in_force

    note = "compute fp16 was asked for, onnxruntime is running fp32"
    notice = Notice(Kind.NOT_IN_FORCE, note)
    monkeypatch.setattr(in_force, "notices", lambda *_: [notice])

    assert check("pillow_fp32")[0] == 0
    code, lines, err = check("pillow_fp32", "--strict")

    assert code == 2
    assert f"note {note}" in lines
    assert err == f"error: --strict: {note}\n"


def test_a_stage_that_refuses(here, check, tmp_path):
    """The logarithm of normalized pixels, some of them negative, is no number."""
    nodes = [
        helper.make_node("Log", ["x"], ["logs"]),
        helper.make_node("GlobalAveragePool", ["logs"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    proto = tiny.model(nodes, constants={"w": np.eye(3, dtype=np.float32)})

    code, _, err = check(written(here, HEAD), model=tiny.card(tmp_path / "odd", proto))

    assert code == 2
    assert "infer: output y has values that are not finite" in err


def test_what_is_not_installed(check, monkeypatch):
    """The profile is valid all the same; --strict wants it run."""
    from simulator.contract import Library

    monkeypatch.setattr(Library, "present", property(lambda self: self.distribution != "av"))

    code, lines, err = check("ffmpeg_fp32")
    assert (code, err) == (0, "")
    assert f"to run it here ffmpeg: {install('ffmpeg')}" in lines
    assert lines[-1] == "ffmpeg_fp32: valid, and cannot run here"

    code, _, err = check("ffmpeg_fp32", "--strict")
    assert code == 2
    assert "--strict: ffmpeg: pip install" in err


def test_a_recording_has_no_answer_for_our_image(here, check):
    runtime = "{backend: recorded, recording: r.yaml, graph_optimization_level: null}"
    path = written(here, f"{HEAD}runtime: {runtime}\n")

    assert "r.yaml: cannot be read" in check(path)[2]

    fields = {"schema": 1, "name": "r", "device": "a board", "kind": "outputs"}
    fields |= {"file": "r.npz", "match": "name", "model": "0" * 64}
    (here / "r.yaml").write_text(yaml.safe_dump(fields))
    np.savez(here / "r.npz", a=np.zeros(3, np.float32))
    code, lines, _ = check(path)

    assert code == 0
    assert any("it replays a recording" in line for line in lines)
    assert lines[-1] == "mine: valid, and cannot run here"


def test_show_is_a_document_with_origins_or_json(capsys):
    def shown(*form):
        assert main(["profiles", "show", "nv12_fp32", *form]) == 0
        return capsys.readouterr().out

    plain = shown()
    assert yaml.safe_load(plain)["color"]["convert"]["range"] == "limited"
    assert ".yaml:" not in plain
    assert json.loads(shown("--json"))["resize"]["backend"] == "pillow"
    lines = [" ".join(line.split()) for line in shown("--origins").splitlines()]
    (format,) = [line for line in lines if line.startswith("format: nv12 # ")]
    (exif,) = [line for line in lines if line.startswith("exif: ignore # ")]
    assert format.endswith("nv12_fp32.yaml:6")
    assert exif.endswith("pillow_fp32.yaml:4")


def test_list_names_every_one(capsys):
    assert main(["profiles", "list"]) == 0
    shown = capsys.readouterr().out

    assert all(name in shown for name in builtin_names())


TIMM = {
    "input_size": [3, 224, 224], "crop_pct": 0.875, "interpolation": "bicubic",
    "crop_mode": "center", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5],
}  # fmt: skip


def test_import_prints_or_writes(here, capsys, check):
    """timm: floor(224 / 0.875) = 256, the short side."""
    (here / "config.json").write_text(json.dumps({"pretrained_cfg": TIMM}))
    order = ["profiles", "import", "config.json", "--name", "mine"]

    assert main(order) == 0
    shown = capsys.readouterr().out
    assert yaml.safe_load(shown)["geometry"]["short_side"] == 256

    assert main([*order, "--out", "mine.yaml"]) == 0
    assert (here / "mine.yaml").read_text() == shown
    assert "simulate profiles check mine.yaml" in capsys.readouterr().out

    assert main([*order, "--out", "mine.yaml"]) == 2
    assert "mine.yaml exists already" in capsys.readouterr().err
    assert check("mine.yaml")[0] == 0


def test_import_of_every_stack_of_a_file(here, capsys, check):
    """Of three stacks one cannot be imported: two files are written, and one line says why."""
    steps = ["{type: resize, size: 32}", "{type: flip}", "{type: auto_resize}"]
    models = "".join(
        f"  - name: net\n    launchers: [{{framework: onnx_runtime, adapter: a}}]\n"
        f"    datasets: [{{name: d, preprocessing: [{step}]}}]\n"
        for step in steps
    )
    (here / "zoo.yml").write_text(f"models:\n{models}")

    assert main(["profiles", "import", "zoo.yml", "--all", "--out", "made"]) == 2
    printed = capsys.readouterr()
    assert sorted(p.name for p in (here / "made").iterdir()) == ["zoo_1.yaml", "zoo_3.yaml"]
    assert "net (onnx_runtime)" in printed.out
    assert "--entry 2, net (onnx_runtime): zoo.yml:7: models.1" in printed.err
    assert check("made/zoo_1.yaml")[0] == 0
