"""The card of a model file that is given in place of one: that beside it, or a proposed one."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from simulator import cache
from simulator.contract.model_format import ModelFormat
from simulator.errors import ModelError, ProfileError
from simulator.model.draft import Proposal, propose
from simulator.profile.document import read
from simulator.profile.text import flow

CARD, LABELS = "card.yaml", "classes.txt"


def card_of(model: Path, format: ModelFormat) -> tuple[Path, str]:
    """Return the card of a model file, and a sentence that says where it is from.

    A proposed card is kept in the user's cache, by its content.

    Raises:
        ModelError: it has no card, and something is not known without which nothing can run.
    """
    beside = model.with_suffix(".yaml")
    if _is_card_of(beside, model, format):
        return beside, f"the model card is {beside.name}, beside {model.name}"
    if not (format.suffices and format.key):
        raise ModelError(
            f"{model}: {format.about} does not say how samples become its input; "
            f"write a model card for it (docs/model-cards.md) and give the card instead"
        )
    proposal = propose(model)
    if proposal.missing:
        asked = "; ".join(f"{field.key}: {field.todo}" for field in proposal.missing)
        raise ModelError(
            f"{model}: no model card, and the file does not say {asked}. Write the card with "
            f"simulate model new {model}, and fill these in"
        )
    text = proposal.text(cache.folder() / CARD, str(model.resolve()), LABELS, marked=False)

    def make(folder: Path) -> None:
        (folder / CARD).write_text(text, encoding="utf-8")
        if proposal.labels:
            (folder / LABELS).write_text(proposal.label_text, encoding="utf-8")

    digest = sha256(f"{text}{proposal.label_text}".encode()).hexdigest()[:32]
    return cache.entry(f"card/{digest}", make) / CARD, _told(model, proposal)


def _told(model: Path, proposal: Proposal) -> str:
    """Say what is known and what is assumed, and how to say it oneself."""
    read = f", read from {' and '.join(proposal.sources)}" if proposal.sources else ""
    assumed = ", ".join(f"{field.key} {flow(field.value)}" for field in proposal.assumed)
    said = f"no model card is given{read}"
    if assumed:
        said += f"; no file says, and is assumed: {assumed}"
    return f"{said}; to change it: simulate model new {model}"


def _is_card_of(card: Path, model: Path, format: ModelFormat) -> bool:
    """Whether a YAML file is a model card that names a model file."""
    try:
        named = read(card).values.get(format.key) if format.key and card.is_file() else None
    except ProfileError:
        return False
    files = named.values() if isinstance(named, dict) else [named]
    return any(isinstance(file, str) and card.parent / file == model for file in files)
