"""Audit documents: every mistake in one line, with its place."""

import pytest
import yaml

from simulator.audit.document import EXAMPLE, load_audit
from simulator.audit.ongoing import resolved
from simulator.errors import ProfileError
from simulator.profile.load import load
from simulator.profile.lookup import builtin_names

WHOLE = """\
schema: 1
name: a
train: pillow_fp32
deploy:
  one: opencv_fp32
  two: {profile: pillow_fp32, set: {resize: opencv-nearest, runtime.threads: 2}}
rules:
  - fail_on: flip_rate > 1%
    because: that is the contract
    deploy: [two]
"""


@pytest.fixture
def audit(tmp_path):
    def read(text):
        path = tmp_path / "audit.yaml"
        path.write_text(text)
        return load_audit(path)

    return read


def test_a_document_says_what_is_to_be_audited(audit):
    found = audit(WHOLE)

    assert found.profiles()["two"][1] == ['resize="opencv-nearest"', "runtime.threads=2"]
    assert [one.is_for("m", "one") for one in found.rules] == [False]
    assert [one.is_for("m", "two") for one in found.rules] == [True]
    assert (found.card(EXAMPLE), found.data(EXAMPLE), found.timed("one")) == (None, None, False)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("because: that is the contract", "becuase: x", "9: rules.0.becuase: unknown key"),
        ("    because: that is the contract\n", "", "rules.0.because: required"),
        ("flip_rate > 1%", "nonsense", "8: rules.0.fail_on: cannot read the rule"),
        ("[two]", "[tow]", "10: rules.0.deploy: unknown name 'tow'; did you mean 'two'"),
        ("  one: opencv_fp32", "  ../up: opencv_fp32", "5: deploy.../up: a name has letters"),
        ("  one: opencv_fp32", "  train: opencv_fp32", "5: deploy.train: 'train' is reserved"),
        ("  one: opencv_fp32", "  TWO: opencv_fp32", "6: deploy.two: differs from TWO in upper"),
        ("  one: opencv_fp32", "  one: 3", "5: deploy.one: keys expected (profile, set), got 3"),
        ("train: pillow_fp32", "models: {}", "3: models: at least one expected, got none"),
        ("name: a", "name: a\ntail: {rounds: 0}", "3: tail.rounds: "),
        ("name: a", "name: a\ntail: {deploy: [x]}", "3: tail.deploy: unknown name 'x'"),
        ("[two]", "[]", "10: rules.0.deploy: at least 1 expected, got 0"),
        ("deploy: [two]", "models: []", "10: rules.0.models: at least 1 expected, got 0"),
        ("name: a", "name: a\ntail: {deploy: []}", "3: tail.deploy: at least 1 expected"),
        (
            "name: a",
            "name: a\ntail: {deploy: [one], rules: [{fail_on: a > 1, because: b, deploy: [two]}]}",
            "3: tail.rules.0.deploy: two is not in tail.deploy",
        ),
    ],
)
def test_every_mistake_has_its_place(audit, old, new, said):
    text = WHOLE.replace(old, new) + ("train: pillow_fp32\n" if "models: {}" in new else "")

    with pytest.raises(ProfileError) as caught:
        audit(text)

    assert said in str(caught.value)
    assert len(caught.value.problems) <= 2


def test_profiles_that_are_not_there_are_named_with_their_place(audit):
    text = WHOLE.replace("opencv_fp32", "nowhere").replace("train: pillow_fp32", "train: gone")

    with pytest.raises(ProfileError) as caught:
        audit(text).profiles()

    train, one = caught.value.problems
    assert "audit.yaml:3: train: unknown profile 'gone'" in train
    assert "audit.yaml:5: deploy.one: unknown profile 'nowhere'" in one


@pytest.mark.parametrize("name", builtin_names())
def test_a_profile_as_resolved_is_the_profile(name, tmp_path):
    """What a bundle holds of it says the same, with nothing inherited: what was removed is gone."""
    profile = load(name)
    path = tmp_path / "resolved.yaml"
    path.write_text(yaml.safe_dump(resolved((profile, {})), sort_keys=False))

    again = load(str(path)).spec

    assert again.extends is None
    assert again.model_copy(update={"extends": profile.spec.extends}) == profile.spec
