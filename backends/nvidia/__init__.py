"""NVIDIA: DALI, nvImageCodec and TensorRT."""
