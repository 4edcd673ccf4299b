"""Readers of videos: every frame by its time, and its numbers.

The clips are H.264 without loss: frame n has luma 60 + 10 n in its left half and 180 in its right,
U 110 and V 140 everywhere. Their times are unequal, so that a frame found by its number is another.
``tools/video_specimens.py`` writes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import U8, DataError, Encoded, SampleError
from simulator.places import Moment
from simulator.reference.color import yuv_to_rgb
from simulator.testing.subject import Subject, expect, words
from simulator.testing.values import NOISE
from simulator.testing.work import Job, Work, working

FOLDER = Path(__file__).with_name("videos")
SIZE = (96, 112)
TIMES = (0, 0.04, 0.08, 0.2, 0.24, 0.28, 0.32, 0.36, 0.5, 0.54, 0.58, 0.7)
CHROMA = (110, 140)
NEAR = 3.0
"""Levels from BT.601 or BT.709 in float64: fast arithmetic misses by two."""


def planes(number: int) -> tuple[U8, U8, U8]:
    """Return Y, U and V of a frame."""
    luma = np.full(SIZE, 180, np.uint8)
    luma[:, : SIZE[1] // 2] = 60 + 10 * number
    u, v = (np.full((SIZE[0] // 2, SIZE[1] // 2), level, np.uint8) for level in CHROMA)
    return luma, u, v


def frame(number: int, matrix: str = "bt709") -> Encoded:
    """Return a frame of a clip as stacks get it."""
    return Encoded("job", b"", "png", SIZE[1], SIZE[0], 3, 8, 1, moment(number, matrix))


def moment(number: int, matrix: str = "bt709") -> Moment:
    """Return which frame of a clip one is."""
    return Moment(str(FOLDER / f"{matrix}.mp4"), TIMES[number], TIMES[:number][::-1])


def every_frame_by_its_time(subject: Subject) -> None:
    """Every frame is listed and found at its time, the last too, back and in two clips by turns."""
    reader = subject.make()
    listed = list(reader.times(FOLDER / "bt709.mp4"))
    expect(
        len(listed) == len(TIMES) and np.allclose(listed, TIMES, atol=5e-4),
        f"frames at {', '.join(f'{time:g}' for time in TIMES)} s expected, got "
        f"{', '.join(f'{time:g}' for time in listed)}",
    )
    for number in (*range(len(TIMES)), 2, 5):
        for matrix in ("bt709", "bt601") if number % 5 == 0 else ("bt709",):
            _found(reader, number, matrix)
    between = Moment(str(FOLDER / "bt709.mp4"), 0.12)
    try:
        reader.shown(between)
    except SampleError:
        return
    expect(False, "no frame is shown at 0.12 s, and one was given")


def _found(reader: Any, number: int, matrix: str = "bt709") -> None:
    """The left half is as much darker than the right as its luma; chroma moves neither."""
    rgb = reader.rgb(frame(number, matrix)).rgb.astype(float)
    full = str(reader.options["range"]) == "full"
    want = (120 - 10 * number) * (1.0 if full else 255 / 219)
    got = (rgb[:, 64:, 1] - rgb[:, :48, 1]).mean()
    expect(
        abs(got - want) <= NEAR,
        f"the frame at {TIMES[number]:g} s: its halves {want:.1f} levels apart expected, got "
        f"{got:.1f}: it is another frame",
    )


def color_is_as_declared(subject: Subject) -> None:
    """RGB is that of the matrix and range of the stream's tags, or of those that are asked for."""
    for variant in working(subject):
        reader = variant.make()
        for tagged in ("bt709", "bt601"):
            matrix, range = (str(variant.options[name]) for name in ("matrix", "range"))
            matrix = tagged if matrix == "tags" else matrix
            range = "limited" if range == "tags" else range
            rgb = reader.rgb(frame(3, tagged)).rgb.astype(float)
            for column, luma in ((8, 90), (100, 180)):
                yuv = np.array([[[luma, *CHROMA]]], np.float64)
                want = yuv_to_rgb(yuv, matrix, range).clip(0, 255)[0, 0]
                worst = np.abs(rgb[8, column] - want).max()
                expect(
                    worst <= NEAR,
                    f"a clip of {tagged}, {words(variant)}: {want.round()} expected, got "
                    f"{rgb[8, column].round()}",
                )


def planes_are_the_files_own(subject: Subject) -> str | None:
    """The planes are those that were written, with the matrix and range of the stream's tags."""
    if not subject.offer.make.gives_planes:
        return "it gives no planes"
    reader = subject.make()
    for tagged in ("bt709", "bt601"):
        got = reader.planes(frame(5, tagged))
        pairs = zip((got.planes[0], *got.chroma), planes(5), strict=True)
        same = all(np.array_equal(one, other) for one, other in pairs)
        expect(same, "the planes of a clip without loss are not those that were written")
        expect(
            (got.matrix, got.range) == (tagged, "limited"),
            f"{tagged}, limited expected, got {got.matrix}, {got.range}",
        )
    return None


def what_is_no_clip_is_refused(subject: Subject) -> None:
    """Noise is refused with a reason, when it is listed and when a frame of it is asked for."""
    place = subject.workshop.scratch("clips") / "noise.mp4"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(NOISE)
    for attempt, refusal in (
        (lambda: list(subject.make().times(place)), DataError),
        (lambda: subject.make().shown(Moment(str(place), 0)), SampleError),
    ):
        try:
            attempt()
        except refusal as error:
            expect(bool(str(error)), "noise was refused without a reason")
        else:
            expect(False, "noise was taken for a video")


class Watching(Work):
    """A job is the number of a frame."""

    def _jobs(self) -> list[Job]:
        return [(np.array([number]),) for number in (1, 4, 2, 9)]

    def _do(self, made: Any, job: Job) -> Job:
        return (made.rgb(frame(int(job[0][0]))).rgb,)
