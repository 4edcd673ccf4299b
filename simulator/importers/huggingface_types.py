"""Processors of Hugging Face Transformers: what is not written in their files, by their class.

Source: huggingface/transformers 5, ``models/*/image_processing_*.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.importers.network import CardFields, Said
from simulator.importers.values import keys_by_reason


@dataclass(frozen=True, slots=True)
class Type:
    """An image processor.

    Attributes:
        crops: ``do_center_crop`` where the file does not say; None: it has changed.
        square: whether a ``size`` that is one number is both sides, or the short side; None: the
            file must say which.
    """

    crops: bool | None
    square: bool | None


TYPES = {
    "ViT": Type(False, True), "Siglip": Type(False, False), "Beit": Type(None, True),
    "CLIP": Type(True, False), "Bit": Type(True, False), "DeiT": Type(True, True),
    "MobileNetV1": Type(True, False), "MobileNetV2": Type(True, False),
    "MobileViT": Type(True, False), "ConvNext": Type(False, False),
    "EfficientNet": Type(False, True),
}  # fmt: skip
PLAIN = Type(None, None)
"""Any other processor: what its file says, where that is a squash, a crop and a normalization."""

HIDDEN = {
    "Perceiver": "it crops before it resizes",
    "DepthPro": "it resizes after it has normalized",
    "DINOv3ViT": "it resizes after it has rescaled",
    "Owlv2": "it pads to a square before it resizes",
    "VitPose": "it cuts persons out by their boxes",
    "ImageGPT": "its network takes indices of colors",
    "TimmWrapper": "its steps are in timm's own file; import that",
    **dict.fromkeys(("LayoutLMv2", "PPLCNet"), "it reverses the channels, and says so nowhere"),
    **dict.fromkeys(
        ("SuperPoint", "SuperGlue", "LightGlue", "EfficientLoFTR"), "its network matches points"
    ),
    **dict.fromkeys(("VitMatte", "Swin2SR", "UVDoc"), "its network makes images"),
    **dict.fromkeys(("VideoMAE", "Vivit", "VideoLlava", "Tvp"), "it takes videos"),
    **dict.fromkeys(("Vilt", "BridgeTower", "TextNet", "GLPN"), "it stretches to multiples of 32"),
    **dict.fromkeys(("Fuyu", "Inkling", "Inkling2"), "it cuts an image into patches"),
}
"""Processors whose steps are others than their files' keys say (``models/*`` of the sources)."""
CUTS = (
    "patch_size", "merge_size", "max_patches", "crop_to_patches", "do_image_splitting",
    "image_grid_pinpoints", "max_image_tiles", "max_num_tiles", "max_crops", "max_slice_nums",
    "max_image_size", "max_pixels",
)  # fmt: skip
"""Keys of processors that cut an image into patches or tiles."""

KEEPING = {
    **dict.fromkeys(
        ("Detr", "ConditionalDetr", "DeformableDetr", "GroundingDino", "RfDetr", "OneFormer"),
        "transformers",
    ),
    "Yolos": "yolos",
    **dict.fromkeys(("MaskFormer", "Mask2Former"), "maskformer"),
}
"""Processors that resize the short side, and less where the long side would be too long, with how
they round; bilinear by default in all versions (``get_size_with_aspect_ratio``)."""
TO_BATCH = (*KEEPING, "RTDetr")
"""Processors whose ``do_pad`` pads to the largest image of a batch."""
TORCH = {
    **dict.fromkeys(("RfDetr", "Sam2", "Sam3", "Tipsv2", "Tipsv2Dpt"), True),
    **dict.fromkeys(("PPDocLayoutV2", "PPDocLayoutV3", "PPDocLayoutV4"), False),
}
"""Processors that exist by torchvision only, and whether they smooth before they shrink."""

CHANGES = "the default depends on the class and on Transformers' version, so the file must say"
STEPS = ("do_pad", "pad_size", "size_divisor", "do_thumbnail", "do_align_long_axis", "max_size")
SUFFIXES = ("ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")

ASIDE = keys_by_reason({
    "which class it is":
        "image_processor_type feature_extractor_type processor_class _processor_class",
    "where the class is found": "auto_map",
    "a list of arguments": "_valid_processor_keys",
    "the axes of the tensor are the model card's: input.layout":
        "data_format input_data_format return_tensors",
    "how images are batched": "disable_grouping",
    "where torchvision works": "device",
    "of the label maps, not of the image: the data card's": "do_reduce_labels reduce_labels",
    "every decoder here gives RGB": "do_convert_rgb",
    "of the annotations: the data card's": "format do_convert_annotations",
    "of the masks that are given besides": "mask_size mask_pad_size",
    "of the label maps": "ignore_index num_labels",
    "every image has 3 channels here": "num_channels",
    "where the file comes from": "name_or_path",
    "of the texts beside the image": "repo_path class_info_file num_text metadata apply_ocr "
        "ocr_lang tesseract_config",
})  # fmt: skip
"""Keys that change no pixel of the network's input."""
HEADS = {
    "ForImageClassification": "classification", "ForSemanticSegmentation": "segmentation",
    "ForObjectDetection": "detection",
}  # fmt: skip
"""Tasks by the end of a network's name in ``architectures``."""
SOFTMAX = ("detr", "yolos", "table-transformer")
"""Detectors with a class for "no object", the last; the others have a sigmoid for each class."""


def detector(fields: CardFields, model_type: str) -> None:
    """Add the output of a detector of the DETR family, as its post-processing reads it.

    Source: ``post_process_object_detection`` of huggingface/transformers: softmax and the best
    class of a query (``models/detr``), or the best scores of all queries (``models/rt_detr``,
    ``models/deformable_detr``); 0.5; no NMS, corners are not clipped.
    """
    is_softmax = model_type in SOFTMAX
    keeps = fields.said.get("geometry.kind", Said("", "")).value == "keep_ratio"
    score = {
        "activation": "softmax" if is_softmax else "sigmoid",
        "background": "last" if is_softmax else "none",
        "classes": "best" if is_softmax else "all",
    }
    outputs = [
        {"names": ["logits"], "columns": ["scores"]},
        {"names": ["pred_boxes"], "columns": ["boxes"]},
    ]
    head = {
        "kind": "boxes", "outputs": outputs, "layout": "rows", "score": score,
        "format": "cxcywh", "unit": "resized" if keeps else "image",
    }  # fmt: skip
    nms = {
        "kind": "none", "iou_threshold": 0.5, "class_aware": True, "offset": 0,
        "score_threshold": 0.001, "top_k_before": "all", "top_k_after": 300,
    }  # fmt: skip
    why = f"post_process_object_detection, model_type={model_type}"
    fields.say(why, output__head=head, output__clip="none", output__nms=nms)
    fields.say("its default threshold", output__operating_threshold=0.5)


def segmenter(fields: CardFields) -> None:
    """Add how ``post_process_semantic_segmentation`` makes the mask of scores."""
    resize = {"of": "logits", "mode": "bilinear", "coordinate_transformation_mode": "half_pixel"}
    why = "post_process_semantic_segmentation: interpolate, bilinear, then argmax"
    fields.say(why, output__argmax="after", output__mask_resize=resize)
