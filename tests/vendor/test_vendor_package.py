"""What a package adds is used like ours: the example vendor's, from the command line.

It is installed by its metadata. Nothing of it is named in our code. That other processes find it
too is shown by the guides, which are carried out in ``test_vendor_docs.py``; that all of it passes
the conformance suite, in ``test_contributing.py``.
"""

import io
import json
import textwrap
from collections import namedtuple
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import bearings
import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
import yaml
from installing import vendor
from PIL import Image
from stopping import StopsAt

import simulator
from simulator import cli

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parents[2]
Site = namedtuple("Site", "folder run vectors images")
Printed = namedtuple("Printed", "stdout stderr")
SENSOR = ("--train", "acme/sensor_fp32", "--deploy", "acme/sensor_q7")
BOARD = ("--train", "acme/board_fp32", "--deploy", "acme/board_denoised")


def run(*arguments, code=0):
    """Run a command of ``simulate`` that ends with an exit code; return what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        ended = cli.main([str(word) for word in arguments])
    assert ended == code, out.getvalue() + err.getvalue()
    return Printed(out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The package, its samples and ours; ``run`` takes a command line."""
    folder = tmp_path_factory.mktemp("vendor")
    (folder / "bearings").mkdir()
    card, data = bearings.write(folder / "bearings")
    vectors = ("--model", card, "--data", data)
    images = (
        "--model", tiny.card(folder / "colors"), "--data", tiny.data(folder / "images", 4),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch, vendor(patch, folder / "site"):
        patch.chdir(folder)
        yield Site(folder, run, vectors, images)


def read(folder):
    """The records, the summary, the manifest and the report of a run."""
    return (
        pq.read_table(folder / "records.parquet").to_pylist(),
        json.loads((folder / "summary.json").read_text()),
        json.loads((folder / "manifest.json").read_text()),
        (folder / "report.html").read_text(),
    )


@pytest.fixture(scope="module")
def vectors(site):
    """The main job on the vendor's own samples: what was printed, and the run."""
    done = site.run(*SENSOR, *site.vectors, "--out", "vectors", "--explain-plan")
    return done.stdout + done.stderr, *read(site.folder / "vectors")


def test_the_vendors_samples_task_and_data_format_run(vectors):
    """One of four grades changes, as worked out on paper; the training stack has all right."""
    printed, rows, summary, manifest, _ = vectors
    grades = {(row["sample"], row["side"]): row["grade"] for row in rows}

    assert [name for name, _ in grades][::2] == sorted(f"{one}.npy" for one in bearings.GRADES)
    for name, grade in bearings.GRADES.items():
        assert grades[f"{name}.npy", "train"] == grade
        assert grades[f"{name}.npy", "deploy"] == (1 if name == "edge" else grade)
    assert summary["train"]["metric"] == {"right": 1}
    assert summary["deploy"]["metric"] == {"right": 0.75}
    assert (summary["task"], summary["unit"]) == ("acme_wear", "bearing")
    assert summary["controls"]["self"] == {"samples": 4, "flips": 0, "bit_equal": True}
    assert manifest["model"]["spec"]["input"] == bearings.CARD["input"]
    assert "flips  1 of 4 bearings" in printed


def test_their_section_is_an_axis_a_step_and_a_time(vectors):
    printed, rows, summary, _, page = vectors

    assert [axis["axis"] for axis in summary["axes"]] == ["scale"]
    assert summary["axes"][0]["effect"]["values_changed"] > 0
    assert summary["axes"][0]["deploy"]["values"] == {"arithmetic": "q7"}
    assert [name for name, _ in rows[0]["ns"]] == ["scale", "infer", "postprocess"]
    assert list(summary["latency_ms"]["train"])[:2] == ["total", "scale"]
    assert "└── scale" in printed
    for words in ("Grades of wear", "signed bytes, rounded to even", "acme_sensor_q7", "scale"):
        assert words in page


def test_their_modality_draws_the_worst_flip(site, vectors):
    """A square of 16 pixels for each reading of the one that flips, and none of ours."""
    _, _, summary, _, page = vectors
    (flip,) = summary["worst_flips"]

    drawn = np.array(Image.open(site.folder / "vectors" / flip["picture"]))[..., 0]

    (file,) = site.vectors[3].parent.rglob(flip["sample"])
    readings, squares = np.load(file), drawn[::16, ::16]
    assert drawn.shape == (16, 16 * readings.size)
    assert squares[0, readings.argmin()] == 0 and squares[0, readings.argmax()] == 255
    assert "data:image" in page


def test_nobody_calls_them_images(vectors):
    """Words for samples are the modality's, and what only pictures have is left out."""
    printed, _, summary, _, page = vectors

    assert not summary["pictures"]
    assert "4 vectors" in printed
    assert "image" not in printed
    assert "4 vectors in" in page


def test_explain_blames_their_axis(site):
    site.run("explain", *SENSOR, *site.vectors, "--out", "blamed")
    _, summary, _, page = read(site.folder / "blamed")

    assert summary["axes"] == ["scale"]
    assert summary["blame"]["flip_rate"]["shapley"]["scale"]["value"] == 0.25
    assert "scale" in page


def test_their_latency_is_measured(site):
    """In rounds; sections about the sizes of images are not shown."""
    tail = ("--rounds", 5, "--deadline-ms", 1000)
    site.run("tail", *SENSOR, *site.vectors, *tail, "--out", "timed")
    summary = json.loads((site.folder / "timed" / "summary.json").read_text())
    sizes = pq.read_table(site.folder / "timed" / "samples.parquet")

    assert sizes.column_names == ["sample", "bytes", "length"]
    assert sizes["length"].to_pylist() == [4] * 4
    assert set(summary["latency_ms"]["deploy"]) == {"total", "scale", "infer", "postprocess"}
    assert summary["inputs"]["deploy"]["size"] is None
    assert "megapixel" not in (site.folder / "timed" / "report.html").read_text()


def test_their_graph_pass_and_executor_run(site):
    more = ("--set", "deploy.graph.acme_relu=relu6", "--executor", "acme_queue")
    same = ("--train", "acme/sensor_fp32", "--deploy", "acme/sensor_fp32")
    done = site.run(*same, *more, *site.vectors, "--out", "passed")
    _, summary, manifest, _ = read(site.folder / "passed")

    (axis,) = summary["axes"]
    assert axis["axis"] == "acme_relu"
    assert axis["effect"]["why"] == "1 of 1 acme_relu nodes compute other values"
    assert axis["deploy"]["source"] == "rebuilt by acme-npu-stacks 1.0"
    assert manifest["stacks"]["deploy"]["profile"]["graph"]["acme_relu"] == "relu6"
    assert "0 of 4 bearings" in done.stdout


def test_a_model_and_a_stack_of_two_modalities_are_refused_in_one_line(site):
    done = site.run("--train", "pillow_fp32", "--deploy", "pillow_fp32", *site.vectors, code=2)

    (line,) = done.stderr.splitlines()
    assert line.startswith("error: pillow_fp32 takes images, and ")
    assert line.endswith("card.yaml is of a model that takes vectors")


def test_a_profile_of_theirs_is_checked_with_a_specimen(site):
    done = site.run("profiles", "check", "acme/sensor_q7")

    assert "acme_sensor_q7: valid, and runs here: bearings on 0.npy" in done.stdout


@pytest.fixture(scope="module")
def denoised(site):
    """Our own samples through the vendor's stage, under the vendor's condition."""
    under = ("--under", "acme_haze:3", "--trial", 1, "--explain-plan", "--workers", 1)
    done = site.run(*BOARD, *site.images, *under, "--out", "denoised")
    return done.stdout + done.stderr, *read(site.folder / "denoised")


def test_a_stage_stands_between_decode_and_resize(denoised):
    printed, rows, summary, _, page = denoised
    stages = {row["side"]: [name for name, _ in row["ns"]] for row in rows}

    assert stages["train"][:2] == ["decode", "resize"]
    assert stages["deploy"][:3] == ["decode", "denoise", "resize"]
    assert [axis["axis"] for axis in summary["axes"]] == ["denoise"]
    assert summary["axes"][0]["train"]["values"] == {"value": "absent"}
    assert summary["axes"][0]["effect"]["changed"] > 0
    assert "denoise" in summary["latency_ms"]["deploy"]
    assert "denoise acme_dsp rows" in printed
    assert "condition acme_haze:3 trial 1" in printed
    assert "deploy, denoise" in page
    assert "Acme DSP guide 1 (invented)" in page


def test_explain_blames_the_stage(site):
    pair = ("--train", "pillow_fp32", "--deploy", "acme/board_denoised")
    site.run("explain", *pair, *site.images, "--out", "why")
    _, summary, _, page = read(site.folder / "why")

    axes = summary["axes"]
    assert axes.index("decoder") < axes.index("denoise") < axes.index("resize")
    assert "denoise" in page


def test_a_condition_is_in_records_manifest_and_report(denoised):
    printed, rows, _, manifest, page = denoised

    assert {(row["condition"], row["trial"]) for row in rows} == {("acme_haze:3", 1)}
    assert manifest["under"] == {
        "text": "acme_haze:3", "name": "acme_haze", "acts_on": "frame", "trial": 1,
        "summary": "haze lies over the scene: every pixel is mixed with white",
        "parameters": {"level": 3},
    }  # fmt: skip
    assert manifest["request"]["arguments"]["under"] == "acme_haze:3"
    assert "Every stack is under acme_haze:3, trial 1: haze lies over the scene" in printed
    assert "acme_haze:3" in page


def digests(rows, side):
    return {row["sample"]: row["digest"] for row in rows if row["side"] == side}


def test_a_condition_is_the_same_for_every_stack_in_any_order_with_any_workers(site, denoised):
    """Sides swapped, some samples only, another number of workers: the same bits."""
    swapped = ("--train", "acme/board_denoised", "--deploy", "acme/board_fp32")
    some = ("--limit", 4, "--seed", 3, "--workers", 4, "--under", "acme_haze:3")
    site.run(*swapped, *site.images, *some, "--trial", 1, "--out", "again")
    site.run(*swapped, *site.images, *some, "--trial", 2, "--out", "other")
    first, again, other = denoised[1], *(read(site.folder / one)[0] for one in ("again", "other"))

    for side, before in (("train", "deploy"), ("deploy", "train")):
        found, known = digests(again, side), digests(first, before)
        assert found == {name: known[name] for name in found}
        assert found != digests(other, side)
    assert len(digests(again, "train")) == 4


@pytest.mark.parametrize(
    ("under", "trial", "words"),
    [
        ("acme_haze:9", 0, "acme_haze:LEVEL expected, with LEVEL 1 to 5"),
        ("acme_haze:3", 1, "it is for images, not for vectors"),
        ("acme_haz:3", 0, "unknown condition 'acme_haz'; did you mean 'acme_haze'"),
    ],
)
def test_a_condition_that_cannot_be_is_refused_in_one_line(site, under, trial, words):
    done = site.run(*SENSOR, *site.vectors, "--under", under, "--trial", trial, code=2)

    (line,) = done.stderr.splitlines()
    assert words in line


def test_broken_files_of_theirs_cost_one_sample_each(site, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for name in ("empty", "text", "long"):
        (data / f"{name}.npy").write_bytes({"empty": b"", "text": b"no vector"}.get(name, b""))
    np.save(data / "long.npy", np.zeros(9, np.float32))
    np.save(data / "good.npy", np.zeros(4, np.float32))
    site.run(*SENSOR, "--model", site.vectors[1], "--data", data, "--out", tmp_path / "run")
    _, summary, _, _ = read(tmp_path / "run")

    why = {one["sample"]: one["why"] for one in summary["skipped_samples"]}
    assert summary["samples"] == 1
    assert why["long.npy"] == "scale: 4 readings expected, got 9"
    assert why["empty.npy"].startswith("read: cannot be read")
    assert why["text.npy"].startswith("read: cannot be read")


def test_their_source_feeds_their_labels_and_runs(site, vectors):
    """The same readings in one archive: the same answers to the same bytes, and without a card."""
    model, data = site.vectors[1], site.vectors[3]
    names = {"--model": model, "--data": data / "drive.yaml", "--out": "drive"}
    site.run(*SENSOR, *(word for pair in names.items() for word in pair))
    rows, summary, manifest, _ = read(site.folder / "drive")
    _, known, _, before, _ = vectors

    assert [(row["sample"], row["grade"]) for row in rows] == [
        (row["sample"], row["grade"]) for row in known
    ]
    assert summary["deploy"]["metric"] == {"right": 0.75}
    assert manifest["data"]["images"] == before["data"]["images"]
    site.run(*SENSOR, "--model", model, "--data", data / "drive.npz", "--out", "bare")
    assert read(site.folder / "bare")[1]["deploy"]["metric"] == {"right": None}


def test_their_model_format_runs(site):
    """A card may name a plan alone; its sizes are held against the card before anything runs."""
    folder = site.folder / "bearings"
    card = bearings.CARD | {"model": None, "acme_plan": bearings.plan(folder).name}
    card = {key: value for key, value in card.items() if value is not None}
    (folder / "plan.yaml").write_text(yaml.safe_dump(card))
    stacks = ("--train", "acme/sensor_fp32", "--deploy", "acme/sensor_q7")
    fields = ("backend=acme_plan", "graph_optimization_level=null")
    runtime = [f"--set={side}.runtime.{field}" for side in ("train", "deploy") for field in fields]
    data = ("--model", folder / "plan.yaml", *site.vectors[2:])
    site.run(*stacks, *runtime, *data, "--out", "planned")
    _, summary, manifest, _ = read(site.folder / "planned")

    assert summary["deploy"]["metric"] == {"right": 0.75}
    assert manifest["model"]["spec"]["acme_plan"] == "bearings.plan"

    told = site.run(*stacks, *data, code=2).stderr
    assert "runtime onnxruntime takes an ONNX file" in told
    assert "names none; add model: FILE.onnx" in told
    (folder / "short.yaml").write_text(
        yaml.safe_dump(card | {"input": card["input"] | {"length": 5}})
    )
    short = ("--model", folder / "short.yaml", *site.vectors[2:])
    assert (
        "input 'x' is 1x4, the card short.yaml makes 1x5"
        in site.run(*stacks, *runtime, *short, code=2).stderr
    )


AGREE = ("acme_agree", "--profile", "acme/sensor_fp32", "--profile", "acme/sensor_q7")


def test_their_job_runs_and_its_figure_is_gated(site):
    """The two stacks grade one of four bearings otherwise, as worked out on paper."""
    out = ("--out", "agreed", "--fail-on", "agreement < 80%")
    done = site.run(*AGREE, *site.vectors, *out, code=1)
    rows, summary, _, page = read(site.folder / "agreed")

    assert "All stacks agree on 3 of 4 vectors." in done.stdout
    assert (summary["command"], summary["agreement"]["rate"]) == ("acme_agree", 0.75)
    assert {row["side"] for row in rows} == {"sensor_fp32", "sensor_q7"}
    for words in (
        "All stacks agree on 3 of 4 vectors.", "On how many samples do several stacks agree?",
        "agreement &lt; 80%: failed", "They differ in scale.", "simulate acme_agree",
    ):  # fmt: skip
        assert words in page
    site.run("gate", "agreed", "--fail-on", "agreement < 70%")
    site.run("gate", "agreed", "--fail-on", "agreement < 80%", code=1)
    told = site.run(*AGREE, *site.vectors, "--fail-on", "agreemen < 80%", code=2).stderr
    assert "did you mean agreement" in told


def test_their_job_goes_on_after_an_interruption(site):
    """The records are those of a run that nothing disturbed."""
    stacks = ["acme/sensor_fp32", "acme/sensor_q7"]
    _, model, _, data = site.vectors
    with pytest.raises(KeyboardInterrupt):
        simulator.acme_agree(stacks, model=model, data=data, out="stopped", progress=StopsAt(2))
    status = json.loads((site.folder / "stopped" / "manifest.json").read_text())["status"]
    assert status == "interrupted"

    site.run("resume", "stopped")

    site.run(*AGREE, *site.vectors, "--out", "whole")
    assert read(site.folder / "stopped")[0] == read(site.folder / "whole")[0]


def test_the_guide_shows_the_job_as_it_is():
    text = (ROOT / "docs" / "writing-a-job.md").read_text()
    example = (ROOT / "tests" / "vendor_example" / "acme_npu" / "agree.py").read_text()
    blocks = [block.partition("   ```")[0] for block in text.split("```python\n")[1:]]

    assert len(blocks) == 4
    for block in blocks:
        assert textwrap.dedent(block) in example
