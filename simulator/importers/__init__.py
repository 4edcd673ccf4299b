"""Importers: profiles made from other tools' configuration files, one class per format."""

from simulator.importers.importer import IMPORTERS, ConfigFile, Importer
from simulator.importers.importing import convert, entries, importer_of
from simulator.importers.live import convert_object

__all__ = [
    "IMPORTERS",
    "ConfigFile",
    "Importer",
    "convert",
    "convert_object",
    "entries",
    "importer_of",
]
