"""Frames of one sequence, annotated as KITTI, MOTChallenge and COCO-VID do."""

import numpy as np
import pytest
from made_sequences import AGAIN, KITTI, kitti, mot, vid

from simulator.data.labels import Labels
from simulator.data.video import shown_at
from simulator.errors import DataError


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


def test_coco_vid_has_the_frames_of_one_video_by_their_id(tmp_path):
    """Every second frame of 30 a second."""
    found = load(vid(tmp_path, rate=30), "car")
    assert [item.name for item in found.items] == ["a/1.jpg", "a/2.jpg", "a/5.jpg"]
    assert np.array([item.truth.xywh[0, 0] for item in found.items]).tolist() == [1, 2, 0]
    assert (found.film, found.rate) == (True, 15)


@pytest.mark.parametrize(
    ("made", "tracks"),
    [(kitti, [[0, -1, -1], [], [0, 2, -1, -1]]), (mot, [[1, -1, -1], [1, 3]]), (vid, [[7]] * 3)],
)
def test_boxes_of_one_object_have_one_number(tmp_path, made, tracks):
    """What is not judged is of no track."""
    card = (
        made(tmp_path, classes={"Pedestrian": "person", "Van": None})
        if made is kitti
        else made(tmp_path)
    )
    found = load(card, "car", "person")
    assert [sorted(item.truth.tracks) for item in found.items] == [sorted(one) for one in tracks]


@pytest.mark.parametrize("unknown", ["-1", "1.5", "9" * 30, "x"])
def test_boxes_may_be_of_no_known_track(tmp_path, unknown):
    """MOTChallenge's -1, and what is no number of a track: boxes stay boxes, and it is said."""
    lines = [f"1,{unknown},10,6,10,20,1,1,1", f"1,{unknown},30,6,5,9,1,1,1", "2,1.0,1,6,9,9,1,1,1"]
    found = load(mot(tmp_path, text="\n".join(lines)), "car", "person")
    first, second = (item.truth for item in found.items)
    assert (len(first), first.tracks, second.tracks) == (2, None, [1])
    assert any("none of the annotated tracks is compared: 000001.jpg" in one for one in found.notes)


@pytest.mark.parametrize("rate", ["-25", "0", "nan", "1e9", "fast"])
def test_what_is_no_rate_is_not_known(tmp_path, rate):
    assert load(mot(tmp_path, said=rate), "car", "person").rate is None


def test_frames_of_several_films_are_shown_in_seconds(tmp_path):
    found = load(vid(tmp_path, video=None, rate=30), "car")
    first, second = (f"{name}.jpg" for name in ("a/1", "b/0"))
    assert shown_at(found) == {
        "a/1.jpg": (first, 0), "a/2.jpg": (first, 1 / 15), "a/5.jpg": (first, 2 / 15),
        "b/0.jpg": (second, 0),
    }  # fmt: skip
    assert shown_at(load(vid(tmp_path, video=None), "car")) == {}


def test_all_videos_of_coco_vid_are_several_films(tmp_path):
    found = load(vid(tmp_path, video=None), "car")
    assert [item.name for item in found.items] == ["a/1.jpg", "a/2.jpg", "a/5.jpg", "b/0.jpg"]
    assert ([one.frames for one in found.films], found.film) == ([3, 1], False)


def test_mot15_has_positions_in_place_of_classes(tmp_path):
    card = mot(tmp_path, text="1,1,10,6,10,20,1,3.2,5.1,0\n2,1,10,6,10,20,1,-1,-1,-1\n")
    assert [told(item) for item in load(card, "person").items] == [[(0, True, 9, 5, 10, 20)]] * 2


@pytest.mark.parametrize(
    ("made", "fields", "message"),
    [
        (kitti, {"frames": (0, 1, 3)}, "frames are 1, 2 apart"),
        (kitti, {"frames": (0, 1, 2, AGAIN)}, "are both frame 2; name the folder"),
        (kitti, {"text": "0 1 Car 0 0\n"}, r"0000.txt:1: .*box expected"),
        (kitti, {"text": KITTI.replace(" 2.5", " nan")}, r"0000.txt:2: .*finite numbers"),
        (kitti, {}, "does not have 1 of 3 class.*'Van'.*classes: {NAME"),
        (mot, {"annotations": "MOT/seqinfo.ini"}, r"seqinfo.ini:1: .*flag, class expected"),
        (mot, {"text": "1,1,10,6,10,20,1,inf,1\n"}, r"gt.txt:1: .*finite numbers"),
        (mot, {"text": "1,1,9,6,9,9,1,1,1\n1,1,40,6,9,9,1,1,1\n"}, "two boxes of one track"),
        (mot, {"text": "1,1,10,6,10,20,1,14,1\n"}, r"gt.txt:1: .*1 to 13 expected, got 14"),
        (vid, {"names": [["one"], "two"]}, "one of None, two expected, got one"),
        (vid, {"names": []}, "vid.json: videos: at least one expected"),
        (vid, {"names": ["one", "one"]}, "vid.json: videos: 2 are called one; rename one"),
        (vid, {"video": "three"}, "one of one, two expected, got three"),
        (vid, {"first": 9}, "a/9.jpg is shown before a/2.jpg; names must sort"),
    ],
)
def test_what_cannot_be_a_sequence_is_refused_in_a_line(tmp_path, made, fields, message):
    with pytest.raises(DataError, match=message) as caught:
        load(made(tmp_path, **fields), "car", "person")
    assert "\n" not in str(caught.value)
