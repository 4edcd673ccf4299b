"""The public interface for backends: a backend imports from here, and from nowhere else."""

from simulator.contract.adversary import Adversary, Victim
from simulator.contract.backend import (
    Admits,
    AtLeast,
    Backend,
    Environment,
    Evidence,
    KeepList,
    Offer,
    Options,
    Pairs,
    Stage,
    Subset,
    Text,
)
from simulator.contract.chroma import Rows, fixed_point_rgb, full_chroma, full_chroma_float
from simulator.contract.encoded import MAX_PIXELS, Encoded, inspect
from simulator.contract.example import ExampleImages, ExampleModel
from simulator.contract.frame import (
    U8,
    Array,
    Frame,
    Matrix,
    PixelFormat,
    Range,
    rgb_frame,
    yuv_frame,
)
from simulator.contract.gradients import LOGITS, PROBABILITIES, Differentiable, Gradient, Pull
from simulator.contract.keep import kept
from simulator.contract.library import Library
from simulator.contract.loads import Load, LoadGenerator, Scenario, Served, Submit
from simulator.contract.model import Cast, Effective, Exporter, Port, Quantizer, Runtime
from simulator.contract.pictures import (
    Color,
    ImageWriter,
    Key,
    Mask,
    MaskReader,
    Painter,
    Panel,
    Rectangle,
)
from simulator.contract.pixels import Converter, Decoder, Encoder, Resizer, even, subsample
from simulator.contract.stage import StageSpec, checks
from simulator.contract.tune import Tuner
from simulator.errors import MissingLibrary, ModelError, RunError, SampleError, Unsupported

__all__ = [
    "LOGITS",
    "MAX_PIXELS",
    "PROBABILITIES",
    "U8",
    "Admits",
    "Adversary",
    "Array",
    "AtLeast",
    "Backend",
    "Cast",
    "Color",
    "Converter",
    "Decoder",
    "Differentiable",
    "Effective",
    "Encoded",
    "Encoder",
    "Environment",
    "Evidence",
    "ExampleImages",
    "ExampleModel",
    "Exporter",
    "Frame",
    "Gradient",
    "ImageWriter",
    "KeepList",
    "Key",
    "Library",
    "Load",
    "LoadGenerator",
    "Mask",
    "MaskReader",
    "Matrix",
    "MissingLibrary",
    "ModelError",
    "Offer",
    "Options",
    "Painter",
    "Pairs",
    "Panel",
    "PixelFormat",
    "Port",
    "Pull",
    "Quantizer",
    "Range",
    "Rectangle",
    "Resizer",
    "Rows",
    "RunError",
    "Runtime",
    "SampleError",
    "Scenario",
    "Served",
    "Stage",
    "StageSpec",
    "Submit",
    "Subset",
    "Text",
    "Tuner",
    "Unsupported",
    "Victim",
    "checks",
    "even",
    "fixed_point_rgb",
    "full_chroma",
    "full_chroma_float",
    "inspect",
    "kept",
    "rgb_frame",
    "subsample",
    "yuv_frame",
]
