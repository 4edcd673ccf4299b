"""Model cards: propose one for an ONNX file, make a model of a checkpoint, and check a card.

simulate model new FILE.onnx [-o card.yaml]   propose a card; TODO marks what the file does not say
simulate model new FILE.gguf [-o FOLDER]      write model.onnx, its card and its tokenizer
simulate model check CARD                     check a card, and run one sample through its model
"""

from __future__ import annotations

import argparse
from pathlib import Path

from simulator import cli

STACK = "pillow_fp32"
"""What a card is tried with: Pillow, and ONNX Runtime on the CPU."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    new = verbs.add_parser("new", help="propose a card for an ONNX file or a checkpoint")
    new.add_argument("file", metavar="FILE", help="the ONNX file, GGUF file or safetensors file")
    new.add_argument(
        "-o", "--out", metavar="PATH",
        help="the card, FILE with .yaml by default; of a checkpoint a new folder, FILE without "
        "its suffix",
    )  # fmt: skip
    new.add_argument(
        "--program", action="store_true",
        help="of a checkpoint: write a torch.export program as well, for the runtime pytorch",
    )  # fmt: skip
    check = verbs.add_parser("check", help="check a card, and run one sample")
    check.add_argument("card", metavar="CARD", help="the model card")


def run(options: argparse.Namespace) -> int:
    """Run one verb."""
    return int(globals()[f"_{options.verb}"](options))


def _new(options: argparse.Namespace) -> int:
    from simulator.errors import UserError
    from simulator.model import checkpoint, draft
    from simulator.profile.text import write_new

    model = Path(options.file)
    backend = checkpoint.reader(model)
    if backend is not None:
        folder = Path(options.out) if options.out else model.with_suffix("")
        card = checkpoint.write(backend, model, folder, options.program)
        print(f"{card}: written with its model; to look at it: simulate model check {card}")
        return cli.PASS
    card = Path(options.out) if options.out else model.with_suffix(".yaml")
    text = draft.document(model, card)
    write_new(card, text)
    print(f"{card}: {len(draft.unfinished(text))} fields are marked {draft.TODO}")
    try:
        _proved(card)
    except UserError as error:
        print("it does not run yet:")
        for line in str(error).splitlines():
            print(f"  {line}")
    print(f"fill it in, then: simulate model check {card}")
    return cli.PASS


def _check(options: argparse.Namespace) -> int:
    from simulator.model.draft import TODO, unfinished

    card = Path(options.card)
    _proved(card)
    for number, what in unfinished(card.read_text(encoding="utf-8")).items():
        print(f"still {TODO}: {card}:{number}: {what}")
    return cli.PASS


def _proved(card: Path) -> None:
    """Run one sample, and say what each stage gave.

    Raises:
        UserError: the card is not valid, does not fit its model, or the model cannot run.
    """
    from simulator.experiments.check_profile import prove
    from simulator.experiments.common import chosen
    from simulator.model.card import load
    from simulator.model.onnxfile import check

    check(load(card))
    proof = prove(chosen(STACK, []), str(card), lambda _: None)
    gave = [what for stage, what in proof.gave if stage in ("normalize", "runtime", "infer")]
    print(f"{card}: valid; {proof.sample} went through {STACK}: {' → '.join(gave)}")
