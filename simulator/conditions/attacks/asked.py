"""A deployed model that is attacked through its answers alone, in its own runtime."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.attacks.options import EACH
from simulator.conditions.attacks.target import Feed, versions_of
from simulator.contract.recipe import Context, Recipe, Runtimes
from simulator.errors import UserError

F32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Asked:
    """The network of a stack: its artifact, in its runtime.

    Attributes:
        profile: the stack's.
        feed: how pixels become the network's input: as the model card says.
        infer: runs the network; None until the stack was built.
    """

    profile: str
    feed: Feed
    infer: Recipe | None = None

    def identity(self) -> Any:
        """Return what its answers depend on, as JSON."""
        return [self.infer and self.infer.identity(), *astuple(self.feed)]

    def words(self) -> str:
        """Return what is asked, with versions."""
        if self.profile == EACH:
            return "each stack's own network"
        choice = getattr(self.infer, "choice", None)
        by = f" in {versions_of(choice)}" if choice else ""
        return f"answers of {self.profile}{by}"

    def open(self, runtimes: Runtimes | None) -> OpenedAsked:
        """Open its runtime, from the pool.

        Raises:
            UserError: there is no pool: no stacks are run.
        """
        if self.infer is None or runtimes is None:
            raise UserError(
                f"on={self.profile}: the attack asks a stack, and none is run here; leave out on="
            )
        return OpenedAsked(self, self.infer, runtimes)


class OpenedAsked:
    """A network that answers."""

    def __init__(self, asked: Asked, infer: Recipe, runtimes: Runtimes) -> None:
        self._asked, self._apply = asked, infer.open(runtimes)

    def logits(self, rgb: F32) -> F32:
        """Return the logits of the classes, without the background.

        Args:
            rgb: (H, W, 3) in [0, 1].
        """
        feed = self._asked.feed
        found = self._apply(feed.tensor(rgb), Context("", None, None))
        (scores,) = found.outputs.values()
        return feed.logits(np.asarray(scores, np.float32).reshape(-1))

    def hold(self, rgb: F32) -> None:
        """Do nothing: what is attacked is the very file that the stack runs."""
