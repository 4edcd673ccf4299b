"""Code shared by passes over an ONNX graph."""
