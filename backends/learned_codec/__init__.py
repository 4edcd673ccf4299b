"""A learned image codec in place of a decoder: a network packs the pixels and unpacks them."""

from __future__ import annotations

from backends.learned_codec.decoder import LearnedDecoder
from backends.learned_codec.example import write_example
from backends.ort.library import LEVELS, ort
from backends.pillow.library import PIL
from simulator.contract import AtLeast, Backend, File, Offer, Stage

__all__ = ["BACKEND", "LearnedDecoder"]

BACKEND = Backend(
    name="learned_codec",
    summary="a learned image codec of your own (ONNX): Pillow's pixels, packed and unpacked",
    library=ort,
    companions=(PIL,),
    offers=(
        Offer(
            Stage.DECODE,
            {
                "codec": File("onnx", write_example),
                "exif": ("apply", "ignore"),
                "base": ("pillow",),
                "idct": ("islow",),
                "chroma_upsampling": ("fancy",),
                "padding": ("edge", "reflect"),
                "threads": AtLeast(1),
                "graph_optimization_level": tuple(LEVELS),
            },
            LearnedDecoder,
            source="docs/learned-decoder.md: what the ONNX file takes and gives",
        ),
    ),
    fields={
        "codec": "the codec, an ONNX file: docs/learned-decoder.md",
        "base": "what decodes the file before the codec packs its pixels",
        "padding": "how sides are made multiples of the codec's stride",
        "threads": "of ONNX Runtime, for one image",
        "graph_optimization_level": "of ONNX Runtime; it can change a bit of a pixel",
    },
)
