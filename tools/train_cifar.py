"""Train a small residual network on CIFAR-10 JPEGs: the network of docs/measured/training.md.

    python tools/train_cifar.py split cifar10_test_jpeg.tar FOLDER
    python tools/train_cifar.py train FOLDER OUT --seed 0
    python tools/train_cifar.py train FOLDER OUT --seed 0 --recipe augmix
    python tools/train_cifar.py train FOLDER OUT --seed 0 --recipe adversarial --start BEFORE
    python tools/train_cifar.py attack FOLDER OUT

``split`` unpacks the 10,000 labelled JPEGs and takes seven of ten of each class to learn from
(``train/``); the others are ``test/``. ``train`` writes ``model.onnx`` (BatchNormalization is
kept), ``model.yaml`` and ``labels.txt``. Inputs are decoded by Pillow and squashed to 24 x 24 by
Pillow's bilinear, as the profile ``pillow_bilinear_fp32`` does it.

The recipes (docs/measured/training.md compares them) differ in what a batch goes through after it
is mirrored and shifted, and in nothing else:

- ``baseline``: nothing.
- ``augmix``, ``augmix-jsd``, ``apr``, ``deepaugment``: tools/augmentations.py.
- ``adversarial``: the images that three steps of projected gradient descent find within 4/255 in
  L-infinity (Madry et al., ICLR 2018); steps of 2/255 from a random start, with gradients in
  bfloat16, which halves the time.

``attack`` tells how many of the test images the network still knows under that attack.
"""

from __future__ import annotations

import argparse
import shutil
import tarfile
import time
from pathlib import Path

import numpy as np
import torch
from augmentations import JSD, Augmentation, augmentation, jensen_shannon
from augmentations import RECIPES as AUGMENTED
from PIL import Image
from torch import nn

SIDE, BATCH, WIDTHS, BLOCKS = 24, 128, (16, 32, 64), 2
MEAN, STD = 127, 64  # of the pixels, as in CARD
EPSILON, STEP, STEPS = 4 / 255, 2 / 255, 3  # of the attack; the full scale is 1
RECIPES = ("baseline", *AUGMENTED, "adversarial")
CARD = """\
schema: 1
name: {name}
summary: a residual network of 14 layers on CIFAR-10; tools/train_cifar.py
task: classification
model: model.onnx
input:
  {{height: 24, width: 24, layout: NCHW, order: rgb, top: 255,
   mean: [127, 127, 127], std: [64, 64, 64]}}
geometry: {{kind: squash}}
output: {{kind: logits}}
labels: labels.txt
checkpoint: {checkpoint}
"""


class Block(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(given, width, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm_one, self.norm_two = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.way: nn.Module = nn.Identity()
        if stride > 1:
            short = nn.Conv2d(given, width, 1, stride, bias=False)
            self.way = nn.Sequential(short, nn.BatchNorm2d(width))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return (N, width, H / stride, W / stride)."""
        inner = torch.relu(self.norm_one(self.one(values)))
        return torch.relu(self.norm_two(self.two(inner)) + self.way(values))


class Net(nn.Module):
    """(N, 3, 24, 24), normalized, to (N, 10) logits."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16))
        layers: list[nn.Module] = []
        given = 16
        for stage, width in enumerate(WIDTHS):
            for number in range(BLOCKS):
                layers.append(Block(given, width, 2 if stage and not number else 1))
                given = width
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(given, 10)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        found = self.layers(torch.relu(self.stem(values)))
        return self.head(found.mean((2, 3)))


def split(archive: Path, folder: Path) -> None:
    """Unpack the archive, and divide each class."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "all", filter="data")
    for number, path in enumerate(sorted((folder / "all").rglob("*.jpg"))):
        part = "train" if number % 10 < 7 else "test"
        target = folder / part / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)
    shutil.rmtree(folder / "all")


def read(folder: Path) -> tuple[torch.Tensor, torch.Tensor, list[str]]:
    """Return (N, 3, 24, 24) float32 inputs, (N,) labels, and the names of the classes."""
    names = sorted(path.name for path in folder.iterdir())
    arrays, labels = [], []
    for label, name in enumerate(names):
        for path in sorted((folder / name).glob("*.jpg")):
            small = Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
            arrays.append(np.asarray(small))
            labels.append(label)
    pixels = np.stack(arrays).transpose(0, 3, 1, 2).astype(np.float32)
    return torch.from_numpy((pixels - MEAN) / STD), torch.tensor(labels), names


def shifted(values: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Mirror half of the batch, and move each image by up to two pixels."""
    mirrored = torch.rand(len(values), generator=random) < 0.5
    values = torch.where(mirrored[:, None, None, None], values.flip(3), values)
    padded = nn.functional.pad(values, (2, 2, 2, 2), mode="reflect")
    found = torch.empty_like(values)
    for number, (top, left) in enumerate(torch.randint(0, 5, (len(values), 2), generator=random)):
        found[number] = padded[number, :, top : top + SIDE, left : left + SIDE]
    return found


def augmented(
    values: torch.Tensor, augment: Augmentation, draw: np.random.Generator
) -> torch.Tensor:
    """Return inputs of which the pixels went through an augmentation."""
    pixels = (values * STD + MEAN).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    inputs = (augment(pixels, draw).astype(np.float32) - MEAN) / STD
    return torch.from_numpy(inputs).permute(0, 3, 1, 2)


def consistent(
    net: Net, values: torch.Tensor, views: list[torch.Tensor], truth: torch.Tensor
) -> torch.Tensor:
    """Return AugMix's loss: of the images as they are, and of how two views differ from them."""
    logits = net(torch.cat([values, *views])).split(len(values))
    return nn.functional.cross_entropy(logits[0], truth) + JSD * jensen_shannon(logits)


def attacked(
    net: Net, values: torch.Tensor, truth: torch.Tensor, random: torch.Generator
) -> torch.Tensor:
    """Return the images that projected gradient descent finds; *net* is in evaluation after it."""
    scale = 255 / STD
    low, high = -MEAN / STD, (255 - MEAN) / STD
    net.eval()
    values = values.contiguous(memory_format=torch.channels_last)
    start = (2 * torch.rand(values.shape, generator=random) - 1) * EPSILON * scale
    found = (values + start).clamp(low, high)
    for _ in range(STEPS):
        found.requires_grad_(True)
        with torch.autocast("cpu", torch.bfloat16):
            loss = nn.functional.cross_entropy(net(found), truth)
        (slope,) = torch.autograd.grad(loss, found)
        moved = found.detach() + STEP * scale * slope.sign()
        inside = torch.clamp(moved, values - EPSILON * scale, values + EPSILON * scale)
        found = inside.clamp(low, high)
    return found


def accuracy(net: Net, inputs: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of right answers."""
    net.eval()
    with torch.no_grad():
        right = [
            (net(values).argmax(1) == truth).sum()
            for values, truth in zip(inputs.split(500), labels.split(500), strict=True)
        ]
    return float(torch.stack(right).sum() / len(labels))


def train(
    folder: Path,
    out: Path,
    epochs: int,
    seed: int,
    recipe: str,
    rate: float,
    start: Path | None,
) -> None:
    """Learn, and write the network and its card."""
    torch.manual_seed(seed)
    random, draw = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    inputs, labels, names = read(folder / "train")
    held_out = read(folder / "test")[:2]
    if recipe in AUGMENTED:
        pixels = (inputs * STD + MEAN).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
        augment = augmentation(recipe, pixels, seed)
        torch.manual_seed(seed)
    net = Net()
    if start is not None:
        net.load_state_dict(torch.load(start / "weights.pt", weights_only=True))
    optimizer = torch.optim.SGD(net.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)
    steps = epochs * -(-len(inputs) // BATCH)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    for epoch in range(epochs):
        begun = time.time()
        net.train()
        for batch in torch.randperm(len(inputs), generator=random).split(BATCH):
            values, truth = shifted(inputs[batch], random), labels[batch]
            optimizer.zero_grad()
            if recipe == "augmix-jsd":
                views = [augmented(values, augment, draw) for _ in range(2)]
                loss = consistent(net, values, views, truth)
            else:
                if recipe == "adversarial":
                    values = attacked(net, values, truth, random)
                    net.train()
                elif recipe != "baseline":
                    values = augmented(values, augment, draw)
                loss = nn.functional.cross_entropy(net(values), truth)
            loss.backward()
            optimizer.step()
            rates.step()
        found = accuracy(net, *held_out)
        print(f"epoch {epoch + 1}: {100 * found:.1f} % in {time.time() - begun:.0f} s", flush=True)
    write(net, names, out, f"{{recipe: {recipe}, seed: {seed}}}")


def attack(folder: Path, out: Path, seed: int) -> None:
    """Tell how many test images a network knows, and how many it still knows under attack."""
    net, random = Net(), torch.Generator().manual_seed(seed)
    net.load_state_dict(torch.load(out / "weights.pt", weights_only=True))
    inputs, labels, _ = read(folder / "test")
    pairs = zip(inputs.split(500), labels.split(500), strict=True)
    found = torch.cat([attacked(net, values, truth, random) for values, truth in pairs])
    clean, kept = accuracy(net, inputs, labels), accuracy(net, found, labels)
    print(f"{out.name}: {100 * clean:.1f} %, under attack {100 * kept:.1f} %")


def write(net: Net, names: list[str], out: Path, checkpoint: str) -> None:
    """Write the ONNX file, with BatchNormalization as it is, the card and the classes."""
    out.mkdir(parents=True, exist_ok=True)
    net.eval()
    torch.onnx.export(
        net, (torch.zeros(1, 3, SIDE, SIDE),), out / "model.onnx", dynamo=False, opset_version=17,
        input_names=["input"], output_names=["logits"], do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        dynamic_axes={"input": {0: "batch"}, "logits": {0: "batch"}},
    )  # fmt: skip
    (out / "model.yaml").write_text(CARD.format(name=out.name, checkpoint=checkpoint))
    (out / "labels.txt").write_text("".join(f"{name}\n" for name in names))
    torch.save(net.state_dict(), out / "weights.pt")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    one = commands.add_parser("split")
    one.add_argument("archive", type=Path)
    one.add_argument("folder", type=Path)
    two = commands.add_parser("train")
    two.add_argument("folder", type=Path)
    two.add_argument("out", type=Path)
    two.add_argument("--epochs", type=int, default=30)
    two.add_argument("--seed", type=int, default=0)
    two.add_argument("--recipe", choices=RECIPES, default=RECIPES[0])
    two.add_argument("--rate", type=float, default=0.2, help="the highest learning rate")
    two.add_argument("--start", type=Path, help="go on from a network that was trained before")
    three = commands.add_parser("attack")
    three.add_argument("folder", type=Path)
    three.add_argument("out", type=Path)
    three.add_argument("--seed", type=int, default=0)
    given = vars(parser.parse_args())
    {"split": split, "train": train, "attack": attack}[given.pop("command")](**given)


if __name__ == "__main__":
    main()
