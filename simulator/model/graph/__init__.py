"""ONNX to ONNX rewrites, one axis a file."""
