"""Images: files, frames, geometry, the way to the input tensor."""
