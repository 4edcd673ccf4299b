"""Several machines, as Ray sees them: each stack runs on one that has what it needs."""

import json
import os
import platform
import signal
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import tiny
from drivers import PAIR, STACKS, ended, parts, records, started, wait_for_more
from failing import TURBO, mixed

from simulator import cli, compare

pytestmark = pytest.mark.prove

BOXES = ["train.runtime.resources={train_box: 1}", "deploy.runtime.resources={deploy_box: 1}"]


def surroundings():
    """What a throw-away cluster and those who join it share.

    With gRPC's support of forks the client server may start no process for a client: grpcio 1.85.
    """
    return {
        **os.environ,
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


class Boxes:
    """A cluster of machines that do not see *hidden*, but for the first.

    It leads every process into the folder where that was started: ours and those of the first
    machine into one, those of the others into another. No rights are needed for that.

    Attributes:
        hidden: a path.
        home: the folder behind it, for those who see it.
        cache: of the machines that do not see it.
        address: where a node of the cluster finds it.
        client: where others do.
        train: the number of the first machine.
        deploy: the number of the last one that was added.
    """

    def __init__(self, folder):
        self.hidden, self.home, self.cache = (folder / name for name in ("hidden", "home", "cache"))
        self.hidden.symlink_to("/proc/self/cwd")
        self.home.mkdir()
        self.cache.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        script = Path(__file__).with_name("two_boxes.py")
        self._log = folder / "log"
        with self._log.open("w") as log:
            self._cluster = subprocess.Popen(
                [sys.executable, script, str(port), self.cache], cwd=self.home,
                env=surroundings(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log,
            )  # fmt: skip
        self.address, self.train = self._said()
        self.client = f"//127.0.0.1:{port}"
        self._raylets = []

    def add(self):
        """Add a machine."""
        self._cluster.stdin.write("add\n")
        self._cluster.stdin.flush()
        self.deploy, raylet = self._said()
        self._raylets.append(int(raylet))

    def lose(self):
        """Lose the machine that was added first."""
        os.kill(self._raylets.pop(0), signal.SIGKILL)

    def close(self):
        self._cluster.stdin.close()
        self._cluster.wait()
        self._cluster.stdout.close()

    def _said(self):
        for words in map(str.split, self._cluster.stdout):
            if words[:1] == ["box"]:
                return words[1:]
        raise AssertionError(self._log.read_text())


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    found = Boxes(tmp_path_factory.mktemp("boxes"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found.home)
        found.add()
        yield found
    found.close()


def on(place, *command):
    """A command on the cluster, in a process of its own."""
    return started(*command, executor=f"ray:{place}", **surroundings())


def pair(card, data, out, *overrides):
    return (
        *STACKS, "--model", card, "--data", data, "--out", out,
        *(word for one in overrides for word in ("--set", one)),
    )  # fmt: skip


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def test_each_stack_runs_on_its_own_box(boxes, tmp_path):
    """From outside of the cluster; the second box gets the model and the images sent.

    One image is broken, and two are PNGs, on which the deployment fails alone.
    """
    card, data = tiny.card(boxes.hidden / "one"), mixed(boxes.hidden / "data", pngs=2, jpegs=4)
    (data / "red" / "broken.jpg").write_bytes(b"no JPEG")
    own = [*BOXES, TURBO]
    here = compare(*PAIR, model=card, data=data, out=tmp_path / "here", overrides=own)

    told = ended(on(boxes.client, *pair(card, data, tmp_path / "there", *own)))

    assert told[0] == 0, told[1]
    assert here.summary.failed["deploy"].count == 2
    assert records(tmp_path / "there").equals(records(here.folder))
    nodes = manifest(tmp_path / "there")["executor"]["nodes"]
    assert [one["node"] for one in nodes["train"]] == [boxes.train]
    assert [one["node"] for one in nodes["deploy"]] == [boxes.deploy]
    one, two = (json.loads((folder / "summary.json").read_text())
                for folder in (here.folder, tmp_path / "there"))  # fmt: skip
    assert two["alone"] == one["alone"] and two["axes"] == one["axes"]
    assert [notice["kind"] for notice in one["warnings"]].count("elsewhere") == 2
    assert "elsewhere" not in [notice["kind"] for notice in two["warnings"]]
    for picture in sorted(here.folder.rglob("*.png")):
        copy = tmp_path / "there" / picture.relative_to(here.folder)
        assert copy.read_bytes() == picture.read_bytes()
    sent = [file.read_bytes() for file in boxes.cache.rglob("*.onnx")]
    assert (card.parent / "model.onnx").read_bytes() in sent


def test_a_resource_that_no_node_has_is_refused(boxes, card, data, tmp_path):
    command = on(
        boxes.address, *pair(card, data, tmp_path / "out", "deploy.runtime.resources={ascend: 2}")
    )
    code, said = ended(command)

    assert code == 2
    (line,) = said.splitlines()
    assert "needs {ascend: 2}, and no node of the cluster has that" in line
    assert "train_box 1" in line and "deploy_box 1" in line


def test_nodes_are_lost(boxes, tmp_path):
    """One of two: the other goes on. The last one: what was done stays, and a third one finishes.

    None of the two sees the images, which are sent; the deployment runs batches. The third one
    does: a run that goes on takes its paths from the manifest, where no link is in them.
    """
    card, data = tiny.card(boxes.hidden / "two"), boxes.hidden / "many" / "red"
    data.mkdir(parents=True)
    wide = np.broadcast_to(np.linspace(0, 255, 1000)[None, :, None], (1000, 1000, 3))
    (data / "000.jpg").write_bytes(tiny.encoded(wide.astype(np.uint8)))
    for at in range(1, 400):
        (data / f"{at:03}.jpg").symlink_to("000.jpg")
    both = [f"{stack}.runtime.resources={{deploy_box: 1}}" for stack in ("train", "deploy")]
    overrides = [*both, "deploy.runtime.batch=4"]
    given = {"model": card, "data": data.parent, "overrides": overrides, "quick": True}
    here = compare(*PAIR, **given, out=tmp_path / "here")
    boxes.add()
    out = tmp_path / "out"

    run = on(boxes.address, *pair(card, data.parent, out, *overrides), "--quick")
    wait_for_more(run, out)
    boxes.lose()
    assert run.stderr.readline().startswith("note: a worker ended")
    wait_for_more(run, out)
    boxes.lose()
    code, said = ended(run)
    assert code == 2, said
    *notes, line = said.splitlines()
    assert {note[:5] for note in notes} == {"note:"}
    assert "needs {deploy_box: 1}, and the last node that had that is lost; what was done" in line
    assert manifest(out)["status"] != "complete" and parts(out)
    boxes.add()
    code, said = ended(on(boxes.address, "resume", out))

    assert code == 0, said
    assert records(out).equals(records(here.folder))
    (node,) = manifest(out)["executor"]["nodes"]["deploy"]
    assert (node["node"], node["python"]) == (boxes.deploy, platform.python_version())
    assert node["versions"]["onnxruntime"] == version("onnxruntime")
    assert not cli.main(["report", str(out)])
