"""Train small networks on CIFAR-10 JPEGs: those of docs/measured/training.md and sysnoise.md.

    python tools/train_cifar.py split cifar10_test_jpeg.tar FOLDER
    python tools/train_cifar.py train FOLDER OUT --seed 0
    python tools/train_cifar.py train FOLDER OUT --seed 0 --recipe augmix
    python tools/train_cifar.py train FOLDER OUT --seed 0 --recipe adversarial --start BEFORE
    python tools/train_cifar.py families FOLDER OUT --seeds 3
    python tools/train_cifar.py attack FOLDER OUT

``split`` unpacks the 10,000 labelled JPEGs and takes seven of ten of each class to learn from
(``train/``); the others are ``test/``. ``train`` writes ``model.onnx`` (BatchNormalization is
kept), ``model.yaml`` and ``labels.txt``. Inputs are decoded by Pillow and squashed to 24 x 24 by
Pillow's bilinear, as the profile ``pillow_bilinear_fp32`` does it. ``--network`` takes a name of
``tools/cifar_networks.py``; ``families`` trains all of its families, each into OUT/NAME-SEED, and
leaves out those that are there.

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
from typing import Any

import numpy as np
import torch
from augmentations import JSD, Augmentation, augmentation, jensen_shannon
from augmentations import RECIPES as AUGMENTED
from cifar_networks import NETWORKS, SIDE, Recipe
from PIL import Image
from torch import nn

BATCH = 128
MEAN, STD = 127, 64  # of the pixels, as in CARD
EPSILON, STEP, STEPS = 4 / 255, 2 / 255, 3  # of the attack; the full scale is 1
RECIPES = ("baseline", *AUGMENTED, "adversarial")
CARD = """\
schema: 1
name: {name}
summary: {network} on CIFAR-10; tools/train_cifar.py
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


def split(archive: Path, folder: Path) -> None:
    """Unpack the archive, and divide each class."""
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        tar.extractall(folder / "all")
    for number, path in enumerate(sorted((folder / "all").rglob("*.jpg"))):
        part = "train" if number % 10 < 7 else "test"
        target = folder / part / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)
    shutil.rmtree(folder / "all")


def read(
    folder: Path, kernel: Image.Resampling = Image.Resampling.BILINEAR
) -> tuple[torch.Tensor, torch.Tensor, list[str]]:
    """Return (N, 3, 24, 24) float32 inputs, (N,) labels, and the names of the classes."""
    names = sorted(path.name for path in folder.iterdir())
    arrays, labels = [], []
    for label, name in enumerate(names):
        for path in sorted((folder / name).glob("*.jpg")):
            arrays.append(np.asarray(Image.open(path).convert("RGB").resize((SIDE, SIDE), kernel)))
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
    net: nn.Module, values: torch.Tensor, views: list[torch.Tensor], truth: torch.Tensor
) -> torch.Tensor:
    """Return AugMix's loss: of the images as they are, and of how two views differ from them."""
    logits = net(torch.cat([values, *views])).split(len(values))
    return nn.functional.cross_entropy(logits[0], truth) + JSD * jensen_shannon(logits)


def attacked(
    net: nn.Module, values: torch.Tensor, truth: torch.Tensor, random: torch.Generator
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


def accuracy(net: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> float:
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
    network: str = "plain",
    seed: int = 0,
    epochs: int | None = None,
    recipe: str = RECIPES[0],
    rate: float | None = None,
    start: Path | None = None,
) -> None:
    """Learn, and write the network and its card."""
    torch.manual_seed(seed)
    random, draw = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    inputs, labels, names = read(folder / "train")
    held_out = read(folder / "test")[:2]
    augment = None
    if recipe in AUGMENTED:
        pixels = (inputs * STD + MEAN).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
        augment = augmentation(recipe, pixels, seed)
        torch.manual_seed(seed)
    made = NETWORKS[network]
    net = made.make().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if start is not None:
        net.load_state_dict(torch.load(start / "weights.pt", weights_only=True))
    optimizer, epochs = _optimizer(made, net), epochs or made.epochs
    steps = epochs * -(-len(inputs) // BATCH)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate or made.rate, total_steps=steps)
    for epoch in range(epochs):
        begun = time.process_time()
        net.train()
        for batch in torch.randperm(len(inputs), generator=random).split(BATCH):
            values, truth = shifted(inputs[batch], random), labels[batch]
            optimizer.zero_grad()
            if recipe == "adversarial":
                values = attacked(net, values, truth, random)
                net.train()
            with torch.autocast("cpu", torch.bfloat16, enabled=made.bfloat16):
                if recipe == "augmix-jsd":
                    views = [augmented(values, augment, draw) for _ in range(2)]
                    loss = consistent(net, values, views, truth)
                else:
                    given = augmented(values, augment, draw) if augment else values
                    loss = nn.functional.cross_entropy(net(given), truth)
            loss.backward()
            optimizer.step()
            rates.step()
        found = accuracy(net, *held_out)
        spent = time.process_time() - begun
        print(f"{out.name}, epoch {epoch + 1}: {100 * found:.1f} % in {spent:.0f} s", flush=True)
    own = [word for word in (network, recipe) if word not in ("plain", RECIPES[0])]
    write(net, names, out, network, f"{{recipe: {' '.join(own) or RECIPES[0]}, seed: {seed}}}")


def _optimizer(made: Recipe, net: nn.Module) -> Any:
    if made.optimizer == "adamw":
        return torch.optim.AdamW(net.parameters(), made.rate, weight_decay=0.05)
    return torch.optim.SGD(net.parameters(), made.rate, 0.9, weight_decay=5e-4, nesterov=True)


def families(folder: Path, out: Path, seeds: int, only: list[str]) -> None:
    """Train what is not there yet."""
    for seed in range(seeds):
        for network in only:
            target = out / f"{network}-{seed}"
            if not (target / "model.yaml").exists():
                train(folder, target, network, seed)


def attack(folder: Path, out: Path, network: str, seed: int) -> None:
    """Tell how many test images a network knows, and how many it still knows under attack."""
    net, random = NETWORKS[network].make(), torch.Generator().manual_seed(seed)
    net.load_state_dict(torch.load(out / "weights.pt", weights_only=True))
    inputs, labels, _ = read(folder / "test")
    pairs = zip(inputs.split(500), labels.split(500), strict=True)
    found = torch.cat([attacked(net, values, truth, random) for values, truth in pairs])
    clean, kept = accuracy(net, inputs, labels), accuracy(net, found, labels)
    print(f"{out.name}: {100 * clean:.1f} %, under attack {100 * kept:.1f} %")


def write(net: nn.Module, names: list[str], out: Path, network: str, checkpoint: str) -> None:
    """Write the ONNX file, with BatchNormalization as it is, the card and the classes."""
    out.mkdir(parents=True, exist_ok=True)
    net.eval()
    torch.onnx.export(
        net, (torch.zeros(1, 3, SIDE, SIDE),), out / "model.onnx", dynamo=False, opset_version=17,
        input_names=["input"], output_names=["logits"], do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        dynamic_axes={"input": {0: "batch"}, "logits": {0: "batch"}},
    )  # fmt: skip
    torch.save(net.state_dict(), out / "weights.pt")
    (out / "labels.txt").write_text("".join(f"{name}\n" for name in names))
    card = CARD.format(name=out.name, network=network, checkpoint=checkpoint)
    (out / "model.yaml").write_text(card)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    made = {name: commands.add_parser(name) for name in ("split", "train", "families", "attack")}
    made["split"].add_argument("archive", type=Path)
    for command in made.values():
        command.add_argument("folder", type=Path)
    for name in ("train", "families", "attack"):
        made[name].add_argument("out", type=Path)
    for name in ("train", "attack"):
        made[name].add_argument("--network", choices=NETWORKS, default="plain")
        made[name].add_argument("--seed", type=int, default=0)
    one = made["train"]
    one.add_argument("--epochs", type=int, help="those of the network, where not given")
    one.add_argument("--recipe", choices=RECIPES, default=RECIPES[0])
    one.add_argument("--rate", type=float, help="the highest learning rate; else the network's")
    one.add_argument("--start", type=Path, help="go on from a network that was trained before")
    made["families"].add_argument("--seeds", type=int, default=3)
    rest = [name for name in NETWORKS if name != "plain"]
    made["families"].add_argument("--only", nargs="*", choices=rest, default=rest)
    given = vars(parser.parse_args())
    own = {"split": split, "train": train, "families": families, "attack": attack}
    own[given.pop("command")](**given)


if __name__ == "__main__":
    main()
