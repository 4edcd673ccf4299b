"""Passes over a model, one file per pass; see :mod:`simulator.contract.passes`."""
