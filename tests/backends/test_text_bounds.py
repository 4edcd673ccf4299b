"""Tokenizers and GGUF files that would fill the memory: one line each."""

import json
import struct
import subprocess
import sys

import made_gguf
import pytest

from backends.hf_tokenizers import _growth, document
from backends.language_models.gguf_file import GgufFile
from simulator.contract import ModelError


def replacing(times, content, **pattern):
    step = {"type": "Replace", "pattern": pattern, "content": content}
    return {"model": {}, "normalizer": {"type": "Sequence", "normalizers": [step] * times}}


@pytest.mark.parametrize(
    ("found", "growth"),
    [
        (replacing(12, "a" * 10, String="a"), 10**12),
        (replacing(12, "a" * 10, Regex="a"), 10**12),
        (replacing(3, "ab", String="ab"), 1),
        (replacing(3, "", Regex="x*"), 1),
        (replacing(1, "ab", Regex="x*"), 3),  # xx: ab, and ab behind it
        (replacing(5, "\u2581", String=" "), 1),
        ({"model": {"content": "a" * 99, "type": "Replace", "pattern": {}}}, 1),
    ],
)
def test_how_much_longer_a_text_becomes(found, growth):
    """Worked on paper."""
    assert _growth(found) == growth


def test_a_tokenizer_of_replacements_is_refused(tmp_path):
    place = tmp_path / "tokenizer.json"
    place.write_text(json.dumps(replacing(12, "a" * 10, String="a")))
    with pytest.raises(ModelError, match="lengthen a text 1,000,000,000,000 times") as error:
        document(place)
    assert "\n" not in str(error.value)


def header(tensors, fields, content=b""):
    return struct.pack("<4sIQQ", b"GGUF", 3, tensors, fields) + content


def text(value):
    return struct.pack("<Q", len(value)) + value


def array(kind, count):
    return text(b"key") + struct.pack("<IIQ", 9, kind, count) + bytes(400)


LYING = (
    header(2**40, 0),
    header(0, 2**40),
    header(0, 1, struct.pack("<Q", 2**40)),
    header(0, 1, text(b"key") + struct.pack("<IQ", 8, 2**40)),
    *(header(0, 1, array(kind, 2**31)) for kind in (0, 6, 8, 9, 12, 99)),
    *(header(0, 1, array(kind, 2**62)) for kind in (0, 6, 8, 9, 12, 99)),
    header(0, 1, text(b"key") + struct.pack("<I", 99)),
    b"GGUF", b"", b"GGUF\x00\x00\x00\x03",
)  # fmt: skip


@pytest.mark.parametrize("content", LYING)
def test_a_header_that_names_more_than_the_file_has(tmp_path, content):
    place = tmp_path / "m.gguf"
    place.write_bytes(content)
    with pytest.raises(ModelError, match="not a GGUF file") as error:
        GgufFile(place)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("field", ["block_count", "context_length"])
def test_sizes_that_only_a_field_names(tmp_path, field):
    """In a process with 1.5 GB of memory, which these sizes would not fit."""
    place = made_gguf.write(tmp_path / "m.gguf", **{f"llama__{field}": 2**31 - 1})
    code = f"""
import resource; resource.setrlimit(resource.RLIMIT_DATA, ({3 * 2**29}, {3 * 2**29}))
from pathlib import Path
from backends.language_models.gguf_file import GgufFile
from simulator.errors import ModelError
try: GgufFile(Path({str(place)!r})).sizes()
except ModelError as error: print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "2,147,483,647" in ran.stdout


def test_a_real_file_is_read(tmp_path):
    file = GgufFile(made_gguf.write(tmp_path / "m.gguf"))
    assert file.sizes().layers == made_gguf.LAYERS
