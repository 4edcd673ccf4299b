"""How weights of an ONNX file that computes in FP32 can be stored: words of profiles."""

STORED = (
    "fp32", "fp16", "bf16", "int8", "int6", "int4", "int2", "fp8_e4m3", "fp8_e5m2", "mxfp8_e4m3",
    "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "nvfp4", "nf4",
)  # fmt: skip
