"""Attacks on a classifier whose gradient can be worked out by hand."""

import pickle

import numpy as np
import pytest
import tiny
import tiny_tasks
from attacking import attacked, bound, pixels_of, with_program

import simulator
from simulator.conditions.attacks.record import record_of
from simulator.conditions.attacks.target import opened
from simulator.conditions.condition import under
from simulator.errors import ModelError, SampleError, UserError

RED = 0


@pytest.fixture
def program(tmp_path):
    return with_program(tmp_path / "program")


def red(size=(32, 32)):
    return np.full((*size, 3), (200, 100, 50), np.uint8)


def test_fgsm_by_hand(program):
    """The logit of red is the mean of red: its pixels go down, all others up, by the budget."""
    found = attacked(bound("fgsm:20/255", program), red())
    np.testing.assert_array_equal(pixels_of(found)[3, 4], (180, 120, 70))
    assert len(np.unique(pixels_of(found).reshape(-1, 3), axis=0)) == 1
    record = record_of(found.data)
    assert (record.clean, record.exact, record.rounded) == (0, 0, 0)
    assert record.length == pytest.approx(20 / 255, abs=1e-6)


def test_pgd_reaches_the_edge_of_its_budget(program):
    """20 steps of 3/40 go further than the budget, which stops them."""
    found = attacked(bound("pgd:linf,60/255,start=clean", program), red())
    np.testing.assert_array_equal(pixels_of(found)[3, 4], (140, 160, 110))
    assert record_of(found.data).exact == 1


@pytest.mark.parametrize(
    ("levels", "kept"), [(0.4, 0), (0.5, 0), (0.6, 0), (1, 1), (1.5, 1), (2.6, 2)]
)
def test_the_rounding_is_on_record_and_stays_within_the_budget(program, levels, kept):
    """No file of 8 bits holds part of a level; what would round up goes back."""
    found = attacked(bound(f"fgsm:{levels}/255", program), red())
    record = record_of(found.data)
    assert record.length == pytest.approx(levels / 255, abs=1e-6)
    assert record.rounded_length == pytest.approx(kept / 255, abs=1e-6)
    np.testing.assert_array_equal(pixels_of(found)[0, 0], (200 - kept, 100 + kept, 50 + kept))


def test_what_is_cropped_away_stays_and_stacks_crop_the_attacked_part(tmp_path):
    """32 of 40: a border of 4 keeps its pixels, and no stack has to resize."""
    place = with_program(tmp_path / "crop", geometry={"kind": "short_side_crop", "short_side": 40})
    found = pixels_of(attacked(bound("fgsm:20/255", place), red((40, 48))))
    assert found.shape == (40, 48, 3)
    changed = (found != red((40, 48))).any(axis=2)
    assert changed[4:36, 8:40].all() and changed.sum() == 32 * 32


def test_padding_is_not_attacked(tmp_path):
    place = with_program(tmp_path / "box", geometry={"kind": "letterbox", "value": 114})
    found = pixels_of(attacked(bound("fgsm:20/255", place), red((16, 32))))
    assert found.shape == (16, 32, 3)
    np.testing.assert_array_equal(found[3, 4], (180, 120, 70))


@pytest.mark.parametrize("fields", [
    {"order": "bgr"}, {"top": 1, "mean": [0.5] * 3, "std": [0.25] * 3},
])  # fmt: skip
def test_the_cards_input_is_followed(tmp_path, fields):
    """With BGR the first logit is that of blue: blue goes down."""
    place = with_program(tmp_path / "other", input={**tiny.SPEC["input"], **fields})
    wanted = (220, 120, 30) if "order" in fields else (180, 120, 70)
    found = attacked(bound("fgsm:20/255", place), red())
    np.testing.assert_array_equal(pixels_of(found)[3, 4], wanted)


@pytest.mark.parametrize(("text", "budget"), [("pgd:l2,3", 3), ("pgd:l1,40,restarts=2", 40)])
def test_the_budget_holds_in_other_norms(program, text, budget):
    record = record_of(attacked(bound(text, program), tiny.picture((200, 100, 50), (32, 32))).data)
    assert 0.5 * budget < record.length <= budget * (1 + 1e-5)


def test_equal_draws_are_equal_and_trials_differ(program):
    condition, picture = bound("pgd:l2,1", program), tiny.picture((200, 100, 50), (32, 32))
    first = attacked(condition, picture).data
    assert attacked(pickle.loads(pickle.dumps(condition)), picture).data == first
    assert attacked(condition, picture, trial=1).data != first
    assert attacked(condition, picture, name="b.png").data != first
    with pytest.raises(UserError, match="fgsm is not random"):
        under("fgsm:1/255", 1)


@pytest.mark.parametrize("text", [
    "fgsm:8/255", "fgsm:0.5/255,resize=bicubic", "pgd:linf,8/255", "pgd:l2,2,steps=40",
    "pgd:l1,400,steps=5,restarts=2,step=1/10,resize=box", "pgd:l2,1,start=clean",
    "autoattack:linf,8/255", "autoattack:l2,0.5,parts=square+fab,steps=20,queries=5",
    "autoattack:l1,100,evaluations=102,on=each,resize=box", "square:linf,8/255",
    "square:l2,2,queries=100,on=openvino_int8,resize=bicubic",
])  # fmt: skip
def test_its_text_is_read_back(text):
    assert under(text).condition.text == text


def test_the_model_is_part_of_its_identity(program, tmp_path):
    other = with_program(tmp_path / "other", kind=None, geometry={"kind": "letterbox"})
    one, two = bound("fgsm:8/255", program), bound("fgsm:8/255", other)
    assert one.identity() != two.identity() == bound("fgsm:8/255", other).identity()


@pytest.mark.parametrize("text", [
    "fgsm:", "fgsm:0", "fgsm:-1", "fgsm:2", "fgsm:1/0", "fgsm:nan", "fgsm:1/255,steps=2",
    "fgsm:1/255,resize=nearest", "pgd:linf", "pgd:linf,1.5", "pgd:l3,1", "pgd:l2,0",
    "pgd:l2,1,steps=0", "pgd:l2,1,steps=x", "pgd:l2,1,step=0", "pgd:l2,1,steps=3,steps=4",
    "pgd:l2,1,start=here", "pgd:l2,1,start=clean,restarts=2", "pgd:l2," + "9" * 400,
    "autoattack:linf", "autoattack:linf,2", "autoattack:linf,8/255,parts=pgd",
    "autoattack:linf,8/255,parts=fab+fab", "autoattack:linf,8/255,parts=",
    "autoattack:l2,1,steps=0", "autoattack:l2,1,queries=x", "autoattack:l2,1,evaluations=-1",
    "square:l3,1", "square:l2,0", "square:l2,1,queries=0", "square:l2,1,steps=3",
])  # fmt: skip
def test_wrong_parameters_are_refused_in_one_line(text):
    with pytest.raises(UserError) as caught:
        under(text)
    assert "expected" in str(caught.value) and "\n" not in str(caught.value)


def test_a_card_of_tflite_files_is_refused(tmp_path):
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "m.tflite").write_bytes(b"....TFL3")
    tflite = tiny.card(folder, model=None, tflite={"fp32": "m.tflite"})
    with pytest.raises(UserError, match=r"gradient, and .*; name model: FILE\.onnx or torch_e"):
        bound("fgsm:1/255", tflite)


@pytest.mark.parametrize("task", ["detection", "segmentation"])
def test_what_is_no_classifier_is_refused(tmp_path, task):
    place = tiny_tasks.card(tmp_path / task, task)
    with pytest.raises(UserError, match=r"attacks are for classification; .* is for " + task):
        bound("fgsm:1/255", place)
    with pytest.raises(UserError, match="attacks are for classification"):
        simulator.compare(
            "pillow_fp32", "opencv_fp32", model=place, under="fgsm:1/255",
            data=tiny_tasks.data(tmp_path / "data", task),
        )  # fmt: skip


def test_without_a_label_the_sample_is_skipped(program):
    with pytest.raises(SampleError, match="it has no label, and fgsm moves away from the label"):
        attacked(bound("fgsm:1/255", program), red(), truth=None)


def test_a_program_of_another_model_is_refused(tmp_path):
    other = with_program(tmp_path / "other", factor=1.5)
    with pytest.raises(ModelError, match=r"another model than .*model.onnx: their scores differ"):
        attacked(bound("fgsm:1/255", other), red())


def test_every_stack_of_a_run_gets_the_attacked_file(program, tmp_path, cache):
    folder = tiny.data(tmp_path / "photographs", each=2)
    result = simulator.compare(
        "pillow_bilinear_fp32", "opencv_fp32", model=program, data=folder, under="fgsm:120/255",
        quick=True,
    )  # fmt: skip
    rows = result.records().to_pylist()
    assert len(rows) == 12 and not any(row["correct"] for row in rows)
    assert opened.cache_info().currsize == 0, "the attacked model is released with the run"


PLANES = """
schema: 1
name: planes
summary: the planes of the file itself
extends: nv12_fp32
decode: {backend: ffmpeg, swscale_flags: [bicubic, accurate_rnd, full_chroma_int]}
color:
  format: nv12
  order: model
  source: planes
  odd_size: keep
  encode: {backend: itu, matrix: bt601, range: full, chroma_downsampling: average}
  convert: {backend: itu, matrix: bt601, range: full, chroma_upsampling: nearest}
evidence:
  decode: {kind: native, source: FFmpeg}
"""


def test_a_jpeg_of_quality_100_reaches_stacks_that_take_planes(program, tmp_path, cache):
    """Its samples are off by a level or two; a PNG has no planes, and would be skipped."""
    found = attacked(bound("fgsm:20/255,saved=jpeg100", program), red())
    assert found.format == "jpeg"
    off = np.abs(pixels_of(found).astype(int) - (180, 120, 70))
    assert off.max() <= 2
    record = record_of(found.data)
    far = np.abs(pixels_of(found).astype(int) - red()).max()
    assert record.rounded_length == pytest.approx(far / 255, abs=1e-6)
    folder = tiny.data(tmp_path / "photographs", each=1)
    planes = tmp_path / "planes.yaml"
    planes.write_text(PLANES)
    result = simulator.compare(
        "pillow_bilinear_fp32", str(planes), model=program, data=folder,
        under="fgsm:120/255,saved=jpeg100", quick=True,
    )  # fmt: skip
    rows = result.records().to_pylist()
    assert len(rows) == 6 and not any(row["correct"] for row in rows)
