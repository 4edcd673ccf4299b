"""What the conformance suite tries transcription with."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from simulator.tasks.settings import Network
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task
from simulator.tasks.transcription.task import Transcript

END = 27


def letters(task: type[Task]) -> dict[str, Specimen]:
    """Return a network whose tokens are a blank and the letters of the alphabet."""
    output = task.Output(tokens="tokenizer.json", words="lower")
    made = task(output, Network(folder=Path(_folder().name)))
    first, second = (
        {"ids": np.array([[*(_id(letter) for letter in text), END]], np.int64)}
        for text in ("it rains", "it ran")
    )
    worthless = [
        ("It rains.", Transcript((), "")),
        ("Dear me", Transcript(("year", "we"), "year we")),
        ("One word", Transcript(("\ufffd" * 9,) * 2, "\ufffd")),
    ]
    return {"letters": Specimen(made, (first, second), None, "It rains.", worthless)}


def _id(letter: str) -> int:
    return 0 if letter == " " else ord(letter) - ord("a") + 1


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """The folder of the vocabulary; it lasts as long as the process."""
    folder = tempfile.TemporaryDirectory(prefix="simulate-letters-")
    known = {"Ġ": 0, **{chr(ord("a") + at): at + 1 for at in range(26)}}
    content = {"added_tokens": [{"id": END, "content": "<|end|>"}], "model": {"vocab": known}}
    (Path(folder.name) / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
