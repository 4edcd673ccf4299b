"""Frames of videos as samples; every video is written here, without loss where pixels count."""

import io
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
import pytest
import tiny
import tiny_tasks
from datacards import card_of, refused
from PIL import Image

from backends.opencv import OpenCVVideo
from simulator import compare
from simulator.contract.installing import install
from simulator.data.folder import IMAGES, Files, read, subset
from simulator.data.source import source_of
from simulator.data.video import VIDEO, ClipFrame
from simulator.errors import DataError, SampleError, UserError
from simulator.files import IMAGE
from simulator.model.card import Card

SIZE = (24, 40)


def pictures(count):
    """Frame n is gray, with 10 n + 5 in its left half."""
    for n in range(count):
        picture = np.full((*SIZE, 3), 200, np.uint8)
        picture[:, :20] = 10 * n + 5
        yield picture


def write(
    path, count=6, codec="ffv1", format="bgr0", frames=None, size=SIZE, color=None, shown=None
):
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=Fraction(25))
        stream.height, stream.width, stream.pix_fmt = *size, format
        if color:
            stream.codec_context.colorspace, stream.codec_context.color_range = color
        for at, picture in enumerate(frames or pictures(count)):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format=format)
            if shown:
                frame.pts, frame.time_base = shown[at], Fraction(1, 25)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


def loaded(folder, **fields):
    return card_of(folder, "detection", "video", **fields).load(None)


def pixels(item):
    return np.asarray(Image.open(io.BytesIO(item.path.read(IMAGE))))


def names(clip, numbers):
    return [f"{clip}#{n:06d}@{n / 25:.3f}s" for n in numbers]


def test_every_frame_is_a_sample_with_its_exact_pixels(tmp_path):
    found = VIDEO.open(write(tmp_path / "clip.mkv"), IMAGES)
    assert [item.name for item in found.items] == [
        f"clip.mkv#{n:06d}@{n / 25:.3f}s" for n in range(6)
    ]
    assert not found.labelled
    for item, want in zip(found.items, pictures(6), strict=True):
        np.testing.assert_array_equal(pixels(item), want)


@pytest.mark.parametrize(
    ("name", "codec", "format"),
    [
        ("clip.mp4", "mpeg4", "yuv420p"),
        ("clip.MOV", "mjpeg", "yuvj420p"),
        ("clip.avi", "ffv1", "bgr0"),
        ("clip.webm", "libvpx", "yuv420p"),
    ],
)
def test_containers_and_codecs(tmp_path, name, codec, format):
    """Gray survives YUV of 8 bits within 3 levels, away from the edge, which codecs blur."""
    path = write(tmp_path / name, codec=codec, format=format)
    assert source_of(path, IMAGES) is VIDEO
    found = VIDEO.open(path, IMAGES)
    assert len(found.items) == 6
    for item, want in zip(found.items, pictures(6), strict=True):
        for place in ((12, 5), (12, 35)):
            assert abs(int(pixels(item)[place][0]) - int(want[place][0])) <= 3


@pytest.mark.parametrize(
    ("fields", "numbers", "rate"),
    [
        ({"step": 2}, [0, 2, 4], 12.5),
        ({"first": 1, "step": 3, "rate": 30}, [1, 4], 10),
        ({"first": 2, "last": 3, "rate": 30}, [2, 3], 30),
        ({"last": 100, "first": 5}, [5], 25),
        ({"start": 0.08, "end": 0.16}, [2, 3, 4], 25),
        ({"start": 0.04, "every": 0.1}, [1, 4], None),
    ],
)
def test_a_card_takes_some_frames(tmp_path, fields, numbers, rate):
    write(tmp_path / "clip.mkv")
    found = loaded(tmp_path, video="clip.mkv", **fields)
    assert [item.name for item in found.items] == [
        f"clip.mkv#{n:06d}@{n / 25:.3f}s" for n in numbers
    ]
    assert found.rate == rate
    wanted = list(pictures(6))
    for item, number in zip(found.items, numbers, strict=True):
        np.testing.assert_array_equal(pixels(item), wanted[number])


def test_frames_are_found_in_any_order_and_a_changed_clip_is_seen(tmp_path):
    path = write(tmp_path / "clip.mkv", 24)
    items = VIDEO.open(path, IMAGES).items
    for n in (20, 19, 3, 23, 0):
        np.testing.assert_array_equal(pixels(items[n]), list(pictures(24))[n])
    write(path, frames=list(pictures(9))[::-1])
    assert len(VIDEO.open(path, IMAGES).items) == 9


def test_a_folder_of_clips_is_several_films(tmp_path):
    write(tmp_path / "a.mkv", 6)
    write(tmp_path / "b.mkv", 4)
    found = VIDEO.open(tmp_path, IMAGES)
    assert [one.frames for one in found.films] == [6, 4]
    assert found.films[0].rate == VIDEO.open(tmp_path / "a.mkv", IMAGES).rate
    assert subset(found, 5, 0).films == ()


def test_a_folder_of_clips_counts_a_damaged_one(tmp_path):
    holed(tmp_path / "holed.mkv")
    write(tmp_path / "whole.mkv")
    (tmp_path / "noise.mp4").write_bytes(np.random.default_rng(0).bytes(5000))
    assert source_of(tmp_path, IMAGES) is VIDEO
    found = VIDEO.open(tmp_path, IMAGES)
    named = [item.name for item in found.items]
    assert named[-6:] == names("whole.mkv", range(6))
    assert "holed.mkv#damaged" in named and "noise.mp4#damaged" in named
    assert 0 < sum("holed.mkv#0" in name for name in named) < 6
    assert (found.film, found.rate) == (False, None)
    for item in found.items:
        if item.name.endswith("damaged"):
            with pytest.raises(SampleError, match=r"cannot be decoded as a video: .*Invalid data"):
                read(item)
    assert sum(note.startswith("damaged, and counted as failed: ") for note in found.notes) == 2


def test_damage_behind_what_is_asked_for_costs_nothing(tmp_path):
    holed(tmp_path / "clip.mkv")
    whole = loaded(tmp_path, video="clip.mkv")
    read = len(whole.items) - 1  # the last one is the damage
    assert whole.items[-1].name == "clip.mkv#damaged"
    for fields in ({"last": 0}, {"last": read - 1}, {"end": 0}):
        found = loaded(tmp_path, video="clip.mkv", **fields)
        assert not any(item.name.endswith("damaged") for item in found.items)
        assert found.film, found.notes
    assert loaded(tmp_path, video="clip.mkv", last=read).items[-1].name == "clip.mkv#damaged"


def test_frames_that_are_not_equally_far_apart_are_told(tmp_path):
    clip = write(tmp_path / "clip.mkv", shown=[0, 1, 3, 4, 5, 8])
    *_, note = VIDEO.open(clip, IMAGES).notes
    assert note == (
        "frames of clip.mkv are 0.040 to 0.120 s apart; tracks and persistence count frames"
    )


def test_a_damaged_clip_is_called_by_its_own_name(tmp_path):
    """What is known of equal bytes is kept."""
    for name in ("one.mkv", "two.mkv"):
        holed(tmp_path / name)
        _, damaged = VIDEO.open(tmp_path / name, IMAGES).notes
        assert damaged.startswith(f"damaged, and counted as failed: {tmp_path / name}: cannot be")


@pytest.mark.parametrize(
    ("color", "told"),
    [
        ((1, 1), "bt709 and limited range"),
        ((6, 2), "bt601 and full range"),
        ((2, 0), "no matrix and no range"),
    ],
)
def test_what_a_clip_declares_is_told(tmp_path, color, told):
    """H.273's numbers of matrices, and FFmpeg's of ranges."""
    clip = write(tmp_path / "clip.mkv", codec="mpeg4", format="yuv420p", color=color)
    (note,) = VIDEO.open(clip, IMAGES).notes
    assert f"6 frames of clip.mkv, declared {told};" in note


def test_the_task_takes_a_video_for_its_data(tmp_path):
    task = Card(tiny.card(tmp_path)).task
    assert len(task.load(write(tmp_path / "clip.mkv")).items) == 6


def noise(path):
    path.write_bytes(np.random.default_rng(0).bytes(5000))


def sound(path):
    with av.open(str(path), "w") as file:
        stream = file.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), layout="mono")
        frame.sample_rate = 8000
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


def cut(path):
    write(path, codec="mpeg4", format="yuv420p")
    path.write_bytes(path.read_bytes()[:-400])


def holed(path):
    """60 bytes of zeros in the middle of the coded frames."""
    rng = np.random.default_rng(1)
    noise = [rng.integers(0, 255, (*SIZE, 3), np.uint8) for _ in range(6)]
    write(path, codec="mpeg4", format="yuv420p", frames=noise)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 60] = bytes(60)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("noise.mp4", noise, "cannot be decoded as a video: .*Invalid data"),
        ("empty.mp4", lambda path: path.write_bytes(b""), "cannot be decoded as a video"),
        ("sound.mkv", sound, "is a video without frames: it has no video stream"),
        ("cut.mp4", cut, "cannot be decoded as a video"),
        ("gone.mp4", lambda path: None, "cannot be read: No such file"),
    ],
)
def test_bad_videos_are_refused_in_one_line(tmp_path, own_cache, name, make, message):
    make(tmp_path / name)
    with refused(f"{name}: .*({message})"):
        VIDEO.open(tmp_path / name, IMAGES)
    assert not list(own_cache.rglob("*.png"))


def test_frames_that_are_not_there(tmp_path):
    write(tmp_path / "clip.mkv")
    for fields, why in (
        ({"first": 6}, "has 6 frames, the last at 0.200 s: the first to take is 6"),
        ({"first": 3, "last": 2}, "no frame is between first: 3 and last: 2"),
    ):
        with pytest.raises(DataError, match=why):
            loaded(tmp_path, video="clip.mkv", **fields)


def test_a_model_of_sounds_takes_no_video(tmp_path):
    with pytest.raises(DataError, match="is a video, and the model takes recordings"):
        VIDEO.open(write(tmp_path / "clip.mkv"), Files((".wav",), "recording"))


def test_a_card_of_something_else_is_refused(tmp_path):
    (tmp_path / "clip.txt").write_text("x")
    with pytest.raises(DataError, match=r"video: .*clip.txt is none of .mp4"):
        loaded(tmp_path, video="clip.txt")


def test_without_pyav_the_remedy_is_named(tmp_path):
    """In a Python that has no av."""
    path = write(tmp_path / "clip.mkv")
    code = (
        "import importlib.metadata as m, sys; from pathlib import Path; real = m.version\n"
        "def version(name):\n"
        "    if name == 'av': raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.version = version\n"
        "from simulator.data.folder import IMAGES; from simulator.data.video import VIDEO\n"
        "from simulator.errors import UserError\n"
        "try: VIDEO.open(Path(sys.argv[1]), IMAGES)\n"
        "except UserError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == (f"frames of videos need av; try: {install('ffmpeg')}\n")
    assert issubclass(DataError, UserError)


READERS = (
    "train.video={backend: ffmpeg, matrix: tags, range: tags, deblocking: true, "
    "swscale_flags: [bilinear]}",
    "deploy.video={backend: opencv}",
)


@pytest.fixture
def colors(tmp_path):
    """Six frames of one color each."""
    solid = [np.full((*SIZE, 3), color, np.uint8) for color in (*tiny.COLORS.values(),) * 2]
    return write(tmp_path / "clip.mkv", frames=solid)


def compared(tmp_path, clip, under=None, overrides=READERS):
    return compare(
        "pillow_fp32", "pillow_fp32", model=tiny.card(tmp_path / "model"), data=clip, under=under,
        out=tmp_path / "run", overrides=list(overrides),
    ).summary  # fmt: skip


def test_a_reader_that_loses_the_last_frame_is_seen(tmp_path, colors, monkeypatch):
    monkeypatch.setattr(OpenCVVideo, "_frames", lost(OpenCVVideo._frames))

    summary = compared(tmp_path, colors)

    assert (summary["failed"]["deploy"]["count"], summary["failed"]["train"]["count"]) == (1, 0)
    assert (summary["flips"]["count"], summary["flips"]["units"]) == (0, 5)


def lost(frames):
    return lambda self, path: (one for one, _ in pairwise(frames(self, path)))


def test_the_worst_moments_are_shown_as_strips(tmp_path):
    """Red squares turn blue under the deployment's BGR; the third frame of six has two."""
    red = [("red", 0, 0, 16), ("red", 32, 32, 16)]
    scenes = [tiny_tasks.picture(*red[:n]) for n in (0, 1, 2, 0, 0, 1)]
    clip = write(tmp_path / "c.mkv", "", "ffv1", "yuv420p", scenes, (64, 64))
    done = compare(
        "video_pyav_fp32", "video_nv12_fp32", model=tiny_tasks.card(tmp_path / "model"),
        data=clip, out=tmp_path / "run", overrides=["deploy.color.order=bgr"], quick=True,
    )  # fmt: skip

    worst, other = (flip.moment for flip in done.summary.worst_flips)
    assert (worst.start, worst.end, worst.worst, worst.frames) == (0.04, 0.08, 0.08, 2)
    assert [*worst.strip] == names("c.mkv", range(5))
    assert (other.start, other.end, worst.clip) == (0.2, 0.2, None)
    picture = Image.open(done.folder / "flips" / "01-0.080s.png")
    assert picture.width > 1000  # five frames above five, each at least 192 pixels wide
    page = done.report.read_text(encoding="utf-8")
    assert "<bdi>0.04 s to 0.08 s, worst 0.08 s" in page and "<bdi>0.20 s" in page


def test_what_a_dropped_frame_showed_is_not_seen(tmp_path, colors):
    """Each color is one frame long, so that the one before is another class."""
    moment = VIDEO.open(colors, IMAGES).items[4].path.moment
    assert moment.before == pytest.approx((0.12, 0.08, 0.04, 0))
    seen = ClipFrame(replace(moment, back=2))
    np.testing.assert_array_equal(
        np.asarray(Image.open(io.BytesIO(seen.read(10**6))))[0, 0], tiny.COLORS["blue"]
    )
    with pytest.raises(UserError, match="it is for frames of videos"):
        compared(tmp_path, tiny.data(tmp_path / "images"), "dropped_frames:0.5")
