"""Small vocabularies in each format that tokenizers take, written by hand: no library is needed.

Each knows every byte, digits one at a time, a few English pieces, and ``<s>`` and ``</s>``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

SPECIAL = ("<unk>", "<s>", "</s>")
_PAIRS = (
    "Ġ t", "h e", "i n", "Ġ a", "r e", "o n", "Ġt he", "e r", "Ġ w", "a t", "a n", "i s", "Ġ is",
    "Ġ c", "o u", "2 0",
)  # fmt: skip
_VARINT = 0x80
_UINT32, _INT32, _BOOL, _STRING, _ARRAY = 4, 5, 7, 8, 9  # the types of GGUF's values
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6


def alphabet() -> dict[int, str]:
    """Return the character that stands for each byte in byte-level BPE.

    Source:
        ``bytes_to_unicode`` of GPT-2, https://github.com/openai/gpt-2/blob/master/src/encoder.py
    """
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    found = {byte: chr(byte) for byte in plain}
    return found | {byte: chr(256 + at) for at, byte in enumerate(others)}


def tokens() -> list[str]:
    """Return the byte-level vocabulary: special tokens, bytes, pieces; ids are the places."""
    return [*SPECIAL, *alphabet().values(), *(pair.replace(" ", "") for pair in _PAIRS)]


def tokenizer_json() -> bytes:
    """Return a ``tokenizer.json``: BPE of bytes behind Digits and ByteLevel."""
    byte_level = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    steps = [digits, {"type": "ByteLevel", **byte_level}]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    begin = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": at, "content": text, **flags, "special": True} for at, text in enumerate(SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": begin,
            "pair": [*begin, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
        },
        "decoder": {"type": "ByteLevel", **byte_level},
        "model": {
            "type": "BPE",
            "unk_token": None,
            "vocab": {text: at for at, text in enumerate(tokens())},
            "merges": list(_PAIRS),
        },
    }
    return json.dumps(document, ensure_ascii=False).encode()


def sentencepiece_model() -> bytes:
    """Return a SentencePiece model of unigrams, with a piece for each byte.

    Source:
        https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
    """
    kinds = [_UNKNOWN, _CONTROL, _CONTROL]
    pieces = [(text, 0.0, kind) for text, kind in zip(SPECIAL, kinds, strict=True)]
    pieces += [(f"<0x{byte:02X}>", 0.0, _BYTE) for byte in range(256)]
    letters = ["▁", *(chr(code) for code in range(33, 127))]
    words = [pair.replace(" ", "").replace("Ġ", "▁") for pair in _PAIRS]
    pieces += [(text, -9.0, _NORMAL) for text in letters]
    pieces += [(text, -6.0, _NORMAL) for text in words if text not in letters]
    listed = b"".join(
        _field(1, _field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + _number(3, kind))
        for text, score, kind in pieces
    )
    trainer = _number(3, 1) + _number(35, 1)  # model_type: unigram; byte_fallback
    trainer += _number(40, 0) + _number(41, 1) + _number(42, 2)  # the ids of unk, bos, eos
    blanks = _number(3, 1) + _number(4, 0) + _number(5, 1)  # a blank before; all blanks stay
    return listed + _field(2, trainer) + _field(3, _field(1, b"identity") + blanks)


def gguf() -> bytes:
    """Return a GGUF file of a vocabulary alone, byte-level BPE as that of SmolLM.

    Source:
        https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
    """
    types = [_CONTROL if text in SPECIAL else _NORMAL for text in tokens()]
    values: dict[str, tuple[int, Any]] = {
        "general.architecture": (_STRING, "llama"),
        "general.name": (_STRING, "small"),
        "tokenizer.ggml.model": (_STRING, "gpt2"),
        "tokenizer.ggml.pre": (_STRING, "smollm"),
        "tokenizer.ggml.tokens": (_ARRAY, (_STRING, tokens())),
        "tokenizer.ggml.token_type": (_ARRAY, (_INT32, types)),
        "tokenizer.ggml.merges": (_ARRAY, (_STRING, list(_PAIRS))),
        "tokenizer.ggml.bos_token_id": (_UINT32, 1),
        "tokenizer.ggml.eos_token_id": (_UINT32, 2),
        "tokenizer.ggml.unknown_token_id": (_UINT32, 0),
        "tokenizer.ggml.add_bos_token": (_BOOL, True),
    }
    listed = (_text(name) + struct.pack("<I", kind) + _value(kind, value)
              for name, (kind, value) in values.items())  # fmt: skip
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(values)) + b"".join(listed)


WRITERS: Mapping[str, Callable[[], bytes]] = {
    "tokenizers": tokenizer_json,
    "sentencepiece": sentencepiece_model,
    "gguf": gguf,
}
"""What writes a vocabulary, by the format that tokenizers take."""
SIZES = {"tokenizers": 275, "sentencepiece": 370, "gguf": 275}
"""The ids of each."""
NAMES = {"tokenizers": "tokenizer.json", "sentencepiece": "small.model", "gguf": "small.gguf"}


def write(folder: Path, format: str) -> Path:
    """Write the vocabulary in a format into a folder, and return its file."""
    file = folder / NAMES[format]
    file.write_bytes(WRITERS[format]())
    return file


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes of Protocol Buffers."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = b""
    while value >= _VARINT:
        found += bytes([value & 0x7F | _VARINT])
        value >>= 7
    return found + bytes([value])


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind: int, value: Any) -> bytes:
    if kind == _STRING:
        return _text(value)
    if kind == _ARRAY:
        inner: Sequence[Any]
        of, inner = value
        head = struct.pack("<IQ", of, len(inner))
        return head + b"".join(_value(of, one) for one in inner)
    return struct.pack({_UINT32: "<I", _INT32: "<i", _BOOL: "<?"}[kind], value)
