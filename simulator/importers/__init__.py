"""Importers: profiles made from other tools' configuration files, one class per format."""

from simulator.importers.importer import IMPORTERS, ConfigFile, Importer
from simulator.importers.importing import convert, entries, importer_of

__all__ = ["IMPORTERS", "ConfigFile", "Importer", "convert", "entries", "importer_of"]
