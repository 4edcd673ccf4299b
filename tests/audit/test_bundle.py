"""Bundles from strangers: one clear line for each that is not what it should be."""

import hashlib
import json
import stat
import struct
import zipfile

import pytest
from audits import changed, verified
from hypothesis import given
from hypothesis import strategies as st

from simulator import cli
from simulator.audit import archive, bundle
from simulator.errors import RunError

MEMBERS = {"audit.yaml": b"abc", "manifest.json": b"{}", "summary.json": b"{}"}


def listed(members):
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    return json.dumps({"schema": 1, "algorithm": "sha256", "digests": digests}).encode()


@pytest.fixture
def good(tmp_path):
    place = tmp_path / "good.zip"
    archive.write(place, tmp_path, [], {**MEMBERS, "digests.json": listed(MEMBERS)})
    return place


@pytest.fixture
def hostile(tmp_path):
    """Write a zip file of (name, content, attributes) with the members that every bundle has."""

    def write(*members, **options):
        place = tmp_path / "hostile.zip"
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in {**MEMBERS, "digests.json": listed(MEMBERS)}.items():
                packed.writestr(name, content)
            for name, content, mode in members:
                info = zipfile.ZipInfo(name)
                info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
                packed.writestr(info, content)
        return place

    return write


def test_what_was_not_changed_is_intact(good, finished, capsys):
    """And has the digest that anybody's tools give; another one is told."""
    found = verified(good)
    assert (found.members, found.problems) == (3, ())
    assert found.sha256 == hashlib.sha256(good.read_bytes()).hexdigest()
    assert cli.main(["verify", str(good)]) == cli.USER_ERROR
    assert "audit.yaml" in capsys.readouterr().err

    own = hashlib.sha256(finished.bundle.read_bytes()).hexdigest()
    given = ["verify", str(finished.bundle), "--digest"]
    assert cli.main([*given, own.upper()]) == cli.PASS
    assert f"intact, {verified(finished.bundle).members} members" in capsys.readouterr().out
    assert cli.main([*given, "00" * 32]) == cli.GATE_FAILED
    assert f"the digest differs: {'00' * 32} was expected" in capsys.readouterr().out
    assert cli.main([*given, own[:8]]) == cli.USER_ERROR
    assert "expected the 64 hexadecimal digits of a SHA-256" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m: m.update({"audit.yaml": b"b"}), "changed: audit.yaml"),
        (lambda m: m.pop("audit.yaml"), "missing: audit.yaml"),
        (lambda m: m.update({"more.txt": b""}), "added: more.txt"),
    ],
)
def test_what_was_changed_is_named(good, tmp_path, capsys, change, problem):
    place = changed(good, tmp_path / "other.zip", change)

    assert verified(place).problems == (problem,)
    assert cli.main(["verify", str(place)]) == cli.GATE_FAILED
    assert problem in capsys.readouterr().out


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (("../up.json", b"", 0), "is not a path below a folder"),
        (("/etc/passwd", b"", 0), "is not a path below a folder"),
        (("a//b", b"", 0), "is not a path below a folder"),
        (("folder/", b"", 0), "is not a path below a folder"),
        (("C:\\a", b"", 0), "is not a path below a folder"),
        (("a\x1bb", b"", 0), "is not a path below a folder"),
        (("Audit.YAML", b"", 0), "is there twice"),
        (("audit.yaml", b"other", 0), "is there twice"),
        (("link", b"/etc/passwd", stat.S_IFLNK | 0o777), "is a link"),
        (("pipe", b"", stat.S_IFIFO), "is not a regular file"),
        (("bomb", bytes(2**22), 0), "would unpack"),
    ],
)
def test_what_no_bundle_holds_is_refused_before_it_is_read(hostile, capsys, recwarn, member, said):
    place = hostile(member)

    assert cli.main(["verify", str(place)]) == cli.USER_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert "nothing was read" in line


def test_more_than_all_members_may_have_is_refused(good, monkeypatch):
    monkeypatch.setattr(archive, "MOST_BYTES", 10)
    with pytest.raises(RunError, match="would unpack to"):
        verified(good)
    monkeypatch.setattr(archive, "MOST_MEMBERS", 3)
    with pytest.raises(RunError, match="4 members; 3 at most"):
        verified(good)


def test_a_size_that_is_not_true_is_found(good, tmp_path):
    """The central directory says one byte of the three that audit.yaml has."""
    content = bytearray(good.read_bytes())
    at = content.index(b"PK\x01\x02")
    assert content[at + 46 : at + 56] == b"audit.yaml"
    content[at + 24 : at + 28] = struct.pack("<I", 1)
    place = tmp_path / "lies.zip"
    place.write_bytes(content)

    (problem,) = verified(place).problems
    assert problem.startswith("audit.yaml is damaged: ")


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip file", bytes(1000)])
def test_what_is_no_zip_file_is_no_bundle(tmp_path, capsys, content):
    place = tmp_path / "x.zip"
    place.write_bytes(content)

    assert cli.main(["verify", str(place)]) == cli.USER_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert "not a bundle, or one that was cut off" in line
    assert cli.main(["replay", str(place)]) == cli.USER_ERROR
    assert cli.main(["verify", str(tmp_path / "absent.zip")]) == cli.USER_ERROR


@pytest.mark.parametrize(
    ("digests", "said"),
    [
        (b"[]", "not a JSON object"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"{}", "not of schema 1"),
        (b'{"schema": 1, "algorithm": "md5", "digests": {}}', "not of schema 1 with sha256"),
        (b'{"schema": 1, "algorithm": "sha256", "digests": [1]}', "no digest of each member"),
        (b'{"schema": 1, "algorithm": "sha256", "digests": {}}', "lacks audit.yaml, manifest"),
    ],
)
def test_a_list_of_digests_that_is_none(good, tmp_path, digests, said):
    place = changed(good, tmp_path / "x.zip", lambda m: m.update({"digests.json": digests}))

    with pytest.raises(RunError, match=said):
        verified(place)


@given(st.data())
def test_a_damaged_bundle_is_never_intact_and_never_a_crash(tmp_path_factory, data):
    """Cut off, or with one bit turned round, wherever that is."""
    folder = tmp_path_factory.mktemp("bundle")
    place = folder / "good.zip"
    archive.write(place, folder, [], {**MEMBERS, "digests.json": listed(MEMBERS)})
    content = bytearray(place.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    original = verified(place)
    place.write_bytes(content)
    try:
        found = verified(place)
    except RunError as error:
        said = str(error)
    else:
        said = "" if found.sha256 == original.sha256 else "another bundle"
    assert len(said.splitlines()) == 1


def test_the_same_run_gives_the_same_bytes(audited):
    """Dates of files are not in it, nor the order in which the system lists them."""
    first = (audited / "bundle.zip").read_bytes()
    (audited / "profiles" / "train.yaml").touch()

    bundle.write(audited, {"manifest.json": (audited / "manifest.json").read_bytes()})

    assert (audited / "bundle.zip").read_bytes() == first
    with zipfile.ZipFile(audited / "bundle.zip") as packed:
        assert packed.namelist() == sorted(packed.namelist())
        assert {one.date_time for one in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_sha256sum_and_unzip_agree(finished):
    """The digests are those that anybody's tools give."""
    with zipfile.ZipFile(finished.bundle) as packed:
        digests = json.loads(packed.read("digests.json"))["digests"]
        found = {n: hashlib.sha256(packed.read(n)).hexdigest() for n in packed.namelist()}

    del found["digests.json"]
    assert found == digests
    digest = hashlib.sha256(finished.bundle.read_bytes()).hexdigest()
    assert digest in (finished.folder / "audit.md").read_text()
