"""Texts as chunks of token ids, cut as llama.cpp's ``perplexity`` cuts them.

Source:
    https://github.com/ggml-org/llama.cpp, tools/perplexity/perplexity.cpp, ``perplexity``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from simulator import registry
from simulator.contract.text import Tokenizer
from simulator.data.folder import Dataset, Item
from simulator.data.jsonl import Made, written
from simulator.errors import DataError, MissingLibrary, SampleError
from simulator.modalities.text.card import TextInput
from simulator.modalities.text.read import read
from simulator.profile.implementations import implementation

_FILE = {
    "parse_special": False, "prefix_space": "file", "normalizer": "file", "pre_tokenizer": "file",
}  # fmt: skip


def cut(dataset: Dataset, network: TextInput, size: int) -> Dataset:
    """Return the chunks of each text; samples in JSON, which bring their requests, are left alone.

    All stacks get the same ids: those of the card's vocabulary, the first one whose library is
    installed, with the special tokens that it puts around a text. Where one of them begins a text,
    it takes the place of each chunk's first id.

    Args:
        dataset: files with texts.
        network: the card's section ``input``.
        size: ids of a chunk; what is left at the end of a text is dropped.

    Raises:
        DataError: a text cannot be read or is shorter than a chunk, or nothing cuts it.
        MissingLibrary: no library that reads the card's vocabulary is installed.
    """
    texts = [item for item in dataset.items if item.path.suffix.lower() != ".json"]
    if not texts:
        return dataset
    if size - 1 > network.max_length:
        raise DataError(
            f"output.context: chunks of {size:,} tokens, and the network takes "
            f"{network.max_length:,} (input.max_length)"
        )
    tokenizer = _tokenizer(network, dataset)
    items = [item for item in dataset.items if item not in texts]
    notes = list(dataset.notes)
    for item in texts:
        chunks, note = _chunks(item, tokenizer, size)
        items += chunks
        notes.append(note)
    return replace(dataset, items=tuple(items), notes=tuple(notes))


def _tokenizer(network: TextInput, dataset: Dataset) -> Tokenizer:
    missing: MissingLibrary | None = None
    for format, file in network.tokenizer.items():
        for backend in registry.backends():
            for offer in backend.of("tokenize"):
                if offer.make.takes != format:
                    continue
                special: Any = offer.options["special_tokens"]
                fields = {**_FILE, "special_tokens": True if True in special else "bos"}
                choice = implementation("tokenize", backend, fields)
                try:
                    choice.require()
                except MissingLibrary as error:
                    missing = missing or error
                    continue
                made: Tokenizer = choice.make(Path(file))
                return made
    raise missing or DataError(
        f"{dataset.root}: a text is cut by the vocabulary of the model card, and its "
        "input.tokenizer names none"
    )


def _chunks(item: Item, tokenizer: Tokenizer, size: int) -> tuple[Sequence[Item], str]:
    """Return the chunks of a text, and a line that says how many they are."""
    try:
        text = read(item.path).requests[0].context
        ids, around = tokenizer.encode(text), tokenizer.encode("")
    except SampleError as error:
        raise DataError(f"{item.path}: {error}") from error
    begin = around[:1] if around and ids[:1] == around[:1] else []
    if len(around) > 1 and ids[1 - len(around) :] == around[1:]:
        ids = ids[: 1 - len(around)]
    if len(ids) < size:
        raise DataError(
            f"{item.path}: has {len(ids):,} tokens, and a chunk has {size:,}; give a longer text, "
            "or write a smaller output.context in the model card"
        )
    first = size // 2 + 1
    samples: dict[str, Made] = {}
    for start in range(0, len(ids) - size + 1, size):
        chunk = begin + ids[start + len(begin) : start + size]
        request = {
            "context": tokenizer.decode(chunk[:first]),
            "continuation": tokenizer.decode(chunk[first:]),
            "ids": chunk,
            "scored": size - first,
        }
        samples[f"{start // size:05d}"] = [request], chunk[first:]
    note = (
        f"{item.name}: {len(samples):,} chunks of {size:,} tokens, cut by {tokenizer.file.name}; "
        f"the last {size - first:,} of each are scored; {len(ids) % size:,} are left over"
    )
    return written(item.name, samples), note
