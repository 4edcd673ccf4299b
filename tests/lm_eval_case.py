"""A small model and texts on which lm-evaluation-harness was run.

``python tests/lm_eval_case.py FOLDER`` writes what ``tools/lm_eval_oracle.py`` needs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from simulator.testing import text_specimen

QUESTIONS = [
    ("The water is", ["in the can", "on a wet day in 2026"], 0),
    ("Two and 2 are ", ["4", "a tree", "in"], 0),
    ("a\nb\t ", ["  c", "c ", "ü€"], 2),
    ("", ["the", "on", "in a"], 1),
    ("12345 67 890", ["1", "12", "123"], 1),
    ("the water " * 20, ["is the", "or"], 0),
    ("Où est l'eau ?", ["là-bas", "ici", "the water is on the water", "x"], 3),
    ("Answer:", ["A", "A A", "A A A"], 1),
]
CONTEXTS = [
    (["the tree is", "the water is"], "in the air.", 1),
    (["a ", "an"], "on", 0),
    (["one and one", "two and one", "1 1"], "are 3", 1),
]
WORDS = [("the water is in the", "water"), ("on and on and", "on"), ("x" * 90, "y z"), ("in", "it")]
TASKS = ("choices", "contexts", "words")


def write(folder: Path) -> None:
    """Write the model, its tokenizer and three JSONL files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text_specimen.write(folder)
    keys = ("query", "choices", "gold"), ("contexts", "continuation", "gold"), ("context", "word")
    for name, lines, own in zip(TASKS, (QUESTIONS, CONTEXTS, WORDS), keys, strict=True):
        rows = [json.dumps(dict(zip(own, line, strict=True))) for line in lines]
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
