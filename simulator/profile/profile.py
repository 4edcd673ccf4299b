"""A profile: its values, and where each was written."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.profile.document import Key, nearest
from simulator.profile.schema import ProfileSpec


@dataclass(frozen=True, slots=True)
class Profile:
    """A complete and valid profile.

    Attributes:
        name: its name.
        spec: the merged values.
        origins: where each value was written: ``file:line`` or ``--set``.
        overrides: the ``KEY=VALUE`` of every ``--set``.
        notes: what was chosen for it, and put aside, because of its own model file.
        may_run_code: whether code that it names may be run: the user of the call named it, or
            allows it, see :mod:`simulator.command.allowed`.
    """

    name: str
    spec: ProfileSpec
    origins: dict[Key, str]
    overrides: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    may_run_code: bool = False

    def where(self, key: Key) -> str:
        """Return the origin of *key*, or of the innermost section around it that has one."""
        return nearest(key, self.origins, self.name)
