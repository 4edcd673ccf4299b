"""The pixel part of a stack: everything between a sample's file and the network's input."""

from __future__ import annotations

from simulator.contract import Stage
from simulator.errors import UserError
from simulator.profile.axes import differing, is_of_front_end, refuse_mixed, refuse_recorded
from simulator.profile.document import Key
from simulator.profile.implementations import Choices, choose
from simulator.profile.modality import front_axes, places
from simulator.profile.profile import Profile

ResolvedProfile = tuple[Profile, Choices]
SUFFIX = "+pixels_of_train"


def with_pixels_of(train: Profile, deploy: Profile) -> ResolvedProfile:
    """Return *deploy* with the pixel part of *train*: a deployment of the runtime only.

    Its evidence and the places of its values are those of the profile that each section is from.

    Raises:
        ProfileError: the mixed stack cannot run, or one of the stacks replays a recording.
        UserError: a field of the pixel part of *deploy* is overridden.
    """
    refuse_recorded(train, deploy)
    refuse_mixed(train, deploy)
    taken = _sections(deploy.spec.modality)
    lost = [
        override
        for override in deploy.overrides
        if override.partition("=")[0].split(".")[0] in taken
    ]
    if lost:
        raise UserError(
            f"--set deploy.{lost[0]}: the pixels are those of the training stack; use --deploy "
            "for a stack with pixels of its own"
        )
    evidence = {k: v for k, v in deploy.spec.evidence.items() if k not in taken}
    evidence |= {k: v for k, v in train.spec.evidence.items() if k in taken}
    update = {section: getattr(train.spec, section) for section in taken} | {"evidence": evidence}
    origins = {k: v for k, v in deploy.origins.items() if not taken & set(k[:2])}
    origins |= {k: v for k, v in train.origins.items() if taken & set(k[:2])}
    spec = deploy.spec.model_copy(update=update).settled()
    may_run_code = train.may_run_code and deploy.may_run_code
    mixed = Profile(
        f"{deploy.name}{SUFFIX}", spec, origins, deploy.overrides, deploy.notes, may_run_code
    )
    return mixed, choose(mixed)


def unasked(train: ResolvedProfile, deploy: ResolvedProfile) -> str | None:
    """Say which pixel axes differ though *deploy* only inherits its pixels; None if none does.

    A profile for a runtime extends some stack, whose pixels need not be those of the training.
    """
    profile = deploy[0]
    own = profile.where(()).rpartition(":")[0]
    names = places(profile.spec.modality)
    taken = {(section,) for section in _sections(profile.spec.modality)}
    found = [
        axis
        for axis in differing(train, deploy)
        if is_of_front_end(axis, profile)
        and not any(
            origin.startswith("--set ") or origin.rpartition(":")[0] in (own, "")
            for key, origin in profile.origins.items()
            if (key[:1] in taken if axis == Stage.FRONT_END else _is_in(key, names[axis]))
        )
    ]
    if not found:
        return None
    return (
        f"{', '.join(found)} {'differs' if len(found) == 1 else 'differ'} from the training "
        f"stack's, and {profile.name} does not set {'it' if len(found) == 1 else 'them'} but "
        "inherits; to change the runtime only: --deploy-runtime in place of --deploy"
    )


def _is_in(key: Key, place: Key) -> bool:
    return key[: len(place)] == place


def _sections(modality: str) -> set[str]:
    """The sections of a profile that its pixel part is."""
    known = places(modality)
    return {str(known[axis][0]) for axis in front_axes(modality) if axis in known}
