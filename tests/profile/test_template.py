"""New documents, and resolved ones: text that means the very stack that it was made of."""

import re
from pathlib import Path

import pytest
import yaml

from simulator.errors import UserError
from simulator.profile import axes, template
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.lookup import builtin_names
from simulator.profile.modality import places, sections
from simulator.profile.resolved import resolved

ROOT = Path(__file__).parents[2]

OFF = re.compile(r"^( *)# ( *[a-z]\w*:)", re.MULTILINE)
"""A field that is commented out; words begin otherwise."""


def stack(reference):
    """Everything that a profile says of each axis, what backends imply included."""
    profile = load(str(reference))
    choices = choose(profile)
    return {
        axis: axes.flat(axes.value(profile, choices, axis))
        for axis in places(profile.spec.modality)
    }


@pytest.fixture
def drafted(tmp_path):
    def draft(nearest):
        path = tmp_path / "mine.yaml"
        path.write_text(template.document("mine", nearest, path))
        return path

    return draft


@pytest.mark.parametrize("nearest", builtin_names())
def test_a_new_document_is_the_nearest_stack(drafted, nearest):
    assert stack(drafted(nearest)) == stack(nearest)


@pytest.mark.parametrize("nearest", builtin_names())
def test_every_commented_field_has_the_value_that_holds(drafted, nearest):
    """All of them uncommented at once, it is still the same stack."""
    path = drafted(nearest)
    path.write_text(OFF.sub(r"\1\2", path.read_text()))

    assert stack(path) == stack(nearest)
    assert "postprocess" in yaml.safe_load(path.read_text())


def test_a_new_document_claims_nothing(drafted):
    profile = load(str(drafted("ascend_nv12_int8")))

    claims = profile.spec.evidence
    assert {claim.kind for claim in claims.values()} == {"assumed"}
    assert set(sections("image")) - set(claims) == {
        "video", "develop", "front_end", "postprocess", "prompts", "tokenize", "feeds",
    }  # fmt: skip
    assert list(template.unfinished(profile)) == ["summary", *(f"evidence.{s}" for s in claims)]


def test_a_source_that_was_written_is_not_listed(drafted):
    path = drafted("pillow_fp32")
    text = path.read_text()
    old = re.search(r"  decode: {kind: assumed, .*", text)[0]
    path.write_text(text.replace(old, "  decode: {kind: native, source: the manual}"))

    profile = load(str(path))

    assert "evidence.decode" not in template.unfinished(profile)
    assert axes.claims_problem(profile, choose(profile)) == []


def test_a_claim_without_its_source_is_pretended(drafted):
    path = drafted("pillow_fp32")
    path.write_text(path.read_text().replace("decode: {kind: assumed", "decode: {kind: native"))

    profile = load(str(path))
    (problem,) = axes.claims_problem(profile, choose(profile))

    assert "evidence.decode: claims native" in problem


def test_beside_each_field_stands_what_its_backend_admits(drafted):
    """Pillow's filters, of its handbook; its decoder is libjpeg-turbo at its defaults."""
    lines = [" ".join(line.split()) for line in drafted("pillow_fp32").read_text().splitlines()]

    filters = "[pillow: bilinear, bicubic, box, hamming, lanczos, nearest]"
    assert f"interpolation: bicubic # {filters}" in lines
    assert "exif: ignore # [pillow: apply, ignore]" in lines
    assert any(line.startswith("# idct: islow # implied [pillow: islow]") for line in lines)
    assert any("# swscale_flags" in line for line in lines) is False
    assert any(re.match(r"# exporter: null # \[.*litert_torch", line) for line in lines)


def test_what_extends_a_file_says_where_it_lies(tmp_path):
    above = tmp_path / "above" / "base.yaml"
    above.parent.mkdir()
    above.write_text("schema: 1\nname: base\nsummary: s\nextends: opencv_fp32\n")
    below = tmp_path / "below" / "mine.yaml"
    below.parent.mkdir()

    below.write_text(template.document("mine", str(above), below))

    assert yaml.safe_load(below.read_text())["extends"] == "../above/base.yaml"
    assert stack(below) == stack("opencv_fp32")


def test_a_recording_is_no_start(tmp_path):
    path = tmp_path / "board.yaml"
    runtime = "{backend: recorded, recording: r.yaml, graph_optimization_level: null}"
    path.write_text(f"schema: 1\nname: b\nsummary: s\nextends: pillow_fp32\nruntime: {runtime}\n")

    with pytest.raises(UserError, match="replays a recording; start from the stack"):
        template.document("mine", str(path), tmp_path / "mine.yaml")


@pytest.mark.parametrize("name", builtin_names())
@pytest.mark.parametrize("origins", [False, True])
def test_a_resolved_document_is_the_profile(tmp_path, name, origins):
    profile = load(name)
    path = tmp_path / "flat.yaml"

    path.write_text(resolved(profile, choose(profile), origins=origins))

    flat = load(str(path))
    hidden = {"extends"}
    assert flat.spec.model_dump(exclude=hidden) == profile.spec.model_dump(exclude=hidden)
    assert flat.spec.extends is None


def test_origins_are_the_lines_of_the_files(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "schema: 1\nname: mine\nsummary: s\nextends: pillow_fp32\ndecode: {exif: apply}\n"
    )
    profile = load(str(path))

    lines = resolved(profile, choose(profile), origins=True).splitlines()

    noted = [re.fullmatch(r" *(\S.*?) +# (.*)", line) for line in lines]
    origins = {found[1]: found[2] for found in noted if found}
    (shipped,) = {Path(o.rpartition(":")[0]) for f, o in origins.items() if f == "threads: 1"}
    (line,) = [
        number
        for number, text in enumerate(shipped.read_text().splitlines(), 1)
        if text.startswith("runtime:")
    ]
    assert origins["exif: apply"] == f"{path}:5"
    assert origins["threads: 1"].endswith(f"pillow_fp32.yaml:{line}")
    assert origins["# idct: islow"] == "implied by pillow"
    assert origins["# postprocess:"] == "as the model has it"


def test_the_first_line_leads_editors_to_the_schema(tmp_path):
    inside = template.document("mine", "pillow_fp32", ROOT / "profiles" / "mine.yaml")
    outside = template.document("mine", "pillow_fp32", tmp_path / "mine.yaml")

    mark = "# yaml-language-server: $schema="
    assert inside.startswith(f"{mark}schema.json\n")
    assert outside.startswith(f"{mark}{ROOT / 'profiles' / 'schema.json'}\n")
