"""Hugging Face's ``tokenizers``: a ``tokenizer.json``, and the ways in which it is read wrongly."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from simulator.contract import (
    Backend,
    Library,
    ModelError,
    Offer,
    Options,
    SampleError,
    Unsupported,
)
from simulator.contract.text import Tokenizer
from simulator.limits import GROWTH

hf = Library("tokenizers", distribution="tokenizers", extra="text")

LARGEST = 2**28
"""Bytes of a ``tokenizer.json`` at most."""
_PREFIXES = ("ByteLevel", "Metaspace")
_FORMS = {"nfc": "NFC", "nfkc": "NFKC"}


class HfTokenizer(Tokenizer):
    """``tokenizers.Tokenizer``, with the steps of its file changed as the options say.

    Truncation and padding that the file itself asks for are switched off: they are the stack's.

    - ``special_tokens``: ``add_special_tokens`` of ``encode``, the file's post-processor.
    - ``parse_special``: false sets ``encode_special_tokens``, so that ``<s>`` in a text is text.
    - ``prefix_space``: ``add_prefix_space`` of ByteLevel, ``prepend_scheme`` of Metaspace. Where a
      step before ByteLevel splits a text, as Digits does, each part gets a blank.
    - ``normalizer``: ``nfc`` and ``nfkc`` come before the file's own; ``none`` drops that.
    - ``pre_tokenizer``: ``byte_level_only`` drops every other step beside ByteLevel, which is what
      transformers 5 makes of a GGUF file, whose ``tokenizer.ggml.pre`` it ignores.

    Source:
        https://huggingface.co/docs/tokenizers/api/tokenizer,
        transformers/integrations/ggml.py (GGUFGPTConverter).
    """

    takes = "tokenizers"

    def __init__(self, file: Path, options: Options) -> None:
        super().__init__(file, options)
        self._made = _opened(changed(document(file), options, file), file)
        self._made.no_truncation()
        self._made.no_padding()
        self._made.encode_special_tokens = not options["parse_special"]

    @property
    def size(self) -> int:
        """The ids of the vocabulary and of the added tokens, up to the largest."""
        return max(self._made.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        try:
            added = self.options["special_tokens"]
            return list(self._made.encode(text, add_special_tokens=added).ids)
        except BaseException as error:
            raise SampleError(f"tokenizers refuses it: {_line(error)}") from error

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids, special tokens included."""
        return str(self._made.decode(list(ids), skip_special_tokens=False))


def document(file: Path) -> dict[str, Any]:
    """Return the content of a ``tokenizer.json``.

    Raises:
        ModelError: it cannot be read, is too large, or is no such document.
    """
    try:
        if file.stat().st_size > LARGEST:
            raise ModelError(f"{file}: more than {LARGEST:,} bytes")
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{file}: no tokenizer.json: {_line(error)}") from error
    if not isinstance(found, dict) or "model" not in found:
        raise ModelError(f"{file}: no tokenizer.json: it has no model")
    if (growth := _growth(found)) > GROWTH:
        raise ModelError(
            f"{file}: its replacements lengthen a text {growth:,} times; at most {GROWTH:,} times "
            "are allowed"
        )
    return found


def _growth(found: Any) -> int:
    """Return how many times longer a text can become by the replacements in a document."""
    if isinstance(found, list):
        return prod(map(_growth, found))
    if not isinstance(found, dict):
        return 1
    inner = (_growth(one) for key, one in found.items() if key not in ("model", "added_tokens"))
    return _own_growth(found) * prod(inner)


def _own_growth(step: dict[str, Any]) -> int:
    """Return how many letters at most take the place of one."""
    new, pattern = step.get("content"), step.get("pattern")
    if step.get("type") != "Replace" or not isinstance(new, str) or not isinstance(pattern, dict):
        return 1
    old = pattern.get("String")
    if isinstance(old, str) and old:
        return max(1, -(-len(new) // len(old)))
    try:
        between = bool(re.match(pattern.get("Regex", ""), ""))
    except (re.error, TypeError, OverflowError, RecursionError):  # not one of Python's
        between = True
    return max(1, len(new) + (between and bool(new)))


def changed(found: dict[str, Any], options: Options, file: Path) -> dict[str, Any]:
    """Return the document with its steps as the options say.

    Raises:
        Unsupported: the file has no step that an option is about.
    """
    made = dict(found)
    if options["normalizer"] == "none":
        made["normalizer"] = None
    elif options["normalizer"] != "file":
        own = [made["normalizer"]] if made.get("normalizer") else []
        steps = [{"type": _FORMS[options["normalizer"]]}, *own]
        made["normalizer"] = {"type": "Sequence", "normalizers": steps}
    if options["pre_tokenizer"] == "byte_level_only":
        kept = [step for step in _steps(made.get("pre_tokenizer")) if step["type"] == "ByteLevel"]
        if not kept:
            raise Unsupported(f"{file} has no ByteLevel step; write pre_tokenizer: file")
        made["pre_tokenizer"] = kept[0]
    if options["prefix_space"] != "file":
        made["pre_tokenizer"] = _prefixed(made.get("pre_tokenizer"), options["prefix_space"], file)
    return made


def _steps(step: Any) -> list[dict[str, Any]]:
    if not isinstance(step, dict):
        return []
    inner = step.get("pretokenizers") if step.get("type") == "Sequence" else [step]
    return [one for one in inner or [] if isinstance(one, dict) and "type" in one]


def _prefixed(step: Any, prefix: bool, file: Path) -> Any:
    steps = _steps(step)
    if not any(one["type"] in _PREFIXES for one in steps):
        raise Unsupported(
            f"{file} has no ByteLevel or Metaspace step that could put a blank before a text; "
            "write prefix_space: file"
        )
    made = [_with_prefix(one, prefix) for one in steps]
    return made[0] if len(made) == 1 else {"type": "Sequence", "pretokenizers": made}


def _with_prefix(one: dict[str, Any], prefix: bool) -> dict[str, Any]:
    if one["type"] == "ByteLevel":
        return {**one, "add_prefix_space": prefix}
    if one["type"] == "Metaspace":
        return {**one, "prepend_scheme": "always" if prefix else "never"}
    return one


def _opened(found: dict[str, Any], file: Path) -> Any:
    text = json.dumps(found)
    try:
        return hf.Tokenizer.from_str(text)
    except BaseException as error:  # what panics in Rust is no Exception
        raise ModelError(f"{file}: tokenizers cannot use it: {_line(error)}") from error


def _line(error: BaseException) -> str:
    """The text of an error in one line; an interrupt by the user goes on."""
    if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
        raise error
    return " ".join(str(error).split())[:300] or type(error).__name__


BACKEND = Backend(
    name="tokenizers",
    summary="Hugging Face tokenizers: tokenizer.json files",
    library=hf,
    offers=(
        Offer(
            "tokenize",
            {
                "special_tokens": (False, True),
                "parse_special": (True, False),
                "prefix_space": ("file", False, True),
                "normalizer": ("file", "none", "nfc", "nfkc"),
                "pre_tokenizer": ("file", "byte_level_only"),
            },
            HfTokenizer,
            source="https://huggingface.co/docs/tokenizers",
        ),
    ),
)
