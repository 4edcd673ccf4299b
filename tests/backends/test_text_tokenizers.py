"""Tokenizers: options by hand, the traps of real vocabularies, damaged files."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from shared_data import shared

from backends.hf_tokenizers import HfTokenizer
from backends.sentencepiece_tokenizer import SentencePieceTokenizer
from simulator.errors import ModelError, SampleError, Unsupported
from simulator.testing import vocabularies

PLAIN = {
    "special_tokens": False,
    "parse_special": True,
    "prefix_space": "file",
    "normalizer": "file",
    "pre_tokenizer": "file",
}


@pytest.fixture
def files(tmp_path):
    return {format: vocabularies.write(tmp_path, format) for format in vocabularies.WRITERS}


def hf(file, **options):
    return HfTokenizer(file, PLAIN | options)


def pieces(tokenizer, text):
    return tokenizer.pieces(tokenizer.encode(text))


def test_options_by_hand(files):
    file = files["tokenizers"]

    assert pieces(hf(file), "the 2020 <s>") == ["t", "he", " ", "2", "0", "2", "0", " ", "<s>"]
    assert pieces(hf(file, pre_tokenizer="byte_level_only"), "2020") == ["20", "20"]
    assert pieces(hf(file, prefix_space=True), "the") == [" the"]
    assert pieces(hf(file, special_tokens=True), "the") == ["<s>", "t", "he"]
    assert pieces(hf(file, parse_special=False), "<s>") == ["<", "s", ">"]
    assert hf(file, normalizer="nfkc").encode("\ufb01") == hf(file).encode("fi")
    assert hf(file, normalizer="nfc").encode("e\u0301") == hf(file).encode("\u00e9")
    assert hf(file, normalizer="nfc").encode("\ufb01") == hf(file).encode("\ufb01")


def test_sentencepiece_by_hand(files):
    file = files["sentencepiece"]

    assert pieces(SentencePieceTokenizer(file, {"special_tokens": False}), "the") == ["\u2581the"]
    both = SentencePieceTokenizer(file, {"special_tokens": "bos_eos"})
    assert pieces(both, "the") == ["<s>", "\u2581the", "</s>"]
    assert both.decode(both.encode("\u00e9 2020")) == "\u00e9 2020"


def test_truncation_and_padding_of_the_file_are_off(files):
    """all-MiniLM-L6-v2's file cuts at 128 tokens and fills up to them; a stack says that itself."""
    document = json.loads(files["tokenizers"].read_text())
    document["truncation"] = {
        "direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0,
    }  # fmt: skip
    document["padding"] = {
        "strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "<unk>",
    }  # fmt: skip
    files["tokenizers"].write_text(json.dumps(document))

    assert len(hf(files["tokenizers"]).encode("abcdefg")) == 7
    assert len(hf(files["tokenizers"]).encode("ab")) == 2


def test_steps_that_a_file_has_not_are_refused(files):
    document = json.loads(files["tokenizers"].read_text())
    document["pre_tokenizer"] = {"type": "Whitespace"}
    files["tokenizers"].write_text(json.dumps(document))

    with pytest.raises(Unsupported, match="no ByteLevel step"):
        hf(files["tokenizers"], pre_tokenizer="byte_level_only")
    with pytest.raises(Unsupported, match="write prefix_space: file"):
        hf(files["tokenizers"], prefix_space=False)


def test_metaspace_has_a_blank_or_not(files):
    document = json.loads(files["tokenizers"].read_text())
    document["model"]["vocab"]["\u2581the"] = 999
    document["model"]["vocab"]["\u2581"] = 998
    document["pre_tokenizer"] = {
        "type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True,
    }  # fmt: skip
    document["decoder"] = None
    files["tokenizers"].write_text(json.dumps(document))

    assert len(hf(files["tokenizers"]).encode("a")) == 2
    assert len(hf(files["tokenizers"], prefix_space=False).encode("a")) == 1
    assert hf(files["tokenizers"]).size == 1000


def test_half_a_character_is_refused_in_a_line(files):
    with pytest.raises(SampleError, match=r"^[^\n]+$"):
        hf(files["tokenizers"]).encode("\ud800")


DAMAGED = """
import json, random, sys
from pathlib import Path
from backends.hf_tokenizers import HfTokenizer
from backends.sentencepiece_tokenizer import SentencePieceTokenizer
from simulator.errors import SimulatorError
from simulator.testing import vocabularies

folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
kinds = {"tokenizers": HfTokenizer, "sentencepiece": SentencePieceTokenizer}
rng, opened = random.Random(0), 0
for format, kind in kinds.items():
    good = vocabularies.WRITERS[format]()
    for number in range(150):
        data = bytearray(good)
        for _ in range(rng.choice((1, 3, 30))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if number % 3 == 0:
            del data[rng.randrange(len(data)):]
        file = folder / f"{format}-{number}"
        file.write_bytes(data)
        try:
            made = kind(file, options)
            made.decode([one for one in made.encode("The water is 20 <s>") if one < made.size])
            opened += 1
        except SimulatorError as error:
            assert "\\n" not in str(error), error
print("alive", opened)
"""


def test_damaged_files_never_end_the_process(tmp_path):
    arguments = [sys.executable, "-c", DAMAGED, str(tmp_path), json.dumps(PLAIN)]

    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("alive")


def test_what_is_no_vocabulary_is_one_line(tmp_path):
    for data in (b"", b"[]", b'{"model": 3}', b"\xff" * 99):
        file = tmp_path / "tokenizer.json"
        file.write_bytes(data)
        for kind in (HfTokenizer, SentencePieceTokenizer):
            with pytest.raises(ModelError, match=r"^[^\n]+$"):
                kind(file, PLAIN)


def test_the_traps_of_smollm():
    """LANGUAGE-SPEECH.md, section 5: 42 strings of PIQA change where Digits is lost."""
    folder = shared("language")
    lines = [json.loads(line) for line in (folder / "piqa.jsonl").open()]
    texts = [text for line in lines for text in (line["query"], *line["choices"])]
    own = hf(folder / "tokenizer.json")
    want = [own.encode(text) for text in texts]

    def differ(**options):
        other = hf(folder / "tokenizer.json", **options)
        return sum(other.encode(text) != ids for text, ids in zip(texts, want, strict=True))

    assert own.size == 49152
    assert len(texts) == 5514
    assert differ(pre_tokenizer="byte_level_only") == 42
    assert differ(prefix_space=True) == 5514


@pytest.mark.extras
def test_llama_cpp_has_the_ids_of_tokenizers(files):
    """The same vocabulary as GGUF and as tokenizer.json; of SmolLM2's, no text of PIQA differs."""
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is built from source")
    from backends.llama_cpp.tokenizer import LlamaTokenizer

    options = {"special_tokens": False, "parse_special": True}
    one, other = hf(files["tokenizers"]), LlamaTokenizer(files["gguf"], options)

    assert one.size == other.size
    for text in ("The water is in the 2020 caf\u00e9", "  <s> \u4f60\n12 20", "a" * 999):
        assert one.encode(text) == other.encode(text)
        assert other.decode(other.encode(text)) == text


@pytest.mark.extras
def test_a_file_on_which_llama_cpp_aborts_is_refused_in_a_line(tmp_path):
    """Two tokens of one text: llama.cpp 0.3.36 calls abort()."""
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is built from source")
    from backends.llama_cpp.tokenizer import LlamaTokenizer

    file = tmp_path / "a.gguf"
    letter = b"\x01\0\0\0\0\0\0\0"
    file.write_bytes(vocabularies.gguf().replace(letter + b"A", letter + b"B"))

    with pytest.raises(ModelError, match=r"^[^\n]+ends the process \(SIGABRT\)$"):
        LlamaTokenizer(file, {"special_tokens": False, "parse_special": True})
