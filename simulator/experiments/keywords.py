"""The keywords that all experiments have, where a person looks for them: in the signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from simulator.experiments.job import DEFAULTS, Options

F = TypeVar("F", bound=Callable[..., Any])


def explicit(*without: str) -> Callable[[F], F]:
    """Show each of :class:`Options` in a function's signature, in place of ``**options``.

    Type checkers read them from ``Unpack[Options]``; ``help`` and notebooks read the signature.

    Args:
        without: options that this experiment refuses.
    """

    def shown(function: F) -> F:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind != one.VAR_KEYWORD]
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=DEFAULTS[name],
                annotation=annotation.__forward_arg__,
            )
            for name, annotation in Options.__annotations__.items()
            if name not in without
        ]
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return function

    return shown
