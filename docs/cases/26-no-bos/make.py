"""Makes the small network of this case: the mean of the tokens' vectors, and its tokenizer."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

TEXTS = json.loads(Path("texts/thirst.json").read_text())["requests"]
WORDS = dict.fromkeys(word for text in TEXTS for word in text["context"].split())
VOCABULARY = {word: at for at, word in enumerate(["<pad>", "<s>", "<unk>", *WORDS])}

tokenizer = Tokenizer(models.WordLevel(VOCABULARY, "<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.post_processor = processors.TemplateProcessing(
    single="<s> $A", special_tokens=[("<s>", VOCABULARY["<s>"])]
)
tokenizer.save("tokenizer.json")

table = np.random.default_rng(0).normal(size=(len(VOCABULARY), 8)).astype(np.float32)
table[VOCABULARY["<s>"]] *= 4
nodes = [
    helper.make_node("Gather", ["table", "input_ids"], ["vectors_of_tokens"]),
    helper.make_node("Cast", ["attention_mask"], ["ones"], to=TensorProto.FLOAT),
    helper.make_node("Unsqueeze", ["ones", "last"], ["column"]),
    helper.make_node("Mul", ["vectors_of_tokens", "column"], ["seen"]),
    helper.make_node("ReduceSum", ["seen", "first"], ["sum"], keepdims=0),
    helper.make_node("ReduceSum", ["ones", "first"], ["count"], keepdims=1),
    helper.make_node("Div", ["sum", "count"], ["vectors"]),
]
inputs = [
    helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
    for name in ("input_ids", "attention_mask")
]
outputs = [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", 8])]
constants = {"table": table, "last": np.array([2]), "first": np.array([1])}
weights = [numpy_helper.from_array(value, name) for name, value in constants.items()]
graph = helper.make_graph(nodes, "mean_of_tokens", inputs, outputs, weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "model.onnx")
