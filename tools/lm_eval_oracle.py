#!/usr/bin/env python
"""Run lm-evaluation-harness on a folder with a model and texts, and write what it says.

    python tests/lm_eval_case.py FOLDER
    LMEVAL/bin/python tools/lm_eval_oracle.py FOLDER tests/tasks/text/lm_eval_small.json

Needs lm_eval, transformers, torch and onnxruntime, and nothing of this repository. The network is
run by ONNX Runtime; all else, from tokens to scores, is lm_eval's ``HFLM``.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TRANSFORMERS_OFFLINE="1")

import lm_eval
import numpy as np
import onnxruntime as ort
import torch
from lm_eval.models.huggingface import HFLM
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import CausalLMOutput

LENGTH = 64
"""Positions that the network has, as its card says."""


class OnnxModel(PreTrainedModel):
    """An ONNX file that takes ids and a mask, as a model of transformers."""

    config_class = PretrainedConfig

    def __init__(self, path: Path) -> None:
        super().__init__(PretrainedConfig(max_position_embeddings=LENGTH))
        self.session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self.nothing = torch.nn.Parameter(torch.zeros(1))

    def forward(self, input_ids, **_):
        feeds = {"input_ids": input_ids.numpy(), "attention_mask": np.ones_like(input_ids)}
        (logits,) = self.session.run(["logits"], feeds)
        return CausalLMOutput(logits=torch.from_numpy(logits))


def asked(folder: Path) -> list[dict]:
    """Return the tasks, as lm_eval takes them."""

    def common(name: str, kind: str, metrics: tuple[str, ...]) -> dict:
        data = {"data_files": {"test": str(folder / f"{name}.jsonl")}}
        return {
            "task": name, "dataset_path": "json", "dataset_kwargs": data, "test_split": "test",
            "output_type": kind, "target_delimiter": " ",
            "metric_list": [{"metric": metric} for metric in metrics],
        }  # fmt: skip

    return [
        common("choices", "multiple_choice", ("acc", "acc_norm"))
        | {
            "doc_to_text": lambda doc: doc["query"],
            "doc_to_choice": "choices",
            "doc_to_target": "gold",
        },
        common("contexts", "multiple_choice", ("acc",))
        | {
            "doc_to_text": lambda doc: doc["gold"],
            "doc_to_choice": lambda doc: doc["contexts"],
            "doc_to_target": lambda doc: doc["continuation"],
        },
        common("words", "loglikelihood", ("acc", "perplexity"))
        | {
            "doc_to_text": lambda doc: doc["context"],
            "doc_to_target": lambda doc: " " + doc["word"],
        },
    ]


def said(folder: Path, special: bool) -> dict:
    """Return every figure, and the log-likelihood of every request.

    Args:
        folder: has the model and the texts.
        special: whether the tokenizer puts its special tokens around a text.
    """
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), bos_token="<s>", eos_token="</s>"
    )
    model = HFLM(
        pretrained=OnnxModel(folder / "model.onnx"), tokenizer=tokenizer, batch_size=1,
        device="cpu", max_length=LENGTH, add_bos_token=special,
    )  # fmt: skip
    found = lm_eval.simple_evaluate(model, tasks=asked(folder), bootstrap_iters=0)
    samples = {
        name: [one["filtered_resps"] for one in sorted(some, key=lambda one: one["doc_id"])]
        for name, some in found["samples"].items()
    }
    wanted = {f"{metric},none": metric for metric in ("acc", "acc_norm", "perplexity")}
    return {
        "figures": {
            name: {wanted[key]: value for key, value in some.items() if key in wanted}
            for name, some in found["results"].items()
        },
        "requests": {
            name: [[[float(ll), bool(greedy)] for ll, greedy in one] for one in some]
            for name, some in samples.items()
        },
    }


def main(folder: Path, target: Path) -> None:
    """Evaluate without special tokens and with them, and write what lm_eval says."""
    document = {
        "command": "tools/lm_eval_oracle.py, after tests/lm_eval_case.py",
        "versions": {name: version(name) for name in ("lm_eval", "transformers", "onnxruntime")},
        "plain": said(folder, False),
        "special": said(folder, True),
    }
    target.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
