"""Importers: profiles made from other tools' configuration files, one module per format."""

from simulator.importers.formats import FORMATS, convert, entries

__all__ = ["FORMATS", "convert", "entries"]
