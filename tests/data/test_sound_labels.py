"""Labels in file names, transcripts, and segments of speech."""

import pytest

from simulator.data.card import read_card
from simulator.data.folder import Files
from simulator.errors import DataError
from simulator.testing.audio_specimen import sine, wav

SOUNDS = Files((".wav",), "sound")
NAMES = "task: audio_classification\nformat: names\nfiles: sounds\nlabel: "
WORDS = "task: transcription\nformat: ljspeech\nfiles: sounds\ntranscripts: t.txt\n"
SPEECH = "task: voice_activity\nformat: segments\nfiles: sounds\nsegments: t.csv\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sounds").mkdir()
    for name in ("3_ann_0.wav", "7_bob_1.wav", "noise.wav"):
        (tmp_path / "sounds" / name).write_bytes(wav(sine(440, 8000, 400), 8000))
    return tmp_path


def loaded(folder, card):
    (folder / "data.yaml").write_text(f"schema: 1\nname: few\n{card}")
    found = read_card(folder / "data.yaml").load(None, SOUNDS)
    return {item.name: item.truth for item in found.items}, found.notes


def test_the_label_is_in_the_name(folder):
    truths, notes = loaded(folder, NAMES + "([0-9])_.*")

    assert truths == {"3_ann_0.wav": 3, "7_bob_1.wav": 7}
    assert notes == ("left out 1 sound whose names do not fit label",)


def test_the_last_text_of_a_line_counts(folder):
    (folder / "t.txt").write_text("3_ann_0|In 1843.|In eighteen forty-three.\n\nnoise|Hush\n")
    truths, notes = loaded(folder, WORDS)

    assert truths == {"3_ann_0.wav": "In eighteen forty-three.", "noise.wav": "Hush"}
    assert notes == ("left out 1 sound without a transcript",)


def test_a_sound_without_a_segment_is_silent(folder):
    (folder / "t.csv").write_text("3_ann_0.wav,0.5,1\n3_ann_0.wav,2,2.5\n")
    truths, _ = loaded(folder, SPEECH)

    assert truths == {"3_ann_0.wav": [(0.5, 1), (2, 2.5)], "7_bob_1.wav": [], "noise.wav": []}


@pytest.mark.parametrize(
    ("card", "table", "line"),
    [
        (NAMES + "([0-9]_.*", "", "label: not a regular expression"),
        (NAMES + "'[0-9]_.*'", "", "label: one group in parentheses"),
        (NAMES + "(x)_.*", "", "label: fits none of the names"),
        (NAMES + "(n)oise.wav", "", "class 'n': the model card has no label file"),
        (WORDS, "3_ann_0 In 1843.\n", r"t\.txt:1: NAME\|TEXT expected"),
        (WORDS, "noise|a\nnoise|b\n", r"t\.txt:2: 'noise' has a line already"),
        (WORDS, "other|a\n", "transcripts: has none of the samples in"),
        (SPEECH, "noise.wav,1\n", r"t\.csv:1: NAME,BEGIN,END in seconds"),
        (SPEECH, "noise.wav,2,1\n", r"t\.csv:1: NAME,BEGIN,END in seconds"),
        (SPEECH, "noise.wav,0,nan\n", r"t\.csv:1: NAME,BEGIN,END in seconds"),
        (SPEECH, "other.wav,0,1\n", r"t\.csv:1: there is no 'other\.wav'"),
    ],
)
def test_what_is_wrong_is_one_line(folder, card, table, line):
    (folder / ("t.csv" if card is SPEECH else "t.txt")).write_text(table)
    with pytest.raises(DataError, match=rf"^[^\n]*{line}[^\n]*$"):
        loaded(folder, card)
