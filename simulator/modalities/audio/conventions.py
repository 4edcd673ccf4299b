"""The conventions of a stack for one model: what a profile says, and the card where it does not."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.contract import Options, Stage
from simulator.errors import ModelError, UserError
from simulator.modalities.audio.card import AudioCard
from simulator.modalities.audio.sections import audio_spec
from simulator.modalities.audio.stages import MODEL
from simulator.profile.implementations import Choice, Choices, settled
from simulator.profile.profile import Profile


@dataclass(frozen=True, slots=True)
class Settled:
    """One section without the word ``model``.

    Attributes:
        values: of its fields.
        choice: its implementation; None for a section that names no backend.
    """

    values: Options
    choice: Choice | None = None


def settle(section: str, profile: Profile, choices: Choices, card: AudioCard) -> Settled:
    """Return a section of a profile with the card's values where the profile says ``model``.

    Args:
        section: ``stft``, ``mel``, ``log`` or ``normalize``.
        profile: the stack.
        choices: its implementations.
        card: the model card.

    Raises:
        ModelError: the profile lacks the section; the card says nothing of it, and the profile
            ``model``; or the backend does not offer what the card says.
    """
    asked = getattr(audio_spec(profile), section)
    if asked is None:
        raise ModelError(
            f"{profile.name}: {section} is null, but {card.name} takes {card.input.features}"
        )
    written = asked.model_dump(exclude={"backend"})
    values = dict(written)
    for name in (name for name, value in written.items() if value == MODEL):
        values |= _of_card(section, name, profile, card)
    if section not in choices:
        return Settled(values)
    choice = choices[section]
    new = {name: values[name] for name, value in choice.options.items() if value == MODEL}
    try:
        return Settled(values, settled(choice, new) if new else choice)
    except UserError as error:
        where = profile.where((section, "backend"))
        raise ModelError(f"{where}: {section}: as {card.name} was trained: {error}") from error


def _of_card(section: str, name: str, profile: Profile, card: AudioCard) -> Options:
    """Return the card's value of a field; of a whole section where its ``kind`` says it all."""
    if section == Stage.MEL and name in ("fmin", "fmax"):
        return {name: getattr(card.input, name)}
    trained = getattr(card.trained, section)
    if trained is None:
        where = profile.where((section, name))
        raise ModelError(
            f"{where}: {section}.{name}: model, but the card of {card.name} does not say it; "
            f"write trained.{section} in the card, or a value in the profile"
        )
    found = trained.model_dump()
    return found if section == "normalize" else {name: found[name]}
