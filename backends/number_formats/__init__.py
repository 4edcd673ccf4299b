"""Numbers of 8 bits and fewer with an exponent: FP8, OCP MX, NVFP4 and NF4."""
