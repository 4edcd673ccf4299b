"""The open table of stages, and a stage of another package in profiles."""

import sys
import textwrap
from pathlib import Path

import pytest
from installing import HERE, VENDOR, denoising, installed
from json_checker import errors
from refusals import refused

from simulator.contract import Evidence
from simulator.contract.stage import stages, timed_steps
from simulator.errors import ProfileError
from simulator.profile import axes, template
from simulator.profile.implementations import choose, extra_stages
from simulator.profile.load import load
from simulator.profile.modality import axes_of, places, sections
from simulator.profile.resolved import resolved

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from profile_schema import document_schema

OURS = (
    "decode",
    "sensor",
    "develop",
    "color",
    "resize",
    "geometry",
    "normalize",
    "front_end",
    "infer",
    "between",
    "postprocess",
)
HEAD = "schema: 1\nname: mine\nsummary: a test\nextends: pillow_fp32\n"
DENOISED = f"{HEAD}denoise: {{backend: acme_dsp, strength: 3}}\n"


@pytest.fixture
def denoise(tmp_path, monkeypatch):
    with denoising(monkeypatch, tmp_path / "site"):
        yield


def chosen(reference, *overrides):
    profile = load(reference, overrides)
    return profile, choose(profile)


def test_the_steps_of_our_own_stages():
    assert timed_steps("image") == OURS


def test_the_axes_of_images_are_these():
    """Reports, suites and audits of earlier versions name them so."""
    assert list(places("image")) == [
        "video", "decoder", "develop", "color", "resize", "geometry", "input_size", "normalize",
        "front_end",
        "compensation", "pooling", "upsample", "activation", "batchnorm", "accumulation", "layout",
        "roi_align", "precision", "second_precision", "runtime", "batch", "prompts",
        "unletterbox", "box_offset", "box_rounding", "box_precision", "exp_clamp", "nms",
        "proposal_box_offset", "proposal_box_rounding", "proposal_box_precision",
        "proposal_exp_clamp", "proposal_nms",
        "logits_upsample", "argmax", "output_stride", "mask_resize", "tokenize", "feeds",
    ]  # fmt: skip


def test_a_stage_stands_behind_the_step_that_it_follows(denoise):
    assert timed_steps("image") == ("decode", "denoise", *OURS[1:])
    assert [spec.name for spec in stages("image")][:3] == ["video", "decode", "denoise"]
    assert sections("image")[:3] == ("video", "decode", "denoise")


@pytest.mark.parametrize("name", ["dali_fp32", "ort_int8", "pillow_fp32"])
def test_a_profile_without_it_is_as_before(denoise, name):
    profile, choices = chosen(name)

    assert profile.spec.denoise is None
    assert extra_stages(profile, choices) == []
    assert "denoise" not in axes_of(profile.spec)
    assert "denoise" not in resolved(profile, choices, origins=False)


def test_a_profile_with_it(denoise, write):
    profile, choices = chosen(write(DENOISED))

    ((spec, choice),) = extra_stages(profile, choices)
    assert (spec.name, spec.after, spec.calls) == ("denoise", "decode", ("denoise",))
    assert choice.options == {"strength": 3, "window": "rows"}
    assert choice.identity()["backend"] == "acme_dsp"
    assert list(choices)[:2] == ["decode", "denoise"]
    assert type(choice.make()).__name__ == "RowFilter"


def test_its_axis_differs_where_one_of_two_has_it(denoise, write):
    base, other = chosen("pillow_fp32"), chosen(write(DENOISED))

    assert axes.differing(base, other) == axes.differing(other, base) == ["denoise"]
    assert axes.value(*base, "denoise") == "absent"
    assert axes.value(*other, "denoise") == {"backend": "acme_dsp", "strength": 3, "window": "rows"}
    assert axes.is_of_front_end("denoise", other[0])
    assert axes.axis_of("denoise.strength") == "denoise"


def test_its_axis_is_swapped_both_ways(denoise, write):
    base, other = chosen("pillow_fp32"), chosen(write(DENOISED))

    there = axes.swap(base[0], other[0], ["denoise"])
    away = axes.swap(other[0], base[0], ["denoise"])

    assert axes.differing(there, other) == axes.differing(away, base) == []
    assert "denoise" in there[1] and "denoise" not in away[1]


def test_a_child_takes_it_away(denoise, write):
    write(DENOISED)
    child = write("schema: 1\nname: child\nsummary: s\nextends: p\ndenoise: null\n", "child.yaml")

    assert axes.differing(chosen(child), chosen("pillow_fp32")) == []


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{backend: acme_dsp, strength: 4}",
         "5: denoise.strength: acme_dsp offers 1, 2, 3 here, got 4"),
        ("{backend: acme_dsp, strength: 3, strenght: 3}",
         "5: denoise.strenght: unknown key 'strenght'; did you mean 'strength'? "
         "(offered: backend, strength, window)"),
        ("{backend: acme_dsp}", "5: denoise.strength: required by acme_dsp: 1, 2, 3"),
        ("{backend: pillow, strength: 3}",
         "5: denoise.backend: pillow does not denoise; these do: acme_dsp"),
        ("{strength: 3}",
         "5: denoise.backend: required, and not written (nothing that changes a pixel has a "
         "default)"),
        ("5", "5: denoise: keys expected (backend), got 5"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(denoise, write, section, problem):
    path = write(f"{HEAD}denoise: {section}\n")

    assert refused(lambda: choose(load(path))) == [f"{path}:{problem}"]


def test_all_mistakes_come_at_once(denoise, write):
    path = write(f"{HEAD}denoise: {{backend: acme_dsp, strength: 9}}\nnormalize: {{mean: x}}\n")

    found = refused(load, path)

    assert [line.split(": ")[1] for line in found] == ["denoise.strength", "normalize.mean"]


def test_where_no_package_brings_it_the_section_is_unknown(write):
    (problem,) = refused(load, write(DENOISED))

    assert ": denoise: unknown key 'denoise'" in problem


def test_its_claims_are_held_against_its_backend(denoise, write):
    own = f"{DENOISED}evidence: {{denoise: {{kind: KIND, source: the guide}}}}\n"
    native, emulated = (chosen(write(own.replace("KIND", kind))) for kind in ("native", "emulated"))

    (problem,) = axes.claims_problem(*native)
    assert "evidence.denoise: claims native, but the implementation here is emulated" in problem
    assert axes.claims_problem(*emulated) == []
    assert axes.evidence(*emulated, "denoise") == (Evidence.EMULATED, "the guide")
    assert axes.evidence(*chosen("pillow_fp32"), "denoise")[1] == "the stack has no such stage"


def test_it_is_shown_and_offered(denoise, write, tmp_path):
    profile, choices = chosen(write(DENOISED))

    shown = resolved(profile, choices, origins=True)
    own = template.document("new", str(tmp_path / "p.yaml"), Path("new.yaml"))
    other = template.document("new", "pillow_fp32", Path("new.yaml"))

    assert "denoise:\n  backend: acme_dsp" in shown
    assert "# window: rows" in shown and "implied by acme_dsp" in shown
    assert "  strength: 3" in own and "how much of the row above is mixed in" in own
    assert "# denoise: null  # [acme_dsp]" in other


def test_editors_know_it(denoise):
    schema = document_schema()
    head = {"schema": 1, "name": "n", "summary": "s"}

    def wrong(section):
        return errors(head | {"denoise": section}, schema, schema)

    assert list(schema["properties"])[6:8] == ["decode", "denoise"]
    assert wrong({"backend": "acme_dsp", "strength": 2}) == wrong(None) == []
    assert wrong({"backend": "acme_dsp", "strength": 4})
    assert wrong({"backend": "pillow"})
    assert wrong({"backend": "acme_dsp", "strenght": 2})


def broken_stage(tmp_path, monkeypatch, words):
    (tmp_path / "odd_stage.py").write_text(
        f"from acme_dsp import Denoiser\nfrom simulator.contract import StageSpec\nODD = {words}\n"
    )
    points = {"simulator.stages": {"odd": "odd_stage:ODD"}}
    return installed(
        monkeypatch, tmp_path / "site", points, HERE / "vendor_stage", VENDOR, tmp_path, name="odd"
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("StageSpec('odd', 'it is odd', after='dekode')",
         "the stage 'odd' follows 'dekode', which is not a step (steps: "),
        ("StageSpec('odd', 'it is odd', after='decode', section=('odd',), base=Denoiser)",
         "the stage 'odd' does not define its axis, step, calls; fix the package that brings it"),
        ("StageSpec('odd', 'it is odd', after='decode', section=('odd',), base=Denoiser, axis='odd'"
         ", step='odd', calls=('denoise',), model='odd_stage:StageSpec')",
         "the stage 'odd': odd_stage:StageSpec is not a pydantic model with a field 'backend'"),
        ("5", "the entry point 'odd' (odd_stage:ODD) is not a stage of that name"),
    ],
)  # fmt: skip
def test_a_stage_that_is_none_is_the_packages_fault(tmp_path, monkeypatch, words, line):
    with broken_stage(tmp_path, monkeypatch, words):
        (problem,) = refused(load, "pillow_fp32")

    assert problem.startswith(line)
    assert load("pillow_fp32").name == "pillow_fp32"


def test_a_section_may_be_typed_by_its_stage(tmp_path, monkeypatch, write):
    (tmp_path / "typed_stage.py").write_text(
        "from typing import Literal\nfrom pydantic import BaseModel, ConfigDict\n"
        "from dataclasses import replace\nimport acme_dsp\n"
        "class Denoise(BaseModel):\n"
        "    model_config = ConfigDict(extra='forbid', strict=True, frozen=True)\n"
        "    backend: str\n    strength: Literal[2, 3]\n"
        "STAGE = replace(acme_dsp.STAGE, model='typed_stage:Denoise')\n"
    )
    points = {
        "simulator.stages": {"denoise": "typed_stage:STAGE"},
        "simulator.backends": {"acme_dsp": "acme_dsp:BACKEND"},
    }
    paths = (HERE / "vendor_stage", VENDOR, tmp_path)
    with installed(monkeypatch, tmp_path / "site", points, *paths):
        _, choices = chosen(write(DENOISED))
        assert choices["denoise"].options["strength"] == 3
        (problem,) = refused(load, write(DENOISED.replace("3}", "1}")))

    assert problem.endswith(":5: denoise.strength: unknown value '1' (offered: 2, 3)")


def test_stacks_of_two_kinds_of_samples_are_not_compared(monkeypatch):
    one = load("pillow_fp32")
    sounds = one.spec.model_copy(update={"modality": "sound"})
    other = type(one)("siren", sounds, {})

    with pytest.raises(ProfileError, match="pillow_fp32 takes image and siren sound"):
        axes.refuse_mixed(one, other)


@pytest.mark.parametrize("written", ["smell", "5", "[image]"])
def test_an_unknown_modality_is_told_with_its_line(write, written):
    path = write(f"{HEAD}modality: {written}\n")

    (problem,) = refused(load, path)

    assert problem.startswith(f"{path}:5: modality: unknown modality")
    assert "(offered: audio, image, " in problem


def test_the_modality_may_be_written(write):
    own = load(write(f"{HEAD}modality: image\n"))

    assert own.spec.modality == load("pillow_fp32").spec.modality == "image"


def test_the_document_shows_the_example():
    """Every block of Python of docs/writing-a-stage.md stands in the example as it is."""
    text = (HERE.parent / "docs" / "writing-a-stage.md").read_text()
    example = (VENDOR / "acme_npu" / "denoise.py").read_text()

    blocks = [block.partition("```")[0] for block in text.split("```python\n")[1:]]
    assert len(blocks) == 2
    for block in blocks:
        assert textwrap.dedent(block.replace("\n   ", "\n").removeprefix("   ")) in example
