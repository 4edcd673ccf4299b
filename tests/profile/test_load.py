"""Profiles: found, merged along ``extends``, overridden, and refused with every problem."""

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refused

from simulator.errors import UserError
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.lookup import builtin_names, find
from simulator.profile.paper_names import RESIZE

HEAD = "schema: 1\nname: mine\nsummary: a test\n"
CHILD = f"{HEAD}extends: pillow_fp32\n"


def problems(*asked):
    return refused(lambda: choose(load(*asked)))


def test_a_child_takes_what_it_does_not_write(write):
    profile = load(write(f"{CHILD}decode: {{backend: opencv}}\n"))

    assert profile.name == "mine"
    assert (profile.spec.decode.backend, profile.spec.decode.exif) == ("opencv", "ignore")
    assert profile.spec.resize.backend == "pillow"


def test_every_value_knows_where_it_was_written(write):
    path = write(f"{CHILD}decode:\n  backend: opencv\n")

    profile = load(path, ["runtime.threads=2"])

    assert profile.where(("decode", "backend")) == f"{path}:6"
    assert profile.where(("decode", "exif")).endswith("profiles/pillow_fp32.yaml:4")
    assert profile.where(("runtime", "threads")) == "--set runtime.threads=2"


def test_a_chain_of_three(write):
    write(f"{CHILD}runtime: {{threads: 2}}\n", "a.yaml")
    write(f"{HEAD}extends: a\nruntime: {{threads: 3}}\ncolor: {{order: bgr}}\n", "b.yaml")
    profile = load(write(f"{HEAD}extends: ./b.yaml\nruntime: {{threads: 4}}\n"))

    assert (profile.spec.runtime.threads, profile.spec.color.order) == (4, "bgr")


@pytest.mark.parametrize("names", [("p",), ("q", "p"), ("q", "r", "p")])
def test_a_cycle_is_refused(write, names):
    for name, above in zip(("p", *names), names, strict=False):
        write(f"{HEAD}extends: {above}\n", f"{name}.yaml")
    (problem,) = problems(write(f"{HEAD}extends: {names[0]}\n"))

    assert "extends itself" in problem


def test_an_unknown_parent_names_the_line_and_the_nearest(write):
    path = write(f"{HEAD}extends: pilow_fp32\n")

    (problem,) = problems(path)

    assert problem.startswith(f"{path}:4: extends: unknown profile 'pilow_fp32'; did you mean")
    assert "'pillow_fp32'" in problem


@pytest.mark.parametrize("parent", ["5", "[a]", "{a: b}", "true"])
def test_a_parent_is_a_name(write, parent):
    path = write(f"{HEAD}extends: {parent}\n")

    assert problems(path) == [f"{path}:4: extends: a profile's name expected"]


def test_null_takes_an_inherited_field_away(write):
    """OpenVINO has no graph_optimization_level, which pillow_fp32's runtime wrote."""
    profile = load(
        write(f"{CHILD}runtime: {{backend: openvino, graph_optimization_level: null}}\n")
    )

    assert "graph_optimization_level" not in profile.spec.runtime.model_extra
    choose(profile)


def test_an_override_wins_and_is_remembered():
    profile = load("pillow_fp32", ["resize.backend=opencv", "resize.interpolation=area"])

    assert (profile.spec.resize.backend, profile.spec.resize.interpolation) == ("opencv", "area")
    assert profile.overrides == ("resize.backend=opencv", "resize.interpolation=area")


@pytest.mark.parametrize(
    ("override", "start"),
    [
        ("resize.backend", "--set deploy.resize.backend: KEY=VALUE expected"),
        ("=3", "--set deploy.=3: KEY=VALUE expected"),
        ("resize..x=3", "--set deploy.resize..x=3: KEY=VALUE expected"),
        ("resize.backend=[", "--set deploy.resize.backend=[: '[': not a YAML value"),
        ("decode.exif=2020-99-99", "--set deploy.decode.exif=2020-99-99: '2020-99-99': month must"),
        ("decode={exif: a, exif: b}", "--set deploy.decode={exif: a, exif: b}: '{exif: a, exif"),
        ("resize=pil-cubik", "--set deploy.resize=pil-cubik: unknown resize 'pil-cubik'; did you"),
        ("extends=x", "--set deploy.extends=x: extends cannot be overridden"),
        ("schema=2", "--set deploy.schema=2: schema cannot be overridden"),
        ("decode.exif=no", "--set deploy.decode.exif=no: decode.exif: unknown value 'false'"),
        ("decode.exfi=apply", "--set deploy.decode.exfi=apply: decode.exfi: unknown key 'exfi'; "),
        ("decode=x", "--set deploy.decode=x: decode: keys expected (backend, exif, idct"),
        ("runtime.threads=0", "--set deploy.runtime.threads=0: runtime.threads: input should be g"),
        ("decode.backend=cv", "--set deploy.decode.backend=cv: decode.backend: unknown backend"),
    ],
)
def test_a_bad_override_is_one_line(override, start):
    (problem,) = problems("pillow_fp32", [override], "deploy")

    assert problem.startswith(start)


def test_a_claim_about_a_changed_section_is_not_inherited(write):
    """pillow_fp32 claims decode and resize; only the resize of the child is another."""
    child = load(write(f"{CHILD}resize: {{interpolation: nearest}}\n"))
    override = load("pillow_fp32", ["resize.interpolation=nearest"])

    assert set(child.spec.evidence) == {"decode", "normalize", "runtime"}
    assert set(override.spec.evidence) == {"decode", "normalize", "runtime"}


def test_a_child_may_claim_again(write):
    claim = "evidence: {resize: {kind: assumed, source: a guess}}\n"
    child = load(write(f"{CHILD}resize: {{interpolation: nearest}}\n{claim}"))

    assert child.spec.evidence["resize"].kind == "assumed"


PAPER = [
    ("pil-bilinear", "pillow", "bilinear"),
    ("pil-nearest", "pillow", "nearest"),
    ("pil-box", "pillow", "box"),
    ("pil-hamming", "pillow", "hamming"),
    ("pil-cubic", "pillow", "bicubic"),
    ("pil-lanczos", "pillow", "lanczos"),
    ("opencv-nearest", "opencv", "nearest"),
    ("opencv-bilinear", "opencv", "bilinear"),
    ("opencv-area", "opencv", "area"),
    ("opencv-cubic", "opencv", "bicubic"),
    ("opencv-lanczos", "opencv", "lanczos4"),
]
"""SysNoise (MLSys 2023), Table 1: the eleven resizers."""


@pytest.mark.parametrize(("name", "backend", "kernel"), PAPER)
@pytest.mark.parametrize("base", ["pillow_fp32", "dali_fp32", "ascend_nv12_int8"])
def test_the_papers_short_names(write, base, name, backend, kernel):
    """Whatever the parent's resize was: dali_fp32 says antialias, which OpenCV's has not."""
    profile = load(write(f"{HEAD}extends: {base}\nresize: {name}\n"))
    override = load(base, [f"resize={name}"])

    for one in (profile, override):
        assert (one.spec.resize.backend, one.spec.resize.interpolation) == (backend, kernel)
        assert one.spec.resize.domain == load(base).spec.resize.domain
        choose(one)


def test_an_unknown_short_name_is_refused(write):
    path = write(f"{CHILD}resize: opencv-cubik\n")

    (problem,) = problems(path)

    assert problem.startswith(f"{path}:5: resize: unknown resize 'opencv-cubik'; did you mean ")
    assert all(name in problem for name in RESIZE)


def test_all_problems_come_at_once_each_with_its_line(write):
    path = write(
        f"{CHILD}decode: {{bakend: pillow}}\nrunime: 5\nresize:\n  interpolation: cubic\n"
        "  domain: 7\nruntime: {threads: many}\nnormalize: {mean: [1, x, .nan], std: [1, 2]}\n"
        "evidence: {decode: {kindd: native}, decoed: {kind: native, source: s}}\n"
    )

    found = problems(path)

    starts = [
        f"{path}:5: decode.bakend: unknown key 'bakend'; did you mean 'backend'?",
        f"{path}:6: runime: unknown key 'runime'; did you mean 'runtime'?",
        f"{path}:8: resize.interpolation: pillow offers bilinear, bicubic, box, hamming, lanczos "
        "here, got cubic; did you mean 'bicubic'?",
        f"{path}:9: resize.domain: unknown value '7' (offered: rgb, yuv)",
        f"{path}:10: runtime.threads: a whole number expected, got 'many'",
        f"{path}:11: normalize.mean.1: a number expected, got 'x'",
        f"{path}:11: normalize.mean.2: input should be a finite number, got nan",
        f"{path}:11: normalize.std: 3 numbers expected, got 2",
        f"{path}:12: evidence.decode.kindd: unknown key 'kindd'; did you mean 'kind'?",
        f"{path}:12: evidence.decoed: unknown value 'decoed'; did you mean 'decode'?",
    ]
    for start in starts:
        assert any(line.startswith(start) for line in found), (start, found)


def test_what_is_missing_is_said_once_for_each_section(write):
    path = write("schema: 1\nname: mine\ndecode: {exif: apply}\n")

    found = problems(path)

    missing = "required, and not written (nothing that changes a pixel has a default)"
    assert f"{path}:1: summary: {missing}" in found
    assert f"{path}:3: decode.backend: {missing}" in found
    assert {line.split(": ")[1] for line in found} == {
        "summary", "decode.backend", "color", "resize", "geometry", "normalize", "graph",
        "precision", "runtime", "evidence",
    }  # fmt: skip


def test_a_name_is_not_inherited(write):
    path = write("schema: 1\nsummary: s\nextends: pillow_fp32\n")

    (problem,) = problems(path)

    assert problem.startswith(f"{path}:1: name: required")


def test_a_long_value_does_not_flood_the_screen(write):
    (problem,) = problems(write(f"{CHILD}runtime: {{threads: {'x' * 50_000}}}\n"))

    assert len(problem) < 400


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("color: {format: nv12}", "format nv12 needs source, odd_size, encode, convert"),
        ("color: {source: encode}", "format rgb has no source"),
        ("geometry: {kind: squash}", "kind squash has no rounding; null removes what is inherited"),
        ("geometry: {kind: letterbox}", "kind letterbox needs position, value"),
        ("precision: {cast: {backend: onnxconverter}}", "storage fp32 needs no cast"),
        ("precision: {storage: fp16}", "fp16 needs a cast or a quantizer that makes it"),
        ("precision: {compute: int8}", "storage fp32 cannot be computed in int8"),
        ("resize: {domain: yuv}", "resize.domain yuv needs a color.format other than rgb"),
        ("schema: 1", None),
    ],
)
def test_sections_that_contradict_themselves(write, section, problem):
    if problem is None:
        load(write(CHILD))
        return
    (line,) = problems(write(f"{CHILD}{section}\n"))

    assert line.endswith(problem)


@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_name_resolves_from_any_folder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    spellings = [name, f"{name}.yaml", f"profiles/{name}", f"profiles/{name}.yaml"]

    assert len({find(spelling).resolve() for spelling in spellings}) == 1


def test_a_file_is_found_with_and_without_its_ending(write, tmp_path, monkeypatch):
    path = write(CHILD)
    monkeypatch.chdir(tmp_path)

    for spelling in (path, path.removesuffix(".yaml"), "p", "p.yaml", "./p"):
        assert find(spelling).resolve() == Path(path)


def test_the_current_folder_goes_before_the_built_in_ones(tmp_path, monkeypatch):
    (tmp_path / "opencv_fp32.yaml").write_text(CHILD)
    monkeypatch.chdir(tmp_path)

    assert load("opencv_fp32").name == "mine"


@pytest.mark.parametrize("reference", ["", "nowhere", "a" * 300, "~nobody-here/x", "a\0b", "/"])
def test_what_is_nowhere_lists_what_there_is(reference):
    (problem,) = problems(reference)

    assert problem.startswith("unknown profile")
    assert "ascend_nv12_int8" in problem and "or give a path" in problem


WORDS = st.sampled_from(
    ["backend", "pillow", "opencv", "nv12", "rgb", "format", "resize", "color", "evidence", "model",
     "decode", "fp16", "cast", "int8", "kind", "native", "source", "yuv", "domain", "extends"]
)  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers(-5, 300) | st.floats() | WORDS | st.text(max_size=5)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
SECTIONS = ["decode", "color", "resize", "geometry", "normalize", "graph", "precision", "runtime",
            "evidence", "summary", "name", "schema", "extends"]  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    base=st.sampled_from(builtin_names()),
    sections=st.dictionaries(st.sampled_from(SECTIONS), VALUES, max_size=4),
    overrides=st.lists(
        st.builds("{}.{}={}".format, st.sampled_from(SECTIONS), WORDS, st.text(max_size=6) | WORDS),
        max_size=2,
    ),
)
def test_any_document_is_a_profile_or_refused(tmp_path, base, sections, overrides):
    """Whatever is written: a profile that can be chosen, or lines for the person."""
    path = tmp_path / "p.yaml"
    document = {"schema": 1, "name": "p", "summary": "s", "extends": base} | sections
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    try:
        choose(load(str(path), overrides))
    except UserError as error:
        lines = str(error).splitlines()
    else:
        return
    assert lines
    assert all(": " in line for line in lines)


def test_the_folder_of_the_process_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    load("ascend_nv12_int8")

    assert Path.cwd() == tmp_path and os.listdir() == []
