"""Experiments: the jobs of this program, each one class that an entry point names.

From its options follow the command ``simulate NAME``, its help and completion, the function
``simulator.NAME`` with its signature, the request by which an interrupted run goes on, and what a
cluster may run of it. The module of the class is imported for ``--help`` and must be light: what
runs the experiment is imported by :meth:`Experiment.run`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from simulator.command import options as groups
from simulator.command.allowed import GivesOtherwise, calling, said_what_it_gives
from simulator.command.given import said, taken
from simulator.command.options import Declared, declared
from simulator.entry_points import Table
from simulator.errors import UserError, unknown

if TYPE_CHECKING:
    from rich.console import Console

O = TypeVar("O", bound=groups.Group)  # noqa: E741


class Command(Generic[O]):
    """A command: its options, and what runs it. Its docstring is its help.

    Attributes:
        name: of the command; ``run`` is ``simulate`` itself.
        about: what it does, in a few words, for the list of commands.
        Options: what it takes.
        runs: ``module:function`` that runs it, given the command and its options.
        returns: what its function returns.
        json: whether its result can be printed as JSON.
        screen: ``module:function`` that prints a result, given also its folder and a console.
        summary: ``module:Class`` of its ``summary.json``; empty where it leaves no run.
        reported: whether its runs have a page.
        work: what its folder holds, where it leaves no run: "a search", in one word.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    Options: type[O]
    runs: ClassVar[str]
    returns: ClassVar[str]
    json: ClassVar[bool] = False
    screen: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    reported: ClassVar[bool] = False
    work: ClassVar[str] = ""

    def run(self, asked: O) -> Any:
        """Run it.

        Raises:
            UserError: anything that the caller can fix; the message says how.
        """
        while True:
            try:
                with calling(asked):
                    return place(self.runs)(self, asked)
            except GivesOtherwise as found:
                asked = said_what_it_gives(asked, found)

    def print_result(self, found: Any, folder: str, console: Console) -> None:
        """Print a result, given also its folder."""
        place(self.screen)(found, folder, console)

    def passed(self, found: Any) -> bool:
        """Whether it ends with exit code 0."""
        return True

    def positional(self) -> list[str]:
        """Return the options that Python takes without their names."""
        every = declared(self.Options).values()
        return [one.name for one in every if one.about.in_python or one.about.positional]

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return options of a small run, by which it is tried.

        Args:
            folder: empty; for the files that the run needs.

        Raises:
            UserError: it has none, and cannot be tried.
        """
        raise UserError(
            f"the experiment {self.name!r} has no specimen to try it with; write its specimen(), "
            "see docs/conformance.md"
        )

    @property
    def several(self) -> bool:
        """Whether it takes several models, and leaves a run for each."""
        return issubclass(self.Options, groups.Models)

    def again(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a request, which anyone may have edited.

        Raises:
            TypeError: one is missing or unknown.
            ValueError: one is of another type.
        """
        from pydantic import TypeAdapter, ValidationError

        found = dict(arguments)
        if self.several:
            found["models"] = [found.pop("model")]
        known = {name: one for name, one in declared(self.Options).items() if one.about.asked}
        for name, value in found.items():
            if name not in known:
                raise TypeError(unknown("argument", name, known))
            try:
                TypeAdapter(known[name].type).validate_python(value, strict=True)
            except ValidationError as error:
                raise ValueError(f"{name}: {error.errors()[0]['msg']}") from error
        shape: Any = self.Options
        shape(**found, out=Path())
        return found


class Experiment(Command[O]):
    """A command that leaves runs: a job. :meth:`run` gives a :class:`simulator.Result`, or a list.

    Attributes:
        verdict: ``module:function`` that gives what a summary says, see
            :class:`simulator.report.verdicts.told.Told`.
        gate: whether rules can judge its runs.
        tables: its tables for documents and other programs, by their names: ``module:function``,
            which makes one of the summaries, one for each model, and of whether other programs read
            it, as CSV. The first is the usual one.
        together: whether the runs of several models are shown on one screen.
        compared: ``module:function`` that compares the runs of several models, given their folders,
            a folder for the page, the terminal, what is printed (``text``, ``json``, a form of
            tables or ``quiet``) and ``allow_failed``; it gives an exit code.
        reported: whether its runs have a page.
        signed: whether its runs can be signed.
        in_process: why its samples run in this process only; empty: any executor may run them.
        on_servers: whether an executor of several processes runs all of it in each of them.
    """

    returns: ClassVar[str] = "The summary, and where the run was written."
    json: ClassVar[bool] = True
    verdict: ClassVar[str] = ""
    gate: ClassVar[bool] = True
    tables: ClassVar[Mapping[str, str]] = {}
    together: ClassVar[bool] = False
    compared: ClassVar[str] = ""
    reported: ClassVar[bool] = True
    signed: ClassVar[bool] = False
    in_process: ClassVar[str] = ""
    on_servers: ClassVar[bool] = False

    def question(self, summary: Any) -> tuple[str, str]:
        """Return the title of a run's page, and its question: the first line of the help."""
        help_text = inspect.cleandoc(self.__doc__ or f"{self.about}.")
        return f"{summary.model}: {self.name}", help_text.partition("\n")[0]

    def show(self, found: Sequence[Any], console: Console) -> None:
        """Print a run, or those of several models where they are shown together.

        Args:
            found: each a :class:`simulator.Result`.
            console: where they go.
        """
        for one in found:
            self.print_result(one.summary, str(one.folder), console)

    def printed(self, summaries: Sequence[Any], form: str, table: str | None) -> str:
        """Return a table of runs, None being the usual one, in one of the forms of tables."""
        make = place(self.tables[table or next(iter(self.tables))])
        write = place("simulator.report.table:FORMS")[form]
        return str(write(make(summaries, form == "csv")))

    def notes(self, summary: Any) -> list[str]:
        """Return what the screen says besides the table, for the other formats."""
        return []

    def report(self, folder: Path) -> None:
        """Write the page of a run."""
        place("simulator.report.page:write")(folder)

    def passed(self, summary: Any) -> bool:
        """Whether a finished run ends with exit code 0."""
        return bool(summary.gate.passed)


def place(reference: str) -> Any:
    """Import what ``module:name`` says."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


class _Experiments(Table[type[Command[Any]]]):
    """Every experiment, by the name of its command; and commands whose results are no runs."""

    def of(self, name: str) -> Any:
        """Return one, ready to run."""
        return self[name]()


EXPERIMENTS = _Experiments(
    "simulator.experiments",
    "experiment",
    lambda found: isinstance(found, type) and issubclass(found, Command),
)


def called_in_python(name: str) -> str:
    """Return the name of an experiment's function; ``run`` is ``compare``."""
    return "compare" if name == "run" else name.replace("-", "_")


def function(name: str) -> Callable[..., Any]:
    """Return the Python function of an experiment, with its signature and its documentation."""
    experiment = EXPERIMENTS.of(name)
    every = declared(experiment.Options)
    first, called = experiment.positional(), called_in_python(name)

    def call(*values: Any, **named: Any) -> Any:
        if len(values) > len(first):
            raise TypeError(f"{called}() takes {len(first)} values without names at most")
        for option in named:
            if option not in every:
                raise TypeError(unknown("option", option, every))
        found = dict(zip(first, values, strict=False))
        if twice := found.keys() & named:
            raise TypeError(f"{called}() got {min(twice)!r} twice")
        asked = experiment.Options(**found, **named)
        return experiment.run(place("simulator.experiments.in_memory:placed")(asked))

    call.__name__ = call.__qualname__ = called
    call.__module__ = "simulator"
    call.__doc__ = _documented(experiment, every)
    call.__signature__ = _signature(every, first)  # type: ignore[attr-defined]
    return call


def _signature(every: Mapping[str, Declared], first: Sequence[str]) -> inspect.Signature:
    def parameter(one: Declared) -> inspect.Parameter:
        kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        default = inspect.Parameter.empty if one.required else one.default
        return inspect.Parameter(
            one.name, kinds[one.name in first], default=default, annotation=taken(one)
        )

    found = [parameter(every[name]) for name in first]
    rest = [one for one in every.values() if one.name not in first]
    return inspect.Signature([*found, *map(parameter, sorted(rest, key=lambda o: not o.required))])


def _documented(experiment: Command[Any], every: Mapping[str, Declared]) -> str:
    lines = [f"    {one.name}: {said(one)}." for one in every.values()]
    examples = (inspect.getdoc(place(experiment.runs)) or "").partition("\nExamples:\n")
    return "\n".join(
        [
            inspect.cleandoc(experiment.__doc__ or ""),
            "", "Args:", *lines,
            "", "Returns:", f"    {experiment.returns}",
            "", "Raises:", "    UserError: anything that the caller can fix; it says how.",
            *(["", "Examples:", examples[2]] if examples[2] else []),
        ]
    )  # fmt: skip
