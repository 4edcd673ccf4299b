"""Profiles made from other tools' configurations, one file a format."""

from simulator.importers.formats import FORMATS, convert

__all__ = ["FORMATS", "convert"]
