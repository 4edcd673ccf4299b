"""Train two small towers, of images and of texts, on CIFAR-10 JPEGs: docs/measured/prompts.md.

    python tools/train_cifar.py split cifar10_test_jpeg.tar FOLDER
    python tools/train_towers.py FOLDER OUT

The text tower is a transformer of two layers over a byte-pair vocabulary of its own, which is
learned from the captions: lower case, a blank before the text, ``<s>`` and ``</s>`` around it. Its
vector is the mean over the tokens of the caption. The image tower is the small ResNet of
``tools/cifar_networks.py``. In each step every class has a caption (one of its names in one of the
templates), and the loss is CLIP's: the cosines of images and captions, times a learned scale, in a
softmax over the captions, and over the images of the batch. ``model.yaml`` names both files.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
import train_cifar
import yaml
from cifar_networks import NETWORKS, SIDE
from PIL import Image
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn

BICUBIC = Image.Resampling.BICUBIC  # as the profile clip_fp32
SIZE, LENGTH, EPOCHS, BATCH = 64, 32, 20, 128
TEMPLATES = (
    "A photo of a {}.", "a photo of the {}.", "a blurry photo of a {}.", "a picture of one {}.",
    "this is a {}.", "a small {} in the middle.", "the {} outdoors.", "an image of my {}.",
)  # fmt: skip
NAMES = {
    "airplane": ("airplane", "plane", "aircraft"), "automobile": ("automobile", "car"),
    "bird": ("bird",), "cat": ("cat", "kitten"), "deer": ("deer",), "dog": ("dog", "puppy"),
    "frog": ("frog", "toad"), "horse": ("horse", "pony"), "ship": ("ship", "boat"),
    "truck": ("truck", "lorry"),
}  # fmt: skip
ENDS = ("<s>", "</s>", "<pad>")


def vocabulary(place: Path) -> Tokenizer:
    """Learn the pieces of the captions, and write them."""
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    names = [name for names in NAMES.values() for name in names]
    captions = [template.format(name) for template in TEMPLATES for name in names]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learner = trainers.BpeTrainer(
        vocab_size=400, special_tokens=list(ENDS), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(captions, learner)
    ids = [(end, made.token_to_id(end)) for end in ENDS[:2]]
    made.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=ids)
    made.save(str(place))
    return made


class Layer(nn.Module):
    """Attention of four heads, and a small network a token; both are added."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(SIZE), nn.LayerNorm(SIZE)
        self.three, self.out = nn.Linear(SIZE, 3 * SIZE), nn.Linear(SIZE, SIZE)
        self.wide, self.back = nn.Linear(SIZE, 2 * SIZE), nn.Linear(2 * SIZE, SIZE)

    def forward(self, hidden: torch.Tensor, hides: torch.Tensor) -> torch.Tensor:
        """Return (N, length, size); *hides* (N, 1, 1, length) is added to what is looked at."""
        split = self.three(self.first(hidden)).reshape(hidden.shape[0], -1, 3, 4, SIZE // 4)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        looks = (query @ key.transpose(2, 3) / (SIZE // 4) ** 0.5 + hides).softmax(-1)
        seen = (looks @ value).transpose(1, 2).reshape(hidden.shape[0], -1, SIZE)
        hidden = hidden + self.out(seen)
        return hidden + self.back(nn.functional.gelu(self.wide(self.second(hidden))))


class Text(nn.Module):
    """Token ids and their mask (N, length) int64 to vectors (N, size) of length 1."""

    def __init__(self, ids: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(ids, SIZE), nn.Embedding(LENGTH, SIZE)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.last = nn.Linear(SIZE, SIZE)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the mean over the tokens that are no padding."""
        real = attention_mask.to(torch.float32)
        hidden = self.words(input_ids) + self.places.weight[: input_ids.shape[1]]
        for layer in self.layers:
            hidden = layer(hidden, (1 - real)[:, None, None] * -1e4)
        pooled = (hidden * real[:, :, None]).sum(1) / real.sum(1, keepdim=True)
        return nn.functional.normalize(self.last(pooled), dim=-1)


class Picture(nn.Module):
    """Pixels (N, 3, 24, 24) float32 to vectors (N, size) of length 1."""

    def __init__(self) -> None:
        super().__init__()
        self.net = NETWORKS["resnet-small"].make()
        heads = [name for name, one in self.net.named_modules() if isinstance(one, nn.Linear)]
        *inner, last = heads[-1].split(".")
        owner = self.net.get_submodule(".".join(inner))
        owner.register_module(last, nn.Linear(owner.get_submodule(last).in_features, SIZE))

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Return the vectors."""
        return nn.functional.normalize(self.net(pixel_values), dim=-1)


def tokens(tokenizer: Tokenizer, captions: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and mask of captions, padded to the longest."""
    found = [one.ids for one in tokenizer.encode_batch(captions)]
    width, pad = max(map(len, found)), tokenizer.token_to_id("<pad>")
    ids = torch.tensor([one + [pad] * (width - len(one)) for one in found])
    return ids, torch.tensor([[int(at < len(one)) for at in range(width)] for one in found])


def train(folder: Path, out: Path, seed: int, epochs: int) -> None:
    """Learn, and write both towers and their card."""
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    random, draw = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    inputs, labels, names = train_cifar.read(folder / "train", BICUBIC)
    held_out, truth_out, _ = train_cifar.read(folder / "test", BICUBIC)
    tokenizer = vocabulary(out / "tokenizer.json")
    picture, text = (
        Picture().to(memory_format=torch.channels_last),
        Text(tokenizer.get_vocab_size()),
    )
    scale = nn.Parameter(torch.tensor(10.0).log())
    learned = [*picture.parameters(), *text.parameters(), scale]
    optimizer = torch.optim.AdamW(learned, 2e-3, weight_decay=0.05)
    steps = epochs * -(-len(inputs) // BATCH)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    for epoch in range(epochs):
        begun = time.process_time()
        picture.train()
        for batch in torch.randperm(len(inputs), generator=random).split(BATCH):
            captions = [
                str(draw.choice(TEMPLATES)).format(draw.choice(NAMES[name])) for name in names
            ]
            seen = picture(train_cifar.shifted(inputs[batch], random))
            logits = scale.exp().clamp(max=100) * seen @ text(*tokens(tokenizer, captions)).T
            truth = labels[batch]
            one_hot = nn.functional.one_hot(truth, len(names)).float()
            shares = one_hot / one_hot.sum(0).clamp(min=1)
            of_text = -(shares * logits.log_softmax(0)).sum(0).mean()
            loss = (nn.functional.cross_entropy(logits, truth) + of_text) / 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rates.step()
        picture.eval()
        with torch.no_grad():
            classes = text(*tokens(tokenizer, [TEMPLATES[0].format(name) for name in names]))
            right = ((picture(held_out) @ classes.T).argmax(1) == truth_out).float().mean()
        spent = time.process_time() - begun
        print(f"epoch {epoch + 1}: {100 * float(right):.1f} % in {spent:.0f} s", flush=True)
    write(picture, text, tokenizer, names, scale.exp().clamp(max=100).item(), out)


def write(
    picture: nn.Module, text: nn.Module, tokenizer: Tokenizer, names: list[str], scale: float,
    out: Path,
) -> None:  # fmt: skip
    """Write both towers as ONNX, the card and the names of the classes."""
    one = torch.zeros(2, 7, dtype=torch.int64)
    texts = {name: {0: "n", 1: "tokens"} for name in ("input_ids", "attention_mask")}
    for net, name, given, inputs in (
        (picture, "image", (torch.zeros(1, 3, SIDE, SIDE),), {"pixel_values": {0: "n"}}),
        (text, "text", (one, one + 1), texts),
    ):
        torch.onnx.export(
            net.eval(), given, out / f"{name}.onnx", dynamo=False, opset_version=17,
            input_names=list(inputs), output_names=[f"{name}_embeds"],
            dynamic_axes={**inputs, f"{name}_embeds": {0: "n"}},
        )  # fmt: skip
    (out / "classes.txt").write_text("".join(f"{name}\n" for name in names))
    given = {
        "tokenizer": {"tokenizers": "tokenizer.json"}, "vocabulary": tokenizer.get_vocab_size(),
        "max_length": LENGTH, "pad": tokenizer.token_to_id("<pad>"),
        "names": {"ids": "input_ids", "mask": "attention_mask"},
    }  # fmt: skip
    pixels = {"mean": [train_cifar.MEAN] * 3, "std": [train_cifar.STD] * 3, "top": 255}
    card = {
        "schema": 1, "name": "cifar_towers", "task": "classification", "model": "image.onnx",
        "second": {"model": "text.onnx"}, "labels": "classes.txt",
        "input": {"height": SIDE, "width": SIDE, "layout": "NCHW", "order": "rgb", **pixels},
        "geometry": {"kind": "squash"},
        "output": {"kind": "logits", "prompts": {
            "template": TEMPLATES[0], "image": "image_embeds", "input": given, "scale": scale,
            "text": {"vectors": "text_embeds", "pooling": "none"}}},
    }  # fmt: skip
    (out / "model.yaml").write_text(yaml.safe_dump(card, sort_keys=False))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    asked = parser.parse_args()
    train(asked.folder, asked.out, asked.seed, asked.epochs)
