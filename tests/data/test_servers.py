"""Data behind real servers: HTTP and S3, with all that goes wrong on the way."""

import hashlib
import json
import os
import pickle

import datacards
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny
import yaml
from datacards import content, refused, tar
from web_server import breaks_off, gives, rclone, says, serving, sleeps

from simulator import places
from simulator.cli import main
from simulator.data import asking, remote
from simulator.data.address import root_of
from simulator.data.folder import IMAGES, load_folder
from simulator.data.labels import Labels
from simulator.errors import DataError, SampleError
from simulator.tasks.classification.task import Classification
from simulator.tasks.settings import Network

RED_GREEN = Labels(("red", "green"))
TASK = Classification(None, Network(RED_GREEN))


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(asking, "PAUSES", (0.01, 0.02))


@pytest.fixture
def web(tmp_path):
    """An HTTP server of a folder with one sample of 1,000 bytes, ``red/a b.jpg``."""
    (tmp_path / "red").mkdir()
    (tmp_path / "red/a b.jpg").write_bytes(b"a" * 1000)
    with serving(tmp_path) as server:
        yield server


def sample(web, name="red/a b.jpg"):
    return places.read_sample(remote.inside(web.url, name), 2000)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (says(404), "nothing is there"),
        (says(403), "the server says 403 Forbidden"),
        (says(401), "the server says 401 Unauthorized"),
        (says(503), "the server says 503 Service Unavailable"),
        (says(302, Location="/red/a%20b.jpg"), "the server redirects in a circle"),
        (says(302, Location="file:///etc/passwd"), "the server redirects to what is no web"),
        (breaks_off(99), "ClientPayloadError: .*"),
    ],
)
def test_what_a_server_refuses_costs_the_sample_one_line(web, answer, why):
    web.answers["a%20b"] = answer

    with refused(f"^cannot be read: {why}", SampleError):
        sample(web)


@pytest.mark.parametrize("answer", [says(503, 2), breaks_off(2)])
def test_what_passes_is_asked_for_again(web, answer):
    web.answers["a%20b"] = answer

    assert sample(web) == b"a" * 1000
    assert len(web.asked) == 3


def test_what_is_refused_for_good_is_asked_for_once(web):
    web.answers["a%20b"] = says(403)

    with pytest.raises(SampleError):
        sample(web)
    assert len(web.asked) == 1


def test_a_server_that_is_silent(web, monkeypatch):
    monkeypatch.setattr(asking, "SILENCE", 0.3)
    monkeypatch.setattr(asking, "PAUSES", ())
    web.answers["a%20b"] = sleeps(2)

    with pytest.raises(SampleError, match=r"cannot be read: the server gave nothing for 0\.3 s"):
        sample(web)


def test_redirects_are_followed(web):
    web.answers["old"] = says(301, Location="/red/a%20b.jpg")

    assert sample(web, "old.jpg") == b"a" * 1000


def test_a_key_of_fsspecs_configuration_goes_to_its_server_alone(web, tmp_path, monkeypatch):
    """As docs/data-cards.md says; a server to which it redirects is another one."""
    monkeypatch.setitem(fsspec.config.conf, "http", {"headers": {"Authorization": "Bearer k"}})
    keys = []

    def hears(handler):
        keys.append(handler.headers["Authorization"])
        return False

    with serving(tmp_path) as other:
        web.answers |= {"a%20b": hears, "old": says(302, Location=f"{other.url}/red/a%20b.jpg")}
        other.answers["a%20b"] = hears
        assert sample(web) == sample(web, "old.jpg") == b"a" * 1000

    assert keys == ["Bearer k", None]


def test_a_folder_that_cannot_be_listed_whole_is_refused(web, tmp_path):
    """A part of the samples would pass for all of them."""
    (tmp_path / "green").mkdir()
    (tmp_path / "green/c.jpg").write_bytes(b"c")
    web.answers["/green"] = says(403)

    with pytest.raises(DataError, match=r"cannot be listed: the server says 403 Forbidden"):
        load_folder(web.url, RED_GREEN)
    with pytest.raises(DataError, match=r"/none: cannot be listed: nothing is there"):
        load_folder(f"{web.url}/none", RED_GREEN)


def test_small_files_of_a_server_that_is_gone_are_asked_for_no_more(tmp_path, monkeypatch):
    """Each would be asked for three times, with pauses; a data set has ten thousands of them."""
    monkeypatch.setattr(remote, "AT_ONCE", 1)
    tried, whole = [], remote.Url.read

    def read(place, most):
        tried.append(place)
        return whole(place, most)

    monkeypatch.setattr(remote.Url, "read", read)
    with serving(tmp_path) as web:
        gone = remote.Url(f"{web.url}/a.xml")

    with pytest.raises(DataError, match=r"a\.xml: no server answers"):
        list(remote.ahead([gone] * 99, 2000))
    assert len(tried) < 9


def lists(*links):
    """The page of a folder, with links as a server writes them."""
    page = "".join(f'<a href="{link}">x</a>' for link in links)
    return gives(page.encode(), Content_Type="text/html")


def test_names_that_begin_as_caddys_do(web):
    web.answers["red"] = lists("./a%20b.jpg")
    web.answers["/"] = lists("./red/")

    assert [(one.name, one.truth) for one in load_folder(web.url, RED_GREEN).items] == [
        ("red/a b.jpg", 0)
    ]


@pytest.mark.parametrize("link", ["..%2Fa.jpg", "../a.jpg", "red/..%2F..%2Fa.jpg", "%2Fa.jpg"])
def test_names_of_a_listing_stay_below_it(web, link):
    """`simulate corrupt` writes files by these names."""
    web.answers["/"] = lists(link)

    with pytest.raises(DataError, match=r"^http.*a\.jpg' leads out of the folder"):
        load_folder(web.url, RED_GREEN)


@pytest.mark.parametrize(
    ("url", "shown"),
    [("https://who:pass@host/val.txt", "https://…@host/val.txt"),
     ("http://pass@host/val", "http://…@host/val"),
     ("ftp://who:pass@host/a.tar", "ftp://…@host/a.tar"),
     ("simplecache::https://who:pass@host/val", "simplecache::https://…@host/val")],
)  # fmt: skip
def test_a_password_in_a_url_is_refused_and_not_repeated(url, shown):
    """Manifests, messages and reports have the URLs of data."""
    with pytest.raises(DataError) as raised:
        TASK.load(url, IMAGES)

    assert str(raised.value).startswith(f"{shown}: a name or a password in a URL would be kept")
    assert "pass@" not in str(raised.value)


def records(folder):
    return pq.read_table(folder / "records.parquet").drop_columns(["ns"])


def over(path, url, *keys):
    """Change paths of a card into URLs."""
    fields = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(fields | {key: f"{url}/{fields[key]}" for key in keys}))


def test_voc_behind_a_url(tmp_path):
    """Images, XML files and the list of a split; the card itself is here."""
    folder = datacards.images(tmp_path, "a.jpg", "sub/b.jpg", "c.jpg")
    for name in ("a.xml", "sub/b.xml", "stray.xml"):
        (folder / "xml" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "xml" / name).write_text(
            "<annotation><size><width>40</width><height>30</height></size><object><name>dog</name>"
            "<bndbox><xmin>2</xmin><ymin>3</ymin><xmax>12</xmax><ymax>8</ymax></bndbox></object>"
            "</annotation>"
        )
    (folder / "some.txt").write_text("a\nc\n")
    path = datacards.card(
        folder, task="detection", format="voc", annotations="xml", split="some.txt"
    )
    with serving(folder) as web:
        over(path, web.url, "images", "annotations", "split")
        found = datacards.load(path, "cat", "dog")
        web.answers["a.xml"] = says(403)
        with pytest.raises(DataError, match=r"a\.xml: cannot be read: the server says 403"):
            datacards.load(path, "cat", "dog")

    assert [(item.name, item.truth.xywh.tolist()) for item in found.items] == [
        ("a.jpg", [[2, 3, 10, 5]])
    ]
    assert any("without an XML file: c.jpg" in note for note in found.notes)
    assert any("stray.xml" in note for note in found.notes)


def test_masks_behind_a_url(tmp_path):
    folder = datacards.images(tmp_path, "a.jpg", size=(2, 1))
    datacards.png(folder / "masks/a.png", np.array([[1, 0]], np.uint8))
    path = datacards.card(folder, task="segmentation", format="index_masks", annotations="masks")
    with serving(folder) as web:
        over(path, web.url, "images", "annotations")
        (item,) = datacards.load(path, "cat", "dog").items

        assert item.truth.read((1, 2)).tolist() == [[1, 0]]


def test_what_is_read_from_a_disk_only_says_so(tmp_path):
    card = datacards.card_of(tmp_path, "classification", "video", video="https://host/a.mp4")

    with pytest.raises(DataError, match=r"video: https://host/a\.mp4: copy it here"):
        card.load(None)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """The folder that is the bucket ``b`` of rclone's S3 server."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "b").mkdir()
    with (
        rclone("s3", folder, "--auth-key", "who,secret") as (url, _),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("AWS_ACCESS_KEY_ID", "who")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_ENDPOINT_URL", url)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield folder / "b"


def test_folders_shards_and_annotations_on_s3(bucket, tmp_path):
    folder = bucket
    (folder / "val/red").mkdir(parents=True)
    (folder / "val/red/a b#1.jpg").write_bytes(b"abc")
    tar(folder / "x.tar", ("x.jpg", b"y" * 700))
    rows = [{"image": {"bytes": b"z", "path": "z.jpg"}, "label": 0}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "x.parquet")
    datacards.images(folder, "a.jpg")
    path = datacards.coco(folder, {7: ("a.jpg", 40, 30)}, [datacards.box(1, 7, 1, 3, 4, 5, 6)])
    over(path, "s3://b", "images", "annotations")

    assert content(TASK.load("s3://b/val", IMAGES)) == [("red/a b#1.jpg", b"abc", 0)]
    assert content(TASK.load("s3://b/x.tar", IMAGES)) == [("x.tar/x.jpg", b"y" * 700, None)]
    assert content(TASK.load("s3://b/x.parquet", IMAGES)) == [("x.parquet/00000000.jpg", b"z", 0)]
    assert len(datacards.load(path, "cat", "dog").items) == 1


def test_what_s3_refuses_is_one_line(bucket):
    for url, why in (("s3://none/x", "NoSuchBucket"), ("s3://b/none", "has no image")):
        with refused(why):
            TASK.load(url, IMAGES)
    with pytest.raises(OSError, match="nothing is there"):
        remote.Url("s3://b/none.jpg").read(9)


def test_shards_need_a_server_that_gives_parts_of_files(tmp_path):
    """rclone gives them, and says when a file was written."""
    second = bytes(range(256))
    members = ("first.jpg", bytes(6_000_000)), ("second.jpg", second)
    tar(tmp_path / "a.tar", *members)
    tar(tmp_path / "b.tar", *members)
    os.utime(tmp_path / "b.tar", (0, 0))
    with rclone("http", tmp_path) as (url, _):
        far = f"{url}/a.tar"
        assert content(TASK.load(far, IMAGES))[1] == ("a.tar/second.jpg", second, None)
        marks = [remote.size_and_time(one) for one in (far, far, f"{url}/b.tar")]
        assert {size for size, _ in marks} == {(tmp_path / "a.tar").stat().st_size}
        assert marks[0] == marks[1] != marks[2]
    with serving(tmp_path) as web, pytest.raises(DataError) as raised:
        TASK.load(f"{web.url}/a.tar", IMAGES)
    assert str(raised.value).endswith("a.tar: cannot be read: the server gives no part of a file")


COLORS = ("red", "green", "blue")
SIGNED = "X-Amz-Credential=AKIA&X-Amz-Signature=5ec2e7"


def packed(folder, path):
    """A tar archive of the images of a folder of classes."""
    members = []
    for number, image in enumerate(sorted(folder.glob("*/*.*"))):
        members.append((f"{number}{image.suffix}", image.read_bytes()))
        members.append((f"{number}.cls", b"%d" % COLORS.index(image.parent.name)))
    tar(path, *members)


def refuses_unsigned(handler):
    return "5ec2e7" not in handler.path and "8e1f" not in handler.path and says(403)(handler)


def files_with(folder, word):
    return [one for one in folder.rglob("*") if one.is_file() and word in one.read_bytes()]


def test_keys_in_the_query_of_a_url_are_in_no_result(tmp_path, capsys):
    """A presigned URL is a key to the data for whoever reads the report."""
    model = tiny.card(tmp_path / "model")
    tiny.data(tmp_path / "data")
    (tmp_path / "web").mkdir()
    packed(tmp_path / "data", tmp_path / "web/val.tar")
    command = ["--model", str(model), "--quick", "--workers", "1", "--train", "pillow_fp32"]
    command += ["--deploy", "opencv_fp32", "--out", str(tmp_path / "run")]
    shown = "val.tar?sha256=" + hashlib.sha256(SIGNED.encode()).hexdigest()[:12]

    with serving(tmp_path / "web") as web:
        web.answers["val.tar"] = refuses_unsigned
        assert main([*command, "--data", f"{web.url}/val.tar?{SIGNED}"]) == 0
    said = "".join(capsys.readouterr())

    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["data"]["root"] == manifest["request"]["arguments"]["data"]
    assert manifest["data"]["root"] == f"{web.url}/{shown}"
    assert "val.tar/0.jpg" in manifest["data"]["images"]
    assert files_with(tmp_path / "run", b"val.tar")
    assert not files_with(tmp_path / "run", b"5ec2e7")
    assert "5ec2e7" not in said


def test_a_run_whose_server_is_gone_ends_and_is_resumed_with_another_key(tmp_path, capsys):
    """Every further sample would fail too. Presigned URLs end after hours; results keep none."""
    model, run = tiny.card(tmp_path / "model"), str(tmp_path / "run")
    data = tiny.data(tmp_path / "data")
    table = [f"{one.relative_to(data)},{one.parent.name}\n" for one in sorted(data.glob("*/*"))]
    (data / "val.csv").write_text("file,label\n" + "".join(table))
    command = ["--model", str(model), "--quick", "--workers", "1", "--train", "pillow_fp32"]
    command += ["--deploy", "opencv_fp32"]
    with serving(data) as web:
        command += ["--data", f"{web.url}/val.csv?{SIGNED}"]
        web.answers[""] = refuses_unsigned
        assert main([*command, "--out", str(tmp_path / "whole")]) == 0
        web.asked.clear()

        def dies(handler):
            if web.asked.count(handler.path) < 2:  # the first time it is hashed
                return refuses_unsigned(handler)
            web.socket.close()
            return says(503)(handler)

        web.answers = {"red1": dies, "": refuses_unsigned}
        assert main([*command, "--out", run]) == 2
        port, url = web.server_port, web.url
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "red1.jpg?sha256=" in said
    assert "no server answers: Cannot connect" in said
    assert "5ec2e7" not in said

    with serving(data, port) as web:
        web.answers[""] = refuses_unsigned
        assert main(["resume", run]) == 2
        assert "give the whole URL again" in capsys.readouterr().err
        assert main(["resume", run, "--data", f"{url}/other.csv?8e1f"]) == 2
        assert "other.csv?sha256=" in capsys.readouterr().err
        assert main(["resume", run, "--data", f"{url}/val.csv?8e1f"]) == 0
    assert records(tmp_path / "run").equals(records(tmp_path / "whole"))
    assert not files_with(tmp_path / "run", b"8e1f")


@pytest.mark.parametrize(
    "answer",
    [says(403), breaks_off(99), says(302, Location="/x?X-Amz-Signature=5ec2e7"),
     says(302, Location="file:///x?X-Amz-Signature=5ec2e7")],
)  # fmt: skip
def test_errors_of_a_server_show_no_key(web, answer):
    """Neither that of the URL that was given, nor one that the server sends on to."""
    web.answers |= {"a%20b": answer, "/x": says(500)}
    place = remote.place(root_of(f"{web.url}/red/a%20b.jpg?{SIGNED}"))

    with pytest.raises(SampleError) as raised:
        places.read_sample(place, 2000)

    assert "5ec2e7" not in str(raised.value)
    assert "5ec2e7" not in str(raised.value.__cause__)
    assert "5ec2e7" not in f"{place} {place!r}"


def test_a_place_behind_a_key_is_read_in_another_process(web):
    place = remote.place(root_of(f"{web.url}/red/a%20b.jpg?{SIGNED}"))
    web.answers["a%20b"] = refuses_unsigned

    assert pickle.loads(pickle.dumps(place)).read(2000) == b"a" * 1000


def test_a_table_behind_a_key_opens_what_is_beside_it(web, tmp_path):
    (tmp_path / "val.csv").write_text("file,label\nred/a b.jpg,green\n")
    web.answers |= {"a%20b": refuses_unsigned, "val.csv": refuses_unsigned}

    (item,) = TASK.load(root_of(f"{web.url}/val.csv?{SIGNED}"), IMAGES).items

    assert (item.name, item.truth, item.path.suffix) == ("red/a b.jpg", 1, ".jpg")
    assert item.path.read(2000) == b"a" * 1000


def test_a_folder_behind_a_key_cannot_be_listed(web):
    with pytest.raises(DataError, match=r"/\?sha256=\w{12}: a folder behind a URL with a query"):
        TASK.load(root_of(f"{web.url}/?{SIGNED}"), IMAGES)
