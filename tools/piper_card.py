"""Write a voice of Piper with its durations as a second output, and its card: VOICE.onnx FOLDER"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx
from onnx import TensorProto, helper

CARD = """\
schema: 1
name: {name}
summary: a voice of Piper (VITS) without noise; durations are the outputs of its Ceil node
task: text_to_speech
model: model.onnx
input:
  kind: text
  vocabulary: {symbols}
  max_length: 4096
  names: {{ids: input, lengths: input_lengths}}
  constants: {{scales: [0, 1, 0]}}
output: {{rate: {rate}, waveform: output, durations: {durations}}}
"""


def main() -> None:
    voice, folder = map(Path, sys.argv[1:])
    config = json.loads(voice.with_name(f"{voice.name}.json").read_text(encoding="utf-8"))
    model = onnx.load(str(voice))
    (ceil,) = (node for node in model.graph.node if node.op_type == "Ceil")
    shape = ["batch_size", 1, "phonemes"]
    port = helper.make_tensor_value_info(ceil.output[0], TensorProto.FLOAT, shape)
    model.graph.output.append(port)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / "model.onnx"))
    card = CARD.format(
        name=voice.stem,
        symbols=config["num_symbols"],
        rate=config["audio"]["sample_rate"],
        durations=ceil.output[0],
    )
    (folder / "card.yaml").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()
