"""Import the image processors of Transformers, each with its defaults, and hold tensors against it.

python tools/processors_table.py    prints the table of docs/importing.md

Those that run without torchvision. Three pictures of noise go through the processor itself and
through the profile that is imported of its file.
"""

from __future__ import annotations

import importlib
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from onnx import helper
from PIL import Image

from simulator.contract.encoded import inspect
from simulator.errors import ProfileError
from simulator.importers import convert
from simulator.modalities.image.front_end import front_end
from simulator.model.card import Card
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.implementations import choose
from simulator.profile.load import load

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import tiny

SIZES = (300, 401), (640, 480), (901, 200)
MORE = {"OneFormer": {"task_inputs": ["semantic"]}, "LayoutLMv3": {"apply_ocr": False}}
"""What a processor needs besides an image."""


def processors() -> Iterator[tuple[str, Any]]:
    """Yield the name and an object of each class that works with Pillow."""
    models = Path(transformers.__file__).parent / "models"
    for path in sorted(models.glob("*/image_processing_pil_*.py")):
        for name in re.findall(r"^class (\w+)ImageProcessorPil\(", path.read_text(), re.M):
            module = importlib.import_module(f"transformers.models.{path.parent.name}.{path.stem}")
            yield name, getattr(module, f"{name}ImageProcessorPil")()


def tensor(folder: Path, profile: Path, pixels: Any, shape: tuple[int, ...]) -> Any:
    """Return what a profile feeds a network of this shape, or of any size."""
    stack = load(str(profile))
    kept = stack.spec.model_dump()["geometry"]["kind"] == "keep_ratio"
    size = ("free", "free") if kept else shape[2:]
    geometry = {"kind": "native", "multiple_of": 1} if kept else {"kind": "squash"}
    spec = {**tiny.SPEC["input"], "height": size[0], "width": size[1]}
    pool = [helper.make_node("GlobalAveragePool", ["x"], ["p"]),
            helper.make_node("Flatten", ["p"], ["y"])]  # fmt: skip
    model = tiny.model(pool, {"x": [1, 3, "h", "w"]}, {"y": [1, 3]}, {})
    card = Card(tiny.card(folder / "card", model, input=spec, geometry=geometry)).spec
    value: Any = inspect("x.png", tiny.encoded(pixels, "png"))
    for recipe in front_end(stack, choose(stack), card):
        value = recipe.open(RuntimePool())(value, None)
    return np.asarray(value)


def furthest(folder: Path, name: str, processor: Any) -> tuple[str, float]:
    """Return the kind of the imported geometry, and how far its tensors are from the processor's.

    Raises:
        ProfileError: it is refused.
    """
    document, profile = folder / "preprocessor_config.json", folder / "made.yaml"
    document.write_text(processor.to_json_string())
    profile.write_text(convert(document))
    worst = 0.0
    for rows, columns in SIZES:
        pixels = np.random.default_rng(rows).integers(0, 256, (rows, columns, 3), np.uint8)
        made = processor(Image.fromarray(pixels), return_tensors="np", **MORE.get(name, {}))
        wanted = np.asarray(made["pixel_values"]).reshape(1, 3, *made["pixel_values"].shape[-2:])
        found = tensor(folder, profile, pixels, wanted.shape)
        worst = max(worst, float(np.abs(found - wanted).max()))
    return load(str(profile)).spec.model_dump()["geometry"]["kind"], worst


def main() -> None:
    """Print which are imported and which are refused, and why."""
    imported, refused = defaultdict(list), defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for name, processor in processors():
            try:
                kind, worst = furthest(Path(folder), name, processor)
            except ProfileError as error:
                first = error.problems[0].split("preprocessor_config.json: ")[-1]
                reason = re.split(r": (?=[a-z])", first, maxsplit=1)[-1].split(";")[0]
                refused[reason].append(name)
            else:
                imported[kind].append(f"{name} (within {worst:.1g})" if worst else name)
    for title, found in (("imported as", imported), ("refused", refused)):
        print(f"| {title} | processors |\n| --- | --- |")
        for what, names in sorted(found.items(), key=lambda pair: -len(pair[1])):
            print(f"| {what} | {len(names)}: {', '.join(names)} |")
        print()


if __name__ == "__main__":
    main()
