"""SysNoise's short names of resizers (MLSys 2023, Table 1), which ``resize`` also accepts."""

from __future__ import annotations

from simulator import registry
from simulator.contract import Stage
from simulator.profile.document import Values

RESIZE: dict[str, dict[str, str]] = {
    "pil-bilinear": {"backend": "pillow", "interpolation": "bilinear"},
    "pil-nearest": {"backend": "pillow", "interpolation": "nearest"},
    "pil-box": {"backend": "pillow", "interpolation": "box"},
    "pil-hamming": {"backend": "pillow", "interpolation": "hamming"},
    "pil-cubic": {"backend": "pillow", "interpolation": "bicubic"},
    "pil-bicubic": {"backend": "pillow", "interpolation": "bicubic"},
    "pil-lanczos": {"backend": "pillow", "interpolation": "lanczos"},
    "opencv-nearest": {"backend": "opencv", "interpolation": "nearest"},
    "opencv-bilinear": {"backend": "opencv", "interpolation": "bilinear"},
    "opencv-area": {"backend": "opencv", "interpolation": "area"},
    "opencv-cubic": {"backend": "opencv", "interpolation": "bicubic"},
    "opencv-bicubic": {"backend": "opencv", "interpolation": "bicubic"},
    "opencv-lanczos": {"backend": "opencv", "interpolation": "lanczos4"},
}


def kernel(name: str) -> Values:
    """Return the fields of a short name; it is the whole kernel, so inherited ones are removed."""
    every = [offer.options for backend in registry.backends() for offer in backend.of(Stage.RESIZE)]
    return {**dict.fromkeys(sorted(set().union(*every))), **RESIZE[name]}
