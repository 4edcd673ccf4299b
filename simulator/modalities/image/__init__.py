"""Images: files, frames, geometry, and the preprocessing up to the input tensor."""
