"""The case book: run the cases of docs/cases, and write docs/cases.md.

python tools/cases.py [CASE ...]            run these, or all, write what they print, and the page
python tools/cases.py --figures [CASE ...]  the same for the comparisons whose figures are shown
python tools/cases.py --check               run nothing; exit 1 if the page is not that of the files

A case is a folder with ``case.yaml``, the two stacks as code and as profiles, and
``printed.yaml``, which this tool writes. Commands run in a copy of the folder, after its
``prepare.py``, if it has one. NAMES has
what stands for ``$DATA`` and the like. tests/test_cases.py holds what is printed, and the report's
own cause in it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import string
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field

ROOT = Path(__file__).parent.parent
BOOK, PAGE = ROOT / "docs" / "cases", ROOT / "docs" / "cases.md"
DATA, CARDS = ROOT.parent / "shared" / "data", ROOT / "tests" / "cards"
NAMES = {
    "DATA": str(DATA),
    "CARDS": str(CARDS),
    "PHOTOS": f"--model {DATA}/models/mobilenet_v2.onnx --data {DATA}/imagenet/val50",
    "MORE_PHOTOS": f"--model {DATA}/models/mobilenet_v2.onnx --data {DATA}/imagenet/train500",
    "BOXES": f"--model {CARDS}/yolox_nano.yaml --data {CARDS}/coco_boxes.yaml",
}
PRINTED = "printed.yaml"
HEAD = """# The case book

Reports from public trackers: a model answered otherwise after deployment, and somebody found the
cause by hand; the last ones are common slips. Each case has both stacks as small code of our own
and as profiles, the commands, and what they print first, once where it is the same. *Cause* and
*figures* are the report's, and the tool finds that cause; where it is not quite so, *here* says it.

- `$DATA` is a folder of images and small networks, `$CARDS` is [`tests/cards`](../tests/cards);
  both are exported, and so are
  `PHOTOS="--model $DATA/models/mobilenet_v2.onnx --data $DATA/imagenet/val50"`,
  `MORE_PHOTOS`, the same with `train500`, and
  `BOXES="--model $CARDS/yolox_nano.yaml --data $CARDS/coco_boxes.yaml"`.
- In its folder, `python prepare.py` makes a case's files, where it has one. Commands are for sh
  and bash.
- "{SAME}" is left out of what is printed.
- `# slow`: the command searches for up to a minute.
- `python tools/cases.py` makes this page; `make prove` runs every command that is not slow, and
  holds its answer against the report's cause.

"""
SAME = "The network and the postprocessing are the same on both sides."


class Figures(BaseModel):
    """A figure of a report, and the command that measures ours.

    Attributes:
        theirs: what the report says.
        command: whose first lines stand beside it.
        why: why ours are others.
    """

    model_config = ConfigDict(extra="forbid")
    theirs: str
    command: str
    why: str


class Case(BaseModel):
    """``case.yaml``.

    Attributes:
        title: what happened, in a few words.
        report: where it was told.
        stacks: the training's and the deployment's, as in the report.
        cause: the report's conclusion.
        commands: that answer it, by code and by profile.
        slow: likewise, which search for up to a minute; the tests leave them out.
        names: what each answer must say; alternatives between bars.
        same: whether our conclusion is the report's; what differs.
        figures: of the report, and ours.
    """

    model_config = ConfigDict(extra="forbid")
    title: str
    report: str
    stacks: str
    cause: str
    commands: list[str] = Field(min_length=1)
    slow: list[str] = []
    names: list[str] = Field(min_length=1)
    same: str
    figures: list[Figures] = []


def cases() -> list[Path]:
    """Return the folders of all cases, in their order."""
    return sorted(path.parent for path in BOOK.glob("*/case.yaml"))


def read(folder: Path) -> Case:
    """Return a case."""
    return Case.model_validate(yaml.safe_load((folder / "case.yaml").read_text("utf-8")))


def printed(folder: Path) -> dict[str, str]:
    """Return what each command of a case printed first, by the command."""
    path = folder / PRINTED
    return yaml.safe_load(path.read_text("utf-8")) if path.is_file() else {}


def arguments(command: str) -> list[str]:
    """Return the words of a command behind ``simulate``, with the names in it replaced."""
    first, *rest = shlex.split(string.Template(command).substitute(NAMES))
    assert first == "simulate", command
    return rest


def answer(text: str) -> str:
    """Return the first paragraph that a command printed, on one line."""
    return " ".join(text.strip().partition("\n\n")[0].partition("\nnext: ")[0].split())


def prepare(place: Path) -> None:
    """Run what a copy of a case's folder needs first."""
    if (place / "prepare.py").is_file():
        words = [sys.executable, "prepare.py"]
        subprocess.run(words, cwd=place, env=os.environ | NAMES, check=True)


def run(folder: Path, command: str) -> str:
    """Run a command in a copy of a case's folder; return its answer."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(folder, place, dirs_exist_ok=True)
        prepare(Path(place))
        path = Path(sys.executable).with_name("simulate")
        words = [str(path), *arguments(command)]
        wide = os.environ | NAMES | {"COLUMNS": "120"}
        done = subprocess.run(
            words, cwd=place, env=wide, capture_output=True, text=True, check=False
        )
    if done.returncode not in (0, 1, 2):
        sys.exit(f"{folder.name}: {command}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
    return answer(done.stdout or done.stderr)


def page() -> str:
    """Return the text of the page, from the files."""
    texts = [f"## {at}. {text}" for at, text in enumerate(map(_section, cases()), 1)]
    return HEAD.replace("{SAME}", SAME) + "\n".join(texts)


def _section(folder: Path) -> str:
    case, said = read(folder), printed(folder)
    return "\n".join(_lines(folder, case, said)) + "\n"


def _lines(folder: Path, case: Case, said: dict[str, str]) -> Iterator[str]:
    yield f"{case.title}\n\n{case.stacks} ({case.report}; [files](cases/{folder.name})).\n"
    by_answer: dict[str, list[str]] = {}
    for command in (*case.slow, *case.commands):
        mark = "  # slow" if command in case.slow else ""
        by_answer.setdefault(said.get(command, ""), []).append(f"$ {command}{mark}")
    for text, commands in by_answer.items():
        lines = "\n".join(commands)
        yield f"```\n{lines}\n{text.replace(f' {SAME}', '')}\n```\n"
    yield f"Cause: {case.cause}{_differs(case.same)}\n"
    for one in case.figures:
        yield f"Figures: {one.theirs}. Here ({one.why}):\n"
        yield f"```\n$ {one.command}\n{said.get(one.command, '')}\n```\n"


def _differs(same: str) -> str:
    return "" if same == "Yes." else f" Here: {re.sub('^Yes[.,;] (and )?', '', same)}"


def main(words: list[str]) -> int:
    """Run the tool and return its exit code."""
    if words == ["--check"]:
        if PAGE.read_text("utf-8") == page():
            return 0
        print(f"{PAGE} is not that of docs/cases; run: python tools/cases.py", file=sys.stderr)
        return 1
    figures = words[:1] == ["--figures"]
    chosen = words[1:] if figures else words
    for folder in cases():
        if chosen and folder.name not in chosen and folder.name.partition("-")[0] not in chosen:
            continue
        case, said = read(folder), printed(folder)
        asked = [one.command for one in case.figures] if figures else [*case.slow, *case.commands]
        said |= {command: run(folder, command) for command in asked}
        known = {*case.slow, *case.commands, *(one.command for one in case.figures)}
        said = {command: text for command, text in said.items() if command in known}
        (folder / PRINTED).write_text(yaml.safe_dump(said, width=120, sort_keys=True), "utf-8")
        print(f"{folder.name}: {'; '.join(said[one] for one in asked)}")
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
