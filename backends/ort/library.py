"""ONNX Runtime under the names of its packages: for CPUs, and for NVIDIA's GPUs."""

from simulator.contract import Library

FOR_GPUS = ("onnxruntime-gpu",)

ort = Library("onnxruntime", distribution="onnxruntime", extra="onnxruntime", others=FOR_GPUS)
quantization = Library(
    "onnxruntime.quantization", distribution="onnxruntime", extra="onnxruntime", others=FOR_GPUS
)
