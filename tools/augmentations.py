"""Augmentations for tools/train_cifar.py: each takes the pixels of a batch and gives others.

A batch is (N, H, W, 3) uint8 RGB; what comes back is float32, 0 to 255. What of each paper is
done here otherwise:

- ``augmix``: AugMix (Hendrycks et al., ICLR 2020), its nine operations, width 3, depth 1 to 3,
  alpha 1. Its Jensen-Shannon loss is `jensen_shannon`, of the recipe ``augmix-jsd``.
- ``apr``: amplitude-phase recombination (Chen et al., ICCV 2021), APR-SP: within an image (two
  operations of AugMix, amplitude of one and phase of the other) and between two images of a batch.
  The recombined images take the place of images; the authors' code adds them to the batch.
- ``deepaugment``: DeepAugment (Hendrycks et al., ICCV 2021) with one autoencoder, learned here in
  seconds from the images to train on, instead of the authors' CAE and EDSR; its weights and inner
  values are distorted anew for each batch, and half of the images go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import nn

Pixels = np.ndarray
Augmentation = Callable[[Pixels, np.random.Generator], Pixels]
Operation = Callable[[Image.Image, float], Image.Image]
RECIPES = ("augmix", "augmix-jsd", "apr", "deepaugment")
JSD = 12  # weight of the Jensen-Shannon loss, as in the paper


def _turned(image: Image.Image, by: float) -> Image.Image:
    return image.rotate(30 * by, Image.Resampling.BILINEAR)


def _moved(image: Image.Image, *matrix: float) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


OPERATIONS: tuple[Operation, ...] = (
    lambda image, by: ImageOps.autocontrast(image),
    lambda image, by: ImageOps.equalize(image),
    lambda image, by: ImageOps.posterize(image, 8 - round(4 * abs(by))),
    lambda image, by: ImageOps.solarize(image, 256 - round(128 * abs(by))),
    _turned,
    lambda image, by: _moved(image, 1, 0.3 * by, 0, 0, 1, 0),
    lambda image, by: _moved(image, 1, 0, 0, 0.3 * by, 1, 0),
    lambda image, by: _moved(image, 1, 0, image.width / 3 * by, 0, 1, 0),
    lambda image, by: _moved(image, 1, 0, 0, 0, 1, image.height / 3 * by),
)
"""AugMix's; each takes an image and a strength in -1..1."""


def _changed(image: Image.Image, draw: np.random.Generator) -> Image.Image:
    return OPERATIONS[draw.integers(len(OPERATIONS))](image, draw.uniform(-1, 1))


def _mixed(pixels: Pixels, draw: np.random.Generator) -> Pixels:
    image = Image.fromarray(pixels)
    mixed = np.zeros(pixels.shape, np.float32)
    for weight in draw.dirichlet((1, 1, 1)):
        chained = image
        for _ in range(draw.integers(1, 4)):
            chained = _changed(chained, draw)
        mixed += np.float32(weight) * np.asarray(chained, np.float32)
    kept = np.float32(draw.beta(1, 1))
    return kept * pixels + (1 - kept) * mixed


def augmix(pixels: Pixels, draw: np.random.Generator) -> Pixels:
    """Mix each image with three chains of one to three operations."""
    return np.stack([_mixed(image, draw) for image in pixels])


def recombined(phase: Pixels, amplitude: Pixels) -> Pixels:
    """Return images with the phases of one batch and the amplitudes of another (N, H, W, 3)."""
    axes = (1, 2, 3)
    spectrum = np.abs(np.fft.fftn(amplitude, axes=axes)) * np.exp(
        1j * np.angle(np.fft.fftn(phase, axes=axes))
    )
    found = np.fft.ifftn(spectrum, axes=axes).real
    return np.clip(found, 0, 255).astype(np.float32)


def apr(pixels: Pixels, draw: np.random.Generator) -> Pixels:
    """Amplitude-phase recombination of half of the images with themselves, of 0.3 with others."""
    views = [
        np.stack([np.asarray(_changed(Image.fromarray(image), draw)) for image in pixels])
        for _ in range(2)
    ]
    own = recombined(*views)
    found = np.where(_of(pixels, draw, 0.5), own, views[0].astype(np.float32))
    return np.where(
        _of(pixels, draw, 0.3), recombined(found, found[draw.permutation(len(found))]), found
    )


def _of(pixels: Pixels, draw: np.random.Generator, share: float) -> Pixels:
    return (draw.random(len(pixels)) < share)[:, None, None, None]


class Autoencoder(nn.Module):
    """(N, 3, H, W) in 0..1 to the same through half the side and 24 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([
            nn.Conv2d(3, 24, 3, 1, 1), nn.Conv2d(24, 24, 3, 2, 1), nn.Conv2d(24, 24, 3, 1, 1),
            nn.Conv2d(24, 24, 3, 1, 1), nn.Conv2d(24, 12, 3, 1, 1),
        ])  # fmt: skip

    def forward(
        self, values: torch.Tensor, distort: Callable[[torch.Tensor], torch.Tensor] | None = None
    ) -> torch.Tensor:
        """Rebuild, with inner values distorted behind each layer."""
        for layer in self.layers[:-1]:
            values = nn.functional.leaky_relu(layer(values), 0.1)
            values = values if distort is None else distort(values)
        return nn.functional.pixel_shuffle(self.layers[-1](values), 2)

    @staticmethod
    def learned(pixels: Pixels, seed: int, epochs: int = 6) -> Autoencoder:
        """Learn to rebuild *pixels*."""
        torch.manual_seed(seed)
        net = Autoencoder()
        images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
        optimizer = torch.optim.Adam(net.parameters(), 2e-3)
        for _ in range(epochs):
            for batch in torch.randperm(len(images)).split(64):
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(net(images[batch]), images[batch])
                loss.backward()
                optimizer.step()
        print(f"autoencoder: {-10 * np.log10(loss.item()):.1f} dB", flush=True)
        return net.eval()


def distorted_weights(weights: torch.Tensor, draw: np.random.Generator) -> torch.Tensor:
    """Return the filters (out, in, h, w) of a layer, some of them changed in one of five ways."""
    kind = draw.integers(5)
    some = torch.from_numpy(draw.random(len(weights)) < 0.1)[:, None, None, None]
    changed = (
        torch.zeros_like(weights),
        -weights,
        weights.flip(3),
        weights.transpose(2, 3),
        weights[torch.from_numpy(draw.permutation(len(weights)))],
    )[kind]
    scale = torch.from_numpy(draw.normal(1, 0.15, (len(weights), 1, 1, 1))).float()
    return torch.where(some, changed, weights) * scale


def distorted_values(values: torch.Tensor, draw: np.random.Generator) -> torch.Tensor:
    """Return inner values (N, C, H, W), a few channels changed in one of four ways."""
    some = torch.from_numpy(draw.random(values.shape[1]) < 0.05)[:, None, None]
    kind = draw.integers(4)
    changed = (-values, values.abs(), torch.relu(values), values.flip(1))[kind]
    return torch.where(some, changed, values)


def deepaugment(net: Autoencoder) -> Augmentation:
    """Return DeepAugment with *net*."""

    def augment(pixels: Pixels, draw: np.random.Generator) -> Pixels:
        half = draw.random(len(pixels)) < 0.5
        found = pixels.astype(np.float32)
        images = torch.from_numpy(found[half]).permute(0, 3, 1, 2) / 255
        weights = {
            name: distorted_weights(value, draw)
            if value.ndim == 4 and draw.random() < 0.4
            else value
            for name, value in net.state_dict().items()
        }
        with torch.no_grad():
            rebuilt = torch.func.functional_call(
                net, weights, (images, lambda values: distorted_values(values, draw))
            )
        found[half] = 255 * rebuilt.clamp(0, 1).permute(0, 2, 3, 1).numpy()
        return found

    return augment


def jensen_shannon(logits: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return AugMix's consistency loss: the divergence of the answers from their mean."""
    answers = [torch.softmax(one, 1) for one in logits]
    mean = torch.stack(answers).mean(0).clamp(1e-7, 1).log()
    parts = [nn.functional.kl_div(mean, one, reduction="batchmean") for one in answers]
    return torch.stack(parts).mean()


def augmentation(recipe: str, pixels: Pixels, seed: int) -> Augmentation:
    """Return that of a recipe; *pixels* are the images to train on."""
    if recipe == "deepaugment":
        return deepaugment(Autoencoder.learned(pixels, seed))
    return {"augmix": augmix, "augmix-jsd": augmix, "apr": apr}[recipe]
