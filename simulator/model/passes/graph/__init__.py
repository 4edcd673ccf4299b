"""What passes over an ONNX graph share."""
