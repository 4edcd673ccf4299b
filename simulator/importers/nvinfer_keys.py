"""Keys of Gst-nvinfer that never change a pixel or a logit, or do not while they are off.

Source: ``gstnvinfer_property_parser.h`` and the tables of the developer guide's "Gst-nvinfer".
"""

from __future__ import annotations

from simulator.importers.values import keys_by_reason

_DRAWN = "what happens to the answers"
ASIDE = keys_by_reason({
    "samples run one at a time": "batch-size force-implicit-batch-dim tensor-meta-pool-size",
    "the number of skipped frames; every image is processed here": "interval",
    "which element of a pipeline processes what; here every image is processed": "gie-unique-id",
    "of process-mode=2, and this is 1":
        "secondary-reinfer-interval classifier-async-mode operate-on-gie-id operate-on-class-ids "
        "input-object-min-width input-object-min-height input-object-max-width "
        "input-object-max-height",
    "where it runs, not what it computes":
        "gpu-id use-dla-core enable-dla workspace-size auto-inc-mem max-gpu-mem-per "
        "disable-output-host-copy dynamic-properties warmup-engine stabilize-buffer-count",
    "the classes: the model card's labels": "labelfile-path num-detected-classes",
    "the network itself; the model card names an ONNX file":
        "onnx-file model-file proto-file uff-file tlt-encoded-model tlt-model-key "
        "uff-input-blob-name engine-create-func-name custom-network-config",
    "an engine that TensorRT has built; here it is built from the card's ONNX file":
        "model-engine-file",
    "what outputs mean: the model card's output":
        "output-blob-names parse-bbox-func-name parse-bbox-instance-mask-func-name "
        "parse-classifier-func-name custom-lib-path segmentation-output-order "
        "parse-segmentation-func-name parse-func",
    "the axes of the tensor are the model card's: input.layout": "uff-input-order",
    "the types of single outputs; answers are FP32 here": "output-io-formats",
    "a type for single layers; a profile has one precision for all": "layer-device-precision",
    "the types are those of the ONNX file; see precision": "strongly-typed",
    _DRAWN: "dump-input-tensor dump-output-tensor op-tensor-files raw-output-file-write "
            "output-tensor-meta output-instance-mask classifier-type",
    "hides answers at the end; all are compared here": "filter-out-class-ids",
    "about boxes, but this is not a detector": "cluster-mode enable-dbscan",
    "hides answers below it; here every image has its answer": "classifier-threshold",
    "hides answers below it; here every pixel has its answer": "segmentation-threshold",
})  # fmt: skip
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

DRAWN = {"border-color": _DRAWN, "bg-color": _DRAWN}
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
