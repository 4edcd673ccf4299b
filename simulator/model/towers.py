"""Two towers in one ONNX file, as Optimum and Transformers.js export CLIP and SigLIP."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from simulator.contract.model_format import ONNX, format_of
from simulator.errors import ModelError, UserError, foreign
from simulator.importers.network import NetworkFile
from simulator.model.onnxfile import contents, load, structure
from simulator.model.proposed import propose
from simulator.profile.text import flow, write_new

IMAGE, TEXT, LOGITS = "image_embeds", "text_embeds", "logits_per_image"
ROLES = {"input_ids": "ids", "attention_mask": "mask", "position_ids": "positions",
         "token_type_ids": "types"}  # fmt: skip
_BESIDE = ("preprocessor_config.json", "config.json", "tokenizer.json", "tokenizer_config.json")


def has_both(model: Path) -> bool:
    """Whether a file is an ONNX model that compares vectors of images and of texts."""
    if not model.is_file() or (format := format_of(model)) is None or format.name != ONNX:
        return False
    return {IMAGE, TEXT, LOGITS} <= {one.name for one in structure(model)[0].graph.output}


def write(model: Path, folder: Path, labels: str | None = None) -> Path:
    """Write each tower as a file, and the card of both; return the card.

    Args:
        model: the file; its configuration and its vocabulary lie beside it, or one folder up.
        folder: an empty folder, or a new one.
        labels: the file with the names of the classes, as the card names it; None: yet to come.

    Raises:
        UserError: the folder is not empty.
        ModelError: the file cannot be cut, or its vocabulary is missing.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not an empty folder; choose another -o")
    ports = contents(model).inputs
    images, texts = (
        [name for name, port in ports.items() if (len(port.shape) == 4) is wanted]
        for wanted in (True, False)
    )
    if len(images) != 1 or not texts or not ROLES.keys() >= set(texts):
        got, known = ", ".join(ports), ", ".join(ROLES)
        raise ModelError(f"{model}: an image, and of {known} at least one expected, got {got}")
    beside = {file.name: file for file in NetworkFile(model, {}, {}, {}).beside(_BESIDE)}
    with foreign(ModelError, f"{model}: it cannot be cut into towers"):
        whole = onnx.utils.Extractor(load(model))
        first, second = (whole.extract_model(*of) for of in ((images, [IMAGE]), (texts, [TEXT])))
        scale, bias = _scale(whole.extract_model([IMAGE, TEXT], [LOGITS]))
        given = _input(beside, texts)
    folder.mkdir(parents=True, exist_ok=True)
    for file in beside.values():
        shutil.copy(file, folder / file.name)
    onnx.save(first, folder / "image.onnx")
    onnx.save(second, folder / "text.onnx")
    prompts = {
        "template": "a photo of a {}.", "image": IMAGE, "input": given,
        "text": {"vectors": TEXT, "pooling": "none"}, "scale": scale, "bias": bias,
    }  # fmt: skip
    values = {"task": "classification", "output.kind": "sigmoid" if bias else "logits",
              "output.prompts": prompts, "labels": labels or "classes.txt"}  # fmt: skip
    proposal = propose(folder / "image.onnx").setting(values, f"cut from {model.name}")
    if labels is None:
        proposal = proposal.asking("labels", "the names of your classes, one a line")
    card = folder / "model.yaml"
    text = proposal.text(card, "image.onnx", "classes.txt")
    text = text.replace("\nname: image\n", f"\nname: {flow(folder.name)}\n")
    write_new(card, text + f"second: {flow({'model': 'text.onnx'})}\n")
    return card


def _scale(head: onnx.ModelProto) -> tuple[float, float]:
    """What the graph multiplies a cosine by, and adds to it: read from cosines of 1 and 0."""
    size = head.graph.input[0].type.tensor_type.shape.dim[-1].dim_value
    vectors = np.eye(2, size, dtype=np.float32)
    found = list(ReferenceEvaluator(head).run([LOGITS], {IMAGE: vectors[:1], TEXT: vectors}))
    one, none = np.asarray(found[0]).reshape(-1).tolist()
    return float(f"{one - none:.8g}"), float(f"{none:.8g}")


def _input(beside: Mapping[str, Path], texts: list[str]) -> dict[str, Any]:
    """What the text tower takes, as its vocabulary and configuration say."""
    vocabulary, own, config = (
        json.loads(beside[name].read_text(encoding="utf-8")) if name in beside else {}
        for name in ("tokenizer.json", "tokenizer_config.json", "config.json")
    )
    words = vocabulary.get("model", {}).get("vocab")
    longest = config.get("text_config", {}).get("max_position_embeddings")
    longest = longest or own.get("model_max_length")
    if not words or not longest:
        told = "text_config.max_position_embeddings of config.json" if words else "tokenizer.json"
        raise ValueError(f"{told} is missing beside it")
    pairs = words.items() if isinstance(words, Mapping) else (
        (one, at) for at, (one, _) in enumerate(words)
    )  # fmt: skip
    known = dict(pairs) | {one["content"]: one["id"] for one in vocabulary.get("added_tokens", ())}
    pad = own.get("pad_token")
    name = pad.get("content") if isinstance(pad, Mapping) else pad
    padding = {"pad": known[name]} if name in known else {}
    return {
        "tokenizer": {"tokenizers": "tokenizer.json"}, "vocabulary": max(known.values()) + 1,
        "max_length": longest, **padding, "names": {ROLES[one]: one for one in texts},
    }  # fmt: skip
