"""Model cards: propose one for an ONNX file, make a model of a checkpoint, and check a card.

simulate model new FILE.onnx [-o card.yaml]   propose a card; TODO marks what no file says
simulate model new FILE.gguf [-o FOLDER]      write model.onnx, its card and its tokenizer
simulate model new clip.onnx [-o FOLDER]      cut CLIP or SigLIP into two towers, with a card
simulate model check CARD                     check a card, and run one sample through its model
simulate model show FILE                      what a model file says of itself: types, quantization
simulate model check CARD --data PATH         likewise, and say how right its answers are
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from simulator import cli

if TYPE_CHECKING:
    from simulator.experiments.conventions import Tried
    from simulator.model.card import Card
    from simulator.model.draft import Proposal
    from simulator.pipeline.stack import ResolvedProfile

STACK = "pillow_fp32"
"""What a card of images is tried with: Pillow, and ONNX Runtime on the CPU."""
LITERT = {"fp32": ("runtime.exporter=null",),
          "int8": ("runtime.exporter=null", "precision.quantizer=null")}  # fmt: skip
"""What makes ``litert_fp32`` and ``litert_int8`` run a card's own ``.tflite``."""


def _stack(card: Card, asked: str | None = None, changes: Sequence[str] = ()) -> ResolvedProfile:
    """The stack that is asked for, or one that runs the card's own file."""
    from simulator.experiments.common import chosen

    weights = next(iter(card.named[card.format.name]))
    if asked is None and card.format.name == "tflite" and weights in LITERT:
        return chosen(f"litert_{weights}", [*LITERT[weights], *changes])
    return chosen(asked or STACK, changes)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    new = verbs.add_parser(
        "new", help="propose a card for a model file, or make a model of a checkpoint"
    )
    new.set_defaults(run=_new)
    new.add_argument("file", metavar="FILE", help="the ONNX, .tflite, GGUF or safetensors file")
    new.add_argument(
        "-o", "--out", metavar="PATH",
        help="the card, FILE with .yaml by default; of a checkpoint a new folder, FILE without "
        "its suffix",
    )  # fmt: skip
    new.add_argument(
        "--program", action="store_true",
        help="of a checkpoint: write a torch.export program as well, for the runtime pytorch",
    )  # fmt: skip
    new.add_argument(
        "--cache", action="store_true",
        help="of a Llama: the ONNX network takes keys and values of earlier tokens and gives them, "
        "for decoding.cache: kv",
    )  # fmt: skip
    new.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="a field of the card, e.g. input.order=bgr; repeatable",
    )  # fmt: skip
    new.add_argument(
        "--data", metavar="PATH",
        help="labelled samples, a folder or a data card: find how pixels become numbers, by trying "
        "the common conventions",
    )  # fmt: skip
    new.set_defaults(profile=None)
    new.add_argument("--limit", type=int, metavar="N", help="take a random subset of N samples")
    show = verbs.add_parser(
        "show", help="print a model file's inputs, types, quantization, preprocessing and metadata"
    )
    show.set_defaults(run=_show)
    show.add_argument("file", metavar="FILE", help="the file, of any known format")
    show.add_argument("--json", action="store_true", help="print all of it as JSON")
    check = verbs.add_parser(
        "check",
        help="check a card, and run one sample; exit code 1: fields are still marked TODO, or the "
        "answers are no better than guessing",
    )
    check.set_defaults(run=_check)
    check.add_argument("card", metavar="CARD", help="the model card")
    check.add_argument(
        "--data", metavar="PATH",
        help="labelled samples, a folder or a data card: say how right the answers are",
    )  # fmt: skip
    check.add_argument("--limit", type=int, metavar="N", help="take a random subset of N samples")
    check.add_argument(
        "--profile", metavar="PROFILE",
        help=f"the stack, as the network was trained; default: {STACK}, or LiteRT's of a .tflite",
    )  # fmt: skip


def _new(options: argparse.Namespace) -> int:
    from simulator.model import checkpoint, proposed, towers
    from simulator.profile.axes import TODO
    from simulator.profile.text import write_new

    model = Path(options.file)
    backend = checkpoint.reader(model)
    if backend is not None:
        folder = Path(options.out) if options.out else model.with_suffix("")
        card = checkpoint.write(backend, model, folder, options.program, options.cache)
        print(f"{card}: written with its model; to look at it: simulate model check {card}")
        return cli.PASS
    if towers.has_both(model):
        folder = Path(options.out) if options.out else model.with_suffix("")
        labels = _values(options.set).get("labels")
        made = towers.write(model, folder, str(labels) if labels else None)
        print(
            f"{made}: written with its two towers; name your classes, then: simulate model check "
            f"{made} --profile clip_fp32"
        )
        return cli.PASS
    card = Path(options.out) if options.out else model.with_suffix(".yaml")
    proposal = proposed.propose(model).setting(_values(options.set), "as --set says")
    if options.data is not None:
        proposal = _tried(proposal, options)
    classes = card.with_name(f"{card.stem}.classes.txt")
    if proposal.labels and not card.exists():
        write_new(classes, proposal.label_text)
    write_new(card, proposal.text(card, os.path.relpath(model, card.parent), classes.name))
    for source in proposal.sources:
        print(f"read: {source}")
    for problem in proposal.problems:
        print(f"not used: {problem}")
    marks = len(proposal.todo)
    print(f"{card}: {'1 field is' if marks == 1 else f'{marks} fields are'} marked {TODO}")
    for field in proposal.todo:
        print(f"  {field.key}: {field.todo}")
    if not proposal.missing:
        _try(card)
    print(f"{'fill it in, then' if marks else 'next'}: simulate model check {card}")
    return cli.PASS


def _try(path: Path) -> None:
    """Run one sample with a new card, or say why it cannot."""
    from simulator.errors import UserError
    from simulator.model.card import Card

    try:
        card = Card(path, draft=True)
        _proved(card, _stack(card))
    except UserError as error:
        print("it does not run yet:")
        for line in str(error).splitlines():
            print(f"  {line}")


def _tried(proposal: Proposal, options: argparse.Namespace) -> Proposal:
    """Return a proposal with the convention of pixels that is most right on labelled samples."""
    from simulator.model import proposed
    from simulator.model.card import Card

    proposal = proposal.classed_by(Path(options.data))
    card = Card(proposed.kept(proposal))
    made, figures, of = _conventions(card, options)
    proposal = proposal.setting(made[0].convention.fields, f"{figures[0]}, {of}")
    if made[0].beats(made[1]):
        return proposal
    asks = f"as in training? {'; '.join(figures[:2])}, {of}: too few to tell them apart"
    return proposal.asking("input.order", asks)


def _conventions(card: Card, options: argparse.Namespace) -> tuple[list[Tried], list[str], str]:
    """Try the common conventions; print their figures, and return them with what they are of."""
    from simulator.cli.progress import Bar
    from simulator.experiments.conventions import tried
    from simulator.report.words import count, share, title

    with Bar() as bar:
        own = partial(_stack, card, options.profile)
        made = tried(card, own, options.data, options.limit, bar)
    figures = [f"{one.convention.name} {share(one.found.value, 2)}" for one in made]
    metric = title(card.task.name, card.task.headline)
    of = f"{metric} of {count(made[0].found.samples, card.modality.unit)}"
    print(f"tried, {of}: {'; '.join(figures)}; guessing {share(made[0].found.chance, 2)}")
    return made, figures, of


def _show(options: argparse.Namespace) -> int:
    from simulator.cli import show

    return show.run(options)


def _values(changes: Sequence[str]) -> dict[str, object]:
    """Read ``KEY=VALUE``, with values in YAML."""
    import yaml

    from simulator.errors import UserError

    found: dict[str, object] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        try:
            found[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            equals = ""
        if not equals:
            raise UserError(f"--set {change}: KEY=VALUE expected, for example input.order=bgr")
    return found


def _check(options: argparse.Namespace) -> int:
    from simulator.model.card import Card
    from simulator.profile.axes import TODO

    card = Card(Path(options.card), draft=True, data=options.data)
    if card.told:
        print(card.told)
    stack = _stack(card, options.profile)
    _proved(card, stack)
    for number, what in card.todo.items():
        print(f"still {TODO}: {card.path}:{number}: {what}")
    if card.todo:
        print(f"not finished: every other command refuses it until the marks of {TODO} are gone")
    right = options.data is None or _right(card, stack, options)
    return cli.PASS if right and not card.todo else cli.GATE_FAILED


def _right(card: Card, stack: ResolvedProfile, options: argparse.Namespace) -> bool:
    """Say how right a stack is with the card; return whether it is better than a guess."""
    from simulator.cli.progress import Bar
    from simulator.experiments.guessing import accuracy, words
    from simulator.profile.modality import IMAGE
    from simulator.report.words import count, share, title

    with Bar() as bar:
        found = accuracy(card, stack, options.data, options.limit, bar)
    task, unit = card.task, card.modality.unit
    if not found.beaten:
        print(f"{words(found, task, unit)} ({stack[0].name})")
        if card.modality.name == IMAGE:
            _conventions(card, options)
        return False
    print(
        f"{title(task.name, task.headline)} {share(found.value, 2)} of "
        f"{count(found.samples, unit)} (95 % interval {share(found.low, 2)} to "
        f"{share(found.high, 2)}) on {stack[0].name}; guessing gives {share(found.chance, 2)}"
    )
    return True


def _proved(card: Card, stack: ResolvedProfile) -> None:
    """Run one sample, and say what each stage gave.

    Raises:
        UserError: the card does not fit its model, or the model cannot run.
    """
    from simulator.experiments.check_profile import prove
    from simulator.model.onnxfile import check

    check(card)
    proof = prove(stack, card, lambda _: None)
    gave = [what for stage, what in proof.gave if stage in ("normalize", "runtime", "infer")]
    print(f"{card.path}: valid; {proof.sample} went through {stack[0].name}: {' → '.join(gave)}")
