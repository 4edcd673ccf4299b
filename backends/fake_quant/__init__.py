"""Bit-widths below 8, simulated in floating point: DoReFa, PACT and LSQ."""
