"""Two towers for plain loops: a picture's mean color, and the sum of the colors of words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import tiny
import yaml
from onnx import TensorProto, helper, numpy_helper

WORDS = {
    "<s>": (0.1, 0.2, 0.0), "</s>": (0.0, 0.1, 0.2), "?": (0.3, 0.3, 0.3), "a": (0.1, 0.0, 0.3),
    "photo": (0.2, 0.3, 0.1), "red": (1.0, 0.1, 0.1), "green": (0.1, 0.9, 0.2),
    "blue": (0.2, 0.1, 1.1),
}  # fmt: skip
IDS = {word: number for number, word in enumerate(WORDS)}
TEMPLATES = ["a photo {}", "{}"]
PROFILE = "clip_fp32"


def image(width: int = 3):
    """Return the image tower: the mean of each channel, times a matrix of ones on the diagonal."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["image_embeds"]),
    ]
    weights = {"w": np.eye(3, width, dtype=np.float32)}
    return tiny.model(nodes, None, {"image_embeds": [1, width]}, weights)


def text():
    """Return the text tower: the sum of the words' colors, without those that are masked."""
    constants = {"table": np.array(list(WORDS.values()), np.float32), "last": np.array([-1]),
                 "tokens": np.array([1])}  # fmt: skip
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["colors"]),
        helper.make_node("Cast", ["attention_mask"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["real", "last"], ["column"]),
        helper.make_node("Mul", ["colors", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "tokens"], ["text_embeds"], keepdims=0),
    ]
    made = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    gives = helper.make_tensor_value_info("text_embeds", TensorProto.FLOAT, ["texts", 3])
    graph = helper.make_graph(nodes, "text", ports, [gives], made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def both(scale: float, bias: float):
    """Return both towers in one file, as Optimum exports them; vectors have length 1 there."""
    one, other = image(), text()
    for node in (*one.graph.node, *other.graph.node):
        for at, name in enumerate(node.output):
            node.output[at] = {"image_embeds": "image_raw", "text_embeds": "text_raw"}.get(
                name, name
            )
    joined = [
        helper.make_node("LpNormalization", ["image_raw"], ["image_embeds"]),
        helper.make_node("LpNormalization", ["text_raw"], ["text_embeds"]),
        helper.make_node("Transpose", ["text_embeds"], ["columns"]),
        helper.make_node("MatMul", ["image_embeds", "columns"], ["cosines"]),
        helper.make_node("Mul", ["cosines", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["logits_per_image"]),
    ]
    numbers = {"scale": scale, "bias": bias}
    constants = [
        numpy_helper.from_array(np.array(one, np.float32), name) for name, one in numbers.items()
    ]
    logits = helper.make_tensor_value_info("logits_per_image", TensorProto.FLOAT, [1, "texts"])
    graph = helper.make_graph(
        [*one.graph.node, *other.graph.node, *joined], "both",
        [*other.graph.input, *one.graph.input], [logits, *other.graph.output, *one.graph.output],
        [*one.graph.initializer, *other.graph.initializer, *constants],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def card(folder: Path, width: int = 3, **prompts: Any) -> Path:
    """Write both towers, their vocabulary and their card; *prompts* replace fields of its own."""
    special = [{"SpecialToken": {"id": end, "type_id": 0}} for end in ("<s>", "</s>")]
    ends = {end: {"id": end, "ids": [IDS[end]], "tokens": [end]} for end in ("<s>", "</s>")}
    around = [special[0], {"Sequence": {"id": "A", "type_id": 0}}, special[1]]
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "TemplateProcessing", "single": around, "pair": around,
                           "special_tokens": ends},
        "decoder": None, "model": {"type": "WordLevel", "vocab": IDS, "unk_token": "?"},
    }  # fmt: skip
    given = {
        "tokenizer": {"tokenizers": "tokenizer.json"}, "vocabulary": len(WORDS), "max_length": 6,
        "pad": 0, "names": {"ids": "input_ids", "mask": "attention_mask"},
    }  # fmt: skip
    own = {"template": TEMPLATES, "image": "image_embeds", "input": given, "scale": 10,
           "text": {"vectors": "text_embeds", "pooling": "none"}}  # fmt: skip
    output = {"kind": prompts.pop("kind", "logits"), "prompts": own | prompts}
    path = tiny.card(folder, image(width), second={"model": "text.onnx"}, output=output)
    (folder / "text.onnx").write_bytes(text().SerializeToString())
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return path


def change(path: Path, **fields: Any) -> Path:
    """Replace fields of a card; None removes one."""
    spec = yaml.safe_load(path.read_text()) | fields
    path.write_text(yaml.safe_dump({k: v for k, v in spec.items() if v is not None}))
    return path


def logits(color: np.ndarray, templates=TEMPLATES, scale=10.0, bias=0.0, ends=True) -> np.ndarray:
    """Return the logit of each class for a picture's vector, prompt by prompt, word by word."""
    found = []
    for name in tiny.COLORS:
        summed = np.zeros(3)
        for template in templates:
            words = re.findall(r"\w+|[^\w\s]+", template.replace("{}", name))
            words = ["<s>", *words, "</s>"] if ends else words
            vector = np.sum([WORDS.get(one, WORDS["?"]) for one in words], 0)
            summed += vector / np.linalg.norm(vector)
        cosine = summed @ color / np.linalg.norm(summed) / np.linalg.norm(color)
        found.append(scale * cosine + bias)
    return np.array(found)
