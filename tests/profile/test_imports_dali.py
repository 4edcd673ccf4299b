"""Pipelines of DALI: Python, what ``Pipeline.serialize()`` writes, and Triton's repositories."""

import pytest
from importing import DALI as WHOLE
from importing import geometry, normalization

from simulator.errors import ProfileError
from simulator.importers import convert
from simulator.profile.load import load

DALI = WHOLE.replace("256,", "40,").replace("(224, 224)", "(32, 32)")
CONFIG = 'name: "preprocessing"\nbackend: "dali"\nmax_batch_size: 8\n'
ENSEMBLE = """\
name: "both"
platform: "ensemble"
input [ { name: "INPUT" data_type: TYPE_UINT8 dims: [ -1 ] } ]
ensemble_scheduling {
  step [
    { model_name: "preprocessing" model_version: -1
      input_map { key: "DALI_INPUT_0" value: "INPUT" } },
    { model_name: "net" model_version: -1 }
  ]
}
"""


def check(profile):
    assert geometry(profile) == ("short_side_crop", "dali", 40)
    assert normalization(profile)[0] == pytest.approx([123.675, 116.28, 103.53])
    assert normalization(profile)[2] == "multiply"
    assert profile.spec.resize.interpolation == "bicubic"


def test_a_python_file(imports):
    profile = imports.profile(DALI, "pipe.py")

    check(profile)
    assert profile.spec.evidence["decode"].kind == "assumed"  # device=mixed is nvJPEG


def test_what_dali_serializes(imports):
    pytest.importorskip("nvidia.dali")
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe():
        images = fn.decoders.image(fn.external_source(name="x"), device="cpu")
        images = fn.resize(images, resize_shorter=40, interp_type=types.INTERP_CUBIC)
        return fn.crop_mirror_normalize(
            images, dtype=types.FLOAT, crop=(32, 32), mean=[123.675, 116.28, 103.53],
            std=[58.395, 57.12, 57.375])  # fmt: skip

    raw = pipe().serialize()

    check(imports.profile(raw, "model.dali"))
    imports.refuses(": a damaged model.dali: ", raw[:-400], "model.dali")


def test_half_precision_is_said(imports):
    profile = imports.profile(DALI.replace("types.FLOAT", "types.FLOAT16"), "pipe.py")

    assert profile.spec.evidence["normalize"].kind == "assumed"


@pytest.fixture
def repository(tmp_path):
    """A repository of models, as the DALI backend's README lays it out."""
    for name, text in (("preprocessing", CONFIG), ("both", ENSEMBLE)):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(text)
    (tmp_path / "preprocessing" / "1" / "dali.py").write_text(DALI)
    return tmp_path


@pytest.mark.parametrize("model", ["preprocessing", "both"])
def test_a_repository_of_triton(repository, model):
    made = repository / "made.yaml"
    made.write_text(convert(repository / model / "config.pbtxt"))

    check(load(str(made)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (ENSEMBLE.replace("preprocessing", "gone"), "none of gone, net is a DALI model beside"),
        ('name: "r"\nplatform: "onnxruntime_onnx"\n', "tensors of one network, and no prepro"),
        ('name: "r"\nbackend: "dali"\n', "a DALI model without 1/dali.py or 1/model.dali"),
        ('name: "r"\nbackend: "dali" {\n', "not protobuf text: {"),
        ('name: "r"\nbackend: ', "not protobuf text: it ends inside of a message"),
    ],
)
def test_what_triton_does_not_say(repository, text, problem):
    folder = repository / "other"
    folder.mkdir()
    (folder / "config.pbtxt").write_text(text)

    with pytest.raises(ProfileError) as caught:
        convert(folder / "config.pbtxt", "triton")
    assert len(caught.value.problems) == 1
    assert problem in caught.value.problems[0]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("resize_shorter=40", "resize_x=40", ":9: resize.resize_x: one side alone"),
        ("types.FLOAT", "types.INT16", ":10: crop_mirror_normalize.dtype=types.INT16: types."),
        ("crop=(32, 32)", "crop=(48, 48)", ":10: crop_mirror_normalize.crop=[48, 48]: larger"),
        ("crop=(32, 32)", "crop=(32, 32), mirror=flip", ":10: crop_mirror_normalize.mirror=flip"),
        ("fn.resize(images", "fn.rotate(fn.resize(images", ":9: rotate: a profile cannot"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused(imports, old, new, problem):
    text = DALI.replace(old, new).replace(
        "INTERP_CUBIC)", "INTERP_CUBIC))" if "rotate" in new else "INTERP_CUBIC)"
    )
    imports.refuses(problem, text, "pipe.py")


def test_a_preprocess_file_of_deepstream_is_one_line(imports):
    text = (
        "[property]\nenable=1\ntarget-unique-ids=1\nnetwork-input-order=0\nprocess-on-frame=1\n"
        "processing-width=960\nprocessing-height=544\nscaling-filter=0\ntensor-data-type=0\n"
        "[user-configs]\npixel-normalization-factor=0.003921568\n[group-0]\nsrc-ids=0;1\n"
    )
    problems = imports.refused(text, "config_preprocess.txt")
    assert len(problems) == 1
    assert "Gst-nvdspreprocess" in problems[0]
