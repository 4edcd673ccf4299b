"""Stacks: a profile with its implementations, its artifact and its chain of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from simulator import registry
from simulator.contract import Effective
from simulator.contract.recipe import Chain
from simulator.modalities.card import CardSpec
from simulator.model.artifact import Artifact
from simulator.notices import Notice
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile

ResolvedProfile = tuple[Profile, Choices]
"""A profile with the implementation of each of its stages."""
Pair = Mapping[str, ResolvedProfile]
Needs = tuple[tuple[str, float], ...]
"""The resources of a machine, by name."""


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack, ready to run.

    Attributes:
        side: its name; in a pair ``train`` or ``deploy``.
        profile: its profile.
        choices: the implementation of each stage.
        chain: from the source of a sample to the prediction.
        artifact: the model file that its runtime opens.
        effective: the settings that are in force, as the runtime reports them.
        notices: what users should know about it.
        fed: the content of the card that its input is made of, where its own model file takes
            another than the card's network.
    """

    side: str
    profile: Profile
    choices: Choices
    chain: Chain
    artifact: Artifact
    effective: Effective
    notices: tuple[Notice, ...]
    fed: CardSpec | None = None

    @property
    def labelled_notices(self) -> Iterator[Notice]:
        """Its notices, each labelled with the name of the stack."""
        return (notice.of(self.side) for notice in self.notices)

    @property
    def versions(self) -> dict[str, str | None]:
        """The version of every library that the stack uses, in the Python that runs it."""
        found: dict[str, str | None] = {}
        for choice in self.choices.values():
            found |= registry.versions(choice.backend)
        return found
