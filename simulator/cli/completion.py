"""Shell completion: what bash, zsh or fish needs to complete commands, options and names."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.contract.library import Library

SHELLS = ("bash", "zsh", "fish")
KINDS = {
    "file": (
        "FILE",
        "PATH",
        "CARD",
        "MODEL",
        "AUDIT",
        "BUNDLE",
        "[STACK=]FILE",
        "file",
        "path",
        "bundle",
    ),
    "folder": ("DIR", "RUN"),
    "profile": ("PROFILE", "STACK", "NEAREST"),
    "suite": ("SUITE",),
}
"""What an option or argument takes, by the name that its help gives it."""
WORDS = {
    "bash": """{name}() {{
  compgen -W "{words}" -- "$1"
  compgen -f -- "$1"
}}""",
    "zsh": """{name}() {{
  _alternative 'names:name:({words})' 'files:file:_files'
}}""",
    "fish": """function {name}
  printf '%s\\n' {words}
  __fish_complete_path (commandline -ct)
end""",
}
"""For each shell, a function that completes one of our names, or a file."""


class Print(argparse.Action):
    """``--print-completion SHELL``: print the script, and nothing else is done.

    Args:
        of: makes the parser of every command.
    """

    def __init__(self, *args: Any, of: Callable[[], argparse.ArgumentParser], **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._of = of

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Print it and exit."""
        print(script(self._of(), values))
        parser.exit()


@cache
def shtab() -> Library:
    """Return what writes the scripts; help needs neither it nor what the contract imports."""
    from simulator.contract.library import Library

    return Library("shtab", distribution="shtab", extra="completion")


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of a shell: ``bash``, ``zsh`` or ``fish``."""
    kinds = _kinds()
    for path, action in _actions(parser, ()):
        if found := _kind(path, action, kinds):
            action.complete = found  # type: ignore[attr-defined]
    return str(shtab().complete(parser, shell=shell))


def _actions(
    parser: argparse.ArgumentParser, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _actions(inner, (*path, name))
        else:
            yield path, action


def _kinds() -> dict[str, object]:
    from simulator import registry
    from simulator.profile import lookup
    from simulator.profile.suite import builtin_suites

    return {
        "file": shtab().FILE,
        "folder": shtab().DIRECTORY,
        "profile": _named("_simulate_profiles", lookup.names()),
        "suite": _named("_simulate_suites", builtin_suites()),
        "backend": _named("_simulate_backends", registry.BACKENDS.points),
    }


def _kind(path: tuple[str, ...], action: argparse.Action, kinds: dict[str, object]) -> object:
    """Return what completes the value of an option, by what its help calls it."""
    word = action.metavar if isinstance(action.metavar, str) else action.dest
    if path[:1] == ("backends",) and word == "NAME":
        return kinds["backend"]
    if path in (("profiles", "show"), ("profiles", "diff")) and not action.option_strings:
        return kinds["profile"]
    return next((kinds[kind] for kind, words in KINDS.items() if word in words), None)


def _named(name: str, words: Iterable[str]) -> dict[str, object]:
    """Return how each shell completes one of *words*, or a file."""
    joined = " ".join(words)
    scripts = {shell: text.format(name=name, words=joined) for shell, text in WORDS.items()}
    return {"bash": name, "zsh": name, "fish": f"({name})", "preamble": scripts}
