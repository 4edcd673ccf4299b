"""Write the clips of the conformance suite (`simulator/testing/videos`) with PyAV's x264.

They are lossless, with B-frames and unequal times: see :mod:`simulator.testing.videos`.
"""

from __future__ import annotations

from fractions import Fraction

import av
import numpy as np

from simulator.testing.videos import FOLDER, SIZE, TIMES, planes

TAGS = {"bt709": (1, 1, 1), "bt601": (6, 6, 6)}
"""Primaries, transfer and matrix, as H.264 numbers them."""


def write(matrix: str) -> None:
    """Write one clip, tagged with a matrix and as of limited range."""
    with av.open(str(FOLDER / f"{matrix}.mp4"), "w") as file:
        stream = file.add_stream("libx264", rate=25)
        stream.height, stream.width, stream.pix_fmt = *SIZE, "yuv420p"
        context = stream.codec_context
        context.time_base = Fraction(1, 100)
        context.options = {"qp": "0", "preset": "medium", "bf": "2", "threads": "1"}
        context.color_primaries, context.color_trc, context.colorspace = TAGS[matrix]
        context.color_range = 1
        for number, time in enumerate(TIMES):
            flat = np.concatenate([plane.ravel() for plane in planes(number)])
            frame = av.VideoFrame.from_ndarray(flat.reshape(-1, SIZE[1]), format="yuv420p")
            frame.pts, frame.time_base = round(time * 100), Fraction(1, 100)
            frame.colorspace, frame.color_range = TAGS[matrix][2], 1
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in TAGS:
        write(name)
