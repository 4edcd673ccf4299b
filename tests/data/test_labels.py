import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.data.labels import Labels, load_labels
from simulator.errors import DataError

CRANES = Labels(
    ("great white shark", "crane", "crane", "T-shirt"), ("n01", "n02012849", "n03126707", "n04")
)


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("n03126707", 2),
        ("1", 1),
        ("007", None),
        ("03", 3),
        ("Great_White-Shark", 0),
        ("  great  white shark ", 0),
        ("t shirt", 3),
        ("T_SHIRT", 3),
    ],
)
def test_wnid_index_or_name(text, index):
    if index is None:
        with pytest.raises(DataError, match="class index 007 is outside 0 to 3"):
            CRANES.resolve(text)
    else:
        assert CRANES.resolve(text) == index
        assert CRANES.knows(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Crane", "fits 2 classes (1 'crane', 2 'crane'); write its wnid, its index"),
        ("4", "class index 4 is outside 0 to 3"),
        ("-1", "class index -1 is outside 0 to 3"),
        ("craine", "did you mean 'crane'?"),
        ("", "unknown class ''"),
        ("1.0", "unknown class '1.0'"),
        ("²", "unknown class '²'"),
    ],
)
def test_refuses_to_guess(text, says):
    assert not CRANES.knows(text)
    with pytest.raises(DataError) as caught:
        CRANES.resolve(text)
    assert says in str(caught.value)


def test_of_many_classes_only_the_nearest_is_named():
    labels = Labels(tuple(f"sort {number:04} of thing" for number in range(1000)))

    with pytest.raises(DataError) as caught:
        labels.resolve("sort 0500 of thin")

    assert "did you mean 'sort 0500 of thing'?" in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_name_that_reads_like_another_index_is_ambiguous():
    """Digits sorted as text, as ImageFolder does: class 2 is '10', class 1 is '1'."""
    labels = Labels(("0", "1", "10", "2"))

    assert (labels.resolve("0"), labels.resolve("1"), labels.resolve("10")) == (0, 1, 2)
    with pytest.raises(DataError, match=r"class '2' fits 2 classes \(2 '10', 3 '2'\)"):
        labels.resolve("2")


def test_name_of_an_index():
    assert CRANES.name(3) == "T-shirt"
    for index in (4, -1):
        with pytest.raises(DataError, match="has no name: the label file has 4"):
            CRANES.name(index)


def test_reads_wnids_and_names(tmp_path):
    path = write(tmp_path / "l.txt", b"n01\ttench\r\nn02\tgreat white shark\r\n\r\n")

    assert load_labels(path) == Labels(("tench", "great white shark"), ("n01", "n02"))


def test_reads_names_after_a_byte_order_mark(tmp_path):
    path = write(tmp_path / "l.txt", "\ufeffchâteau\ncat".encode())

    assert load_labels(path) == Labels(("château", "cat"), None)
    assert len(load_labels(path)) == 2


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "l.txt: the label file is empty"),
        (b"\n\n", "l.txt: the label file is empty"),
        (b"cat\ncaf\xe9\n", "l.txt:2: not UTF-8"),
        (b"cat\n\ndog\n", "l.txt:2: an empty name"),
        (b"n01\tcat\ndog\n", "l.txt:2: 1 columns, but line 1 has 2"),
        (b"cat\nn02\tdog\n", "l.txt:2: 2 columns, but line 1 has 1"),
        (b"n01\tcat\nn01\tdog\n", "l.txt:2: 'n01' is also in line 1"),
        (b"n01\t\nn02\tdog\n", "l.txt:1: an empty name"),
        (b"n01\tcat\tFelis\n", "l.txt:1: 3 columns"),
        (b"1\tcat\n2\tdog\n", "l.txt:1: the id '1' looks like an index, but this line is class 0"),
    ],
)
def test_bad_label_files(tmp_path, data, says):
    path = write(tmp_path / "l.txt", data)

    with pytest.raises(DataError) as caught:
        load_labels(path)

    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_label_file_that_is_not_there_or_is_a_folder(tmp_path):
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            load_labels(path)


@given(st.binary(max_size=80))
def test_any_bytes_are_labels_or_a_data_error(tmp_path_factory, data):
    path = write(tmp_path_factory.getbasetemp() / "fuzzed.txt", data)
    try:
        labels = load_labels(path)
    except DataError:
        return
    assert labels.names
    assert all(labels.names)


@given(st.lists(st.text(min_size=1, max_size=5), min_size=1), st.text(max_size=8))
def test_resolve_finds_a_class_or_says_why(names, text):
    labels = Labels(tuple(names))
    try:
        assert 0 <= labels.resolve(text) < len(names)
    except DataError:
        assert not labels.knows(text)
