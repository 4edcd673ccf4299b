"""An experiment and a command that are right, on tiny data, and others, each with one fault."""

import shutil
from dataclasses import make_dataclass, replace
from typing import Annotated

import tiny

from simulator.command.options import Option
from simulator.experiments.compare.experiment import Compare, CompareOptions
from simulator.robustness.corrupt import Corrupt, CorruptOptions


class Correct(Compare):
    """Compares two stacks."""

    def specimen(self, folder):
        return {
            "train": "pillow_fp32", "deploy": "opencv_fp32", "quick": True,
            "model": str(tiny.card(folder)), "data": str(tiny.data(folder / "data", 1)),
        }  # fmt: skip


def with_one_more(options, name, kind, default):
    """Options with one that the right ones lack."""
    return make_dataclass("More", [(name, kind, default)], bases=(options,), frozen=True,
                          kw_only=True)  # fmt: skip


SILENT = "depth", Annotated[int, Option(" ")], 0
IN_PERCENT = "share", Annotated[float, Option("s", parse=lambda text: float(text) / 100)], 0.0


class HalfAShare:
    """The shown command line says a share, the option takes a percentage."""

    def specimen(self, folder):
        return super().specimen(folder) | {"share": 0.5}


class Unheard:
    """Nobody is told of samples."""

    def run(self, asked):
        return super().run(asked.without(progress=None))


class Unexplained(Correct):
    """An option has no help."""

    Options = with_one_more(CompareOptions, *SILENT)


class ReadOtherwise(HalfAShare, Correct):
    """It reads a share otherwise than it says it."""

    Options = with_one_more(CompareOptions, *IN_PERCENT)


class BeginsAnother(Correct):
    """A run that goes on is one of other samples."""

    def run(self, asked):
        return super().run(asked.without(limit=2) if asked.resume else asked)


class ForgetsWhatItSaw(Correct):
    """The figures of a run that goes on are others."""

    def run(self, asked):
        found = super().run(asked)
        if asked.resume:
            place = found.folder / "summary.json"
            place.write_text(place.read_text().replace('"samples": ', '"samples": 1'))
        return found


class SaysNoProgress(Unheard, Correct):
    """It runs its samples in silence."""


class ReturnsAnother(Correct):
    """What is returned is not what was written."""

    def run(self, asked):
        found = super().run(asked)
        return replace(found, summary=found.summary.model_copy(update={"seconds": -1.0}))


class EmptyPage(Correct):
    """The page says nothing."""

    def report(self, folder):
        (folder / "report.html").write_text("<html></html>")


class EmptyScreen(Correct):
    """The screen says nothing."""

    def show(self, found, console):
        pass


class Secretive(Correct):
    """The screen always says the same, and there is no page."""

    reported = False

    def show(self, found, console):
        console.print("done")


class TakesAnything(Correct):
    """An unknown option of a request is left out."""

    def again(self, arguments):
        return {name: value for name, value in arguments.items() if name in self.known()}

    def known(self):
        return {"train", "deploy", "quick", "model", "data", "limit", "seed"}


class KnowsEveryFigure(Correct):
    """Rules on figures that there are not are left out."""

    def run(self, asked):
        return super().run(asked.without(fail_on=()))


class Overwrites(Correct):
    """Every run replaces what is there."""

    def run(self, asked):
        return super().run(asked.without(overwrite=not asked.resume))


FAULTS = {
    "every_option_is_explained": [Unexplained],
    "the_command_line_says_the_request": [ReadOtherwise],
    "an_interrupted_run_goes_on": [BeginsAnother, ForgetsWhatItSaw, SaysNoProgress],
    "its_summary_is_read_back": [ReturnsAnother],
    "the_verdict_is_shown": [EmptyPage, EmptyScreen],
    "every_figure_is_shown": [Secretive],
    "what_is_unknown_is_refused_first": [TakesAnything, KnowsEveryFigure],
    "a_run_is_not_overwritten": [Overwrites],
}
"""Check → experiments that trip it, and no other."""


class CorrectCommand(Corrupt):
    """Writes images under a condition."""

    def specimen(self, folder):
        return {
            "under": ["jpeg:50"], "workers": 1,
            "model": str(tiny.card(folder)), "data": str(tiny.data(folder / "data", 1)),
        }  # fmt: skip


class UnexplainedCommand(CorrectCommand):
    """An option has no help."""

    Options = with_one_more(CorruptOptions, *SILENT)


class CommandReadOtherwise(HalfAShare, CorrectCommand):
    """It reads a share otherwise than it says it."""

    Options = with_one_more(CorruptOptions, *IN_PERCENT)


class WritesAnew(CorrectCommand):
    """A call that goes on writes other images."""

    def run(self, asked):
        before = list(asked.out.rglob("*.jpg"))
        found = super().run(asked)
        for place in before:
            place.write_bytes(b"other")
        return found


class CommandSaysNoProgress(Unheard, CorrectCommand):
    """It writes its images in silence."""


class CommandTakesAnything(CorrectCommand):
    """An unknown option of a request is left out."""

    def again(self, arguments):
        return {name: arguments[name] for name in ("under", "model", "data", "limit", "seed")}


class CommandOverwrites(CorrectCommand):
    """Every other call replaces what is there."""

    def run(self, asked):
        if asked.seed:
            shutil.rmtree(asked.out, ignore_errors=True)
        return super().run(asked)


COMMAND_FAULTS = {
    "every_option_is_explained": [UnexplainedCommand],
    "the_command_line_says_the_request": [CommandReadOtherwise],
    "an_interrupted_run_goes_on": [WritesAnew, CommandSaysNoProgress],
    "what_is_unknown_is_refused_first": [CommandTakesAnything],
    "a_run_is_not_overwritten": [CommandOverwrites],
}
"""Check → commands that leave no run and trip it, and no other."""
