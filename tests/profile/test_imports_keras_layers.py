"""Keras' preprocessing layers, against Keras itself."""

import io
import json
import zipfile

import numpy as np
import pytest
from importing import geometry, normalization, photo

LAYER = {"module": "keras.layers", "registered_name": None}
RESIZING = {"name": "resizing", "trainable": True, "dtype": "float32", "height": 40, "width": 40,
            "data_format": "channels_last", "interpolation": "bilinear", "antialias": False,
            "crop_to_aspect_ratio": True, "pad_to_aspect_ratio": False, "fill_mode": "constant",
            "fill_value": 0.0}  # fmt: skip
RESCALING = {"name": "rescaling", "trainable": True, "scale": 0.00784313725490196, "offset": -1}
NORMALIZATION = {"name": "normalization", "axis": [-1], "invert": False, "mean": [0.1, 0.2, 0.3],
                 "variance": [1, 4, 9]}  # fmt: skip
CROP = {"name": "crop", "data_format": "channels_last", "height": 32, "width": 32}
STEPS = {"Resizing": RESIZING, "RandomFlip": {"name": "flip"}, "Rescaling": RESCALING,
         "CenterCrop": CROP, "Normalization": NORMALIZATION}  # fmt: skip


def sequential(**changes):
    """A network as ``to_json()`` of Keras 3.15 writes it, with these layers at its head."""
    layers = {**STEPS, **changes}
    first = {"class_name": "InputLayer", "config": {"batch_shape": [None, 224, 192, 3]}}
    body = [
        {**LAYER, "class_name": name, "config": config} for name, config in layers.items() if config
    ]
    layers = [first, *body, {**LAYER, "class_name": "Conv2D", "config": {"filters": 2}}]
    return {
        "module": "keras",
        "class_name": "Sequential",
        "config": {"name": "s", "layers": layers},
    }


def archive(document):
    """A ``.keras`` file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("metadata.json", "{}")
        file.writestr("config.json", json.dumps(document))
    return out.getvalue()


@pytest.mark.parametrize(("rows", "columns"), [(50, 37), (31, 64)])
def test_the_layers_of_a_network(imports, rows, columns):
    keras = pytest.importorskip("keras")
    image = photo(rows, columns)
    profile = imports.profile(archive(sequential()), "net.keras")

    tensor = imports.tensor(profile, image, 32)

    value = image[None].astype(np.float32)
    for name, config in ((name, config) for name, config in STEPS.items() if name != "RandomFlip"):
        value = getattr(keras.layers, name).from_config(config)(value)
    np.testing.assert_allclose(tensor, np.asarray(value)[0].transpose(2, 0, 1), atol=2e-6)


def test_a_network_that_does_not_resize(imports):
    document = sequential(Resizing=None, CenterCrop=None, Normalization=None)
    profile = imports.profile(document, "config.json")

    assert normalization(profile) == ([127.5] * 3, [127.5] * 3, "multiply_add")
    assert geometry(profile) == ("squash",)
    assert profile.spec.evidence["resize"].kind == "assumed"
    said = "#   input: height: 224, width: 192", "give the card's ONNX file without them"
    imports.gives({}, document, "config.json", *said)


def test_a_functional_network(imports):
    """Layers of Keras 2 and 3 name their inputs; a branch ends the head."""
    layers = [
        {"class_name": "InputLayer", "name": "x", "config": {"batch_input_shape": [None, 8, 8, 3]},
         "inbound_nodes": []},
        {"class_name": "Conv2D", "name": "c", "config": {}, "inbound_nodes": [[["r", 0, 0, {}]]]},
        {"class_name": "Rescaling", "name": "r", "config": RESCALING,
         "inbound_nodes": [[["x", 0, 0, {}]]]},
    ]  # fmt: skip
    document = {"class_name": "Functional", "config": {"name": "m", "layers": layers}}
    assert normalization(imports.profile(document, "model.json"))[0] == [127.5] * 3
    layers.append({**layers[1], "name": "d", "inbound_nodes": [[["x", 0, 0, {}]]]})
    imports.refuses(": the network begins with nothing, and no layer", document, "model.json")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"Resizing": {**RESIZING, "pad_to_aspect_ratio": True}},
         ": Resizing.pad_to_aspect_ratio=true: it pads before the resize"),
        ({"Resizing": {**RESIZING, "interpolation": "area"}}, ": Resizing.interpolation=area: a"),
        ({"CenterCrop": {**CROP, "width": 30}},
         ": Resizing.crop_to_aspect_ratio=true: another ratio of sides"),
        ({"CenterCrop": {**CROP, "width": 300}}, ": CenterCrop.height=32: larger than the short"),
        ({"Normalization": {"axis": -1}}, ": Normalization.mean: not written: adapt() has"),
        ({"Rescaling": {**RESCALING, "scale": -1}}, ": Rescaling.scale=-1: numbers above 0"),
        ({"Rescaling": {**RESCALING, "unit": 1}}, ": Rescaling.unit=1: unknown key"),
        ({"RandomFlip": None, "Resizing": None}, ": CenterCrop.height=32: a profile crops once"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused(imports, change, problem):
    imports.refuses(problem, sequential(**change), "config.json")


def test_a_damaged_archive(imports):
    raw = archive(sequential())
    for damaged in (raw[:40], raw[:200], raw.replace(b"config.json", b"confug.json")):
        imports.refuses(": a damaged .keras: ", damaged, "net.keras")
