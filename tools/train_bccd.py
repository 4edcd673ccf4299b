"""Train a small Faster R-CNN of blood cells: the two-stage detector of docs/measured/detection.md.

    python tools/train_bccd.py ../shared/data/bccd RETINANET.onnx OUT

Backbone and FPN are those of a RetinaNet of BCCD (bccd_retinanet_320x416.onnx) and stay as they
are; what learns are the RPN and the box head, on the images of train.txt and their mirror images,
decoded by Pillow and squashed by Pillow's bilinear. Nothing is chosen by the other lists; the last
weights are written. OUT gets two networks and their cards, at 320 x 416 and at 316 x 412 (where
pools of ceil mode fit the FPN): ``first_HxW.onnx`` gives feature maps and the numbers of proposals,
``second.onnx`` takes maps and proposals.

Losses and numbers are those of Ren et al. (NeurIPS 2015) and of Lin et al. (FPN, CVPR 2017), as
torchvision has them: 256 anchors an image of which half may be objects (IoU 0.7, background below
0.3), 128 boxes of which a quarter may be (IoU 0.5), weights (10, 10, 5, 5) of a box's deltas. NMS
of proposals is of all levels together.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

from simulator.tasks.detection.boxes import iou
from simulator.tasks.detection.nms import suppress
from simulator.tasks.detection.settings import Suppression

LABELS = ("RBC", "WBC", "Platelets")
HIGH, WIDE, BATCH = 320, 416, 4
STRIDES, SIDES, RATIOS = (8, 16, 32), (26, 66, 120), (0.75, 1.0, 4 / 3)
MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
CLAMP, WEIGHTS = float(np.log(1000 / 16)), torch.tensor([10.0, 10.0, 5.0, 5.0])
LEVELS = (0.0, 40.0, 88.0, 1e9)  # a box of sqrt(area) between two of them is read from one map
POOL, CHANNELS, HIDDEN = 7, 64, 256
Sample = tuple[Any, torch.Tensor, torch.Tensor]
NMS = Suppression("greedy", 0.7, False, 0, 0.0, 0.0, 1000, 300)
CARD = """\
schema: 1
name: bccd_faster_rcnn_{high}x{wide}
summary: Faster R-CNN of blood cells on a RetinaNet's backbone; tools/train_bccd.py
task: detection
model: first_{high}x{wide}.onnx
second: {{model: second.onnx}}
input:
  {{height: {high}, width: {wide}, layout: NCHW, order: rgb, top: 1,
   mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}}
geometry: {{kind: squash}}
output:
  proposals:
    input: proposals
    features: [p3, p4, p5]
    head:
      kind: anchors
      outputs:
        - {{names: [rpn_logits], columns: [scores]}}
        - {{names: [rpn_deltas], columns: [boxes]}}
      layout: rows
      score: {{activation: sigmoid, background: none, classes: all}}
      strides: {strides}
      cells: ceil
      center: 0.5
      anchors: {{kind: ratios, sizes: {sizes}, ratios: {ratios}, outer: ratios, rounding: none}}
      deltas: {{weights: [1, 1, 1, 1]}}
    exp_clamp: {clamp}
    clip: network
    nms: {{kind: greedy, iou_threshold: 0.7, class_aware: false, offset: 0, score_threshold: 0,
          top_k_before: 1000, top_k_after: 100}}
  head:
    kind: regions
    outputs:
      - {{names: [cls_logits], columns: [scores]}}
      - {{names: [box_deltas], columns: [boxes]}}
    score: {{activation: softmax, background: first, classes: all}}
    deltas: {{weights: [10, 10, 5, 5]}}
    class_boxes: labels
  exp_clamp: {clamp}
  clip: network
  nms: {{kind: greedy, iou_threshold: 0.5, class_aware: true, offset: 0, score_threshold: 0.05,
        top_k_before: all, top_k_after: 100}}
  operating_threshold: 0.5
labels: labels.txt
"""


class Block(nn.Module):
    """Two convolutions and a shortcut; normalization is in their weights."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(given, width, 3, stride, 1), nn.Conv2d(width, width, 3, 1, 1)
        self.skip = nn.Conv2d(given, width, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return (N, width, H / stride, W / stride)."""
        return torch.relu(self.b(torch.relu(self.a(values))) + self.skip(values))


class First(nn.Module):
    """(N, 3, H, W) to three maps, the (N, A) logits and the (N, A, 4) deltas of all anchors."""

    def __init__(self) -> None:
        super().__init__()
        widths = (24, 24, 48, 96, 160)
        self.stem, self.pool = nn.Conv2d(3, 24, 7, 2, 3), nn.MaxPool2d(3, 2, 1)
        self.stages = nn.ModuleList(
            nn.Sequential(Block(given, width, 2 if at else 1), Block(width, width, 1))
            for at, (given, width) in enumerate(pairwise(widths))
        )
        self.lateral = nn.ModuleList(nn.Conv2d(width, CHANNELS, 1) for width in widths[2:])
        self.smooth = nn.ModuleList(nn.Conv2d(CHANNELS, CHANNELS, 3, 1, 1) for _ in STRIDES)
        self.rpn = nn.Conv2d(CHANNELS, CHANNELS, 3, 1, 1)
        self.score = nn.Conv2d(CHANNELS, len(RATIOS), 1)
        self.delta = nn.Conv2d(CHANNELS, 4 * len(RATIOS), 1)
        for layer in (self.rpn, self.score, self.delta):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def start(self, path: Path) -> None:
        """Take the weights of a RetinaNet's backbone and FPN; its convolutions are in our order."""
        graph = onnx.load(path).graph
        known = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
        given = [node.input[1:] for node in graph.node if node.op_type == "Conv"]
        blocks = [block for stage in self.stages for block in stage]
        parts = [self.stem]
        for block in blocks:
            parts += [
                block.a,
                block.b,
                *([] if isinstance(block.skip, nn.Identity) else [block.skip]),
            ]
        for layer, names in zip([*parts, *self.lateral, *self.smooth], given, strict=False):
            layer.weight.data, layer.bias.data = (torch.tensor(known[name]) for name in names)

    def maps(self, values: torch.Tensor) -> list[torch.Tensor]:
        """Return p3, p4, p5."""
        values = self.pool(torch.relu(self.stem(values)))
        tops = []
        for stage in self.stages:
            values = stage(values)
            tops.append(values)
        c3, c4, c5 = (layer(top) for layer, top in zip(self.lateral, tops[1:], strict=True))
        c4 = c4 + functional.interpolate(c5, scale_factor=2.0, mode="nearest")
        c3 = c3 + functional.interpolate(c4, scale_factor=2.0, mode="nearest")
        return [torch.relu(layer(c)) for layer, c in zip(self.smooth, (c3, c4, c5), strict=True)]

    def proposed(self, maps: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits and deltas; an anchor's numbers by level, row, column, ratio."""
        hidden = [torch.relu(self.rpn(each)) for each in maps]
        logits = [self.score(each).permute(0, 2, 3, 1).flatten(1) for each in hidden]
        deltas = [self.delta(each).permute(0, 2, 3, 1).flatten(1) for each in hidden]
        joined = torch.cat(deltas, 1)
        return torch.cat(logits, 1)[..., None], joined.reshape(joined.shape[0], -1, 4)

    def forward(self, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return p3, p4, p5, logits and deltas."""
        maps = self.maps(values)
        return *maps, *self.proposed(maps)


class Align(torch.autograd.Function):
    """RoIAlign (He et al., 2017) of one image, half a pixel, two samples a side of a bin.

    Inside of a map a sample is what ``grid_sample`` gives; ONNX has an operator for the whole.
    """

    @staticmethod
    def symbolic(g: Any, values: Any, boxes: Any, scale: float) -> Any:
        """Return ONNX's operator."""
        zero = g.op("Constant", value_t=torch.tensor([0]))
        one = g.op("Constant", value_t=torch.tensor([1]))
        shape = g.op("Shape", boxes)
        count = g.op("Slice", shape, zero, one)
        which = g.op("Expand", zero, count)
        return g.op(
            "RoiAlign", values, boxes, which, coordinate_transformation_mode_s="half_pixel",
            output_height_i=POOL, output_width_i=POOL, sampling_ratio_i=2, spatial_scale_f=scale,
        )  # fmt: skip

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, boxes: torch.Tensor, scale: float) -> torch.Tensor:
        """Return (n, C, 7, 7) of (1, C, H, W) and (n, 4) boxes of the network's pixels."""
        return aligned(values, boxes, scale)


def aligned(values: torch.Tensor, boxes: torch.Tensor, scale: float) -> torch.Tensor:
    """See :class:`Align`; with gradients."""
    low, high = boxes[:, :2] * scale - 0.5, boxes[:, 2:] * scale - 0.5
    steps = (torch.arange(2 * POOL) + 0.5) / (2 * POOL)
    points = low[:, None] + (high - low)[:, None] * steps[None, :, None]  # (n, 14, 2) of x, y
    sides = torch.tensor([values.shape[3] - 1, values.shape[2] - 1])
    points = points / sides * 2 - 1
    x = points[:, None, :, 0].expand(-1, 2 * POOL, -1)
    y = points[:, :, None, 1].expand(-1, -1, 2 * POOL)
    grid = torch.stack([x, y], -1).reshape(1, -1, 2 * POOL, 2)
    found = functional.grid_sample(values, grid, "bilinear", "border", align_corners=True)
    found = found.reshape(values.shape[1], len(boxes), 2 * POOL, 2 * POOL).transpose(0, 1)
    return functional.avg_pool2d(found, 2)


class Second(nn.Module):
    """Maps of one image and (n, 4) proposals, to (n, 4) logits and (n, 12) deltas of classes."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(CHANNELS * POOL**2, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.score, self.delta = nn.Linear(HIDDEN, 1 + len(LABELS)), nn.Linear(HIDDEN, 12)
        for layer, std in ((self.score, 0.01), (self.delta, 0.001)):
            nn.init.normal_(layer.weight, std=std)
            nn.init.zeros_(layer.bias)

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return class logits, the background first, and deltas of each class."""
        *maps, boxes = given
        sides = boxes[:, 2:] - boxes[:, :2]
        size = (sides[:, 0] * sides[:, 1]).clamp_min(0).sqrt()
        align = Align.apply if torch.onnx.is_in_onnx_export() else aligned
        total: Any = 0
        for each, stride, least, most in zip(maps, STRIDES, LEVELS[:-1], LEVELS[1:], strict=True):
            inside = ((size >= least) & (size < most))[:, None, None, None]
            total = total + torch.where(inside, align(each, boxes, 1 / stride), torch.zeros(()))
        hidden = torch.relu(self.two(torch.relu(self.one(total.flatten(1)))))
        return self.score(hidden), self.delta(hidden)


def anchors(high: int, wide: int) -> torch.Tensor:
    """Return (A, 4) x1, y1, x2, y2 by level, row, column and ratio."""
    found = []
    for stride, side in zip(STRIDES, SIDES, strict=True):
        y, x = np.indices((-(-high // stride), -(-wide // stride))) * stride + 0.5 * stride
        half = np.array([[side / r**0.5, side * r**0.5] for r in RATIOS]) / 2
        center = np.stack([x, y], -1)[:, :, None]
        found.append(np.concatenate([center - half, center + half], -1).reshape(-1, 4))
    return torch.tensor(np.concatenate(found), dtype=torch.float32)


def encoded(boxes: torch.Tensor, around: torch.Tensor) -> torch.Tensor:
    """Return the deltas from *around* to *boxes*."""
    size, wanted = around[:, 2:] - around[:, :2], boxes[:, 2:] - boxes[:, :2]
    off = (boxes[:, :2] + wanted / 2 - around[:, :2] - size / 2) / size
    return torch.cat([off, (wanted / size).log()], 1)


def decoded(deltas: torch.Tensor, around: torch.Tensor) -> torch.Tensor:
    """Return the boxes, within the network's input."""
    size = around[:, 2:] - around[:, :2]
    center = around[:, :2] + size / 2 + deltas[:, :2] * size
    half = deltas[:, 2:].clamp_max(CLAMP).exp() * size / 2
    limits = torch.tensor([WIDE, HIGH, WIDE, HIGH])
    return torch.cat([center - half, center + half], 1).clamp_min(0).minimum(limits)


def overlaps(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return (n, m) IoU."""
    return torch.from_numpy(iou(boxes.numpy().astype(float), others.numpy().astype(float)))


def drawn(objects: torch.Tensor, others: torch.Tensor, count: int, most: int) -> torch.Tensor:
    """Return as many of two sets of indices as an image may have, the first of objects."""
    objects = objects[torch.randperm(len(objects))[:most]]
    return torch.cat([objects, others[torch.randperm(len(others))[: count - len(objects)]]])


def rpn_loss(logits: torch.Tensor, deltas: torch.Tensor, around: torch.Tensor, truth: torch.Tensor
) -> torch.Tensor:  # fmt: skip
    """The loss of one image's proposals."""
    table = overlaps(truth, around)
    best, which = table.max(0)
    most = table.max(1, keepdim=True).values
    has = (best >= 0.7) | ((table == most) & (most > 0)).any(0)
    picked = drawn(has.nonzero()[:, 0], ((best < 0.3) & ~has).nonzero()[:, 0], 256, 128)
    own = picked[has[picked]]
    loss = functional.binary_cross_entropy_with_logits(logits[picked], has[picked].float())
    wanted = encoded(truth[which[own]], around[own])
    off = functional.smooth_l1_loss(deltas[own], wanted, beta=1 / 9, reduction="sum")
    return loss + off / len(picked)


def proposals(logits: torch.Tensor, deltas: torch.Tensor, around: torch.Tensor) -> torch.Tensor:
    """Return the best boxes of an image, after NMS."""
    best = logits.argsort(descending=True)[:1000]
    boxes = decoded(deltas[best], around[best])
    scores = logits[best].sigmoid().double().numpy()
    kept, _ = suppress(boxes.double().numpy(), scores, np.zeros(len(best), np.int64), NMS)
    boxes = boxes[torch.from_numpy(kept)]
    return boxes[((boxes[:, 2:] - boxes[:, :2]) > 1).all(1)]


def head_loss(net: Second, maps: list[torch.Tensor], boxes: torch.Tensor, truth: torch.Tensor,
              labels: torch.Tensor) -> torch.Tensor:  # fmt: skip
    """The loss of one image's boxes."""
    boxes = torch.cat([boxes, truth])
    best, which = overlaps(truth, boxes).max(0)
    has = best >= 0.5
    picked = drawn(has.nonzero()[:, 0], (~has).nonzero()[:, 0], 128, 32)
    boxes, has, which = boxes[picked], has[picked], which[picked]
    logits, deltas = net(*maps, boxes)
    target = torch.where(has, labels[which] + 1, 0)
    loss = functional.cross_entropy(logits.float(), target)
    own = deltas.float().reshape(len(deltas), -1, 4)[has, target[has] - 1]
    wanted = encoded(truth[which[has]], boxes[has]) * WEIGHTS
    off = functional.smooth_l1_loss(own, wanted, beta=1.0, reduction="sum")
    return loss + off / len(picked)


def read(folder: Path) -> list[Sample]:
    """Return the (H, W, 3) uint8 image, boxes in the network's pixels and labels of each sample."""
    said = json.loads((folder / "bccd_train.json").read_text())
    found = []
    for image in said["images"]:
        pixels = Image.open(folder / "JPEGImages" / image["file_name"]).convert("RGB")
        scale = np.tile([WIDE / pixels.width, HIGH / pixels.height], 2)
        own = [one for one in said["annotations"] if one["image_id"] == image["id"]]
        xywh = np.array([one["bbox"] for one in own]).reshape(-1, 4)
        boxes = np.concatenate([xywh[:, :2], xywh[:, :2] + xywh[:, 2:]], 1) * scale
        labels = torch.tensor([one["category_id"] - 1 for one in own])
        small = np.asarray(pixels.resize((WIDE, HIGH), Image.Resampling.BILINEAR))
        found.append((small, torch.tensor(boxes, dtype=torch.float32), labels))
    return found


def features(first: First, samples: Sequence[Sample]) -> list[Sample]:
    """Return the maps, boxes and labels of every image and of its mirror image."""
    found = []
    with torch.no_grad():
        for pixels, boxes, labels in samples:
            values = (pixels.astype(np.float32) / 255 - MEAN) / STD
            mirrored = boxes.clone()
            mirrored[:, [0, 2]] = WIDE - boxes[:, [2, 0]]
            for each, own in ((values, boxes), (values[:, ::-1], mirrored)):
                image = torch.tensor(each.transpose(2, 0, 1)[None].copy())
                found.append((first.maps(image), own, labels))
    return found


def train(data: Path, start: Path, out: Path, epochs: int, seed: int, rate: float) -> None:
    """Learn, and write the networks and their cards."""
    torch.manual_seed(seed)
    first, second = First(), Second()
    first.start(start)
    samples, around = features(first, read(data)), anchors(HIGH, WIDE)
    print(f"{time.process_time():.0f} s", flush=True)
    learned = [*first.rpn.parameters(), *first.score.parameters(), *first.delta.parameters(),
               *second.parameters()]  # fmt: skip
    optimizer = torch.optim.AdamW(learned, rate, weight_decay=0.02)
    steps = epochs * (len(samples) // BATCH)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.15)
    for epoch in range(epochs):
        begun, total = time.process_time(), torch.zeros(2)
        for batch in torch.randperm(len(samples))[: steps // epochs * BATCH].split(BATCH):
            losses = torch.zeros(2)
            for maps, truth, labels in (samples[i] for i in batch):
                logits, deltas = (one[0] for one in first.proposed(maps))
                boxes = proposals(logits[:, 0].detach(), deltas.detach(), around)
                losses = losses + torch.stack([
                    rpn_loss(logits[:, 0], deltas, around, truth),
                    head_loss(second, maps, boxes, truth, labels),
                ])  # fmt: skip
            optimizer.zero_grad()
            (losses.sum() / BATCH).backward()
            nn.utils.clip_grad_norm_(learned, 5.0)
            optimizer.step()
            rates.step()
            total += losses.detach() / BATCH
        told = total * epochs / steps
        print(f"epoch {epoch + 1}: {told[0]:.4f} of proposals, {told[1]:.4f} of boxes, "
              f"{time.process_time() - begun:.0f} s of the processor", flush=True)  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    torch.save({"first": first.state_dict(), "second": second.state_dict()}, out / "weights.pt")
    write(first, second, out)


def write(first: First, second: Second, out: Path) -> None:
    """Write the networks, opset 17, and the cards."""
    first.eval(), second.eval()
    names = ["p3", "p4", "p5"]
    for high, wide in ((320, 416), (316, 412)):
        image = torch.zeros(1, 3, high, wide)
        torch.onnx.export(
            first, (image,), out / f"first_{high}x{wide}.onnx", dynamo=False, opset_version=17,
            input_names=["image"], output_names=[*names, "rpn_logits", "rpn_deltas"],
        )  # fmt: skip
        card = CARD.format(
            high=high, wide=wide, strides=list(STRIDES), sizes=[[side] for side in SIDES],
            ratios=list(RATIOS), clamp=CLAMP,
        )  # fmt: skip
        (out / f"bccd_faster_rcnn_{high}x{wide}.yaml").write_text(card)
    *maps, _, _ = first(torch.zeros(1, 3, HIGH, WIDE))
    boxes = torch.tensor([[10.0, 10, 60, 50], [100, 100, 300, 250]])
    torch.onnx.export(
        second, (*maps, boxes), out / "second.onnx", dynamo=False, opset_version=17,
        input_names=[*names, "proposals"], output_names=["cls_logits", "box_deltas"],
        dynamic_axes={name: {0: "proposals"} for name in ("proposals", "cls_logits", "box_deltas")},
    )  # fmt: skip
    (out / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("start", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=1e-3)
    train(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
