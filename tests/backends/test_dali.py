"""DALI's two interfaces give the same bits, its normalization is ours, its GPU half refuses."""

from __future__ import annotations

import images
import numpy as np
import pytest
import simplejpeg
from decoding import JPEGS, ON_CPU, PNGS
from hypothesis import given, settings
from hypothesis import strategies as st
from nvidia.dali import Pipeline, fn, types

from backends.nvidia.dali_operators import BACKEND, DaliDecoder, DaliResizer
from backends.nvidia.driver import cuda_device
from simulator.contract import MissingLibrary, Stage, inspect
from simulator.modalities.image.geometry import Geometry
from simulator.modalities.image.steps import normalize
from simulator.profile.implementations import choose
from simulator.profile.load import load

FILES = {**JPEGS, **{f"png {kind}": data for kind, (data, _) in PNGS.items()}}
RESIZES = [
    (kernel, antialias)
    for offer in BACKEND.of(Stage.RESIZE)[:2]
    for kernel in offer.options["interpolation"]
    for antialias in offer.options["antialias"]
]


@pytest.mark.parametrize("idct", ["islow", "ifast"])
def test_the_dynamic_mode_decodes_to_the_same_bits(idct):
    pipeline, dynamic = (
        DaliDecoder({**ON_CPU, "idct": idct, "api": api}) for api in ("pipeline", "dynamic")
    )

    for data in FILES.values():
        file = inspect("test", data)
        assert np.array_equal(pipeline.rgb(file).rgb, dynamic.rgb(file).rgb)


@pytest.mark.parametrize(("kernel", "antialias"), RESIZES)
def test_the_dynamic_mode_resizes_to_the_same_bits(kernel, antialias):
    fields = {
        "interpolation": kernel, "antialias": antialias, "subpixel_scale": True, "device": "cpu",
    }  # fmt: skip
    pipeline, dynamic = (DaliResizer({**fields, "api": api}) for api in ("pipeline", "dynamic"))

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(*[st.integers(1, 70)] * 4)
    def same(height, width, rows, columns):
        plane = images.picture(height, width).reshape(height, width, 3)
        assert np.array_equal(
            pipeline.resize(plane, rows, columns), dynamic.resize(plane, rows, columns)
        )

    same()


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    ("kind", "how"),
    [("short_side_crop", {"resize_shorter": 256}),
     ("letterbox", {"size": [200, 256], "mode": "not_larger"})],
)  # fmt: skip
def test_a_fractional_size_is_what_dali_makes_of_it(kind, how, keep):
    """``subpixel_scale`` is True unless a user says otherwise: 451 x 600 is 256 x 340.58 then."""
    fields = {"interpolation": "bicubic", "antialias": True, "device": "cpu", "api": "pipeline"}
    resizer = DaliResizer({**fields, "subpixel_scale": keep})
    geometry = Geometry(kind, 200, 256, "dali", short_side=256)
    pipeline = Pipeline(
        batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1, exec_async=False,
        exec_pipelined=False,
    )  # fmt: skip
    with pipeline:
        image = fn.external_source(name="image", layout="HWC")
        more = {} if keep else {"subpixel_scale": False}
        pipeline.set_outputs(fn.resize(image, interp_type=types.INTERP_CUBIC, **how, **more))
    pipeline.build()
    for height, width in ((451, 600), (333, 500), (97, 131), (640, 427), (300, 600), (211, 211)):
        rgb = images.picture(height, width)
        pipeline.feed_input("image", [rgb])

        theirs = np.array(pipeline.run()[0].at(0))

        size = geometry.resized(height, width)
        np.testing.assert_array_equal(resizer.resize(rgb, *size, asked=geometry.asked()), theirs)


@pytest.mark.parametrize("channel_mean", [[127.0] * 3, [123.675, 116.28, 103.53]])
def test_crop_mirror_normalize_is_our_normalization(channel_mean):
    rgb, std = images.picture(40, 50), [58.395, 57.12, 57.375]
    pipeline = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipeline:
        image = fn.external_source([[rgb]], dtype=types.UINT8, layout="HWC")
        pipeline.set_outputs(
            fn.crop_mirror_normalize(
                image, dtype=types.FLOAT, output_layout="CHW", mean=channel_mean, std=std
            )
        )
    theirs = np.array(pipeline.run()[0].at(0))

    ours = normalize(rgb, channel_mean, std, "multiply", "NCHW")[0]

    np.testing.assert_array_equal(ours, theirs)


def test_what_is_not_written_is_the_pipeline_on_the_cpu():
    choices = choose(load("dali_fp32"))

    for stage in (Stage.DECODE, Stage.RESIZE):
        choice = choices[stage]
        assert (choice.options["device"], choice.options["api"]) == ("cpu", "pipeline")
        assert {"device", "api"} <= set(choice.facts)


@pytest.mark.parametrize("api", ["pipeline", "dynamic"])
def test_the_gpu_operators_need_a_gpu(api):
    """Where there is one they run: nvJPEG is near libjpeg, the GPU's resize near the CPU's."""
    decode = {**ON_CPU, "device": "mixed", "api": api}
    resize = {
        "interpolation": "bilinear", "antialias": True, "subpixel_scale": True, "api": api,
    }  # fmt: skip
    try:
        cuda_device()
    except MissingLibrary:
        for make, fields in ((DaliDecoder, decode), (DaliResizer, {**resize, "device": "gpu"})):
            with pytest.raises(MissingLibrary, match=r"^device: \w+: a CUDA GPU is needed, but .+"):
                make(fields)
        return
    decoded = DaliDecoder(decode).rgb(inspect("test", JPEGS["photo"])).rgb
    plane = images.picture(101, 121)
    cpu, gpu = (
        DaliResizer({**resize, "device": device}).resize(plane, 41, 37).astype(int)
        for device in ("cpu", "gpu")
    )
    assert np.abs(decoded.astype(int) - simplejpeg.decode_jpeg(JPEGS["photo"])).mean() < 1
    assert np.abs(cpu - gpu).max() <= 1


def test_gpu_operators_are_offers_of_their_own():
    found = {
        stage: {(o.options["device"], o.options["api"]) for o in BACKEND.of(stage)}
        for stage in (Stage.DECODE, Stage.RESIZE)
    }

    apis = ("pipeline", "dynamic")
    assert found[Stage.DECODE] == {((d,), (a,)) for d in ("cpu", "mixed") for a in apis}
    assert found[Stage.RESIZE] == {((d,), (a,)) for d in ("cpu", "gpu") for a in apis}
