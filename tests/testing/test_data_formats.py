"""The checks of data formats: ours pass them, and each broken one trips exactly one."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from functools import partial

import av
import datacards
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_tasks
from made_sequences import kitti, mot, vid

from simulator.data import coco
from simulator.data.folder import Files
from simulator.data.label_kind import LABELS
from simulator.data.labels import Labels
from simulator.data.source import SOURCES
from simulator.tasks.audio_classification.task import AudioClassification
from simulator.tasks.classification.task import Classification
from simulator.tasks.detection.task import Detection
from simulator.tasks.embedding.task import Embedding
from simulator.tasks.generation.task import Generation
from simulator.tasks.multiple_choice.task import MultipleChoice
from simulator.tasks.next_word.task import NextWord
from simulator.tasks.segmentation.task import Segmentation
from simulator.tasks.settings import Network
from simulator.tasks.transcription.task import Transcription
from simulator.tasks.voice_activity.task import VoiceActivity
from simulator.testing.audio_specimen import sine, wav
from simulator.testing.data_formats import SUITE, prove_data_format
from suites import passes, trips

SYNSETS = ("n02119789", "n02100735", "n02110185")
NETWORK = Network(Labels(("red", "green", "blue"), SYNSETS))
TASKS = {kind.name: kind(None, NETWORK) for kind in (Classification, Detection, Segmentation)}
TEXTS = Files((".json", ".txt"), "text")
TASKS_OF_TEXT = {kind.name: kind for kind in (MultipleChoice, NextWord, Generation, Embedding)}
SQUARE = [[0, 0, 9, 0, 9, 9]]


def detection_coco(folder):
    return tiny_tasks.data(folder, "detection")


def segmentation_index_masks(folder):
    return tiny_tasks.data(folder, "segmentation")


def segmentation_coco(folder):
    card = tiny_tasks.data(folder, "detection")
    document = json.loads((folder / "boxes.json").read_text())
    annotations = [{**one, "segmentation": SQUARE} for one in document["annotations"]]
    (folder / "boxes.json").write_text(json.dumps({**document, "annotations": annotations}))
    fields = {"task": "segmentation", "format": "coco", "annotations": "boxes.json"}
    return datacards.card(card.parent, **fields, background=None)


def detection_yolo(folder):
    tiny_tasks.data(folder, "detection")
    (folder / "labels").mkdir()
    (folder / "labels" / "00a.txt").write_text("2 0.5 0.5 0.25 0.25\n")
    return datacards.card(
        folder, task="detection", format="yolo", annotations="labels", classes="classes.txt"
    )


def detection_voc(folder):
    tiny_tasks.data(folder, "detection")
    (folder / "xml").mkdir()
    box = "".join(
        f"<{side}>{n}</{side}>" for n, side in enumerate(("xmin", "ymin", "xmax", "ymax"))
    )
    (folder / "xml" / "00a.xml").write_text(
        f"<annotation><object><name>red</name><bndbox>{box}</bndbox></object></annotation>"
    )
    return datacards.card(folder, task="detection", format="voc", annotations="xml")


COLORS = {"Car": "red", "Van": "green", "Pedestrian": "blue"}


def _video(folder, task):
    with av.open(str(folder / "clip.mkv"), "w") as file:
        stream = file.add_stream("ffv1", rate=25)
        stream.height, stream.width, stream.pix_fmt = 16, 24, "bgr0"
        for level in (0, 100, 200):
            pixels = np.full((16, 24, 3), level, np.uint8)
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            file.mux(stream.encode(frame.reformat(format="bgr0")))
        file.mux(stream.encode(None))
    return datacards.card_of(folder, task, "video", video="clip.mkv").path


KEYS = {
    "multiple_choice": {"choices": "c", "gold": "g", "delimiter": " "},
    "next_word": {"continuation": "{w}", "delimiter": " "},
    "generation": {"answer": "{w}"},
    "embedding": {"choices": "c", "gold": "g"},
}


def _jsonl(folder, task):
    lines = [json.dumps({"q": "a", "c": ["b", "c"], "g": at, "w": f"d{at}"}) for at in range(2)]
    (folder / "a.jsonl").write_text("\n".join(lines))
    fields = {"file": "a.jsonl", "context": "{q}", **KEYS[task]}
    return datacards.card_of(folder, task, "jsonl", **fields).path


SOUNDS = Files((".wav",), "sound")
TASKS_OF_SOUND = {
    kind.name: next(iter(kind.specimens().values())).task for kind in (Transcription, VoiceActivity)
} | {AudioClassification.name: AudioClassification(None, NETWORK)}


def _sounds(folder, task, format, **fields):
    (folder / "wavs").mkdir()
    for name in ("red_0", "blue_1"):
        (folder / "wavs" / f"{name}.wav").write_bytes(wav(sine(440, 8000, 800), 8000))
    return datacards.card_of(folder, task, format, files="wavs", **fields).path


def transcription_ljspeech(folder):
    (folder / "said.csv").write_text("red_0|One.\nblue_1|2.|Two.\n")
    return _sounds(folder, "transcription", "ljspeech", transcripts="said.csv")


def voice_activity_segments(folder):
    (folder / "speech.csv").write_text("red_0.wav,0.01,0.05\n")
    return _sounds(folder, "voice_activity", "segments", segments="speech.csv")


def audio_classification_names(folder):
    return _sounds(folder, "audio_classification", "names", label=r"(.*)_\d\.wav")


def classification_names(folder):
    datacards.images(folder, "red_0.png", "blue_1.png")
    fields = {"files": "images", "label": r"(.*)_\d\.png"}
    return datacards.card_of(folder, "classification", "names", **fields).path


def classification_table(folder):
    datacards.images(folder, "a.png", "b.png")
    (folder / "said.csv").write_text("file,label\na.png,red\nb.png,blue\n")
    fields = {"files": "images", "table": "said.csv"}
    return datacards.card_of(folder, "classification", "table", **fields).path


def audio_classification_table(folder):
    (folder / "said.csv").write_text("file,label\nred_0.wav,red\nblue_1.wav,blue\n")
    return _sounds(folder, "audio_classification", "table", table="said.csv")


def classification_ilsvrc(folder):
    datacards.images(folder, *(f"ILSVRC2012_val_{number:08}.JPEG" for number in (1, 2)))
    (folder / "truth.txt").write_text("3\n1\n")
    (folder / "ids.txt").write_text("".join(f"{one} {at}\n" for at, one in enumerate(SYNSETS, 1)))
    fields = {"files": "images", "truth": "truth.txt", "synsets": "ids.txt"}
    return datacards.card_of(folder, "classification", "ilsvrc", **fields).path


def _files(folder, task):
    """(name without ending, ending, bytes, label) of two samples."""
    if task == "classification":
        datacards.images(folder, "a.png", "b.png")
        found = [(name, ".png", (folder / "images" / f"{name}.png").read_bytes()) for name in "ab"]
    else:
        found = [(name, ".wav", wav(sine(440, 8000, 800), 8000)) for name in "ab"]
    labels = ("one", "two") if task == "transcription" else ("2", "0")
    return [(*one, label) for one, label in zip(found, labels, strict=True)]


def _webdataset(folder, task):
    members = []
    for name, ending, data, label in _files(folder, task):
        members += [(f"{name}{ending}", data), (f"{name}.txt", label.encode())]
    datacards.tar(folder / "a-0.tar", *members)
    fields = {"files": "a-{0..0}.tar", "label": "txt"}
    return datacards.card_of(folder, task, "webdataset", **fields).path


def _parquet(folder, task):
    rows = [
        {"file": {"bytes": data, "path": f"{name}{ending}"}, "said": label}
        for name, ending, data, label in _files(folder, task)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
    return datacards.card_of(folder, task, "parquet", files="*.parquet", label="said").path


SHARDED = ("classification", "audio_classification", "transcription")
MAKERS = {
    made.__name__.replace("_", ".", 1): made
    for made in (detection_coco, detection_voc, detection_yolo,
                 segmentation_coco, segmentation_index_masks)
} | {
    "transcription.ljspeech": transcription_ljspeech,
    "voice_activity.segments": voice_activity_segments,
    "audio_classification.names": audio_classification_names,
    "classification.names": classification_names,
    "audio_classification.table": audio_classification_table,
    "classification.table": classification_table,
    "classification.ilsvrc": classification_ilsvrc,
    "detection.kitti_tracking": lambda folder: kitti(folder, classes=COLORS).path,
    "detection.mot": lambda folder: mot(folder, classes=COLORS).path,
    "detection.coco_vid": lambda folder: vid(folder, label="red").path,
} | {f"{task}.webdataset": partial(_webdataset, task=task) for task in SHARDED} | {
    f"{task}.parquet": partial(_parquet, task=task) for task in SHARDED
} | {f"{task}.video": partial(_video, task=task) for task in TASKS} | {
    f"{task}.jsonl": partial(_jsonl, task=task) for task in KEYS
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_our_formats_pass_every_check(name, tmp_path):
    task, _, format = name.partition(".")
    files = {"files": TEXTS} if format == "jsonl" else {}
    files = {"files": SOUNDS} if task in TASKS_OF_SOUND else files
    made = (TASKS | TASKS_OF_SOUND).get(task) or TASKS_OF_TEXT[task](None, NETWORK)

    passes(prove_data_format(MAKERS[name](tmp_path), made, **files), SUITE)


def test_every_source_and_label_kind_of_ours_is_tried():
    ours = {name for table in (LABELS, SOURCES) for name in table.names if table.is_ours(name)}
    tried = {*MAKERS, *(name.partition(".")[2] for name in MAKERS)}
    unlabelled = {"folder", "zip", "in_memory"}  # no card chooses them
    assert ours - tried == unlabelled


class Broken(coco.CocoBoxes):
    """Our COCO format, whose samples go through one more function."""

    def __init__(self, change, annotated=True):
        self.change, self.annotated = change, annotated

    def load(self, card, labels, files):
        found = super().load(card, labels, files)
        return replace(found, items=tuple(map(self.change, found.items)))


def never_the_same(item, numbers=itertools.count()):  # noqa: B008
    """Another truth at each load."""
    xywh = item.truth.xywh + np.array([next(numbers), 0, 0, 0])
    return replace(item, truth=replace(item.truth, xywh=xywh))


FAULTS = [
    ("loading_is_repeatable", Broken(never_the_same)),
    ("names_are_relative", Broken(lambda item: replace(item, name=str(item.path)))),
    ("names_are_relative", Broken(lambda item: replace(item, path=item.path / "gone"))),
    ("truths_are_stamped", Broken(lambda item: replace(item, truth=None))),
    ("truths_are_stamped", Broken(lambda item: item, annotated=False)),
]


@pytest.mark.parametrize(("check", "fault"), FAULTS)
def test_a_fault_trips_its_check_and_no_other(check, fault, tmp_path, monkeypatch):
    card = detection_coco(tmp_path)
    monkeypatch.setitem(LABELS._loaded, "detection.coco", fault)

    trips(prove_data_format(card, TASKS["detection"]), check)


def test_no_check_is_without_a_fault():
    assert {check for check, _ in FAULTS} == set(SUITE.names)
