"""Checkpoints as models with their cards: GGUF files of Llamas, folders of a BERT."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import ClassVar

from backends.language_models.libraries import gguf, safetensors, tokenizers
from simulator.contract import Backend, MissingLibrary, ModelError, Offer
from simulator.contract.checkpoint import NAME, Checkpoint
from simulator.errors import one_line

_PROGRAM = "model.pt2"
_LLAMA = """\
schema: 1
name: {name}
summary: {summary}
task: multiple_choice
model: model.onnx
gguf: {gguf}
input:
  kind: text
  tokenizer: {{tokenizers: tokenizer.json, gguf: {gguf}}}
  vocabulary: {vocabulary}
  max_length: {length}
  pad: {pad}
  prefix: {prefix}
  names: {{ids: input_ids, mask: attention_mask}}
{past}output: {{}}
"""
_PAST = "  past: {{layers: {}, heads: {}, width: {}}}\n"
_BERT = """\
schema: 1
name: {name}
summary: {summary}
task: embedding
model: model.onnx
input:
  kind: text
  tokenizer: {{tokenizers: tokenizer.json}}
  vocabulary: {vocabulary}
  max_length: {length}
  pad: {pad}
  names: {{ids: input_ids, mask: attention_mask}}
output: {{pooling: none}}
"""


class GgufCheckpoint(Checkpoint):
    """A Llama in a GGUF file; its weights become FP32, whatever type they are stored in.

    The vocabulary becomes a ``tokenizer.json``; the card names the GGUF file itself as well, for
    runtimes that take it, so it is linked, or copied where the folder is on another disk.
    """

    ending: ClassVar[str] = ".gguf"

    def write(self, source: Path, folder: Path, program: bool = False, cache: bool = False) -> None:
        """Write the model, its card, its tokenizer, a link to the file, and a program."""
        import onnx

        from backends.language_models import llama
        from backends.language_models import program as torch_program
        from backends.language_models.gguf_file import GgufFile, tokenizer

        file = GgufFile(source)
        sizes = file.sizes(cache)
        words = tokenizer(file)
        onnx.save(llama.model(sizes, file.weight), str(folder / "model.onnx"))
        words.save(str(folder / "tokenizer.json"))
        linked(source, folder / "model.gguf")
        if program:
            torch_program.save(sizes, file.weight, folder / _PROGRAM)
        stored = ", ".join(f"{number} {kind}" for kind, number in sorted(file.types().items()))
        start = file.token("bos_token_id", 0)
        card = _LLAMA.format(
            name=json.dumps(str(file.field("general.name", source.stem))),
            summary=json.dumps(f"Llama of {source.name}; tensors there: {stored}; FP32 here"),
            gguf="model.gguf",
            vocabulary=sizes.vocabulary,
            length=sizes.context,
            pad=file.token("padding_token_id", start),
            prefix=start,
            past=_PAST.format(sizes.layers, sizes.kv_heads, sizes.head_width) if cache else "",
        )
        card += f"torch_export: {_PROGRAM}\n" if program else ""
        (folder / "model.yaml").write_text(card, encoding="utf-8")


class BertCheckpoint(Checkpoint):
    """A folder with ``model.safetensors``, ``config.json`` and ``tokenizer.json`` of a BERT.

    Its output is the mean of the last layer over the tokens, with length 1, as
    sentence-transformers has it for the models that say so in ``1_Pooling/config.json``.
    """

    ending: ClassVar[str] = "model.safetensors"

    def write(self, source: Path, folder: Path, program: bool = False, cache: bool = False) -> None:
        """Write the model, its card and its tokenizer; a program and a cache are refused."""
        import onnx

        from backends.language_models import bert

        for asked, what, option in ((program, "program", "program"), (cache, "KV cache", "cache")):
            if asked:
                told = f"a {what} is made of Llamas only; leave out --{option}"
                raise ModelError(f"{source}: {told}")
        home = source if source.is_dir() else source.parent
        try:
            config = json.loads((home / "config.json").read_text(encoding="utf-8"))
            weights = safetensors.load_file(home / self.ending)
            words = tokenizers.Tokenizer.from_file(str(home / "tokenizer.json"))
            sizes = bert.Sizes.of(config)
            pooling = json.loads((home / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
        except (MissingLibrary, ModelError):
            raise
        except Exception as error:  # of three formats, each with its own kinds of errors
            raise ModelError(f"{home}: not a BERT of sentences: {one_line(error)}") from error
        if not pooling.get("pooling_mode_mean_tokens"):
            raise ModelError(f"{home}: its sentences are not the mean of their tokens")
        try:
            onnx.save(bert.model(sizes, weights), str(folder / "model.onnx"))
        except KeyError as error:
            raise ModelError(f"{home}: has no tensor {error}") from error
        words.no_padding()
        words.no_truncation()
        words.save(str(folder / "tokenizer.json"))
        card = _BERT.format(
            name=json.dumps(config.get("_name_or_path", home.name)),
            summary="BERT, mean of the tokens, length 1",
            vocabulary=sizes.vocabulary,
            length=sizes.context,
            pad=config.get("pad_token_id", 0),
        )
        (folder / "model.yaml").write_text(card, encoding="utf-8")


def linked(source: Path, target: Path) -> None:
    """Make a file appear under another name: a hard link, or a copy where there can be none."""
    try:
        target.hardlink_to(source.resolve())
    except OSError:
        shutil.copyfile(source, target)


BACKEND = Backend(
    name="gguf",
    summary="Llamas in GGUF files as ONNX models, without PyTorch",
    library=gguf,
    companions=(tokenizers,),
    offers=(Offer(NAME, {}, GgufCheckpoint),),
)
SENTENCES = Backend(
    name="safetensors",
    summary="BERTs of sentences in safetensors files as ONNX models, without PyTorch",
    library=safetensors,
    companions=(tokenizers,),
    offers=(Offer(NAME, {}, BertCheckpoint),),
)
