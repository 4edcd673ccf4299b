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
    "gpu-id": _WHERE, "use-dla-core": "enable-dla is off", "workspace-size": _WHERE,
    "auto-inc-mem": _WHERE, "max-gpu-mem-per": _WHERE, "disable-output-host-copy": _WHERE,
    "labelfile-path": _LABELS, "num-detected-classes": _LABELS,
    "onnx-file": _MODEL, "model-file": _MODEL, "proto-file": _MODEL, "uff-file": _MODEL,
    "tlt-encoded-model": _MODEL, "tlt-model-key": _MODEL, "uff-input-blob-name": _MODEL,
    "engine-create-func-name": _MODEL, "custom-network-config": _MODEL,
    "model-engine-file": _ENGINE,
    "output-blob-names": _OUTPUT, "parse-bbox-func-name": _OUTPUT,
    "parse-bbox-instance-mask-func-name": _OUTPUT, "parse-classifier-func-name": _OUTPUT,
    "custom-lib-path": _OUTPUT, "segmentation-output-order": _OUTPUT,
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
    "enable-dla": (_OFF, "no backend here emulates a DLA; remove the line to use the GPU"),
    "enable-dbscan": (_OFF, "a profile has no DBSCAN; write cluster-mode=2"),
    "crop-objects-to-roi-boundary": (_OFF, "a profile has no regions of interest"),
    "mean-file": ((), "a mean for every pixel; a profile has one per channel: write offsets"),
    "output-io-formats": ((), "a type for single outputs; a profile has one precision for all"),
    "layer-device-precision": ((), "a type for single layers; a profile has one precision for all"),
    "filter-out-class-ids": ((), "it drops classes; a profile drops none: remove the line"),
    "uff-input-order": ((), "of a UFF model; the model card wants an ONNX file"),
    "uff-input-dims": ((), "of a UFF model; write infer-dims"),
    "input-dims": ((), "of a UFF model; write infer-dims"),
}  # fmt: skip
"""For each key the values at which it changes nothing, and the reason for refusing others."""

_GROUPS = "of other clusterings than cluster-mode 2 and 4"
CLUSTERS = {
    "eps": _GROUPS, "group-threshold": _GROUPS, "minBoxes": _GROUPS, "dbscan-min-score": _GROUPS,
    "border-color": _FOLLOWS, "bg-color": _FOLLOWS,
    "nms-iou-threshold": "cluster-mode=4 has no NMS",
    "post-cluster-threshold": "cluster-mode=4 has no clusters",
}  # fmt: skip
"""Keys of ``[class-attrs-all]`` that are not used."""

BOXES: dict[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(
        ("roi-top-offset", "roi-bottom-offset", "detected-min-w", "detected-min-h",
         "detected-max-w", "detected-max-h"),
        (("0",), "boxes are dropped by their place or size; a profile drops none"),
    ),
    "threshold": ((), "the old name of pre-cluster-threshold; write that"),
}  # fmt: skip
"""Keys of ``[class-attrs-all]`` that change nothing only while they are 0."""
