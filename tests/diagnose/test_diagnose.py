"""Which part of two stacks is to blame: each one alone, two together, and none."""

import io
from contextlib import redirect_stdout

import pytest
import tiny
import tiny_tasks

import simulator
from simulator import cli
from simulator.errors import DataError, UserError

BGR = "deploy.color.order=bgr"
"""Red becomes blue and blue red: of the six tiny images four change."""
SWAPPED = ["channels are swapped"]
CEIL = "deploy.graph.pooling.ceil_mode=ceil"
"""A pool of 3 by 3 with steps of 2 gives 16 rows of 32 in place of 15: other means."""
NMS = "deploy.postprocess.nms.score_threshold=1.0"
"""No box is above it: every one of the six is lost."""


@pytest.fixture
def found(cache, tmp_path):
    """A function that diagnoses the tiny classifier, or a tiny task."""

    def run(*overrides, task=None, proto=None, **options):
        if task:
            model = tiny_tasks.card(tmp_path / "model", task)
            data = tiny_tasks.data(tmp_path / "data", task)
        else:
            model, data = tiny.card(tmp_path / "model", proto), tiny.data(tmp_path / "data")
        asked = {"train": "pillow_fp32", "deploy": "pillow_fp32", "limit": None} | options
        return simulator.diagnose(
            **asked, overrides=overrides, model=model, data=data, out=tmp_path / "run", workers=1
        ).summary

    return run


def states(summary):
    return [part.state for part in summary.parts]


def test_equal_stacks_are_equal_in_every_part_and_nothing_is_to_change(found):
    summary = found()

    assert states(summary) == ["equal"] * 3
    assert (summary.changed, summary.findings, summary.repair, summary.explained) == (
        0, [], None, True,
    )  # fmt: skip
    assert summary.verdict.lost[0] == "The two stacks are equal to the bit: no part is to blame."


def test_a_front_end_alone_is_guilty_and_has_every_changed_answer(found):
    summary = found(BGR)

    assert states(summary) == ["differs", "equal", "equal"]
    front, network, _ = summary.parts
    assert (summary.changed, summary.units) == (4, 6)
    assert (front.alone, front.repaired, front.share) == (4, 4, 4)
    assert (network.alone, network.repaired, network.share) == (0, 0, 0)
    assert [one.name for one in summary.findings] == SWAPPED
    assert summary.findings[0].certainty == "exact"
    assert summary.repair.change == {"color.order": "model"}
    assert (summary.repair.state, summary.repair.changed, summary.explained) == ("equal", 0, True)
    assert summary.verdict.lost[0].startswith("The front end is to blame: channels are swapped.")
    assert "The network and the postprocessing are the same on both sides." in (
        summary.verdict.lost
    )


def test_a_network_alone_is_guilty(found):
    summary = found(CEIL, proto=tiny.pooled())

    assert states(summary) == ["equal", "differs", "equal"]
    assert [one.part for one in summary.findings if one.change] == ["network"]
    assert summary.repair.change == {"graph.pooling.ceil_mode": "keep"}
    assert summary.repair.state == "equal"


def test_a_postprocessing_alone_is_guilty(found):
    summary = found(NMS, task="detection")

    assert states(summary) == ["equal", "equal", "differs"]
    assert (summary.changed, summary.parts[2].share) == (6, 6)
    assert summary.repair.change == {"postprocess.nms.score_threshold": "model"}
    assert (summary.repair.of, summary.repair.state, summary.repair.changed) == (
        "outputs", "equal", 0,
    )  # fmt: skip


def test_two_parts_share_what_changed_and_both_are_named(found):
    """Color alone changes 4 of 6 boxes, the threshold all: (4 + 0) / 2 and (6 + 2) / 2."""
    summary = found(NMS, BGR, task="detection")

    assert states(summary) == ["differs", "equal", "differs"]
    front, _, post = summary.parts
    assert (front.alone, front.repaired, front.share) == (4, 0, 2)
    assert (post.alone, post.repaired, post.share) == (6, 2, 4)
    assert {one.part for one in summary.findings} == {"front end", "postprocessing"}
    assert summary.explained and summary.repair.changed == 0


def test_an_axis_without_effect_is_not_named(found):
    """The images are smaller than the network's input but for nothing: EXIF is in none of them."""
    summary = found(BGR, "deploy.decode.exif=ignore")

    assert [one.name for one in summary.findings] == SWAPPED


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("resize=opencv-bicubic", "no antialiasing"),
        ("resize=opencv-area", "area in place of bicubic"),
        ("geometry={kind: letterbox, rounding: floor, position: center, value: 114}",
         "letterbox in place of squash"),
        ("normalize.std=[1, 1, 1]", "not divided by std, mean of [0, 255]"),
    ],
)  # fmt: skip
def test_what_profiles_declare_is_told_as_what_is_solved_is(found, change, name):
    summary = found(f"deploy.{change}", "train.geometry={kind: squash, rounding: null}")

    one = next(one for one in summary.findings if one.name == name)
    assert one.certainty == "exact"
    assert summary.repair.state == "equal"


def test_of_a_decoder_only_what_changes_pixels_is_named(found):
    """No image has an EXIF orientation."""
    fast = "{backend: turbojpeg, exif: ignore, idct: ifast, chroma_upsampling: plain}"
    summary = found(f"train.decode={fast}", "deploy.decode={backend: opencv, exif: apply}")

    assert [one.name for one in summary.findings] == ["decoder: fancy upsampling on"]


def test_the_screen_has_the_verdict_first_and_the_change_as_a_diff(cache, tmp_path):
    words = [
        "diagnose", "--train", "pillow_fp32", "--deploy", "pillow_fp32", "--set", BGR,
        "--model", tiny.card(tmp_path / "model"), "--data", tiny.data(tmp_path / "data"),
        "--limit", 2, "--out", tmp_path / "run",
    ]  # fmt: skip
    with redirect_stdout(io.StringIO()) as said:
        code = cli.main([*map(str, words)])

    lines = said.getvalue().splitlines()
    assert code == 0
    assert lines[0].startswith("The front end is to blame: channels are swapped. ")
    assert lines.index("-color.order: bgr") + 1 == lines.index("+color.order: model")
    assert (tmp_path / "run" / "report.html").is_file()


def test_eight_samples_are_taken_unless_more_are_asked_for(cache, tmp_path):
    model, data = tiny.card(tmp_path / "model"), tiny.data(tmp_path / "data", each=4)
    given = {"train": "pillow_fp32", "deploy": "pillow_fp32", "model": model, "data": data}

    assert simulator.diagnose(**given, out=tmp_path / "run").summary.samples == 8
    with pytest.raises(DataError, match="limit must be at least 1"):
        simulator.diagnose(**given, limit=0, out=tmp_path / "none")


def test_batches_are_refused_in_one_line(found):
    with pytest.raises(UserError, match="a diagnosis needs one sample at a time"):
        found("deploy.runtime.batch=2")


def test_masks_have_parts_as_well(found):
    summary = found("deploy.postprocess.logits_upsample.mode=nearest", task="segmentation")

    assert states(summary) == ["equal", "equal", "differs"]
    assert summary.repair.change == {"postprocess.logits_upsample.mode": "model"}
    assert (summary.unit, summary.explained, summary.repair.changed) == ("pixel", True, 0)
