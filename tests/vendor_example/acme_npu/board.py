"""An importer of Acme's own: the settings of a board, ``board.json``.

A JSON object: ``acme_board`` (its version), ``height``, ``width``, ``mean`` and ``std`` (on 0-255,
one number or three), and ``serial``.
"""

from __future__ import annotations

from fractions import Fraction

from simulator.importers import ConfigFile, Importer, values
from simulator.importers.draft import Draft


class Board(Importer):
    """Size, mean and standard deviation; the rest is the board's own profile."""

    name = "acme_board"
    about = "Acme's board.json"
    tool = "board"
    base = "acme/board_fp32"
    stems = ("board",)
    keys = ("acme_board",)

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Take the size for the model card, and the arithmetic for the profile."""
        keys = file.json_keys(draft)
        why = "the board has no size of its own"
        size = [keys.need(side, values.pixels, 0, why) for side in ("height", "width")]
        draft.network(size, keys.origin("height"))
        mean = keys.take("mean", values.three, [Fraction(0)] * 3)
        std = keys.take("std", values.three_above_zero, [Fraction(1)] * 3)
        order = "divide", "Acme NPU programmer's guide 4.1 (invented): (x - mean) / std"
        draft.normalize(mean, std, order, lambda name: keys.origin(name, "off by default"))
        keys.rest({"acme_board": "the version of the file", "serial": "which board it is"})


BOARD = Board()
