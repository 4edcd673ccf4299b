"""Frames of one sequence, annotated as KITTI, MOTChallenge and COCO-VID do; written by hand."""

import json

import datacards

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


def mot(folder, text=MOT, said="30", **fields):
    datacards.images(folder / "MOT", "000001.jpg", "000002.jpg")
    (folder / "MOT/gt").mkdir()
    (folder / "MOT/gt/gt.txt").write_text(text)
    (folder / "MOT/seqinfo.ini").write_text(
        f"[Sequence]\nname=MOT\nframeRate={said}\nseqLength=2\n"
    )
    given = {"images": "MOT/images", "annotations": "MOT/gt/gt.txt"}
    given["classes"] = {"Pedestrian": "person"}
    return datacards.card_of(folder, "detection", "mot", **given | fields)


def vid(folder, first=1, label="car", names=("one", "two"), **fields):
    """Two videos; the frames of the first one are not listed in their order."""
    first = f"a/{first}.jpg"
    files = {"a/5.jpg": (1, 4), first: (1, 0), "a/2.jpg": (1, 2), "b/0.jpg": (2, 0)}
    datacards.images(folder, *files)
    images = [
        {"id": at, "file_name": name, "width": 40, "height": 30, "video_id": video,
         "frame_id": frame}
        for at, (name, (video, frame)) in enumerate(files.items())
    ]  # fmt: skip
    boxes = [
        {"id": at, "image_id": at, "video_id": 1, "category_id": 1, "instance_id": 7,
         "bbox": [at, 1, 4, 5]}
        for at in range(4)
    ]  # fmt: skip
    document = {
        "videos": [{"id": at, "name": name} for at, name in enumerate(names, 1)],
        "images": images, "annotations": boxes, "categories": [{"id": 1, "name": label}],
    }  # fmt: skip
    (folder / "vid.json").write_text(json.dumps(document))
    given = {"images": "images", "annotations": "vid.json", "video": "one"}
    return datacards.card_of(folder, "detection", "coco_vid", **given | fields)
