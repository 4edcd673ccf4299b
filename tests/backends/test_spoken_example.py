"""The example for sounds: where its packages are, it runs; where not, it says what to install."""

import csv
import wave

import pytest
from installing import uninstall

from simulator import registry
from simulator.data import example
from simulator.errors import MissingLibrary
from simulator.model.card import load


def test_what_is_missing_is_one_line(cache, monkeypatch):
    uninstall(monkeypatch, registry.backend("spoken_sentences").libraries[0])
    with pytest.raises(MissingLibrary, match=r"^[^\n]*--example audio[^\n]*pip install[^\n]*$"):
        example.model_card("audio")


def test_the_truth_is_where_the_voice_speaks(cache):
    card = example.model_card("audio")
    with (card.parent / "segments.csv").open() as table:
        rows = {name: (float(begin), float(end)) for name, begin, end in csv.reader(table)}

    assert load(card).task.name == "voice_activity"
    assert len(rows) == 5
    for name, (begin, end) in rows.items():
        with wave.open(str(card.parent / "sounds" / name)) as file:
            assert begin == 0.5
            assert file.getnframes() / file.getframerate() == pytest.approx(end + 0.5, abs=1e-3)
