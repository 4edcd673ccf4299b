"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(name="weight_only", summary="to be written", offers=())
