"""A decoder that dies costs its sample and no other; what it decodes apart has the same bits."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny
from damaged_png import BAD_FILTER, HOSTILE

import simulator
from simulator import registry
from simulator.contract import Encoded, SampleError, inspect
from simulator.errors import UserError
from simulator.pipeline.isolation import Isolation
from simulator.profile.implementations import implementation

DEADLY = "deploy.decode={backend: fragile, exif: ignore, idct: ifast}"


def png(width, color=(220, 30, 40)):
    return tiny.encoded(tiny.picture(color, (9, width)), "png")


@pytest.fixture
def mixed(data):
    """JPEGs and PNGs, and three PNGs of which the fragile decoder dies."""
    for name in ("a", "m", "z"):
        (data / "red" / f"{name}13.png").write_bytes(png(13))
        (data / "red" / f"{name}12.png").write_bytes(png(12))
    return data


@pytest.fixture
def compare(tmp_path, card, mixed):
    def run(name, train="pillow_fp32", *overrides, **more):
        return simulator.compare(
            train, "pillow_fp32", model=card, data=mixed, out=tmp_path / name, quick=True,
            overrides=overrides, **more,
        )  # fmt: skip

    return run


def decoder(name, **options):
    return implementation("decode", registry.backend(name), {"exif": "ignore", **options})


def started(isolation):
    return sum(len(pool._all) for pool in isolation._pools.values())


@pytest.mark.parametrize("workers", [1, 3])
def test_a_decoder_that_dies_costs_its_sample_only(fragile_here, compare, workers):
    before = list(registry._workers)
    result = compare("run", "pillow_fp32", DEADLY, workers=workers)

    assert (result.summary["samples"], result.summary["failed"]["deploy"]["count"]) == (9, 3)
    for name, one in zip("amz", result.summary["failures"], strict=True):
        assert (one["stack"], one["samples"]) == ("deploy", [f"red/{name}13.png"])
        died = "decode: the decoder of fragile was killed by SIGSEGV (signal 11)"
        assert one["why"].startswith(died)
        assert one["why"].endswith(f"; the file is red/{name}13.png")
    assert json.loads((result.folder / "manifest.json").read_text())["isolate"] == "auto"
    assert registry._workers == before


def test_never_is_really_here(fragile_here, mixed, card, tmp_path):
    """The same run in a process of its own, which dies: the decoder above is no mere exception."""
    command = [
        sys.executable, "-m", "simulator.cli", "--train", "pillow_fp32", "--deploy", "pillow_fp32",
        "--set", DEADLY, "--model", card, "--data", mixed, "--out", tmp_path / "run", "--isolate",
    ]  # fmt: skip
    places = ":".join([str(tmp_path / "site"), str(Path(__file__).parent), *filter(None, sys.path)])

    def run(*words):
        return subprocess.run(
            [*command, *words], capture_output=True, text=True, check=False, timeout=600,
            env={**os.environ, "PYTHONPATH": places},
        )  # fmt: skip

    assert run("never").returncode == -signal.SIGSEGV
    assert run("always", "--overwrite").returncode == 0


def test_what_is_decoded_apart_has_the_bits_of_what_is_decoded_here(compare):
    runs = {
        when: compare(when, "opencv_fp32", isolate=when) for when in ("auto", "always", "never")
    }

    tables = [run.records().drop_columns(["ns"]) for run in runs.values()]
    assert tables[0].equals(tables[1])
    assert tables[1].equals(tables[2])
    manifests = {k: json.loads((v.folder / "manifest.json").read_text()) for k, v in runs.items()}
    assert {k: one["isolate"] for k, one in manifests.items()} == {k: k for k in runs}
    asked = {k: one["request"]["arguments"].get("isolate") for k, one in manifests.items()}
    assert asked == {"auto": None, "always": "always", "never": "never"}


@pytest.mark.parametrize(
    ("when", "backend", "apart"),
    [
        ("auto", "opencv", {"png"}),
        ("auto", "pillow", set()),
        ("always", "pillow", {"png", "jpeg"}),
        ("never", "opencv", set()),
    ],
)
def test_files_that_may_kill_a_decoder_go_to_a_worker_and_no_others(cache, when, backend, apart):
    files = {"png": png(12), "jpeg": tiny.encoded(tiny.picture((9, 99, 200), (9, 12)))}
    choice = decoder(backend)
    here = choice.make()
    for format, content in files.items():
        with Isolation(when) as isolation:
            image = inspect("x", content)
            found = isolation.guarded(choice, here.rgb)(image)

            assert np.array_equal(found.rgb, here.rgb(image).rgb)
            assert started(isolation) == (format in apart)
            assert isolation.takes(choice.backend, image) == (format in apart)


@pytest.mark.parametrize("backend", ["opencv", "dali", "nvimagecodec"])
def test_libraries_that_were_seen_to_die_say_so(backend):
    assert registry.backend(backend).dies_of == ("png",)


@pytest.mark.parametrize("what", HOSTILE)
def test_what_really_kills_opencv_does_not_kill_us(cache, what):
    """Past the front door, which refuses these files; a later OpenCV may decode or refuse them."""
    hostile = Encoded(what, HOSTILE[what], "png", 7, 5, 3, 8, 1)
    choice = decoder("opencv")
    with Isolation() as isolation:
        decode = isolation.guarded(choice, choice.make().rgb)
        found = "decoded"
        try:
            decode(hostile)
        except SampleError as error:
            found = str(error)
        died = "the decoder of opencv was killed by SIG"  # SEGV, or ABRT where glibc sees it first
        assert found.startswith((died, "decoded", "OpenCV cannot decode this png file"))
        assert decode(inspect("whole.png", png(12))).rgb.shape == (9, 12, 3)


def test_a_run_survives_what_the_front_door_does_not_know(cache, card, data, tmp_path):
    (data / "red" / "bad.png").write_bytes(BAD_FILTER)

    result = simulator.compare(
        "pillow_fp32", "opencv_fp32", model=card, data=data, out=tmp_path / "run", quick=True
    )

    found = {name: one["why"] for one in result.summary["failures"] for name in one["samples"]}
    assert result.summary["samples"] + len(found) == 7
    if found:  # a later OpenCV may decode it
        assert found["red/bad.png"].startswith("decode: the decoder of opencv was killed by SIG")


def test_a_backend_in_a_python_of_its_own_has_a_worker_already(fragile):
    here = decoder(fragile, idct="refuse").make()

    assert Isolation("always").guarded(decoder(fragile, idct="refuse"), here.rgb) == here.rgb


def test_an_unknown_word_is_refused(compare):
    with pytest.raises(UserError, match="isolate: unknown value 'allways'; did you mean 'always'"):
        compare("run", isolate="allways")


TIMED_HERE = (
    "opencv decoded in this process while time was measured; a file that kills its decoder was "
    "skipped before, in a worker"
)


@pytest.mark.parametrize(("files", "said"), [("mixed", [TIMED_HERE]), ("data", [])])
def test_time_is_measured_in_this_process_and_said_so(request, card, tmp_path, files, said):
    """Only where a file had gone to a worker."""
    images = request.getfixturevalue(files)
    result = simulator.latency(
        ["opencv_fp32"], model=card, data=images, queries=20, out=tmp_path / "run"
    )

    told = [one.text for one in result.summary["warnings"] if one.kind == "in_process"]
    assert told == said


def test_a_decoder_that_dies_is_not_timed(fragile_here, mixed, card, tmp_path):
    """The untimed pass skips what kills it; the timed ones, in this process, never see it."""
    result = simulator.latency(
        model=card, data=mixed, queries=60, profiles=["pillow_fp32"], out=tmp_path / "run",
        overrides=["deploy.decode={backend: fragile, exif: ignore, idct: ifast}"],
    )  # fmt: skip

    assert (result.summary["samples"], result.summary["skipped"]) == (9, 3)


def test_an_int8_calibration_leaves_out_what_kills_the_decoder(fragile_here, mixed, card, tmp_path):
    through = "deploy.precision.quantizer.calibration.through=deploy"
    result = simulator.compare(
        "pillow_fp32", "ort_int8", model=card, data=mixed, out=tmp_path / "run", quick=True,
        overrides=[DEADLY, through],
    )  # fmt: skip

    assert (result.summary["samples"], result.summary["failed"]["deploy"]["count"]) == (9, 3)
