"""Passes over a model, one file a pass; see :mod:`simulator.contract.passes`."""
