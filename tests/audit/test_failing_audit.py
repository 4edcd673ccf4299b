"""An audit of a stack that fails on some of the samples."""

import pytest
from audits import document, forged
from failing import DECODE, mixed

import simulator
from simulator import cli
from simulator.errors import UserError


def test_an_audit_judges_each_stack_on_its_own_samples(card, tmp_path, capsys):
    images = mixed(tmp_path / "mixed", pngs=6, jpegs=4)
    turbo = {"profile": "pillow_fp32", "set": {"decode": DECODE}}
    place = document(
        tmp_path, card, images, deploy={"same": "pillow_fp32", "turbo": turbo},
        rules=[{"fail_on": "flip_rate > 50%", "because": "it must stay"}],
    )  # fmt: skip
    result = simulator.audit(place, out=tmp_path / "audit")
    same, own = result.summary.pairs
    assert (same.samples, same.passed) == (10, True)
    assert (own.samples, own.failed["deploy"].count, own.passed) == (4, 6, False)
    assert result.summary.verdict.lost[0].startswith("turbo (tiny) fails on 6 of 10 images")
    markdown = (tmp_path / "audit" / "audit.md").read_text()
    assert "failed.deploy" in markdown and "❌" in markdown
    assert 'message="failed.deploy &gt; 0%: got 60 %"' in (tmp_path / "audit/junit.xml").read_text()
    bundle = str(tmp_path / "audit" / "bundle.zip")
    assert cli.main(["verify", bundle]) == 0
    given = ["--model", str(card), "--data", str(images), "--out", str(tmp_path / "again")]
    assert cli.main(["replay", bundle, *given]) == 0
    assert "bit-equal" in capsys.readouterr().out

    def deny(summary):
        summary["failed"]["deploy"] |= {"count": 0, "rate": 0.0}

    place_of = tmp_path / "forged.zip"
    forged(bundle, place_of, pairs__tiny__turbo__summary=deny)
    assert cli.main(["verify", str(place_of)]) == 1
    assert "failed.deploy.count" in capsys.readouterr().out

    spec = place.read_text() + "allow_failed: 60%\n"
    place.write_text(spec)
    assert simulator.audit(place, out=tmp_path / "borne").passed


def test_an_audit_says_where_its_share_is_wrong(card, data, tmp_path):
    place = document(tmp_path, card, data, allow_failed="some")
    with pytest.raises(UserError, match=r"audit.yaml:\d+: allow_failed: a share expected"):
        simulator.audit(place, out=tmp_path / "audit")
