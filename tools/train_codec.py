"""Train a small learned image codec: the decoder of docs/learned-decoder.md.

    python tools/train_codec.py train FOLDER codec.onnx --halvings 2 --crop 32 --quality 0.025
    python tools/train_codec.py measure codec.onnx FOLDER

``train`` learns from crops of all JPEG and PNG files below a folder. The codec is a chain of
convolutions that each halve both sides, with divisive normalization between; rounding; and the same
backwards. Rounding is learned with uniform noise in its place, and the rate is the entropy of a
logistic density for each channel (Balle et al., "End-to-end Optimized Image Compression", 2017; the
normalization without squares is of Johnston et al., "Computationally Efficient Neural Image
Compression", 2019). ``measure`` decodes with the backend ``learned_codec`` itself.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import torch
from PIL import Image
from torch import nn

BATCH, GAIN = 16, 16.0
SUFFIXES = (".jpg", ".jpeg", ".png")


class Divide(nn.Module):
    """Divides, or multiplies, by a learned sum of the channels' magnitudes."""

    def __init__(self, width: int, back: bool) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.ones(width))
        self.weights = nn.Parameter(0.1 * torch.eye(width)[:, :, None, None])
        self.back = back

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return (N, width, H, W)."""
        norm = nn.functional.conv2d(values.abs(), self.weights.abs(), self.bias.abs() + 1e-6)
        return values * norm if self.back else values / norm


class Codec(nn.Module):
    """(N, 3, H, W) from 0 to 1, of sides that are multiples of ``2 ** halvings``."""

    def __init__(self, halvings: int, width: int) -> None:
        super().__init__()
        down: list[nn.Module] = []
        up: list[nn.Module] = []
        for number in range(halvings):
            down.append(nn.Conv2d(3 if not number else width, width, 5, 2, 2))
            given = 3 if number == halvings - 1 else width
            up.append(nn.ConvTranspose2d(width, given, 5, 2, 2, 1))
            if number < halvings - 1:
                down.append(Divide(width, False))
                up.append(Divide(width, True))
        self.analysis, self.synthesis = nn.Sequential(*down), nn.Sequential(*up)
        self.middle = nn.Parameter(torch.zeros(width, 1, 1))
        self.spread = nn.Parameter(torch.zeros(width, 1, 1))

    def latents(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return (N, width, H / stride, W / stride), not rounded."""
        return GAIN * self.analysis(pixels - 0.5)

    def pixels(self, latents: torch.Tensor) -> torch.Tensor:
        """Return (N, 3, H, W)."""
        return self.synthesis(latents / GAIN) + 0.5

    def bits(self, latents: torch.Tensor) -> torch.Tensor:
        """Return the information in latents under a logistic density for each channel."""
        high, low = (
            torch.sigmoid((latents - self.middle + half) / self.spread.exp())
            for half in (0.5, -0.5)
        )
        return -torch.log2((high - low).clamp_min(1e-9)).sum()

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the pixels as decoded, and the integers that a file would hold."""
        latents = torch.round(self.latents(pixels))
        return self.pixels(latents), latents


def files(folder: Path) -> list[Path]:
    """All images below a folder, by name."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def crops(images: list[np.ndarray], side: int, random: np.random.Generator) -> torch.Tensor:
    """Return a batch of random crops, half of them mirrored; (BATCH, 3, side, side), 0 to 1."""
    found = np.empty((BATCH, side, side, 3), np.uint8)
    for number in range(BATCH):
        image = images[random.integers(len(images))]
        top, left = (random.integers(size - side + 1) for size in image.shape[:2])
        found[number] = image[top : top + side, left : left + side][:, :: random.choice((1, -1))]
    return torch.from_numpy(found).permute(0, 3, 1, 2).float() / 255


def train(
    folder: Path, out: Path, halvings: int, width: int, crop: int, quality: float, steps: int,
    seed: int,
) -> None:  # fmt: skip
    """Learn, and write the ONNX file."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    images = [np.asarray(Image.open(path).convert("RGB")) for path in files(folder)]
    images = [image for image in images if min(image.shape[:2]) >= crop]
    codec = Codec(halvings, width)
    optimizer = torch.optim.Adam(codec.parameters())
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    begun, errors, sizes = time.time(), [], []
    for step in range(1, steps + 1):
        pixels = crops(images, crop, random)
        latents = codec.latents(pixels)
        latents = latents + torch.rand_like(latents) - 0.5
        error = nn.functional.mse_loss(codec.pixels(latents), pixels)
        size = codec.bits(latents) / (BATCH * crop * crop)
        optimizer.zero_grad()
        (size + quality * 255**2 * error).backward()
        nn.utils.clip_grad_norm_(codec.parameters(), 1.0)
        optimizer.step()
        rates.step()
        errors.append(error.item())
        sizes.append(size.item())
        if step % 500 == 0 or step == steps:
            decibels = -10 * np.log10(np.mean(errors[-500:]))
            told = f"{decibels:.2f} dB, {np.mean(sizes[-500:]):.3f} bits a pixel with noise"
            print(f"step {step}: {told}, {time.time() - begun:.0f} s", flush=True)
    write(codec, 2**halvings, out)


def write(codec: Codec, stride: int, out: Path) -> None:
    """Write the ONNX file, which takes any multiple of the stride and says which it is."""
    out.parent.mkdir(parents=True, exist_ok=True)
    codec.eval()
    free = {2: "height", 3: "width"}
    torch.onnx.export(
        codec, (torch.zeros(1, 3, 8 * stride, 8 * stride),), out, dynamo=False, opset_version=17,
        input_names=["pixels"], output_names=["decoded", "latents"],
        dynamic_axes={"pixels": free, "decoded": free, "latents": {2: "rows", 3: "columns"}},
    )  # fmt: skip
    model = onnx.load(out)
    onnx.helper.set_model_props(model, {"stride": str(stride)})
    onnx.save(model, out)


def figures(codec: Path, folder: Path, limit: int | None) -> tuple[list[float], float]:
    """Return the PSNR of each image in dB, and the bits a pixel of the integers in all of them.

    The bits are the entropy of the integers of each channel, by their own frequencies.
    """
    from backends.learned_codec import LearnedDecoder
    from backends.pillow.pixels import PillowDecoder
    from simulator.contract.encoded import read_image

    options = {"codec": str(codec), "exif": "ignore", "padding": "edge", "threads": 1,
               "graph_optimization_level": "all"}  # fmt: skip
    base, decoder = PillowDecoder(options), LearnedDecoder(options)
    decibels: list[float] = []
    area, counts = 0, Counter[tuple[int, int]]()
    for path in files(folder)[:limit]:
        rgb = base.rgb(read_image(path.name, path)).rgb
        decoded, latents = decoder.coded(rgb)
        error = float(np.mean((rgb.astype(np.float64) - decoded) ** 2))
        decibels.append(10 * np.log10(255**2 / error) if error else np.inf)
        area += rgb.shape[0] * rgb.shape[1]
        for channel, values in enumerate(latents[0]):
            for value, count in zip(*np.unique(values, return_counts=True), strict=True):
                counts[channel, int(value)] += int(count)
    totals = Counter[int]()
    for (channel, _), count in counts.items():
        totals[channel] += count
    bits = -sum(count * np.log2(count / totals[key[0]]) for key, count in counts.items())
    return decibels, bits / area


def measure(codec: Path, folder: Path, limit: int | None) -> None:
    """Print what a codec does to the images of a folder."""
    decibels, bits = figures(codec, folder, limit)
    spread = np.std(decibels, ddof=1) if len(decibels) > 1 else 0
    print(f"{len(decibels)} images: PSNR {np.mean(decibels):.2f} dB in the mean, std {spread:.2f}")
    print(f"{bits:.3f} bits a pixel: the entropy of the integers of each channel")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    one = commands.add_parser("train")
    one.add_argument("folder", type=Path)
    one.add_argument("out", type=Path)
    one.add_argument("--halvings", type=int, required=True, help="stride 2, 4, 8 for 1, 2, 3")
    one.add_argument("--width", type=int, default=48, help="channels of every layer")
    one.add_argument("--crop", type=int, required=True, help="side of what it learns from")
    one.add_argument("--quality", type=float, required=True, help="weight of the squared error")
    one.add_argument("--steps", type=int, default=3000)
    one.add_argument("--seed", type=int, default=0)
    two = commands.add_parser("measure")
    two.add_argument("codec", type=Path)
    two.add_argument("folder", type=Path)
    two.add_argument("--limit", type=int)
    given = vars(parser.parse_args())
    {"train": train, "measure": measure}[given.pop("command")](**given)


if __name__ == "__main__":
    main()
