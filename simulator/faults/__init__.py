"""Campaigns of hardware faults: bits of weights and activations of the artifact that runs."""
