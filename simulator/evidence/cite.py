"""Hold what a profile cites against the evidence bundle, where the file is at hand."""

from __future__ import annotations

from pathlib import Path

from simulator.errors import RunError
from simulator.evidence import compare
from simulator.files import LARGE, check_file, hash_file
from simulator.profile import axes
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile


def check(profile: Profile, choices: Choices) -> tuple[list[str], list[str]]:
    """Check every citation of a profile.

    Returns:
        Lines on what each bundle shows, or why it was not looked at; and problems, each as
        ``file:line: key: what``.
    """
    notes, problems = [], []
    for section, claim in axes.claims(profile).items():
        if claim.bundle is None:
            continue
        where = profile.where(("evidence", section))
        key = f"{where}: evidence.{section}.bundle"
        file = claim.bundle.file
        place = Path(where.rpartition(":")[0]).parent / file
        if "://" in file or not place.exists():
            notes.append(f"evidence.{section}: {file} is not at hand; its claim was not checked")
            continue
        try:
            check_file(place, LARGE)
            if hash_file(place) != claim.bundle.sha256:
                raise RunError(f"{place}: not the file that is cited: its SHA-256 differs")
            exact, figures = _shown(place, profile, choices, section)
        except (RunError, OSError) as error:
            problems.append(f"{key}: {error}")
            continue
        if claim.kind == "recorded" and not exact:
            problems.append(f"{key}: claims recorded, but {figures}")
        else:
            notes.append(f"evidence.{section}: {figures}")
    return notes, problems


def _shown(place: Path, profile: Profile, choices: Choices, section: str) -> tuple[bool, str]:
    """Whether a section is as the device recorded it, and the figures in words."""
    with compare.load(place) as bundle:
        found = next(
            (one for one in bundle.sections(profile, choices) if one.name == section), None
        )
        device = f"{bundle.evidence.backend} on {bundle.evidence.device}"
    if found is None or not found.stages:
        return False, f"{place} has no recording of it ({device})"
    return found.exact, f"{described(found)} ({device})"


def described(section: compare.Section) -> str:
    """Return a section's figures in words."""
    parts = [
        f"{' '.join(filter(None, (stage, compare.where(recorded))))}: {match}"
        for stage, (recorded, match) in section.stages.items()
    ]
    parts += [f"{stage}: not recorded" for stage in section.missing]
    return "; ".join(parts)
