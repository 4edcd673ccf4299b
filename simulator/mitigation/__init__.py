"""Training against the noise of stacks: SysNoise, section 4.4."""

from simulator.mitigation.preprocessing import MixedDataset, MixedPreprocessing

__all__ = ["MixedDataset", "MixedPreprocessing"]
