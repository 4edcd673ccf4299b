"""``profiles/schema.json``: what editors check documents by."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from json_checker import errors

from simulator import registry
from simulator.profile.load import load
from simulator.profile.modality import filled, schema_of
from simulator.profile.modeline import schema_name
from simulator.profile.paper_names import RESIZE

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "profiles" / "schema.json").read_text(encoding="utf-8"))
HEAD = {"schema": 1, "name": "mine", "summary": "a test", "extends": "pillow_fp32"}
QUANTIZER = {"calibration": {"samples": 1, "through": "train", "source": "data"}}
FILLED = {
    "video": "Video", "decode": "Decode", "sensor": "Sensor", "develop": "Develop",
    "encode": "Encode", "convert": "Convert", "resize": "Resize",
    "front_end": "FrontEnd", "cast": "Cast", "quantize": "Quantizer", "export": "Exporter",
    "adapt": "Adaptation", "runtime": "Runtime", "tokenize": "Tokenize",
}  # fmt: skip
"""The definition of every section that a backend fills."""


def wrong(document):
    """Where a document is red."""
    return [error.partition(":")[0] for error in errors(HEAD | document, SCHEMA, SCHEMA)]


def test_it_is_current():
    done = subprocess.run(
        [sys.executable, "tools/schema.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_a_document_needs_only_to_say_who_it_is():
    """Sections may be inherited, so neither they nor their fields are required."""
    assert SCHEMA["required"] == ["schema", "name", "summary"]
    assert not any("required" in section for section in SCHEMA["$defs"].values())
    assert wrong({}) == []


def test_resize_takes_the_papers_short_names():
    words = [option for option in SCHEMA["properties"]["resize"]["anyOf"] if "enum" in option]

    assert set(words[0]["enum"]) == set(RESIZE)
    assert wrong({"resize": "opencv-area"}) == []
    assert wrong({"resize": "opencv-aera"}) == [".resize"]


@pytest.mark.parametrize("section", ["decode", "resize", "runtime"])
def test_a_backend_that_is_not_there_is_underlined(section):
    assert wrong({section: {"backend": "opencvv"}}) == [f".{section}.backend"]


def test_unknown_keys_are_underlined():
    assert SCHEMA["additionalProperties"] is False
    assert not [n for n, section in SCHEMA["$defs"].items() if section["additionalProperties"]]


def test_every_key_of_a_profile_is_in_it():
    model = schema_of("image")
    fields = {field.alias or name for name, field in model.model_fields.items()}

    assert set(SCHEMA["properties"]) == fields
    assert {spec.name for spec in filled("image")} == set(FILLED)


@pytest.mark.parametrize("path", sorted((ROOT / "profiles").glob("*.yaml")), ids=lambda p: p.stem)
def test_the_built_in_profiles_are_valid(path):
    document = yaml.safe_load(path.read_text())
    kind = load(str(path)).spec.modality
    schema = json.loads((ROOT / "profiles" / schema_name(kind)).read_text(encoding="utf-8"))

    assert errors(document, schema, schema) == []


@pytest.mark.parametrize("stage", FILLED)
def test_every_backend_and_field_is_in_it(stage):
    """What an offer admits is no other list: the backends' own words are in the schema."""
    section = SCHEMA["$defs"][FILLED[stage]]
    offering = [backend for backend in registry.backends() if backend.of(stage)]

    assert section["properties"]["backend"]["anyOf"][0]["enum"] == [b.name for b in offering]
    shared = {key[-1] for spec in filled("image") if spec.name == stage for key in spec.shared}
    for backend in offering:
        fields = {name for offer in backend.of(stage) for name in offer.options} - shared
        assert fields <= set(section["properties"])


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"resize": {"backend": "pillow", "interpolation": "bicubic", "antialias": True}}, []),
        ({"resize": {"backend": "pillo"}}, [".resize.backend"]),
        ({"resize": {"backend": "pillow", "interpolation": "area"}}, [".resize.interpolation"]),
        ({"resize": {"backend": "opencv", "interpolation": "area"}}, []),
        ({"resize": {"backend": "pillow", "interpolatoin": "area"}}, [".resize"]),
        ({"resize": {"backend": "pillow", "api": "dynamic"}}, [".resize.api"]),
        ({"resize": {"backend": "pillow", "api": None}}, []),
        ({"resize": {"backend": "dali", "api": "dynamic"}}, []),
        ({"resize": {"api": "dynamic"}}, []),
        ({"resize": {"api": "dinamic"}}, [".resize.api"]),
        ({"resize": {"domain": "yuf"}}, [".resize.domain"]),
        ({"resize": None}, []),
        ({"decode": {"backend": "ffmpeg", "swscale_flags": ["bicubic", "bitexact"]}}, []),
        ({"decode": {"backend": "ffmpeg", "swscale_flags": ["bicubik"]}},
         [".decode.swscale_flags.0"]),
        ({"decode": {"backend": "itu"}}, [".decode.backend"]),
        ({"color": {"convert": {"backend": "aipp", "preset": "JPEG"}}}, []),
        ({"color": {"convert": {"backend": "itu", "preset": "JPEG"}}}, [".color.convert.preset"]),
        ({"color": {"encode": {"matrix": "bt2020"}}}, [".color.encode.matrix"]),
        ({"runtime": {"backend": "onnxruntime", "threads": 0}}, [".runtime.threads"]),
        ({"runtime": {"backend": "onnxruntime", "provider_options": {"a": 1}}},
         [".runtime.provider_options.a"]),
        ({"runtime": {"exporter": {"backend": "onnx2tff"}}}, [".runtime.exporter.backend"]),
        ({"precision": {"quantizer": {"backend": "rknn", "target_platform": "rk3588"}}}, []),
        ({"precision": {"quantizer": {"backend": "nncf", "target_platform": "rk3588"}}},
         [".precision.quantizer.target_platform"]),
        ({"precision": {"quantizer": {"backend": "nncf", "symmetric": 1}}},
         [".precision.quantizer.symmetric"]),
        ({"precision": {"quantizer": {**QUANTIZER, "keep": {"reason": "r", "nods": []}}}},
         [".precision.quantizer.keep.nods"]),
        ({"precision": {"cast": {"backend": "weight_only", "block_size": 1}}},
         [".precision.cast.block_size"]),
        ({"modality": "smell"}, [".modality"]),
        ({"evidence": {"decode": {"kind": "native", "source": "s"}, "decoed": None}},
         [".evidence.decoed"]),
    ],
)  # fmt: skip
def test_what_no_backend_takes_is_red(document, where):
    assert wrong(document) == where


def test_null_takes_any_field_of_a_section_away():
    for name, section in SCHEMA["$defs"].items():
        nothing = dict.fromkeys(section["properties"])
        assert errors(nothing, section, SCHEMA) == [], name


def test_every_field_of_a_library_is_described():
    """The field's standard words are described by the schema, the others beside their offers."""
    for stage, name in FILLED.items():
        section = schema_of_section(name)
        shared = {key[-1] for spec in filled("image") if spec.name == stage for key in spec.shared}
        for backend in registry.backends():
            if backend.name == "acme":
                continue
            fields = {field for offer in backend.of(stage) for field in offer.options} - shared
            bare = fields - set(section) - set(backend.fields)
            assert not bare, (backend.name, stage, bare)


def schema_of_section(name):
    """The fields that the engine itself has words for."""
    from simulator.modalities.image import develop, sections
    from simulator.profile import precision, schema

    model = next(
        getattr(m, name) for m in (sections, develop, precision, schema) if hasattr(m, name)
    )
    return model.model_fields
