"""The parts of AutoAttack, by ``pyautoattack``, on one image of any classifier.

Source: Croce and Hein, ICML 2020 and 2021; the settings are those of version ``standard``.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract import (
    Adversary,
    AtLeast,
    Backend,
    Library,
    Offer,
    Stage,
    Unsupported,
    Victim,
)

F32 = NDArray[np.float32]
torch = Library("torch", distribution="torch", extra="attacks")
pyautoattack = Library("pyautoattack", distribution="pyautoattack", extra="attacks")
gradients = Library("pyautoattack.autopgd_base", distribution="pyautoattack", extra="attacks")
boundaries = Library("pyautoattack.fab_pt", distribution="pyautoattack", extra="attacks")
squares = Library("pyautoattack.square", distribution="pyautoattack", extra="attacks")
NORMS = {"linf": "Linf", "l2": "L2", "l1": "L1"}
TARGETS, TARGETS_L1 = 9, 5
CLASSES = {"apgd-dlr": 3, "apgd-t": 4}
"""How many classes the loss of a part needs; 2 are enough for the others."""
_QUIET = logging.Logger("pyautoattack", logging.ERROR)
"""For warnings about single gradients of 0, which its loggers print."""


class Part(Adversary):
    """One part. Where there are fewer classes than it aims at, it aims at all of them."""

    def _attacked(self, clean: F32, truth: int, victim: Victim, budget: float, seed: int) -> F32:
        part, least = self.options["part"], CLASSES.get(self.options["part"], 2)
        classes = victim.logits(clean).size
        if classes < least:
            raise Unsupported(f"{least} classes are needed, and there are {classes}")
        if part == "square":
            self._refuse_uncovered(*clean.shape[:2])
        search = self._search(_model(victim), classes, budget, seed)
        given = torch.from_numpy(clean.transpose(2, 0, 1)[None].copy())
        with _draws(seed):
            found = search.perturb(given, torch.tensor([truth]))
        return _rows(found)

    def _refuse_uncovered(self, rows: int, columns: int) -> None:
        """Refuse an image over whose end the library's first tiles in L2 and L1 would reach."""
        side = rows // 5
        first = rows % 5 // 2
        fits = side and all(first + one // side * side <= one for one in (rows, columns))
        if self.options["norm"] != "linf" and not fits:
            raise Unsupported(
                f"its tiles in {self.options['norm']} do not fit into {rows}x{columns} pixels"
            )

    def _search(self, model: Any, classes: int, budget: float, seed: int) -> Any:
        part, norm = self.options["part"], NORMS[self.options["norm"]]
        common = {"eps": budget, "norm": norm, "seed": seed, "device": "cpu"}
        in_l1 = norm == "L1"
        if part == "square":
            queries = self.options["queries"]
            return squares.SquareAttack(model, n_queries=queries, resc_schedule=False, **common)
        common |= {"n_iter": self.options["steps"]}
        if part.startswith("fab"):
            targets = {"targeted": part == "fab-t", "n_target_classes": min(TARGETS, classes - 1)}
            return boundaries.FABAttack_PT(model, **common, **targets)
        common |= {"use_largereps": in_l1, "logger": _QUIET}
        if part == "apgd-t":
            count = min(TARGETS_L1 if in_l1 else TARGETS, classes - 1)
            return gradients.APGDAttack_targeted(model, n_target_classes=count, **common)
        loss = part.removeprefix("apgd-")
        return gradients.APGDAttack(model, loss=loss, n_restarts=5 if in_l1 else 1, **common)


def _model(victim: Victim) -> Any:
    """Return the victim as a function of tensors (1, 3, H, W), with a way back."""
    base: Any = torch.autograd.Function

    class Followed(base):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, pixels: Any) -> Any:
            if victim.at is None:
                raise Unsupported("it follows gradients, and there are answers only")
            scores, ctx.pull = victim.at(_rows(pixels))
            return torch.from_numpy(scores[None].copy())

        @staticmethod
        def backward(ctx: Any, way: Any) -> Any:
            rows = ctx.pull(way[0].contiguous().numpy())
            return torch.from_numpy(np.ascontiguousarray(rows.transpose(2, 0, 1)[None]))

    def model(pixels: Any) -> Any:
        if pixels.requires_grad and torch.is_grad_enabled():
            return Followed.apply(pixels)
        return torch.from_numpy(victim.logits(_rows(pixels))[None].copy())

    return model


def _rows(pixels: Any) -> F32:
    found: F32 = pixels[0].detach().permute(1, 2, 0).contiguous().numpy()
    return found


def _draws(seed: int) -> AbstractContextManager[Any]:
    """Let what the library draws come from a generator of this thread alone.

    It seeds PyTorch's own, which all threads share.
    """
    base: Any = torch.overrides.TorchFunctionMode
    own = torch.Generator().manual_seed(seed)
    drawing = {torch.rand, torch.randn}
    alike = {torch.rand_like: torch.rand, torch.randn_like: torch.randn}

    class Draws(base):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if function in alike:
                return alike[function](args[0].shape, generator=own)
            if function in drawing:
                return function(*args, **{**(kwargs or {}), "generator": own})
            return function(*args, **(kwargs or {}))

    found: AbstractContextManager[Any] = Draws()
    return found


_NORM = tuple(NORMS)
_SOURCE = "https://github.com/fra31/auto-attack"
BACKEND = Backend(
    name="autoattack",
    summary="pyautoattack: the parts of AutoAttack, by gradient or by answers only",
    library=pyautoattack,
    companions=(torch,),
    offers=(
        Offer(
            Stage.ATTACK,
            {
                "part": ("apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t"),
                "norm": _NORM,
                "steps": AtLeast(1),
            },
            Part,
            source=_SOURCE,
        ),
        Offer(
            Stage.ATTACK,
            {"part": ("square",), "norm": _NORM, "queries": AtLeast(1)},
            Part,
            source=_SOURCE,
        ),
    ),
)
