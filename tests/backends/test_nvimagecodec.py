"""nvImageCodec beyond what every decoder is asked in test_decoders.py."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import simplejpeg
from decoding import JPEGS, ON_CPU, PHOTO

from backends.nvidia.driver import cuda_device
from backends.nvidia.imagecodec import BACKEND, NvImageCodecDecoder
from simulator.contract import MissingLibrary, inspect


def test_cpu_and_gpu_are_offers_of_their_own():
    assert {offer.options["device"] for offer in BACKEND.offers} == {("cpu",), ("mixed",)}


def test_nvjpeg_needs_a_gpu():
    """Where there is one it runs, near libjpeg; the inverse DCT is another."""
    fields = {**ON_CPU, "device": "mixed"}
    try:
        cuda_device()
    except MissingLibrary:
        with pytest.raises(MissingLibrary, match=r"^device: \w+: a CUDA GPU is needed, but .+"):
            NvImageCodecDecoder(fields)
        return
    got = NvImageCodecDecoder(fields).rgb(inspect("test", JPEGS["photo"])).rgb

    assert np.abs(got.astype(int) - simplejpeg.decode_jpeg(JPEGS["photo"])).mean() < 1


def test_pixels_outlive_the_decoder():
    decoder = NvImageCodecDecoder(ON_CPU)
    first = decoder.rgb(inspect("test", JPEGS["photo"])).rgb
    kept = first.copy()

    decoder.rgb(inspect("test", JPEGS["progressive"]))
    del decoder

    assert first.shape == PHOTO.shape
    assert np.array_equal(first, kept)


def test_a_refused_file_is_an_error_and_nothing_is_printed():
    probe = (
        "import sys\n"
        "from backends.nvidia.imagecodec import NvImageCodecDecoder\n"
        "from simulator.contract import Encoded, SampleError\n"
        f"decoder = NvImageCodecDecoder({ON_CPU!r})\n"
        "try:\n"
        "    decoder.rgb(Encoded('x', b'\\xff\\xd8\\xff\\xd9', 'jpeg', 8, 8, 3, 8, 1))\n"
        "except SampleError as error:\n"
        "    assert str(error) == 'nvImageCodec cannot decode this jpeg file'\n"
        "else:\n"
        "    sys.exit(1)\n"
    )

    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
