"""What the owner of a board gets: the capture script, and the probe images with instructions."""

from __future__ import annotations

from pathlib import Path

from simulator.data import capture, example
from simulator.errors import UserError
from simulator.identify import columns, probes
from simulator.modalities.image.card import ImageCard
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.profile.load import load
from simulator.profile.text import write_new

README, CAPTURE = "README.md", "capture.py"
BASE = "pillow_fp32"
"""Its geometry is that of the model card; it decides nothing else here."""
_README = """\
# Probe images for {card}

They tell which stack a board has: its JPEG decoder, color conversion, resize, crop, normalization.

1. Copy this folder to the board. `{capture}` needs Python 3.7 and numpy, nothing else.
2. Run the board's own preprocessing on each image, exactly as it runs in the product, and record
   what it gives. The network's input tells most (`kind="tensors"`). Where it cannot be had, record
   pixels on the way (`kind="frames"`, `after="decode"`, `"resize"` or `"geometry"`), or what the
   network gives (`kind="outputs"`).

   ```python
   from capture import Capture

   with Capture("board", kind="tensors", device="which board, which software") as capture:
       for name in names:              # the file names below
           capture.add(name, preprocess(name))
   ```

3. Leave out an image that the board refuses, and say which: that tells something too. A few photos
   of your own may be added to this folder first; they are recorded in the same way.
4. Send back `recording.yaml` and `recording.npz`, and your own photos, if you added any: without
   them what was recorded of them cannot be used. Here:

   ```
   simulate identify --recording recording.yaml --model {model} --data {folder}
   ```

| image | tells apart |
| --- | --- |
{rows}
"""


def write_capture(path: Path, model: str | Path | None = None) -> None:
    """Write the capture script to a new file.

    Args:
        path: the file.
        model: a model card; the script then knows the SHA-256 of its ONNX file.

    Raises:
        UserError: the file exists or cannot be written, or the card cannot be used.
    """
    text = Path(capture.__file__).read_text(encoding="utf-8")
    digest = check(Card(Path(model))).digest if model else ""
    write_new(path, text.replace('MODEL = ""', f'MODEL = "{digest}"', 1))


def write_probes(folder: Path, model: str | Path | None = None) -> int:
    """Write the probe images for a model, the capture script and a page of instructions.

    Args:
        folder: a new or empty folder.
        model: a model card; the built-in model by default.

    Returns:
        How many images were written.

    Raises:
        UserError: the folder has files or cannot be written, or the card cannot be used.
    """
    card = Card(Path(model) if model else example.model_card())
    if not isinstance(card.spec, ImageCard):
        raise UserError(f"{card.path}: only stacks that take images have probe images")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not empty; choose a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        rows = []
        for probe in all_probes(card.spec):
            (folder / probe.name).write_bytes(probe.data)
            rows.append(f"| {probe.name} | {probe.about} |")
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}") from error
    write_capture(folder / CAPTURE, card.path)
    page = _README.format(
        card=card.spec.name, capture=CAPTURE, rows="\n".join(rows), folder=folder, model=card.path
    )
    write_new(folder / README, page)
    return len(rows)


def all_probes(card: ImageCard, *, small: bool = False) -> list[probes.Probe]:
    """Return the probe images for a model; *small*: fewer and smaller ones."""
    geometries = {name: sized for name, (_, sized) in columns.resolved(load(BASE), card).items()}
    return list((probes.small if small else probes.probes)(card, geometries))
