"""A valid profile can run: every section is checked against the backend that it names."""

import pytest
from refusals import refused

from simulator.contract import Stage
from simulator.errors import ProfileError
from simulator.profile import axes
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.lookup import builtin_names


def problems(name, *overrides):
    return refused(lambda: choose(load(name, overrides)), by=ProfileError)


def test_the_built_in_profiles_that_are_promised():
    promised = {
        "pillow_fp32", "opencv_fp32", "ffmpeg_fp32", "dali_fp32", "pytorch_fp32", "ort_int8",
        "openvino_fp16", "openvino_int8", "nv12_fp32", "ascend_nv12_int8",
    }  # fmt: skip

    assert promised <= set(builtin_names())


@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_profile_is_valid_and_claims_no_more_than_is_so(name):
    profile = load(name)

    assert axes.claims_problem(profile, choose(profile)) == []
    assert profile.name == name
    assert profile.spec.summary
    assert all(len(claim.source) > 10 for claim in profile.spec.evidence.values())


def test_the_exact_meaning_of_pillow_fp32():
    """Issue 2: Pillow decode, RGB, Pillow bicubic, float32, ONNX Runtime CPU FP32."""
    spec = load("pillow_fp32").spec

    assert (spec.decode.backend, spec.color.format) == ("pillow", "rgb")
    assert (spec.resize.backend, spec.resize.interpolation) == ("pillow", "bicubic")
    assert (spec.precision.storage, spec.precision.compute) == ("fp32", "fp32")
    assert (spec.runtime.backend, spec.runtime.device) == ("onnxruntime", "cpu")


@pytest.mark.parametrize(
    ("name", "overrides", "key", "words"),
    [
        ("pillow_fp32", ["resize.interpolation=area"], "resize.interpolation", "bilinear, bicubic"),
        ("pillow_fp32", ["resize.antialias=false"], "resize.antialias", "pillow offers true here"),
        ("pillow_fp32", ["decode.idct=ifast"], "decode.idct", "offers islow here, got ifast"),
        ("dali_fp32", ["decode.idct=ffmpeg"], "decode.idct", "dali offers islow here"),
        (
            "dali_fp32", ["decode.exif=ignore", "decode.idct=null"], "decode.idct",
            "required by dali: islow, ifast",
        ),
        ("pillow_fp32", ["decode.exif=null"], "decode.exif", "required by pillow: apply, ignore"),
        ("pillow_fp32", ["runtime.device=gpu"], "runtime.device", "offers cpu here, got gpu"),
        ("pillow_fp32", ["decode.backend=itu"], "decode.backend", "itu does not decode; these do:"),
        ("pillow_fp32", ["resize.backend=ort"], "resize.backend", "unknown backend 'ort'"),
        ("pillow_fp32", ["decode.swscale_flags=[]"], "decode.swscale_flags", "has no such field"),
        ("ffmpeg_fp32", ["decode.swscale_flags=[a]"], "decode.swscale_flags", "a list with any of"),
        (
            "ascend_nv12_int8", ["decode.backend=pillow", "decode.swscale_flags=null"],
            "color.source", "pillow does not give YUV planes; use source: encode",
        ),
        (
            "ascend_nv12_int8", ["resize.backend=tensorflow", "resize.antialias=false"],
            "resize.domain", "tensorflow gives float32, but YUV planes are uint8; use domain: rgb",
        ),
    ],
)  # fmt: skip
def test_what_the_backend_does_not_offer_is_refused(name, overrides, key, words):
    (problem,) = problems(name, *overrides)

    assert f": {key}: " in problem
    assert words in problem


def test_problems_of_several_sections_come_at_once():
    found = problems("pillow_fp32", "decode.idct=ifast", "resize.interpolation=area")

    assert len(found) == 2


def test_a_value_that_looks_like_a_new_line_stays_on_one():
    (problem,) = problems("pillow_fp32", 'runtime.device="a\\tb\\nc"')

    assert "got 'a\\tb\\nc'" in problem


OF_INT8 = "weights: per_channel, reduce_range: false"
DYNAMIC = f"{OF_INT8}, activations: dynamic"
STATIC = f"{OF_INT8}, activations: uint8, symmetric: false, method: minmax"
SAMPLES = ", calibration: {samples: 4, through: deploy, source: data}"


@pytest.mark.parametrize(
    ("quantizer", "problem"),
    [
        (DYNAMIC, None),
        (DYNAMIC + SAMPLES, "onnxruntime needs none here; leave it out"),
        (STATIC, "required by onnxruntime"),
        (STATIC + SAMPLES, None),
    ],
)
def test_a_quantizer_has_calibration_samples_just_where_it_needs_them(quantizer, problem):
    made = f"quantizer: {{backend: onnxruntime, {quantizer}}}"
    override = f"precision={{storage: int8, compute: int8, {made}}}"
    if problem is None:
        choose(load("text_fp32", [override]))
        return
    (line,) = problems("text_fp32", override)
    assert line.endswith(f"precision.quantizer.calibration: {problem}")


def test_a_field_with_one_value_is_filled_and_said():
    """Pillow's bicubic always antialiases, so nobody has to write it."""
    choice = choose(load("pillow_fp32"))[Stage.RESIZE]

    assert choice.options["antialias"] is True
    assert choice.facts == ("antialias",)


@pytest.mark.parametrize(
    ("kernel", "antialias"), [("nearest", False), ("bilinear", True), ("lanczos", True)]
)
def test_the_offer_that_fits_is_taken(kernel, antialias):
    """Pillow handbook, "Filters": nearest picks one pixel, every other kernel is widened."""
    choice = choose(load("pillow_fp32", [f"resize.interpolation={kernel}"]))[Stage.RESIZE]

    assert choice.options["antialias"] is antialias


def test_a_choice_is_told_from_another_by_its_options():
    a, b = (
        choose(load("pillow_fp32", [f"resize.interpolation={kernel}"]))[Stage.RESIZE].identity()
        for kernel in ("bilinear", "box")
    )

    assert a != b
    assert set(a) == {"stage", "backend", "package", "options", "versions"}


def test_a_claim_stronger_than_the_backends_own_is_refused(write):
    """AIPP's arithmetic is rebuilt from its documentation: nobody may call it native."""
    path = write(
        "schema: 1\nname: p\nsummary: s\nextends: ascend_nv12_int8\n"
        "evidence:\n  color: {kind: native, source: I said so}\n"
    )
    profile = load(path)

    (problem,) = axes.claims_problem(profile, choose(profile))

    assert problem.startswith(f"{path}:6: evidence.color: claims native, but")
    assert "emulated" in problem


@pytest.mark.parametrize(
    ("base", "runtime", "problem"),
    [
        ("pillow_fp32", "{exporter: {backend: litert_torch}}",
         "onnxruntime opens onnx files, but the profile makes a tflite file"),
        ("ort_int8", "{backend: litert, exporter: {backend: litert_torch}, kernels: xnnpack, "
         "graph_optimization_level: null}",
         "onnxruntime works on onnx files, but here the model is tflite"),
        ("ort_int8", "{backend: litert, kernels: xnnpack, graph_optimization_level: null}",
         "onnxruntime works on onnx files, but here the model is tflite"),
        ("pillow_fp32", "{backend: pytorch, mode: eager, memory_format: contiguous, "
         "exporter: {backend: litert_torch}, graph_optimization_level: null}",
         "pytorch opens torch_export files, but the profile makes a tflite file"),
    ],
)  # fmt: skip
def test_a_model_file_that_the_next_one_cannot_take_is_refused(base, runtime, problem):
    assert problems(base, f"runtime={runtime}")[-1].endswith(problem)


def test_storage_that_nobody_makes_is_refused_after_an_exporter_too():
    with pytest.raises(ProfileError, match="fp16 needs a cast or a quantizer that makes it"):
        choose(load("litert_fp32", ["precision.storage=fp16"]))
