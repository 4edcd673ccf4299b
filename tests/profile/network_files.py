"""Networks and their own descriptions, small, in the forms that their tools write."""

import base64

import flatbuffers
import numpy as np
import pytest

# ModelMetadata written by mediapipe 1.2.2's metadata_schema_py_generated.py: an RGB image,
# NormalizationOptions with mean 127 and std 128, and labels.txt for the output.
PLAIN = base64.b64decode(
    "FAAAAE0wMDEMAAwACAAAAAAABAAMAAAACAAAACABAAABAAAAEAAAAAwADAAAAAAACAAEAAwAAAAIAAAAbAAAAAEAAAAY"
    "AAAAAAASAAwACAAAAAAAAAAAAAAABAASAAAACAAAADQAAAABAAAAEAAAAAAACgAMAAgAAAAHAAoAAAAAAAACBAAAAAoA"
    "AABsYWJlbHMudHh0AAALAAAAcHJvYmFiaWxpdHkAAQAAABQAAAAAAA4AEAAMAAAAAAAIAAQADgAAAAwAAABQAAAAZAAA"
    "AAEAAAAMAAAACAAMAAsABAAIAAAAEAAAAAAAAAEIAAwACAAEAAgAAAAIAAAADAAAAAEAAAAAAABDAQAAAAAA/kIIAAoA"
    "CQAEAAgAAAAMAAAAAAIGAAgABwAGAAAAAAAAAQUAAABpbWFnZQAAAAcAAABGbG93ZXJzAA=="
)
CHANNELS = base64.b64decode(
    "FAAAAE0wMDEMAAwACAAAAAAABAAMAAAACAAAADABAAABAAAAEAAAAAwADAAAAAAACAAEAAwAAAAIAAAAbAAAAAEAAAAY"
    "AAAAAAASAAwACAAAAAAAAAAAAAAABAASAAAACAAAADQAAAABAAAAEAAAAAAACgAMAAgAAAAHAAoAAAAAAAACBAAAAAoA"
    "AABsYWJlbHMudHh0AAALAAAAcHJvYmFiaWxpdHkAAQAAABQAAAAAAA4AEAAMAAAAAAAIAAQADgAAAAwAAABgAAAAdAAA"
    "AAEAAAAMAAAACAAMAAsABAAIAAAAEAAAAAAAAAEIAAwACAAEAAgAAAAIAAAAFAAAAAMAAAB7lGlC4XpkQgCAZUIDAAAA"
    "mln3QlyP6EJcD89CCAAKAAkABAAIAAAADAAAAAACBgAIAAcABgAAAAAAAAEFAAAAaW1hZ2UAAAAHAAAARmxvd2VycwA="
)
GRAY = base64.b64decode(
    "FAAAAE0wMDEMAAwACAAAAAAABAAMAAAACAAAACABAAABAAAAEAAAAAwADAAAAAAACAAEAAwAAAAIAAAAbAAAAAEAAAAY"
    "AAAAAAASAAwACAAAAAAAAAAAAAAABAASAAAACAAAADQAAAABAAAAEAAAAAAACgAMAAgAAAAHAAoAAAAAAAACBAAAAAoA"
    "AABsYWJlbHMudHh0AAALAAAAcHJvYmFiaWxpdHkAAQAAABQAAAAAAA4AEAAMAAAAAAAIAAQADgAAAAwAAABQAAAAZAAA"
    "AAEAAAAMAAAACAAMAAsABAAIAAAAEAAAAAAAAAEIAAwACAAEAAgAAAAIAAAADAAAAAEAAAAAAH9DAQAAAAAAAAAIAAoA"
    "CQAEAAgAAAAMAAAAAAIGAAgABwAGAAAAAAAAAgUAAABpbWFnZQAAAAcAAABGbG93ZXJzAA=="
)
NO_NUMBERS = base64.b64decode(
    "CAAAAE0wMDFk////CAAAANgAAAABAAAAEAAAAAwADAAAAAAACAAEAAwAAAAIAAAAbAAAAAEAAAAYAAAAAAASAAwACAAA"
    "AAAAAAAAAAAABAASAAAACAAAADQAAAABAAAAEAAAAAAACgAMAAgAAAAHAAoAAAAAAAACBAAAAAoAAABsYWJlbHMudHh0"
    "AAALAAAAcHJvYmFiaWxpdHkAAQAAABAAAAAMAAwACAAAAAAABAAMAAAAEAAAACQAAAAIAAoACQAEAAgAAAAMAAAAAAIG"
    "AAgABwAGAAAAAAAAAQUAAABpbWFnZQAAAAcAAABGbG93ZXJzAA=="
)

CONVERTER = {
    "module": "keras_hub.src.models.resnet.resnet_image_converter",
    "class_name": "ResNetImageConverter",
    "config": {
        "name": "res_net_image_converter",
        "trainable": True,
        "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}},
        "image_size": [224, 224],
        "scale": [0.017124753831663668, 0.01750700280112045, 0.017429193899782133],
        "offset": [-2.1179039301310043, -2.0357142857142856, -1.8044444444444445],
        "interpolation": "bicubic",
        "crop_to_aspect_ratio": True,
    },
    "registered_name": "keras_hub>ResNetImageConverter",
}
PREPROCESSOR = {  # huggingface.co/keras/resnet_50_imagenet, preprocessor.json
    "module": "keras_hub.src.models.resnet.resnet_image_classifier_preprocessor",
    "class_name": "ResNetImageClassifierPreprocessor",
    "config": {
        "name": "res_net_image_classifier_preprocessor",
        "image_converter": CONVERTER,
        "config_file": "preprocessor.json",
    },
    "registered_name": "keras_hub>ResNetImageClassifierPreprocessor",
}

IR = """\
<?xml version="1.0"?>
<net name="net" version="11">
  <layers>
    <layer id="0" name="data" type="Parameter" version="opset1">
      <data shape="1,?,?,3" element_type="u8" />
      <output><port id="0" precision="U8"><dim>1</dim><dim>-1</dim><dim>-1</dim><dim>3</dim></port>
      </output>
    </layer>
    <layer id="1" name="resize" type="Interpolate" version="opset11">
      <data mode="linear" coordinate_transformation_mode="half_pixel" antialias="false"
        pads_begin="0, 0, 0, 0" pads_end="0, 0, 0, 0" />
      <input><port id="0" precision="U8" /></input>
      <output><port id="3" precision="U8"><dim>1</dim><dim>8</dim><dim>9</dim><dim>3</dim></port>
      </output>
    </layer>
    <layer id="2" name="net" type="Convolution" version="opset1" />
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="1" to-port="0" />
    <edge from-layer="1" from-port="3" to-layer="2" to-port="0" />
  </edges>
</net>
"""


def network(metadata, shape=(1, 224, 224, 3), kind=0, scale=None, zero=0):
    """A .tflite with one input, written by FlatBuffers and LiteRT's own schema."""
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    tensor = schema.TensorT()
    tensor.shape, tensor.type = list(shape), kind
    if scale is not None:
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale, tensor.quantization.zeroPoint = [scale], [zero]
    graph = schema.SubGraphT()
    graph.tensors, graph.inputs, graph.outputs = [tensor], [0], [0]
    model = schema.ModelT()
    model.version, model.subgraphs = 3, [graph]
    model.buffers = [schema.BufferT(), schema.BufferT()]
    if metadata is not None:
        model.buffers[1].data = np.frombuffer(metadata, np.uint8)
        one = schema.MetadataT()
        one.name, one.buffer = "TFLITE_METADATA", 1
        model.metadata = [one]
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
