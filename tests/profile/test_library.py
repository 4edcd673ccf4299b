"""The library of stacks: every built-in profile says how it knows, and runs where it can."""

import importlib.util
import re

import pytest
from test_shipped_runtimes import EFFECTIVE

import simulator
from simulator import registry
from simulator.profile.document import read
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.lookup import builtin_names, find
from simulator.profile.modality import sections
from simulator.worker import environments

NAMES = builtin_names()
ELSEWHERE = {"tensorrt_fp16": "tensorrt", "rknn_int8": "rknn", "text_llama_cpp": "llama_cpp"}
"""A GPU, a Python of its own, a build from source, an extra of its own; the module each wants."""
PLACE = re.compile(r"https?://\S+|\b[\w-]+(?:/[\w.-]+)*\.(?:py|cc?|cpp|cu)\b")
"""A page, or a file of a repository."""
OF_THE_LIBRARY = {
    "ascend310p_nv12_fp16", "coral_edgetpu_int8", "coreml_vision_fp16",
    "deepstream_letterbox_fp32", "deepstream_nv12_fp32", "deepstream_symmetric_fp32",
    "gstreamer_i420_fp32", "jetson_inference_fp16", "keras_dataset_fp32", "keras_load_img_fp32",
    "mediapipe_fp32", "mlperf_resnet_fp32", "opencv_dnn_fp32", "openvino_ppp_fp32",
    "openvino_ppp_nv12_fp32", "qnn_fp16", "rknn_model_zoo_int8", "tidl_int8", "timm_fp32",
    "torchvision_old_tensor_fp32", "torchvision_tensor_fp32",
}  # fmt: skip


def able(name):
    """Whether every library that a profile names is installed; nothing is imported."""
    chosen = choose(load(name)).values()
    return all(None not in registry.versions(choice.backend).values() for choice in chosen)


def base_of(name):
    """The sections of the profile that *name* extends; none for a root."""
    parent = read(find(name)).values.get("extends")
    return load(parent).spec if parent else None


def test_the_library_has_the_stacks_that_it_promises():
    assert set(NAMES) >= OF_THE_LIBRARY


@pytest.mark.parametrize("name", NAMES)
def test_it_cites_a_source_for_every_section_that_it_changes(name):
    spec, base = load(name).spec, base_of(name)
    changed = {
        section
        for section in sections(spec.modality)
        if base is not None and getattr(spec, section) != getattr(base, section)
    }

    assert changed <= set(spec.evidence)
    assert all(len(claim.source) >= 20 for claim in spec.evidence.values())
    assert changed or base is None, "a profile that says nothing of its own"


@pytest.mark.parametrize("name", sorted(OF_THE_LIBRARY))
def test_it_names_a_page_or_a_file_where_one_can_look_it_up(name):
    assert any(PLACE.search(claim.source) for claim in load(name).spec.evidence.values())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_assumed_says_so(name):
    for section, claim in load(name).spec.evidence.items():
        if claim.kind == "assumed":
            assert "assumed" in claim.source, f"{section}: {claim.source}"


@pytest.mark.parametrize("name", sorted(OF_THE_LIBRARY))
def test_the_runtime_of_another_vendor_is_not_called_native(name):
    """``native`` is for a library that a stack itself uses; a stand-in is emulated."""
    for section, claim in load(name).spec.evidence.items():
        if re.search(r"\bstands? in\b", claim.source):
            assert claim.kind == "emulated", f"{section}: {claim.source}"


@pytest.mark.parametrize("name", NAMES)
def test_its_summary_fits_a_line_of_a_table(name):
    summary = load(name).spec.summary

    assert 20 <= len(summary) <= 100
    assert "\n" not in summary


def test_no_two_summaries_are_the_same():
    summaries = [load(name).spec.summary.casefold() for name in NAMES]

    assert len(set(summaries)) == len(summaries)


def test_no_two_profiles_are_the_same_stack():
    specs = [load(name).spec for name in NAMES]
    stacks = [one.model_dump_json(include=set(sections(one.modality))) for one in specs]

    assert len(set(stacks)) == len(stacks)


def test_those_that_cannot_run_here_are_the_known_ones():
    missing = {name for name, module in ELSEWHERE.items() if not importlib.util.find_spec(module)}

    assert {name for name in NAMES if not able(name)} == missing


@pytest.mark.parametrize("name", ELSEWHERE)
def test_one_whose_backend_has_a_python_of_its_own_can_run(cache, name):
    backend = ELSEWHERE[name]
    environments.keep(backend, environments.Installed("/its/own/python", {backend: "1.0"}))

    assert able(name)


SLOW = {
    "ascend310p_nv12_fp16", "coral_edgetpu_int8", "coreml_vision_fp16", "jetson_inference_fp16",
    "mediapipe_fp32", "qnn_fp16",
}  # fmt: skip
"""FP16 on a CPU, a compiler, and converters: make prove runs them."""


OF_IMAGES = [name for name in NAMES if load(name).spec.modality == "image"]


FOUR_BITS = ("mxfp4_a8", "nvfp4")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.prove] if name in SLOW else [])
        for name in sorted(set(OF_IMAGES) - set(ELSEWHERE) - set(EFFECTIVE))
    ],
)
def test_it_answers_on_the_built_in_images(tmp_path, name):
    """The same answer twice, and on most photographs the training stack's.

    The runtimes' own profiles are run in test_shipped_runtimes.py. Four bits after training lose
    more.
    """
    run = simulator.compare(
        "pillow_fp32", name, limit=2, quick=True, out=tmp_path / "run", report=False
    )
    summary = run.summary

    assert summary["samples"] == 2
    assert summary["controls"]["self"]["bit_equal"]
    assert summary["flips"]["count"] <= (2 if name.endswith("_w4a4") or name in FOUR_BITS else 1)
