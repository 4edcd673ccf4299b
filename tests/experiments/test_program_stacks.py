"""A stack that is a user's own program: what it writes reaches the network, and what it breaks."""

import shlex
import sys

import numpy as np
import pytest
from PIL import Image
from test_code_stacks import tensors

from simulator import compare
from simulator.errors import UserError

PROGRAM = f"""#!{sys.executable}
import os
import sys
import time

import numpy as np
from PIL import Image

kind, *rest = sys.argv[1:]


def made(path):
    image = Image.open(path).convert("RGB").resize((32, 32), Image.Resampling.BOX)
    return (np.asarray(image, np.float32).transpose(2, 0, 1) - 127) / 64


with open("calls", "a") as calls:
    print(kind, file=calls)
if kind == "list":
    for line in open(rest[0]):
        image, target = line.rstrip("\\n").split("\\t")
        np.save(target, made(image))
    sys.exit()
image, target = rest
if kind == "npy":
    np.save(target, made(image))
elif kind == "raw":
    made(image).tofile(target)
elif kind == "npz":  # the color of the image, as the tiny network gives it
    np.savez(target, y=made(image).mean(axis=(1, 2))[None])
elif kind == "answer":
    color = made(image).mean(axis=(1, 2))
    print(color.argmax(), color.max(), file=open(target, "w"))
elif kind == "label":
    best = made(image).mean(axis=(1, 2)).argmax()
    print("red green blue".split()[best], 0.5, file=open(target, "w"))
elif kind == "objects":
    np.save(target, np.array([print, 1], object), allow_pickle=True)
elif kind == "half":
    np.save(target, made(image))
    os.truncate(target, 1000)
elif kind == "fails":
    print("cannot open the device", file=sys.stderr)
    sys.exit(3)
elif kind == "crashes":
    os.abort()
elif kind == "hangs":
    time.sleep(60)
elif kind == "floods":
    for _ in range(20000):
        print("y" * 1000, file=sys.stderr)
    np.save(target, made(image))
elif kind == "nothing":
    print("done", file=sys.stderr)
"""
NPY = "exec:./app npy {image} {tensor}"


@pytest.fixture
def app(tmp_path, monkeypatch):
    """The user's program, in the folder in which they work."""
    folder = tmp_path / "app"
    folder.mkdir()
    place = folder / "app"
    place.write_text(PROGRAM)
    place.chmod(0o755)
    monkeypatch.chdir(folder)
    return place


@pytest.fixture
def run(app, card, data, cache):
    def run_with(deploy, train="pillow_fp32", **options):
        given = {"model": card, "data": data, "out": app.parent / "run", **options}
        return compare(train, deploy, **given)

    return run_with


def expected(path):
    image = Image.open(path).convert("RGB").resize((32, 32), Image.Resampling.BOX)
    return (np.asarray(image, np.float32).transpose(2, 0, 1)[None] - 127) / 64


@pytest.mark.parametrize(
    "command",
    [NPY, "exec:./app raw {image} {tensor:raw,float32,1x3x32x32}", "exec:./app list {list}"],
)
def test_the_network_gets_what_the_program_writes(command, app, card, data, cache):
    for file, tensor in tensors(command, card, data).items():
        assert tensor.tobytes() == expected(file).tobytes()


def test_a_list_is_one_call(run, app, data):
    images = len(list(data.rglob("*.jpg")))

    found = run("exec:./app list {list}", limit=images)

    assert found.summary.samples == images
    assert [one.axis for one in found.summary.axes] == ["front_end"]
    calls = (app.parent / "calls").read_text().split()
    assert len(calls) < images + 4  # one of all, one by which it was tried, and four controls


@pytest.mark.parametrize(
    "command",
    [
        "exec:./app npz {image} {outputs}",
        "exec:./app answer {image} {answer}",
        "exec:./app label {image} {answer}",
    ],
)
def test_outputs_and_answers(command, run):
    """The network's answer is the color of the image, which the program finds as well."""
    found = run(command)

    assert found.summary.flips.count == 0
    assert [one.axis for one in found.summary.axes] == ["runtime"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exec:./app half {image} {tensor}", r"app wrote 1,000 bytes to \{tensor\} that cannot be"),
        ("exec:./app answer {image} {tensor}", "that cannot be read: it is no .npy and no .npz"),
        ("exec:./app objects {image} {tensor}", "cannot be read: Object arrays cannot be loaded"),
        ("exec:./app raw {image} {tensor:raw,float32,1x3x8x8}",
         "app wrote 12,288 bytes; float32 1x3x8x8 has 768 bytes"),
        ("exec:./app raw {image} {tensor:raw,flot,8}", "'flot' is no type of numbers"),
        ("exec:./app raw {image} {tensor:raw,object,1536}", "'object' is no type of numbers"),
        ("exec:./app fails {image} {tensor}", "app ended with exit code 3: cannot open the device"),
        ("exec:./app crashes {image} {tensor}", r"app was killed by SIGABRT \(signal 6\)"),
        ("exec:./app nothing {image} {tensor}",
         r"app wrote nothing to \{tensor\} \(it said: done\)"),
        ("exec:./app npy {image}", "app: write {image} and one of {tensor}"),
        ("exec:./nowhere {image} {tensor}", "there is no program './nowhere'"),
        ("exec:./data.txt {image} {tensor}", r"'./data.txt' is not executable \(chmod \+x\)"),
        ("exec:", "there is no program ''"),
        ("exec:./app 'x {image}", "no closing quotation"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_program_is_one_line(command, why, run, app):
    (app.parent / "data.txt").write_text("no program")
    with pytest.raises(UserError, match=why) as caught:
        run(command)

    assert "\n" not in str(caught.value)


def test_a_program_that_hangs(run):
    with pytest.raises(UserError, match=r"app did not end within 0.5 s"):
        run("exec:./app hangs {image} {tensor}", overrides=["deploy.front_end.timeout_s=0.5"])


def test_a_program_that_floods_stderr(run):
    assert run("exec:./app floods {image} {tensor}", limit=1).summary.samples == 1


def test_a_folder_with_a_space(run, app):
    place = app.parent / "my tools"
    place.mkdir()
    app.rename(place / "app")

    found = run(f"exec:{shlex.quote(str(place / 'app'))} npy {{image}} {{tensor}}")

    assert found.summary.flips.count == 0


@pytest.mark.parametrize(
    ("deploy", "batch", "message"),
    [
        ("exec:./app answer {image} {answer}", 1, "is code that shows no network; leave out on="),
        ("pillow_fp32", 2, "square asks one sample at a time; leave out runtime.batch"),
    ],
)
def test_an_attack_on_each_network_is_refused_where_none_can_be_asked(run, deploy, batch, message):
    changes = [f"deploy.runtime.batch={batch}"] if batch > 1 else []
    with pytest.raises(UserError, match=f"deploy.* {message}"):
        run(deploy, under="square:linf,8/255,on=each", overrides=changes)
