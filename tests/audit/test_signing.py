"""Signed bundles: by whom, and by nobody else; keys are made by another program."""

import subprocess
import sys

import pytest
from audits import document

from simulator import cli
from simulator.contract.installing import install


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@pytest.fixture
def keys(tmp_path):
    """A private key, its public key, and the public key of another."""
    pytest.importorskip("cryptography")
    for name in ("own", "other"):
        openssl("genpkey", "-algorithm", "ed25519", "-out", tmp_path / f"{name}.pem")
        openssl(
            "pkey", "-in", tmp_path / f"{name}.pem", "-pubout", "-out", tmp_path / f"{name}.pub"
        )
    return [tmp_path / name for name in ("own.pem", "own.pub", "other.pub")]


def verify(folder, key):
    return cli.main(["verify", str(folder / "bundle.zip"), "--key", str(key)])


def test_who_has_signed_is_told(keys, card, data, cache, tmp_path, capsys):
    private, public, other = keys
    out, asked = tmp_path / "out", document(tmp_path, card, data)

    assert cli.main(["audit", str(asked), "--out", str(out), "--sign", str(private)]) == 1
    assert verify(out, public) == cli.PASS
    assert "signed by ed25519 " in capsys.readouterr().out
    assert verify(out, other) == cli.GATE_FAILED
    assert "not a signature of this bundle by ed25519 " in capsys.readouterr().out
    with (out / "bundle.zip").open("ab") as file:
        file.write(b"\0")
    assert verify(out, public) != cli.PASS


def test_a_missing_signature_and_a_key_that_is_none_are_told(keys, audited, capsys):
    private, public, _ = keys

    assert verify(audited, public) == cli.GATE_FAILED
    assert "not signed: " in capsys.readouterr().out
    assert verify(audited, audited / "bundle.zip") == cli.USER_ERROR
    assert "not a PEM key without a passphrase" in capsys.readouterr().err
    (audited / "bundle.zip.sig").write_text("%%%")
    assert verify(audited, public) == cli.GATE_FAILED
    assert cli.main(["resume", str(audited), "--sign", str(private)]) == cli.GATE_FAILED
    assert verify(audited, public) == cli.PASS
    pair = audited / "pairs" / "tiny" / "same"
    assert cli.main(["resume", str(pair), "--sign", str(private)]) == cli.USER_ERROR
    assert "not an audit" in capsys.readouterr().err


def test_a_key_of_another_kind_is_refused_before_anything_runs(keys, card, data, cache, tmp_path):
    openssl("genpkey", "-algorithm", "x25519", "-out", tmp_path / "x.pem")
    asked = document(tmp_path, card, data)

    code = cli.main(["audit", str(asked), "--out", str(tmp_path / "out"), "--sign",
                     str(tmp_path / "x.pem")])  # fmt: skip

    assert code == cli.USER_ERROR
    assert not (tmp_path / "out").exists()


def test_without_the_library_one_line_says_what_to_install(tmp_path):
    hidden = "import sys; sys.modules['cryptography'] = None; from simulator import cli; "
    script = hidden + "sys.exit(cli.main(['verify', 'x.zip', '--key', 'x.pub']))"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert done.returncode == cli.USER_ERROR
    assert done.stderr == (
        f"error: signatures need cryptography, which is not installed; try: {install('sign')}\n"
    )
