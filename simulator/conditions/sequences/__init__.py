"""The perturbation sequences of ImageNet-P; every frame of one is a condition."""
