"""Processors of Hugging Face Transformers: what is not written in their files, by their class.

Source: huggingface/transformers 5, ``models/*/image_processing_*.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    "Levit": "it resizes to 256 / 224 of size",
    "Perceiver": "it crops before it resizes",
    "DepthPro": "it resizes after it has normalized",
    "DINOv3ViT": "it resizes after it has rescaled",
    "LayoutLMv2": "it reverses the channels, and says so nowhere",
    "Owlv2": "it pads to a square before it resizes",
    "VitPose": "it cuts persons out by their boxes",
    "ImageGPT": "its network takes indices of colors",
    "TimmWrapper": "its steps are in timm's own file; import that",
    **dict.fromkeys(("VideoMAE", "Vivit", "VideoLlava", "Tvp"), "it takes videos"),
}
"""Processors whose steps are others than their files' keys say (``models/*`` of the sources)."""

TO_BATCH = ("Detr", "ConditionalDetr", "DeformableDetr", "RTDetr", "Yolos", "GroundingDino")
"""Processors whose ``do_pad`` pads to the largest image of a batch."""

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
})  # fmt: skip
"""Keys that change no pixel of the network's input."""
HEADS = {
    "ForImageClassification": "classification", "ForSemanticSegmentation": "segmentation",
    "ForObjectDetection": "detection",
}  # fmt: skip
"""Tasks by the end of a network's name in ``architectures``."""
