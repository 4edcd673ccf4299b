"""Keys of Gst-nvinfer that never change a pixel or a logit, or do not while they are off.

Source: ``gstnvinfer_property_parser.h`` and the tables of the developer guide's "Gst-nvinfer".
"""

from __future__ import annotations

_MODEL = "the network itself; the model card names an ONNX file"
_ENGINE = "an engine that TensorRT has built; here it is built from the card's ONNX file"
_OUTPUT = "what outputs mean: the model card's output"
_LABELS = "the classes: the model card's labels"
_ONE = "samples run one at a time"
_WHERE = "where it runs, not what it computes"
_PIPELINE = "which element of a pipeline processes what; here every image is processed"
_FOLLOWS = "what happens to the answers"
_SECOND = "of process-mode=2, and this is 1"

ASIDE = {
    "batch-size": _ONE, "force-implicit-batch-dim": _ONE, "tensor-meta-pool-size": _ONE,
    "interval": "the number of skipped frames; every image is processed here",
    "gie-unique-id": _PIPELINE, "secondary-reinfer-interval": _SECOND,
    "gpu-id": _WHERE, "use-dla-core": _WHERE, "enable-dla": _WHERE, "workspace-size": _WHERE,
    "auto-inc-mem": _WHERE, "max-gpu-mem-per": _WHERE, "disable-output-host-copy": _WHERE,
    "labelfile-path": _LABELS, "num-detected-classes": _LABELS,
    "onnx-file": _MODEL, "model-file": _MODEL, "proto-file": _MODEL, "uff-file": _MODEL,
    "tlt-encoded-model": _MODEL, "tlt-model-key": _MODEL, "uff-input-blob-name": _MODEL,
    "engine-create-func-name": _MODEL, "custom-network-config": _MODEL,
    "model-engine-file": _ENGINE,
    "output-blob-names": _OUTPUT, "parse-bbox-func-name": _OUTPUT,
    "parse-bbox-instance-mask-func-name": _OUTPUT, "parse-classifier-func-name": _OUTPUT,
    "custom-lib-path": _OUTPUT, "segmentation-output-order": _OUTPUT,
    "parse-segmentation-func-name": _OUTPUT, "parse-func": _OUTPUT,
    "uff-input-order": "the axes of the tensor are the model card's: input.layout",
    "output-io-formats": "the types of single outputs; answers are FP32 here",
    "layer-device-precision": "a type for single layers; a profile has one precision for all",
    "strongly-typed": "the types are those of the ONNX file; see precision",
    "dump-input-tensor": _FOLLOWS, "dump-output-tensor": _FOLLOWS, "op-tensor-files": _FOLLOWS,
    "raw-output-file-write": _FOLLOWS, "dynamic-properties": _WHERE, "warmup-engine": _WHERE,
    "stabilize-buffer-count": _WHERE,
    "filter-out-class-ids": "hides answers at the end; all are compared here",
    "cluster-mode": "about boxes, but this is not a detector",
    "enable-dbscan": "about boxes, but this is not a detector",
    "output-tensor-meta": _FOLLOWS, "output-instance-mask": _FOLLOWS,
    "classifier-type": _FOLLOWS, "classifier-async-mode": _SECOND,
    "classifier-threshold": "hides answers below it; here every image has its answer",
    "segmentation-threshold": "hides answers below it; here every pixel has its answer",
    "operate-on-gie-id": _SECOND, "operate-on-class-ids": _SECOND,
    "input-object-min-width": _SECOND, "input-object-min-height": _SECOND,
    "input-object-max-width": _SECOND, "input-object-max-height": _SECOND,
}  # fmt: skip
"""For each key the reason why a profile does not need it."""

_OFF = ("0", "false")
ONLY: dict[str, tuple[tuple[str, ...], str]] = {
    "process-mode": (("1",), "it runs on the boxes of another network, but a profile runs on whole "
                     "images; save the objects as images, and write process-mode=1"),
    "input-tensor-from-meta": (_OFF, "Gst-nvdspreprocess makes the tensor, from another file; "
                               "write the values of that file into this one"),
    "overwrite-input-tensor": (_OFF, "the network is fed from a file, not from an image"),
    "overwrite-output-tensor": (_OFF, "the answers are read from a file, not from the network"),
    "crop-objects-to-roi-boundary": (_OFF, "a profile has no regions of interest"),
    "mean-file": ((), "a mean for every pixel; a profile has one per channel: write offsets"),
}  # fmt: skip
"""For each key the values at which it changes nothing, and the reason for refusing others."""

DRAWN = {"border-color": _FOLLOWS, "bg-color": _FOLLOWS}
"""Keys of ``[class-attrs-...]`` about how a box is drawn."""

SIZES = {"detected-min-w": "min_width", "detected-min-h": "min_height",
         "detected-max-w": "max_width", "detected-max-h": "max_height"}  # fmt: skip
"""Keys of ``[class-attrs-...]`` that drop boxes by size, each with its field of a profile."""

HIDES = ("roi-top-offset", "roi-bottom-offset")
"""Keys of ``[class-attrs-...]`` that drop boxes by place after everything else."""

INTEGERS = frozenset(
    ("network-mode", "network-type", "cluster-mode", "model-color-format", "scaling-filter",
     "scaling-compute-hw", "process-mode", "network-input-order", "num-detected-classes", "topk",
     "maintain-aspect-ratio", "symmetric-padding", "is-classifier", "input-tensor-from-meta",
     "group-threshold", "minBoxes", *SIZES, *HIDES)
)  # fmt: skip
"""Keys that Gst-nvinfer reads as whole numbers."""

LISTS = frozenset(
    ("infer-dims", "uff-input-dims", "input-dims", "filter-out-class-ids", "operate-on-class-ids")
)
"""Keys that it reads as lists of whole numbers."""
