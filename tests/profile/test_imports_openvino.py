"""OpenVINO's .xml: models to which OpenVINO's own PrePostProcessor added steps."""

import numpy as np
import openvino as ov
import pytest
from importing import photo, written
from openvino import opset13 as op
from openvino.preprocess import ColorFormat, PrePostProcessor, ResizeAlgorithm

from simulator.errors import ProfileError
from simulator.importers import convert
from simulator.profile.load import load

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def saved(folder, steps, size=32):
    """A network that returns its input, with the steps that *steps* adds; its .xml."""
    pixels = op.parameter([1, 3, size, size], np.float32, name="data")
    model = ov.Model([op.result(op.relu(pixels))], [pixels], "net")
    process = PrePostProcessor(model)
    steps(process)
    process.input().model().set_layout(ov.Layout("NCHW"))
    path = folder / "model.xml"
    ov.save_model(process.build(), str(path), compress_to_fp16=False)
    return path


def loaded(imports, path):
    made = imports.folder / "made.yaml"
    made.write_text(convert(path), encoding="utf-8")
    return load(str(made))


def fed(process, *, resized=False):
    """What is done to bytes of RGB, at first their conversion to floats."""
    tensor = process.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
    if resized:
        tensor.set_spatial_dynamic_shape()
    return process.input().preprocess().convert_element_type(ov.Type.f32)


def computed(path, image):
    """What OpenVINO's own compiled graph gives."""
    options = {"INFERENCE_PRECISION_HINT": "f32"}
    return ov.Core().compile_model(str(path), "CPU", options)(image[None])[0][0]


def usual(process):
    """Bytes of BGR, as the samples of OpenVINO feed them."""
    image = process.input()
    tensor = image.tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
    tensor.set_color_format(ColorFormat.BGR).set_spatial_dynamic_shape()
    image.preprocess().convert_element_type(ov.Type.f32).convert_color(ColorFormat.RGB)
    image.preprocess().resize(ResizeAlgorithm.RESIZE_LINEAR).mean(MEAN).scale(STD)


def test_the_tensor_is_what_openvino_computes(imports):
    """Its own compiled graph, fed BGR bytes, against our stack of the imported profile."""
    path = saved(imports.folder, usual)
    profile = loaded(imports, path)
    image = photo(53, 50)

    tensor = imports.tensor(profile, image, 32)

    np.testing.assert_array_equal(np.maximum(tensor, 0), computed(path, image[..., ::-1]))


def test_the_tensor_without_a_resize(imports):
    """The graph takes 32 x 32 bytes; OpenVINO's CPU plugin rounds mean and scale once."""
    path = saved(imports.folder, lambda process: fed(process).mean(MEAN).scale(STD))
    image = photo(32, 32)

    tensor = imports.tensor(loaded(imports, path), image, 32)

    np.testing.assert_array_equal(np.maximum(tensor, 0), computed(path, image))


def test_values(imports):
    text = convert(saved(imports.folder, usual))
    profile = loaded(imports, imports.folder / "model.xml")

    assert profile.spec.normalize.mean == pytest.approx(MEAN)
    assert profile.spec.normalize.std == pytest.approx(STD, rel=1e-6)
    assert written(profile, "resize") == {
        "backend": "openvino", "interpolation": "bilinear", "antialias": False, "domain": "rgb",
    }  # fmt: skip
    assert written(profile, "geometry") == {"kind": "squash"}
    assert written(profile, "color") == {"format": "rgb", "order": "model"}
    assert profile.spec.evidence["color"].kind == "assumed"
    assert profile.spec.runtime.backend == "openvino"
    assert "height: 32, width: 32, layout: NCHW" in text
    assert "where the network itself is taken to begin" in text


def test_a_cameras_nv12(imports):
    """Two planes, converted, then resized as bytes, which our OpenVINO does not do: assumed."""

    def camera(process):
        tensor = process.input().tensor().set_element_type(ov.Type.u8)
        tensor.set_color_format(ColorFormat.NV12_TWO_PLANES).set_spatial_dynamic_shape()
        steps = process.input().preprocess().convert_color(ColorFormat.BGR)
        steps.resize(ResizeAlgorithm.RESIZE_NEAREST).convert_element_type(ov.Type.f32).scale(255.0)

    profile = loaded(imports, saved(imports.folder, camera))

    assert (profile.spec.color.format, profile.spec.color.order) == ("nv12", "bgr")
    assert profile.spec.color.convert.backend == "openvino"
    assert profile.spec.resize.interpolation == "nearest"
    assert profile.spec.normalize.std == pytest.approx([255] * 3, rel=1e-6)
    assert profile.spec.evidence["resize"].kind == "assumed"


@pytest.mark.parametrize(
    ("algorithm", "interpolation", "antialias"),
    [
        (ResizeAlgorithm.RESIZE_CUBIC, "bicubic", False),
        (ResizeAlgorithm.RESIZE_BILINEAR_PILLOW, "bilinear", True),
        (ResizeAlgorithm.RESIZE_BICUBIC_PILLOW, "bicubic", True),
    ],
)
def test_resizers(imports, algorithm, interpolation, antialias):
    path = saved(imports.folder, lambda process: fed(process, resized=True).resize(algorithm))

    resize = loaded(imports, path).spec.resize

    assert (resize.interpolation, resize.antialias) == (interpolation, antialias)


def test_a_scale_without_a_resize(imports):
    path = saved(imports.folder, lambda process: fed(process).scale(127.5).mean(1.0))

    profile = loaded(imports, path)

    assert profile.spec.normalize.mean == pytest.approx([127.5] * 3)
    assert profile.spec.evidence["resize"].kind == "assumed"


def test_a_networks_own_subtraction_is_not_taken(imports):
    """Only what PrePostProcessor marked: the card's ONNX file has the network's own."""
    pixels = op.parameter([1, 3, 8, 8], np.float32, name="data")
    own = op.subtract(op.convert(pixels, "f32"), np.float32(7))
    model = ov.Model([op.result(op.relu(own))], [pixels], "net")
    ov.save_model(model, str(imports.folder / "own.xml"))

    with pytest.raises(ProfileError) as caught:
        convert(imports.folder / "own.xml")

    (line,) = caught.value.problems
    assert "no color conversion, resize, mean or scale of PrePostProcessor" in line


def test_numbers_without_their_file(imports):
    path = saved(imports.folder, usual)
    path.with_suffix(".bin").unlink()

    with pytest.raises(ProfileError, match="it has the numbers of mean and scale"):
        convert(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<?xml version="1.0"?><!DOCTYPE net [<!ENTITY a "b">]><net>&a;</net>', "has a <!DOCTYPE>"),
        ("<net><layers></layers>", "not XML: no element found"),
        ("<net><layers/></net>", "not an OpenVINO model: no layer of type Parameter"),
        ("<net>" + "<a>" * 100, "nested too deeply"),
        ('<net><layers><layer id="0" name="a" type="Parameter"/></layers></net>',
         "no color conversion, resize, mean or scale"),
        ('<net><layers><layer id="0" name="a" type="Parameter"/>'
         '<layer id="1" name="b" type="Parameter"/></layers></net>', "a profile feeds one image"),
        ('<net><layers><layer id="0" name="a" type="Parameter"/>'  # a layer that feeds itself
         '<layer id="1" name="b" type="Convert"><data destination_type="f32"/></layer></layers>'
         '<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
         '<edge from-layer="1" from-port="0" to-layer="1" to-port="0"/></edges></net>',
         "no color conversion, resize"),
    ],
)  # fmt: skip
def test_hostile_and_broken_files_get_one_line(imports, text, said):
    (line,) = imports.refused(text, "model.xml")

    assert said in line


@pytest.mark.parametrize("number", [np.nan, np.inf, 0.0, -1.0])
def test_a_scale_that_is_no_number_is_refused(imports, number):
    """The .bin changed after the fact: 127.5 becomes something that no scale can be."""
    path = saved(imports.folder, lambda process: fed(process).scale(127.5))
    weights = path.with_suffix(".bin")
    written_scale = np.float32(1 / 127.5).tobytes()
    assert written_scale in weights.read_bytes()
    weights.write_bytes(weights.read_bytes().replace(written_scale, np.float32(number).tobytes()))

    with pytest.raises(ProfileError, match="of a scale above 0"):
        convert(path)
