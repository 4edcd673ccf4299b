"""Say which options of each axis the probe images tell apart, and which no image here does.

  python tools/probe_table.py [--model CARD] [--photos DATA --limit N] [--out FILE]

Every option of an axis runs in the same surroundings; two options are told apart by an image whose
input of the network differs in a bit. Photos are tried besides the probes, to find what a probe
misses. docs/identify.md shows a part of its output.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

from simulator.contract.recipe import Boundary, Chain
from simulator.data import example
from simulator.errors import UserError
from simulator.experiments.session import Session
from simulator.identify import kit
from simulator.identify.space import Space, space
from simulator.identify.target import Hash
from simulator.identify.trials import Passed
from simulator.model.card import Card
from simulator.pipeline.plan import Arm, plan

BASE = "pillow_fp32"
CARRIED = {
    "encode": "itu matrix=bt601 range=full chroma_downsampling=average",
    "convert": "itu matrix=bt601 range=full chroma_upsampling=linear",
    "source": "encode", "odd_size": "keep", "domain": "rgb", "format": "nv12",
}  # fmt: skip
"""The surroundings of the axes of color."""
PLANES = CARRIED | {"decode": "ffmpeg swscale_flags=bicubic", "source": "planes"}
AXES = {
    "decode": {"format": "rgb"},
    "resize": {"format": "rgb"},
    "geometry": {"format": "rgb"},
    "encode": CARRIED,
    "convert": CARRIED,
    "convert, planes": PLANES,
    "domain": CARRIED,
    "source": PLANES,
    "odd_size": CARRIED,
    "format": PLANES,
    "order": {"format": "rgb"},
    "normalize": {"format": "rgb"},
}
Digests = Mapping[str, Mapping[str, str]]
"""Of the network's input, by option and image."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a model card; default: the built-in model")
    parser.add_argument("--photos", type=Path, help="a folder of photos that are tried as well")
    parser.add_argument("--axes", nargs="+", choices=AXES, default=list(AXES))
    parser.add_argument("--limit", type=int, default=6, help="how many photos; default 6")
    options = parser.parse_args()
    card = Card(Path(options.model) if options.model else example.model_card())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for probe in kit.all_probes(card.spec):
            if probe.name.endswith(".jpg"):  # a PNG tells only who reads it
                (folder / probe.name).write_bytes(probe.data)
        photos = sorted(options.photos.glob("*"))[: options.limit] if options.photos else []
        for photo in photos:
            (folder / f"photo_{photo.stem}.jpg").write_bytes(photo.read_bytes())
        with Session.open(card.path, folder, None, 0, 1, None, None) as session:
            whole = space(BASE, card)
            print(
                "| axis | options | different | told apart by most | only a photo tells | alike |"
            )
            print("| --- | --- | --- | --- | --- | --- |")
            groups = {name: row(name, digests(session, whole, name)) for name in options.axes}
    for name, alike in groups.items():
        for group in alike:
            print(f"{name}: {', '.join(group)}")


def digests(session: Session, whole: Space, name: str) -> Digests:
    """Run every option of an axis in its surroundings."""
    axis = name.partition(",")[0]
    start = {column: next(iter(options)) for column, options in whole.axes.items()}
    start |= {
        "decode": "pillow exif=ignore",
        "resize": "pillow interpolation=bicubic antialias=true",
    }
    arms: dict[Arm, Chain] = {}
    for option in whole.axes[axis]:
        try:
            chosen = whole.stack(start | AXES[name] | {axis: option})
            steps = session.builder.front_end(*chosen).until(Boundary.INPUT).recipes
            arms[Arm(option)] = Chain((*steps, Hash()))
        except UserError:
            continue
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for arm, image, digest in _each(session, arms):
        found[arm][image] = digest
    return found


def _each(session: Session, arms: Mapping[Arm, Chain]) -> Iterator[tuple[str, str, str]]:
    """Run each arm alone, so that one that cannot handle an image takes no other with it."""
    merged = plan(dict(arms), Passed())
    for item in session.dataset.items:
        done = next(iter(session.executor.run(merged, [item])))
        if done.skipped is None:
            for arm, outcome in zip(arms, done.outcomes, strict=True):
                yield arm.stack, item.name, str(outcome.record["found"])
            continue
        for arm, chain in arms.items():
            alone = next(iter(session.executor.run(plan({arm: chain}, Passed()), [item])))
            found = alone.skipped or alone.outcomes[0].record["found"]
            yield arm.stack, item.name, str(found)


def row(name: str, found: Digests) -> list[list[str]]:
    """Print the row of an axis; return the groups of options that no image tells apart."""
    probes, photos, best = set(), set(), Counter[str]()
    for pair in combinations(found, 2):
        one, other = (found[option] for option in pair)
        telling = [image for image in one if one[image] != other[image]]
        mine = [image for image in telling if not image.startswith("photo_")]
        best.update(mine)
        if mine:
            probes.add(pair)
        elif telling:
            photos.add(pair)
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for option, by_image in found.items():
        alike[tuple(by_image.values())].append(option)
    groups = [group for group in alike.values() if len(group) > 1]
    pairs = len(list(combinations(found, 2)))
    most = best.most_common(1)
    words = f"`{most[0][0]}`: {most[0][1]} of {pairs} pairs" if most else "none"
    print(
        f"| {name} | {len(found)} | {len(alike)} | {words} | {len(photos)} |"
        f" {sum(map(len, groups))} in {len(groups)} groups |",
        flush=True,
    )
    return groups


if __name__ == "__main__":
    main()
