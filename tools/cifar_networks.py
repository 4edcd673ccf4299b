"""Small networks of the paper's families for 24 x 24 pixels: what tools/train_cifar.py trains.

``NETWORKS`` names them. Each keeps what makes its family: a residual network with a max-pool
behind its stem; RegNetX's grouped bottlenecks; MobileNetV2's inverted residuals; MCUNet's, whose
kernels and expansions differ from block to block; a transformer over patches; and one that looks
through shifted windows and merges patches, as Swin does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

SIDE, CLASSES = 24, 10
Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class Recipe:
    """A network and how it learns: optimizer, highest learning rate, and in bfloat16 or not."""

    make: Callable[[], nn.Module]
    optimizer: str = "sgd"
    rate: float = 0.2
    epochs: int = 20
    bfloat16: bool = False


def _conv(
    given: int, width: int, kernel: int = 3, stride: int = 1, groups: int = 1
) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    layer = nn.Conv2d(given, width, kernel, stride, kernel // 2, groups=groups, bias=False)
    return layer, nn.BatchNorm2d(width)


class Residual(nn.Module):
    """relu(inner + shortcut); the shortcut is a convolution where the shape changes."""

    def __init__(self, inner: nn.Module, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.inner = inner
        same = given == width and stride == 1
        self.way = nn.Identity() if same else nn.Sequential(*_conv(given, width, 1, stride))

    def forward(self, values: Tensor) -> Tensor:
        """Return (N, width, H / stride, W / stride)."""
        return torch.relu(self.inner(values) + self.way(values))


class Inverted(nn.Module):
    """MobileNetV2's block: widen by *expansion*, one filter a channel, narrow; added if it fits."""

    def __init__(self, given: int, width: int, stride: int, kernel: int, expansion: int) -> None:
        super().__init__()
        wide = given * expansion
        self.inner = nn.Sequential(
            *_conv(given, wide, 1), nn.ReLU6(), *_conv(wide, wide, kernel, stride, wide),
            nn.ReLU6(), *_conv(wide, width, 1),
        )  # fmt: skip
        self.added = given == width and stride == 1

    def forward(self, values: Tensor) -> Tensor:
        """Return (N, width, H / stride, W / stride)."""
        found = self.inner(values)
        return values + found if self.added else found


def _head(width: int) -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES))


def plain(widths: Sequence[int], blocks: int) -> nn.Module:
    """Return a network of 14 layers or so with no pool: the first of docs/measured/training.md."""
    return nn.Sequential(*_conv(3, widths[0]), nn.ReLU(), *_stages(widths, blocks, basic))


def resnet(widths: Sequence[int], blocks: int) -> nn.Module:
    """Return ResNet's stem, whose pool may round up or down, and basic blocks."""
    stem = (*_conv(3, widths[0]), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    return nn.Sequential(*stem, *_stages(widths, blocks, basic))


def regnet(widths: Sequence[int], blocks: int, group: int = 8) -> nn.Module:
    """Return RegNetX: bottlenecks that do not narrow, with groups of 8 channels."""

    def block(given: int, width: int, stride: int) -> nn.Module:
        inner = nn.Sequential(
            *_conv(given, width, 1), nn.ReLU(), *_conv(width, width, 3, stride, width // group),
            nn.ReLU(), *_conv(width, width, 1),
        )  # fmt: skip
        return Residual(inner, given, width, stride)

    stem = (*_conv(3, widths[0], stride=2), nn.ReLU())
    return nn.Sequential(*stem, *_stages(widths, blocks, block))


def basic(given: int, width: int, stride: int) -> nn.Module:
    """Return ResNet's block of two 3 x 3 convolutions."""
    inner = nn.Sequential(*_conv(given, width, 3, stride), nn.ReLU(), *_conv(width, width))
    return Residual(inner, given, width, stride)


def _stages(
    widths: Sequence[int], blocks: int, block: Callable[[int, int, int], nn.Module]
) -> list[nn.Module]:
    layers: list[nn.Module] = []
    given = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks):
            layers.append(block(given, width, 2 if stage and not number else 1))
            given = width
    return [*layers, _head(given)]


def inverted(stem: int, blocks: Sequence[tuple[int, int, int, int]], last: int) -> nn.Module:
    """Return inverted residuals: of each block the width, stride, kernel and expansion."""
    layers: list[nn.Module] = [*_conv(3, stem, stride=2), nn.ReLU6()]
    given = stem
    for width, stride, kernel, expansion in blocks:
        layers.append(Inverted(given, width, stride, kernel, expansion))
        given = width
    return nn.Sequential(*layers, *_conv(given, last, 1), nn.ReLU6(), _head(last))


def mobilenet(width: int) -> nn.Module:
    """Return MobileNetV2 of one kernel and one expansion."""
    steps = ((1, 1), (2, 2), (2, 1), (4, 2), (4, 1), (4, 1))
    return inverted(width, [(width * by, stride, 3, 4) for by, stride in steps], 12 * width)


def mcunet(width: int) -> nn.Module:
    """Return inverted residuals as MCUNet's search finds them: kernels of 3 to 7, 3 to 6 times."""
    blocks = [
        (width, 1, 3, 1), (2 * width, 2, 7, 3), (2 * width, 1, 5, 4), (3 * width, 1, 5, 3),
        (5 * width, 2, 7, 6), (5 * width, 1, 3, 4),
    ]  # fmt: skip
    return inverted(width, blocks, 10 * width)


class Attention(nn.Module):
    """Softmax attention; with a learned number for each pair of places; *mask* hides some pairs."""

    def __init__(
        self, width: int, heads: int, places: int, biased: bool = False, mask: Tensor | None = None
    ) -> None:
        super().__init__()
        self.split = (-1, places, 3, heads, width // heads)
        self.given, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.bias = nn.Parameter(torch.zeros(heads, places, places)) if biased else None
        self.register_buffer("mask", mask)

    def forward(self, values: Tensor) -> Tensor:
        """Return (N, places, width)."""
        _, places, _, heads, part = self.split
        split = self.given(values).reshape(self.split)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(2, 3) * part**-0.5
        if self.bias is not None:
            scores = scores + self.bias
        if self.mask is not None:
            by_window = scores.reshape(-1, len(self.mask), heads, places, places)
            scores = (by_window + self.mask[:, None]).reshape(-1, heads, places, places)
        found = (scores.softmax(3) @ value).transpose(1, 2)
        return self.out(found.reshape(-1, places, heads * part))


class Encoder(nn.Module):
    """Attention and two linear layers, each behind a LayerNorm and added to what it was given."""

    def __init__(self, width: int, attention: nn.Module) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = attention
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, values: Tensor) -> Tensor:
        """Return the same shape."""
        values = values + self.attention(self.first(values))
        return values + self.layers(self.second(values))


class VisionTransformer(nn.Module):
    """Patches of 4 x 4, learned places, a class token."""

    def __init__(self, width: int, depth: int, heads: int, patch: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        places = (SIDE // patch) ** 2 + 1
        self.places = nn.Parameter(0.02 * torch.randn(1, places, width))
        blocks = [Encoder(width, Attention(width, heads, places)) for _ in range(depth)]
        self.blocks = nn.Sequential(*blocks, nn.LayerNorm(width))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, values: Tensor) -> Tensor:
        """Return logits."""
        found = self.patches(values).flatten(2).transpose(1, 2)
        tokens = self.token + torch.zeros_like(found[:, :1])
        return self.head(self.blocks(torch.cat((tokens, found), 1) + self.places)[:, 0])


class Windows(nn.Module):
    """Attention inside windows of *side* places, moved by *shift* places around the border."""

    def __init__(self, width: int, heads: int, grid: int, side: int, shift: int) -> None:
        super().__init__()
        self.width, self.grid, self.side, self.shift = width, grid, side, shift
        mask = None
        if shift:
            cuts = torch.arange(grid)
            part = (cuts >= grid - side).int() + (cuts >= grid - shift).int()
            parts = self._cut((3 * part[:, None] + part).reshape(1, -1, 1).float(), 1)[:, :, 0]
            mask = torch.where(parts[:, None] == parts[:, :, None], 0.0, -100.0)
        self.attention = Attention(width, heads, side * side, True, mask)

    def forward(self, values: Tensor) -> Tensor:
        """Return (N, grid * grid, width)."""
        tiles, side, width = self.grid // self.side, self.side, self.width
        found = self.attention(self._cut(self._moved(values, -self.shift), width))
        whole = found.reshape(-1, tiles, tiles, side, side, width).permute(0, 1, 3, 2, 4, 5)
        return self._moved(whole.reshape(-1, self.grid**2, width), self.shift)

    def _moved(self, values: Tensor, by: int) -> Tensor:
        if not by:
            return values
        square = values.reshape(-1, self.grid, self.grid, self.width)
        return square.roll((by, by), (1, 2)).reshape(-1, self.grid**2, self.width)

    def _cut(self, values: Tensor, width: int) -> Tensor:
        tiles, side = self.grid // self.side, self.side
        square = values.reshape(-1, tiles, side, tiles, side, width)
        return square.permute(0, 1, 3, 2, 4, 5).reshape(-1, side * side, width)


class Merge(nn.Module):
    """Four neighbors become one place of twice the width."""

    def __init__(self, width: int, grid: int) -> None:
        super().__init__()
        self.width, self.half = width, grid // 2
        self.norm, self.layer = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        """Return (N, places / 4, 2 * width)."""
        half, width = self.half, self.width
        square = values.reshape(-1, half, 2, half, 2, width).permute(0, 1, 3, 4, 2, 5)
        return self.layer(self.norm(square.reshape(-1, half * half, 4 * width)))


class Swin(nn.Module):
    """Patches of 2 x 2; blocks in windows, in turn unmoved and moved; merged; blocks again."""

    def __init__(self, width: int, depths: Sequence[int], head: int = 16, side: int = 3) -> None:
        super().__init__()
        grid = SIDE // 2
        self.patches, self.norm = nn.Conv2d(3, width, 2, 2), nn.LayerNorm(width)
        layers: list[nn.Module] = []
        for stage, depth in enumerate(depths):
            if stage:
                layers.append(Merge(width, grid))
                width, grid = 2 * width, grid // 2
            for number in range(depth):
                shift = side // 2 if number % 2 else 0
                windows = Windows(width, width // head, grid, side, shift)
                layers.append(Encoder(width, windows))
        self.blocks = nn.Sequential(*layers, nn.LayerNorm(width))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, values: Tensor) -> Tensor:
        """Return logits."""
        found = self.norm(self.patches(values).flatten(2).transpose(1, 2))
        return self.head(self.blocks(found).mean(1))


def _learned(make: Callable[[], nn.Module], epochs: int) -> Recipe:
    return Recipe(make, "adamw", 2e-3, epochs, True)


NETWORKS = {
    "plain": Recipe(lambda: plain((16, 32, 64), 2), epochs=30),
    "resnet-small": Recipe(lambda: resnet((16, 32, 64), 1)),
    "resnet-large": Recipe(lambda: resnet((32, 64, 128), 2)),
    "regnet-small": Recipe(lambda: regnet((16, 32, 64), 1)),
    "regnet-large": Recipe(lambda: regnet((32, 64, 128), 2)),
    "mobilenet-small": Recipe(lambda: mobilenet(8)),
    "mobilenet-large": Recipe(lambda: mobilenet(24)),
    "mcunet-small": Recipe(lambda: mcunet(8)),
    "mcunet-large": Recipe(lambda: mcunet(16)),
    "vit-small": _learned(lambda: VisionTransformer(48, 3, 3), 30),
    "vit-large": _learned(lambda: VisionTransformer(96, 4, 6), 20),
    "swin-small": _learned(lambda: Swin(16, (2, 2)), 30),
    "swin-large": _learned(lambda: Swin(32, (2, 2)), 25),
}
"""``plain`` is that of docs/measured/training.md; the others are docs/measured/sysnoise.md's."""
