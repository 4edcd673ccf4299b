"""Frames of one sequence, annotated as KITTI, MOTChallenge and COCO-VID do; written by hand."""

import json

import datacards
import numpy as np
import pytest

from simulator.data.labels import Labels
from simulator.errors import DataError

KITTI = """\
0 -1 DontCare -1 -1 -10.000000 30.0 2.0 40.0 12.0 -1000 -1000 -1000 -10 -1 -1 -1
0 0 Car 0 0 -1.793451 2.5 4.0 12.5 24.0 2.0 1.8 4.4 -4.5 1.8 13.4 -2.1
2 0 Car 0 1 -1.795825 3.0 4.0 13.0 24.0 2.0 1.8 4.4 -4.6 1.8 13.4 -2.1
2 1 Van 0 2 -1.795825 20.0 4.0 28.0 10.0 2.0 1.8 4.4 -4.6 1.8 13.4 -2.1
2 2 Pedestrian 0 0 -1.9 14.0 4.0 18.0 20.0 1.7 0.7 0.7 -4.6 1.8 13.4 -2.1
"""
AGAIN = -2
"""Frame 2 of another sequence."""
MOT = """\
2,1,11,6,10,20,1,1,0.9
1,1,10,6,10,20,1,1,1
1,2,30,6,5,9,0,8,0.5
2,3,20,6,8,9,1,3,1
"""


def kitti(folder, text=KITTI, frames=(0, 1, 2), **fields):
    datacards.images(folder, *(f"{frame:06}.png" for frame in frames if frame != AGAIN))
    if AGAIN in frames:
        datacards.images(folder, "0001/000002.png")
    (folder / "0000.txt").write_text(text)
    given = {"images": "images", "annotations": "0000.txt", "classes": {"Pedestrian": "person"}}
    return datacards.card_of(folder, "detection", "kitti_tracking", **given | fields)


def load(card, *labels):
    return card.load(Labels(labels))


def told(item):
    """Each object's class, whether it is judged, and its box."""
    truth = item.truth
    return sorted(
        (int(kind), not crowd, *box)
        for kind, crowd, box in zip(truth.classes, truth.crowd, truth.xywh.tolist(), strict=True)
    )


def test_kitti_counts_frames_from_0_and_gives_corners(tmp_path):
    """DontCare is a region of every class that the file has; a class without a name likewise."""
    card = kitti(tmp_path, classes={"Pedestrian": "person", "Van": None})
    found = load(card, "car", "person")
    first, second, third = found.items
    assert [item.name for item in found.items] == ["000000.png", "000001.png", "000002.png"]
    assert (found.film, found.rate) == (True, 10)
    region = (30, 2, 10, 10)
    assert told(first) == [(0, False, *region), (0, True, 2.5, 4, 10, 20), (1, False, *region)]
    assert len(second.truth) == 0
    van = (20, 4, 8, 6)
    assert told(third) == [
        (0, False, *van), (0, True, 3, 4, 10, 20), (1, False, *van), (1, True, 14, 4, 4, 16),
    ]  # fmt: skip


def mot(folder, **fields):
    datacards.images(folder / "MOT", "000001.jpg", "000002.jpg")
    (folder / "MOT/gt").mkdir()
    (folder / "MOT/gt/gt.txt").write_text(MOT)
    (folder / "MOT/seqinfo.ini").write_text("[Sequence]\nname=MOT\nframeRate=30\nseqLength=2\n")
    given = {"images": "MOT/images", "annotations": "MOT/gt/gt.txt"}
    given["classes"] = {"Pedestrian": "person"}
    return datacards.card_of(folder, "detection", "mot", **given | fields)


@pytest.mark.parametrize(("fields", "rate"), [({}, 30), ({"rate": 14.5}, 14.5)])
def test_mot_counts_frames_and_pixels_from_1(tmp_path, fields, rate):
    """What has the flag 0 is not judged, whatever it is; the rate stands in seqinfo.ini."""
    found = load(mot(tmp_path, **fields), "car", "person")
    first, second = map(told, found.items)
    distractor = (29, 5, 5, 9)
    assert first == [
        (0, False, *distractor), (1, False, *distractor), (1, True, 9, 5, 10, 20),
    ]  # fmt: skip
    assert second == [(0, True, 19, 5, 8, 9), (1, True, 10, 5, 10, 20)]
    assert (found.film, found.rate) == (True, rate)


def vid(folder, first=1, **fields):
    """Two videos; the frames of the first one are not listed in their order."""
    first = f"a/{first}.jpg"
    names = {"a/5.jpg": (1, 4), first: (1, 0), "a/2.jpg": (1, 2), "b/0.jpg": (2, 0)}
    datacards.images(folder, *names)
    images = [
        {"id": at, "file_name": name, "width": 40, "height": 30, "video_id": video,
         "frame_id": frame}
        for at, (name, (video, frame)) in enumerate(names.items())
    ]  # fmt: skip
    boxes = [
        {"id": at, "image_id": at, "video_id": 1, "category_id": 1, "instance_id": 7,
         "bbox": [at, 1, 4, 5]}
        for at in range(4)
    ]  # fmt: skip
    document = {
        "videos": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}], "images": images,
        "annotations": boxes, "categories": [{"id": 1, "name": "car"}],
    }  # fmt: skip
    (folder / "vid.json").write_text(json.dumps(document))
    given = {"images": "images", "annotations": "vid.json", "video": "one"}
    return datacards.card_of(folder, "detection", "coco_vid", **given | fields)


def test_coco_vid_has_the_frames_of_one_video_by_their_id(tmp_path):
    """Every second frame of 30 a second."""
    found = load(vid(tmp_path, rate=30), "car")
    assert [item.name for item in found.items] == ["a/1.jpg", "a/2.jpg", "a/5.jpg"]
    assert np.array([item.truth.xywh[0, 0] for item in found.items]).tolist() == [1, 2, 0]
    assert (found.film, found.rate) == (True, 15)


@pytest.mark.parametrize(
    ("made", "fields", "message"),
    [
        (kitti, {"frames": (0, 1, 3)}, "frames are 1, 2 apart"),
        (kitti, {"frames": (0, 1, 2, AGAIN)}, "are both frame 2; name the folder"),
        (kitti, {"text": "0 1 Car 0 0\n"}, r"0000.txt:1: .*box expected"),
        (kitti, {"text": KITTI.replace(" 2.5", " nan")}, r"0000.txt:2: .*finite numbers"),
        (kitti, {}, "does not have 1 of 3 class.*'Van'.*classes: {NAME"),
        (mot, {"annotations": "MOT/seqinfo.ini"}, r"seqinfo.ini:1: .*flag, class expected"),
        (vid, {"video": "three"}, "one of one, two expected, got three"),
        (vid, {"first": 9}, "a/9.jpg is shown before a/2.jpg; names must sort"),
        (vid, {"video": None}, "one of one, two expected, got None"),
    ],
)
def test_what_cannot_be_a_sequence_is_refused_in_a_line(tmp_path, made, fields, message):
    with pytest.raises(DataError, match=message) as caught:
        load(made(tmp_path, **fields), "car", "person")
    assert "\n" not in str(caught.value)
