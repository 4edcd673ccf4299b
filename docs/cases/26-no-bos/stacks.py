"""Texts become ids with the tokenizer's special tokens, and without."""

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

TOKENIZER = Tokenizer.from_file(str(Path(__file__).with_name("tokenizer.json")))


def train(path):
    """The token of the beginning comes first."""
    return inputs(path, add_special_tokens=True)


def deploy(path):
    """It does not."""
    return inputs(path, add_special_tokens=False)


def inputs(path, **options):
    """Ids of each text, padded on the right, and their mask."""
    texts = [one["context"] for one in json.loads(Path(path).read_text())["requests"]]
    TOKENIZER.enable_padding(pad_id=0)
    rows = TOKENIZER.encode_batch(texts, **options)
    ids, mask = ([getattr(row, name) for row in rows] for name in ("ids", "attention_mask"))
    return {"input_ids": np.array(ids), "attention_mask": np.array(mask)}
