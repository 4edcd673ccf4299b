"""The commit of the checkout in which a command is started; a hostile one starts nothing."""

import os
import shutil
import subprocess

import pytest

from simulator import checkout

SHA = "0123456789abcdef0123456789abcdef01234567"
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder, *words):
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=own, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    """No job of a CI service, and nothing remembered."""
    for name in checkout.CI:
        monkeypatch.delenv(name, raising=False)
    checkout._commit.cache_clear()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "repository"
    (folder / "inner").mkdir(parents=True)
    git(folder, "init")
    (folder / "file").write_text("one\n")
    git(folder, "add", "file")
    git(folder, "commit", "-m", "first")
    monkeypatch.chdir(folder / "inner")
    return folder


def found():
    checkout._commit.cache_clear()
    return checkout.commit()


@needs_git
def test_the_commit_and_whether_files_were_changed(repository):
    sha = git(repository, "rev-parse", "HEAD")
    assert found() == {"sha": sha, "dirty": False, "source": "checkout"}

    (repository / "untracked").write_text("")
    assert found()["dirty"] is False
    (repository / "file").write_text("two, and longer\n")
    assert found() == {"sha": sha, "dirty": True, "source": "checkout"}
    git(repository, "add", "file")
    assert found()["dirty"] is True


@needs_git
@pytest.mark.parametrize("how", [["pack-refs", "--all"], ["checkout", "--detach"]])
def test_packed_and_detached(repository, how):
    sha = git(repository, "rev-parse", "HEAD")
    git(repository, *how)

    assert found() == {"sha": sha, "dirty": False, "source": "checkout"}


@needs_git
def test_a_worktree(repository, tmp_path, monkeypatch):
    git(repository, "worktree", "add", "-b", "other", str(tmp_path / "tree"))
    git(tmp_path / "tree", "commit", "--allow-empty", "-m", "second")
    monkeypatch.chdir(tmp_path / "tree")

    sha = git(tmp_path / "tree", "rev-parse", "HEAD")
    assert sha != git(repository, "rev-parse", "HEAD")
    assert found() == {"sha": sha, "dirty": False, "source": "checkout"}


@needs_git
def test_a_hostile_configuration_starts_nothing(repository, tmp_path):
    """With each of these, ``git status`` itself would run the program."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\ncat\n")
    program.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(program))
    git(repository, "config", "filter.bad.clean", str(program))
    (repository / ".gitattributes").write_text("* filter=bad\n")
    (repository / "file").write_text("two\n")

    assert found()["dirty"] is True
    assert not (tmp_path / "started").exists()
    subprocess.run(["git", "status"], cwd=repository, check=False, capture_output=True)
    assert (tmp_path / "started").exists(), "the trap itself does not work"


@pytest.mark.parametrize(
    "head",
    [
        "", "nothing", "ref: ../../secret", "ref: refs/../../secret", "ref: /etc/passwd",
        "ref: refs/heads/absent", "ref: refs/heads/.invalid", "x" * 70_000,
    ],
)  # fmt: skip
def test_a_head_that_is_none_is_nothing(tmp_path, monkeypatch, head):
    (tmp_path / "secret").write_text(SHA)
    place = tmp_path / "checkout" / ".git"
    place.mkdir(parents=True)
    (place / "HEAD").write_text(head)
    monkeypatch.chdir(place.parent)

    assert found() is None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda place: os.symlink(place, place)])
def test_a_head_that_is_no_file_is_nothing(tmp_path, monkeypatch, make):
    (tmp_path / ".git").mkdir()
    make(tmp_path / ".git" / "HEAD")
    monkeypatch.chdir(tmp_path)

    assert found() is None


def test_without_git_it_is_not_known_whether_files_were_changed(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(SHA)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert found() == {"sha": SHA, "dirty": None, "source": "checkout"}


@pytest.mark.parametrize("name", checkout.CI)
def test_the_commit_of_a_job(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, SHA)
    assert found() == {"sha": SHA, "dirty": None, "source": name}

    monkeypatch.setenv(name, "<script>")
    assert found() is None
