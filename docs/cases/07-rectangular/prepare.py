"""Write YOLOX-Nano for images of any size, as the `.pt` takes them, and its classes."""

import os
import shutil
from pathlib import Path

import onnx

model = onnx.load(Path(os.environ["DATA"]) / "models" / "yolox_nano_416.onnx")
for side, name in zip(model.graph.input[0].type.tensor_type.shape.dim[2:], "hw", strict=True):
    side.dim_param = name
model.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "cells"
del model.graph.value_info[:]
onnx.save(model, "network.onnx")
shutil.copy(Path(os.environ["CARDS"]) / "coco80.txt", "coco80.txt")
