"""``profiles/schema.json``: what editors check documents by."""

import json
import subprocess
import sys
from pathlib import Path

import yaml

from simulator.profile.paper_names import RESIZE
from simulator.profile.schema import ProfileSpec

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "profiles" / "schema.json").read_text(encoding="utf-8"))


def test_it_is_current():
    done = subprocess.run(
        [sys.executable, "tools/schema.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_a_document_needs_only_to_say_who_it_is():
    """Sections may be inherited, so neither they nor their fields are required."""
    assert SCHEMA["required"] == ["schema", "name", "summary"]
    assert not any("required" in section for section in SCHEMA["$defs"].values())


def test_resize_takes_the_papers_short_names():
    words = [option for option in SCHEMA["properties"]["resize"]["anyOf"] if "enum" in option]

    assert set(words[0]["enum"]) == set(RESIZE)


def test_null_takes_any_field_of_a_section_away():
    for section in SCHEMA["$defs"].values():
        for field in section["properties"].values():
            assert {"type": "null"} in field["anyOf"]


def test_unknown_keys_are_underlined():
    assert SCHEMA["additionalProperties"] is False
    open_ = [n for n, section in SCHEMA["$defs"].items() if section["additionalProperties"]]
    assert open_ == ["Runtime"]  # a runtime's own options are checked against its offer


def test_every_key_of_a_profile_is_in_it():
    fields = {field.alias or name for name, field in ProfileSpec.model_fields.items()}

    assert set(SCHEMA["properties"]) == fields


def test_the_built_in_profiles_use_only_keys_that_are_in_it():
    for path in (ROOT / "profiles").glob("*.yaml"):
        for key, value in yaml.safe_load(path.read_text()).items():
            if isinstance(value, dict) and key != "evidence":
                section = SCHEMA["$defs"][key.capitalize()]
                known = set(section["properties"])
                assert section["additionalProperties"] or set(value) <= known, (path, key)
