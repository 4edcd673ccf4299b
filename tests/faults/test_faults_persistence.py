"""What permanent faults leave over a video, against frames run and counted by hand."""

import shlex
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import av
import numpy as np
import onnx
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny
import tiny_tasks
import yaml
from drawn import drawn
from onnx import numpy_helper
from PIL import Image, ImageSequence
from rich.console import Console
from scipy.ndimage import distance_transform_edt

from simulator import faults
from simulator.analysis.persistence import Rule
from simulator.errors import ProfileError
from simulator.faults import screen
from simulator.faults.campaign import load_campaign
from simulator.faults.experiment import Faults
from simulator.faults.persistence import persistence
from simulator.faults.table import schema
from simulator.model.card import Card
from simulator.report.page import sections_of
from simulator.report.reading import read
from simulator.report.sections.provenance import command

FRAMES, CELL = 24, 16
WINDOW, LEAST, RADIUS = 15, 10, 50


def frames():
    """A red square moves one cell to the right every four frames, and starts again; a blue one
    comes for frames 5 to 18."""
    for number in range(FRAMES):
        squares = [("red", CELL * (number // 4 % 4), 32, CELL)]
        if 5 <= number < 19:
            squares.append(("blue", 32, 0, CELL))
        yield tiny_tasks.picture(*squares)


def film(path):
    """Write the frames without loss."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream("ffv1", rate=Fraction(25))
        stream.height, stream.width, stream.pix_fmt = 64, 64, "bgr0"
        for picture in frames():
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="bgr0")
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


def campaign(folder, **fields):
    """Bit 31 of a bias makes -2 to 2: everything gray is found. Bit 25 makes it -32: nothing is."""
    spec = {
        "schema": 1, "name": "mine", "summary": "", "targets": ["biases"], "kind": "flip",
        "lasts": "permanent", "bits": [31, 25, 0], "faults": 14,
    }  # fmt: skip
    (folder / "mine.yaml").write_text(yaml.safe_dump(spec | fields))
    return str(folder / "mine.yaml")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("film")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIPELINE_SIMULATOR_CACHE", str(folder / "cache"))
        return faults(
            campaign(folder), ["pillow_fp32"], model=tiny_tasks.card(folder),
            data=film(folder / "clip.mkv"), out=folder / "run",
        )  # fmt: skip


def cells(model, picture):
    """The cells of 16 pixels with the best color's sigmoid above 0.5, as a mask of the image."""
    values = ((picture.astype(np.float32) - 127) / 64).transpose(2, 0, 1)[None]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    scores = session.run(["scores"], {"x": values})[0]
    found = (scores[0].max(axis=1) > 0).reshape(4, 4)
    return np.kron(found, np.ones((CELL, CELL))).astype(bool)


def changed(model, index, bit):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    (held,) = (one for one in copy.graph.initializer if one.name == "b")
    values = numpy_helper.to_array(held).copy()
    values.view(np.uint32)[index] ^= np.uint32(1) << bit
    held.CopyFrom(numpy_helper.from_array(values, "b"))
    return copy


def stays(blobs, coasting):
    """Reading B, with all frames at once and SciPy's distances."""
    near = [
        distance_transform_edt(~blob) <= RADIUS if blob.any() else np.zeros_like(blob)
        for blob in blobs
    ]
    found = []
    for at, blob in enumerate(blobs):
        last = slice(max(at - WINDOW + 1, 0), at + 1)
        here = np.sum(blobs[last], axis=0) >= LEAST
        close = np.sum(near[last], axis=0) >= LEAST
        found.append((here if coasting else here & blob) | (blob & close))
    return found


def areas(index, bit):
    """(frames,) A_FP and A_FN of one fault by hand."""
    model = tiny_tasks.detector()
    clean = [cells(model, picture) for picture in frames()]
    faulty = [cells(changed(model, index, bit), picture) for picture in frames()]
    false = stays([a & ~b for a, b in zip(faulty, clean, strict=True)], coasting=True)
    missed = stays([b & ~a for a, b in zip(faulty, clean, strict=True)], coasting=False)
    return (
        np.array([mask.mean() for mask in false]),
        np.array([mask.sum() / there.sum() for mask, there in zip(missed, clean, strict=True)]),
    )


def mean(values):
    return values[values > 0].mean() if values.any() else 0.0


@pytest.fixture(scope="module")
def by_hand(run):
    """Each fault's bit, and its areas."""
    rows = pq.read_table(run.folder / "faults.parquet").to_pylist()
    hit = {row["fault"]: (row["index"][0], row["bit"][0]) for row in rows}
    assert len(rows) == len(hit) * FRAMES
    return {fault: (bit, *areas(index, bit)) for fault, (index, bit) in hit.items()}


def test_areas_and_shares_are_those_counted_by_hand(run, by_hand):
    seen = run.summary.stacks["deploy"].persistence
    levels = {fault: (mean(false), mean(missed)) for fault, (_, false, missed) in by_hand.items()}

    assert (seen.frames, seen.window, seen.least, seen.radius) == (FRAMES, WINDOW, LEAST, RADIUS)
    assert seen.levels == [level / 100 for level in range(16)]
    for kind, found in enumerate((seen.false, seen.missed)):
        values = np.array([one[kind] for one in levels.values()])
        assert 0 < np.count_nonzero(values) < len(values)
        assert [one.count for one in found] == [(values > level).sum() for level in seen.levels]
        assert {one.of for one in found} == {14}
        area = (seen.false_area, seen.missed_area)[kind]
        assert area.value == pytest.approx(values[values > 0].mean(), rel=1e-12)
        assert area.of == np.count_nonzero(values)


def annotated(folder, rate):
    """The frames as MOTChallenge has them; the red square is said to be as wide as two cells."""
    (folder / "img1").mkdir()
    lines = []
    for number, picture in enumerate(frames()):
        Image.fromarray(picture).save(folder / "img1" / f"{number + 1:06}.png")
        left = CELL * (number // 4 % 4)
        lines.append(f"{number + 1},1,{left + 1},33,{2 * CELL},{CELL},1,3,1")
    (folder / "gt.txt").write_text("\n".join(lines))
    spec = {
        "schema": 1, "name": "seen", "task": "detection", "format": "mot", "images": "img1",
        "annotations": "gt.txt", "rate": rate, "classes": {"Car": "red"},
    }  # fmt: skip
    (folder / "seen.yaml").write_text(yaml.safe_dump(spec))
    return folder / "seen.yaml"


@pytest.mark.parametrize(
    ("rate", "persistence_", "window", "least"),
    [(30, {"window": "0.5 s"}, 15, 10), (10, {"window": "0.5 s", "of": 3, "radius": 0}, 5, 3)],
)
def test_annotated_frames_say_what_is_wrong_without_a_fault(
    tmp_path, rate, persistence_, window, least
):
    """
    Blue is no object, so its cell is a false one of 16 while it is there; of the red one a second
    cell is missed, but where it would be outside of the image; what is found are one or two cells.
    """
    result = faults(
        campaign(tmp_path, persistence=persistence_, faults=3), ["pillow_fp32"],
        model=tiny_tasks.card(tmp_path), data=annotated(tmp_path, rate), out=tmp_path / "run",
    )  # fmt: skip
    seen = result.summary.stacks["deploy"].persistence
    blue = np.array([5 <= number < 19 for number in range(FRAMES)])
    outside = np.array([number // 4 % 4 == 3 for number in range(FRAMES)])

    assert (seen.window, seen.least, seen.radius) == (window, least, persistence_.get("radius", 50))
    assert seen.reference_false == (blue / 16).tolist()
    assert seen.reference_missed == (~outside / (1 + blue)).tolist()
    assert result.summary.stacks["deploy"].clean["AP50"] is not None
    (shown,) = (one for one in sections_of(read(result.folder)) if one.key == "over_time")
    assert any("without any fault" in line for line in shown.found)


@pytest.mark.parametrize(
    ("persistence_", "rate", "message"),
    [
        ({"window": "0.5 s"}, None, "window: 0.5 s: how many frames a second"),
        ({"window": "0.5 s"}, 2, "window: 0.5 s is 1 of the data's frames, 2 a second; 3 are"),
        ({"window": 8, "of": 9}, None, "of: 9 of 8 frames"),
        ({"window": "fast"}, None, "persistence.window: "),
        ({"window": 2}, None, "persistence.window: .*3"),
    ],
)
def test_a_window_that_cannot_be_is_refused(tmp_path, persistence_, rate, message):
    with pytest.raises(ProfileError, match=rf"mine.yaml:\d+: .*{message}"):
        load_campaign(campaign(tmp_path, persistence=persistence_)).rule(rate)


def test_the_worst_fault_is_shown_frame_by_frame(run, by_hand):
    seen = run.summary.stacks["deploy"].persistence
    totals = {fault: mean(false) + mean(missed) for fault, (_, false, missed) in by_hand.items()}

    assert totals[seen.worst] == max(totals.values())
    _, false, missed = by_hand[seen.worst]
    assert seen.worst_false == pytest.approx(false.tolist(), abs=1e-12)
    assert seen.worst_missed == pytest.approx(missed.tolist(), abs=1e-12)


def test_bits_are_counted_by_themselves(run, by_hand):
    """Bit 31 adds objects and never hides one; bit 25 the other way round; bit 0 does nothing."""
    seen = run.summary.stacks["deploy"].persistence

    for name, group in seen.by_bit.items():
        these = [found for bit, *found in by_hand.values() if bit == int(name)]
        assert group.false.count == sum(mean(false) > 0 for false, _ in these)
        assert group.missed.count == sum(mean(missed) > 0 for _, missed in these)
        assert group.false.of == group.missed.of == len(these)
        for kind, found in enumerate((group.false_area, group.missed_area)):
            areas_ = [mean(one[kind]) for one in these if one[kind].any()]
            assert found.of == len(areas_)
            assert found.value == (pytest.approx(np.mean(areas_)) if areas_ else None)
    assert list(seen.by_bit) == ["31", "25", "0"]
    assert seen.by_bit["31"].false.count == seen.by_bit["31"].false.of > 0
    assert seen.by_bit["25"].missed.count > 0
    assert seen.by_bit["0"].false.count == seen.by_bit["0"].missed.count == 0


def test_the_clip_shows_the_boxes_and_tints_what_stays(run):
    """Bit 31 of a bias is the worst: the gray cell at the top left is falsely occupied."""
    seen = run.summary.stacks["deploy"].persistence
    place = run.folder / seen.clip

    with Image.open(place) as clip:
        shown = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(clip)]
    assert len(shown) == FRAMES
    assert place.stat().st_size < 1_000_000
    colors = [{tuple(color) for color in one.reshape(-1, 3).tolist()} for one in shown]
    green, red = (0, 158, 115), (213, 94, 0)
    assert all({green, red} <= found for found in colors)
    # Nothing is persistent in the first frames: gray has no tint, later it has.
    tint = np.rint(np.array([110] * 3) * (135 / 255) + np.array([240, 228, 66]) * (120 / 255))
    near = [np.abs(one.astype(int) - tint).max(axis=2) <= 8 for one in shown]
    assert not near[0].any()
    assert near[-1].mean() > 0.1


def test_the_report_and_the_screen_tell_it(run, capsys):
    seen = run.summary.stacks["deploy"].persistence
    section = next(one for one in sections_of(read(run.folder)) if one.key == "over_time")
    table, bits, clips = section.tables

    first = next(row for row in table.rows if row[1] == "0%")
    assert "faults hide objects for long, on average" in " ".join(section.found)
    assert first[2].startswith(f"{seen.false[0].rate:.2%} (")
    # 3 of 32 bits were hit.
    assert first[4].startswith(f"{seen.false[0].rate * 3 / 32:.2%} (")
    assert clips.rows[0][2].place == seen.clip
    assert [panel.caption for panel in section.panels[:2]] == ["False objects", "Missed objects"]
    assert [row[1] for row in bits.rows] == ["31", "25", "0"]
    area = seen.by_bit["31"].false_area
    assert bits.rows[0][3].startswith(f"{area.value:.2%} (")
    by_bit = dict(zip(["share", "area"], section.panels[3:5], strict=True))
    assert drawn(by_bit["share"]).data[0].y[0] == seen.by_bit["31"].false.rate
    assert drawn(by_bit["area"]).data[0].y[0] == area.value
    printed = partial(Faults().printed, [run.summary], "csv")
    assert printed("persistent_bits").startswith("stack,bit,")
    assert printed("persistence").splitlines()[1].startswith("deploy,0%,")
    line = drawn(section.panels[0]).data[0]
    assert list(line.y) == [one.rate for one in seen.false]
    assert list(drawn(section.panels[2]).data[1].y) == seen.worst_missed

    screen.show(run.summary, "", Console(width=80))
    said = capsys.readouterr().out
    assert f"{seen.missed[0].rate:.2%} (" in said
    assert f"the worst is fault {seen.worst}, in {seen.clip}." in said
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("case", ["limit", "folder", "short"])
def test_only_successive_frames_are_followed(tmp_path, monkeypatch, case):
    """Not some frames by chance, nor photographs of one size, nor nine frames."""
    monkeypatch.setenv("PIPELINE_SIMULATOR_CACHE", str(tmp_path / "cache"))
    data, limit = film(tmp_path / "clip.mkv"), None
    if case == "limit":
        limit = 12
    elif case == "folder":
        data = tmp_path / "images"
        data.mkdir()
        for number, picture in enumerate(frames()):
            (data / f"{number:02}.png").write_bytes(tiny.encoded(picture, "png"))
    else:
        spec = {"schema": 1, "name": "few", "task": "detection", "format": "video", "last": 8}
        data = tmp_path / "few.yaml"
        data.write_text(yaml.safe_dump(spec | {"video": "clip.mkv"}))
    result = faults(
        campaign(tmp_path, faults=2), ["pillow_fp32"], model=tiny_tasks.card(tmp_path),
        data=data, limit=limit, out=tmp_path / "run",
    )  # fmt: skip

    assert result.summary.stacks["deploy"].persistence is None
    assert not any(one.key == "over_time" for one in sections_of(read(result.folder)))


def test_several_bits_at_once_have_no_rates_by_bit(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_SIMULATOR_CACHE", str(tmp_path / "cache"))
    result = faults(
        campaign(tmp_path, at_once=2), ["pillow_fp32"], number=3,
        model=tiny_tasks.card(tmp_path), data=film(tmp_path / "clip.mkv"), out=tmp_path / "run",
    )  # fmt: skip
    asked = shlex.split(command(read(result.folder)))

    assert result.summary.stacks["deploy"].persistence.by_bit == {}
    assert asked[asked.index("--faults") + 1] == "3"  # as the command line spells it


@pytest.mark.parametrize(
    ("detected", "areas_"),
    [([2], [0] * 10 + [1 / 16] * 2), ([2, 5, 7], []), ([11], [0] * 9 + [1 / 16] * 3)],
)
def test_a_frame_with_nan_leaves_nothing(tmp_path, detected, areas_):
    """
    A false box of 256 of 4096 pixels in 12 frames but those: the tenth frame with it is the
    eleventh, or the tenth; with nine there is none. It coasts through a detected one.
    """
    task = Card(tiny_tasks.card(tmp_path)).task
    nothing = {"boxes": [], "scores": [], "classes": []}
    box = {"boxes": [16.0, 16.0, 32.0, 32.0], "scores": [0.9], "classes": [0]}
    common = {
        "fault": 7, "stack": "deploy", "layer": ["a"], "operator": ["Conv"],
        "target": ["weights"], "storage": ["fp32"], "index": [0], "bit": [30], "kind": "flip",
        "stratum": 0,
    }  # fmt: skip
    seen = box | {"sdc": True, "due": False, "false_area": 1 / 16, "missed_area": None}
    rows = [
        {**common, "at": at, "sample": f"{at}", **({"due": True} if at in detected else seen)}
        for at in range(12)
    ]
    table = pa.Table.from_pylist(rows, schema(task))
    made = SimpleNamespace(
        items=[SimpleNamespace(truth=None)] * 12, clean=[nothing] * 12, sizes=[(64, 64)] * 12,
        rows=table, options=task.Impact.Options(),
    )  # fmt: skip

    found = persistence(made, task, Rule())
    assert found.worst_false == areas_
    assert found.worst == (7 if areas_ else None)
    assert found.false[6].count == bool(areas_)  # 1 / 16 is above 6 %
    assert found.false[7].count == 0
