"""Replays: bit-equal, equal within stated noise, or different, and why."""

import hashlib
import io
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny
import tiny_tasks
import yaml
from audits import changed, document, forged, read, rewritten, signed
from scipy.stats import binomtest

from simulator import audit, cli, replay
from simulator.audit import verdict
from simulator.audit.answers import Measure, read_answers
from simulator.audit.differences import differences
from simulator.audit.verdict import BIT_EQUAL, DIFFERENT, WITHIN, PairRun, compare
from simulator.command.options import Progress
from simulator.errors import RunError, UserError
from simulator.model.card import Card
from simulator.results.times import MAP
from simulator.tasks.settings import Network
from simulator.tasks.task import TASKS


@pytest.fixture
def bundle(finished, cache, tmp_path):
    return Path(shutil.copy(finished.bundle, tmp_path / "bundle.zip"))


@pytest.fixture
def again(bundle, card, data, tmp_path):
    """Run a bundle again: verdict, reason and what changed of the pair with *bgr*."""

    def run(place=bundle, model=card, images=data, **options):
        given = {"models": [str(model)], "images": [str(images)], "out": tmp_path / "again"}
        return replay(place, **given | options)

    return run


def of(result, deploy="bgr"):
    return next(pair for pair in result.summary["pairs"] if pair["deploy"] == deploy)


def test_the_same_again_is_bit_equal(again, bundle):
    result = again()

    assert {pair["verdict"] for pair in result.summary["pairs"]} == {BIT_EQUAL}
    assert of(result)["changed"] == {"inputs": [], "surroundings": []}
    assert of(result)["sides"]["deploy"] == {
        "samples": 6, "matched": 6, "outputs": 6, "answers": 6,
    }  # fmt: skip
    assert result.passed
    place = read(result.folder / "manifest.json")["document"]["path"]
    assert place == str(bundle.resolve())


def test_a_document_elsewhere_with_profiles_of_its_own_is_replayed(card, data, cache, tmp_path):
    """The bundle needs neither the audit's folder nor the profiles that it was made of."""
    mine = tmp_path / "there" / "mine.yaml"
    mine.parent.mkdir()
    spec = {"schema": 1, "name": "mine", "summary": "m", "extends": "pillow_fp32"}
    mine.write_text(yaml.safe_dump(spec | {"color": {"order": "bgr"}}))
    path = document(mine.parent, card, data, deploy={"mine": "mine.yaml"})
    made = audit(path, out=tmp_path / "out").folder / "bundle.zip"
    place = tmp_path / "bundle.zip"
    shutil.copy(made, place)
    shutil.rmtree(mine.parent)
    shutil.rmtree(tmp_path / "out")

    result = replay(place, models=[f"tiny={card}"], images=[f"tiny={data}"], out=tmp_path / "again")

    assert of(result, "mine")["verdict"] == BIT_EQUAL


def another_image(data, tmp_path):
    other = shutil.copytree(data, tmp_path / "other")
    (other / "red" / "red0.jpg").write_bytes(tiny.encoded(tiny.picture((30, 220, 40))))
    return {"images": other}


def another_model(data, tmp_path):
    """Twice the logits: every answer is the same, and it is not the model of the audit."""
    proto = tiny.classifier()
    for tensor in proto.graph.initializer:
        tensor.raw_data = (2 * tiny.np.frombuffer(tensor.raw_data, tiny.np.float32)).tobytes()
    return {"model": tiny.card(tmp_path / "other", proto)}


def a_missing_image(data, tmp_path):
    other = shutil.copytree(data, tmp_path / "other")
    (other / "red" / "red0.jpg").unlink()
    return {"images": other}


def another_profile(data, tmp_path):
    return {"overrides": ["bgr.color.order=rgb"]}


BOTH = "outputs differ, and so do the inputs"
ONE_RUN = "1 samples went through in one of the two runs only"


@pytest.mark.parametrize(
    ("change", "reason", "line", "outputs", "answers"),
    [
        (another_image, BOTH, "1 sample changed: red/red0.jpg", 5, 5),
        (another_model, BOTH, "model sha256: ", 0, 6),
        (a_missing_image, ONE_RUN, "1 sample missing: red/red0.jpg", 5, 5),
        (another_profile, BOTH, "deploy profile.color.order: bgr → rgb", 0, 2),
    ],
)
def test_another_input_is_different_and_named(
    again, data, tmp_path, change, reason, line, outputs, answers
):
    pair = of(again(**change(data, tmp_path)))

    assert (pair["verdict"], pair["reason"]) == (DIFFERENT, reason)
    assert pair["changed"]["inputs"][0].startswith(line)
    assert pair["sides"]["deploy"]["outputs"] == outputs
    assert pair["sides"]["deploy"]["answers"] == answers


PAIR = "pairs__tiny__bgr__summary"


def test_a_figure_that_does_not_follow_from_the_records_is_different(again, bundle, tmp_path):
    def change(summary):
        summary["flips"]["rate"] = 0.01

    place = forged(bundle, tmp_path / "forged.zip", **{PAIR: change})
    assert cli.main(["verify", str(place)]) == cli.GATE_FAILED

    pair = of(again(place))

    assert pair["verdict"] == DIFFERENT
    assert "has other values for: flips.rate" in pair["reason"]


def test_a_version_that_changed_is_named_and_excuses_no_bit(again, bundle, tmp_path):
    def change(manifest):
        manifest["machine"]["versions"]["numpy"] = "1.0"
        manifest["machine"]["cpu"]["flags"].append("zz_of_no_processor")

    place = forged(bundle, tmp_path / "old.zip", pairs__tiny__bgr__manifest=change)

    pair = of(again(place))

    assert pair["verdict"] == BIT_EQUAL
    assert pair["changed"]["inputs"] == []
    assert pair["changed"]["surroundings"][0] == "cpu.flags: without zz_of_no_processor"
    assert pair["changed"]["surroundings"][1].startswith("numpy: 1.0 → ")


def test_the_command_line(bundle, finished, card, data, tmp_path, capsys):
    assert cli.main(["replay", str(bundle)]) == cli.USER_ERROR
    said = capsys.readouterr().err
    assert f"does not hold {finished.card}; give --model tiny=PATH" in said
    assert f"does not hold {finished.data}; give --data tiny=PATH" in said
    given = ["--model", f"tiny={card}", "--data", str(data)]

    same = cli.main(["replay", str(bundle), *given, "--out", str(tmp_path / "a")])
    other = ["--set", "bgr.color.order=rgb", "--out", str(tmp_path / "b")]

    assert same == cli.PASS
    assert "replay EQUAL" in capsys.readouterr().out
    assert cli.main(["replay", str(bundle), *given, *other]) == cli.GATE_FAILED
    printed = capsys.readouterr().out
    assert "different tiny / bgr: outputs differ" in printed
    assert "changed deploy profile.color.order: bgr → rgb (tiny / bgr)" in printed
    assert cli.main(["replay", str(bundle), "--model", "x=y"]) == cli.USER_ERROR


def test_a_bundle_that_was_changed_is_not_run(again, bundle, tmp_path):
    place = changed(bundle, tmp_path / "x.zip", lambda m: m.update({"audit.yaml": b"schema: 1"}))

    with pytest.raises(RunError, match=r"changed: audit.yaml since it was written"):
        again(place)

    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("audit.yaml", b"schema: 1", "required, and not written"),
        ("audit.yaml", b"\xff", "not UTF-8"),
        ("manifest.json", b"{}", "manifest.json does not say what tiny is"),
        ("profiles/bgr.yaml", b"schema: 1", "required, and not written"),
        ("profiles/bgr.yaml", None, "profiles/bgr.yaml is not in it"),
        ("pairs/tiny/bgr/records.parquet", b"PAR1", "not records of a pair"),
        ("pairs/tiny/bgr/records.parquet", None, "records.parquet is not in it"),
        ("pairs/tiny/bgr/manifest.json", b"{}", "not records of a pair"),
        ("pairs/tiny/bgr/summary.json", b"[]", "not a JSON object"),
        ("summary.json", b"[]", "not a JSON object"),
    ],
)
def test_a_bundle_that_a_stranger_has_signed_is_one_line(
    again, bundle, tmp_path, name, content, said
):
    def change(members):
        del members[name]
        if content is not None:
            members[name] = content
        signed(members)

    with pytest.raises(UserError, match=said):
        again(changed(bundle, tmp_path / "x.zip", change))


@pytest.mark.parametrize("part", ["manifest", "pairs__tiny__bgr__manifest"])
def test_a_manifest_of_odd_types_is_no_crash(again, bundle, tmp_path, part):
    def change(manifest):
        for key in ("machine", "stacks", "seed", "limit"):
            manifest[key] = [1, {"a": None}]
        manifest.get("model", {})["spec"] = "x"

    result = again(forged(bundle, tmp_path / "x.zip", **{part: change}))

    assert of(result)["verdict"] == BIT_EQUAL


class Stops(Progress):
    def advance(self, done, total):
        if done == 3:
            raise KeyboardInterrupt


def test_an_interrupted_replay_goes_on(again, tmp_path, capsys):
    with pytest.raises(KeyboardInterrupt):
        again(progress=Stops())

    assert cli.main(["resume", str(tmp_path / "again")]) == cli.PASS

    assert "replay EQUAL" in capsys.readouterr().out
    assert read(tmp_path / "again" / "manifest.json")["status"] == "complete"


# The verdict alone, worked out on paper: 100 images, ten of which flip (interval 4.9 to 17.6 %).

IMAGES = [f"{number:03}.jpg" for number in range(100)]


def pair(flips, digest="a", score=0.5, version="1", bit_equal=True, failed=False, samples=IMAGES):
    rows = [
        {
            "sample": name, "side": side, "label": None, "correct": None,
            "best": None, "top5": None,
            "prediction": int(changed), "changed": int(changed), "units": 1,
            "score": score, "digest": digest, "skipped": None
        }
        for name in samples
        for side in ("train", "deploy")
        for changed in [side == "deploy" and name in flips]
    ]  # fmt: skip
    manifest = {
        "machine": {"versions": {"ort": version}},
        "data": {"images": dict.fromkeys(samples, "sha")},
    }
    count = len(flips & set(samples))
    test = binomtest(count, len(samples))
    ends = {"ci95": test.proportion_ci(), "ci95_wilson": test.proportion_ci(method="wilson")}
    summary = {
        "samples": len(samples), "labelled": 0,
        "flips": {
            "count": count, "units": len(samples), "rate": count / len(samples),
            **{name: [end.low, end.high] for name, end in ends.items()},
        },
        "delta": {"top1": None, "top5": None}, "train": {"metric": {"top1": None, "top5": None}},
        "deploy": {"metric": {"top1": None, "top5": None}},
        "controls": {"self": {"bit_equal": bit_equal}},
        "gate": {"rules": [{"rule": "r", "unit": "share", "failed": failed}]},
    }  # fmt: skip
    return PairRun(manifest, summary, read_answers(packed(rows), manifest, "here"))


def packed(rows):
    buffer = io.BytesIO()
    times = pa.array([[("infer", at)] for at in range(len(rows))], MAP)
    pq.write_table(pa.Table.from_pylist(rows).append_column("ns", times), buffer)
    return buffer.getvalue()


def held(old, new):
    """The verdict on a pair of unlabelled classifications."""
    kind = TASKS["classification"]
    task = kind(kind.Output(kind="logits"), Network())
    return compare(old, new, Measure(task, dict.fromkeys(IMAGES), 0, "here"))


OLD = set(IMAGES[:10])


@pytest.mark.parametrize(
    ("old", "new", "verdict_", "said"),
    [
        (pair(OLD), pair(OLD), BIT_EQUAL, "every output"),
        (pair(OLD), pair(OLD, version="2"), BIT_EQUAL, "every output"),
        (pair(OLD), pair(OLD, digest="b"), WITHIN, "no answer does"),
        (pair(OLD), pair(OLD, score=0.25), WITHIN, "no answer does"),
        (pair(OLD), pair(set(IMAGES[:11]), "b"), DIFFERENT, "nothing else changed"),
        (pair(OLD), pair(set(IMAGES[:11]), "b", version="2"), WITHIN, "1 answers differ"),
        (pair(OLD, bit_equal=False), pair(set(IMAGES[:11]), "b"), WITHIN, "1 answers differ"),
        (pair(OLD), pair(set(IMAGES[:4]), "b", version="2"), DIFFERENT, "flip_rate"),
        (pair(OLD), pair(set(IMAGES[:18]), "b", version="2"), DIFFERENT, "flip_rate"),
        (pair(OLD), pair(set(IMAGES[:17]), "b", version="2"), WITHIN, "7 answers differ"),
        (
            pair(OLD), pair(set(IMAGES[:11]), "b", version="2", failed=True), DIFFERENT,
            "rules have another outcome: r",
        ),
        (
            pair(OLD), pair(OLD, samples=IMAGES[:-1]), DIFFERENT,
            "1 samples went through in one of the two runs only",
        ),
    ],
)  # fmt: skip
def test_the_verdict(old, new, verdict_, said):
    found = held(old, new)

    assert (found["verdict"], said in found["reason"]) == (verdict_, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"flips": {"ci95": [0, 1]}}, "own records give other values for: flips.ci95"),
        ({"flips": {"rate": 0.11}}, "flips.rate"),
        ({"train": {"metric": {"top1": 0.9}}}, "train.metric.top1"),
        ({"samples": 1000}, "samples"),
    ],
)
def test_figures_that_do_not_follow_from_the_recorded_answers_excuse_nothing(change, said):
    old = pair(OLD, version="1")
    for key, inner in change.items():
        if isinstance(inner, dict):
            old.summary[key].update(inner)
        else:
            old.summary[key] = inner

    found = held(old, pair(OLD, "b", version="2"))

    assert (found["verdict"], said in found["reason"]) == (DIFFERENT, True)


def test_the_same_answers_excuse_no_other_figure_and_no_other_outcome():
    old = pair(OLD)
    moved, failed = pair(OLD, "b"), pair(OLD, "b", failed=True)
    moved.summary["flips"]["rate"] = 0.18

    assert "no answer does, and outside the recorded" in held(old, moved)["reason"]
    assert held(old, failed)["reason"].endswith("rules have another outcome: r")
    assert {held(old, one)["verdict"] for one in (moved, failed)} == {DIFFERENT}


def test_records_of_more_rows_than_the_manifest_has_images_are_not_read():
    table = pa.table({"sample": pa.array(["a"] * 1000), "side": pa.array(["train"] * 1000)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)

    with pytest.raises(RunError, match="1,000 records of 1 samples and two stacks"):
        read_answers(buffer.getvalue(), {"data": {"images": {"a": "sha"}}}, "here")


def test_nan_equals_itself():
    one, other = (pair(OLD, score=float("nan")) for _ in range(2))

    assert held(one, other)["verdict"] == BIT_EQUAL
    assert verdict.SIDES == ("train", "deploy")


def test_differences_name_a_few_of_many():
    images = {f"{n}.jpg": "a" for n in range(20)}
    old, new = ({"data": {"images": images}}, {"data": {"images": dict.fromkeys(images, "b")}})

    (line,) = differences(old, new).inputs

    assert line == "20 samples changed: 0.jpg, 1.jpg, 2.jpg, 3.jpg, 4.jpg and 15 more"


# Boxes: every number of a detector's answer is a fraction, and where they lie is the answer.

BOX = [8.0, 8.0, 40.0, 40.0]


def detected(folder, box, score=0.9, digest="a", **fields):
    """A pair of one stack with itself, which finds one object in each of four images."""
    task = Card(tiny_tasks.card(folder)).task
    truth = task.examples()[1][0]
    names = IMAGES[:4]
    record = {
        "boxes": box, "scores": [score], "classes": [0], "changed": 0, "units": 1, "kept": 1,
        "lost": 0, "gained": 0, "moved": 0, "relabelled": 0, "rescored": 0, "mean_iou": 1.0,
    }  # fmt: skip
    rows = [
        {"sample": name, "side": side, "digest": digest, "skipped": None} | record | fields
        for name in names
        for side in ("train", "deploy")
    ]
    manifest = {"data": {"images": dict.fromkeys(names, "sha")}}
    answers = read_answers(packed(rows), manifest, "here")
    measure = Measure(task, dict.fromkeys(names, truth), 0, "here")
    summary = {
        **measure.count(answers).summary,
        "controls": {"self": {"bit_equal": True}}, "gate": {"rules": []},
    }  # fmt: skip
    return PairRun(manifest, summary, answers), measure


@pytest.mark.parametrize(
    ("box", "score", "answers", "verdict_"),
    [
        (BOX, 0.9, 4, WITHIN),
        ([8.0001, 8, 40.0001, 40], 0.9001, 4, WITHIN),
        # IoU 30.4 / 33.6 = 0.905, and another mAP: four images that agreed leave open 3 / 4
        ([9.6, 8, 41.6, 40], 0.9, 4, WITHIN),
        ([10, 8, 42, 40], 0.9, 0, DIFFERENT),  # IoU 30 / 34 = 0.88: moved
        ([500, 500, 540, 540], 0.9, 0, DIFFERENT),
        (BOX, 0.4, 0, DIFFERENT),  # below the operating threshold: lost
    ],
)
def test_boxes_elsewhere_are_other_answers(tmp_path, box, score, answers, verdict_):
    old, measure = detected(tmp_path / "old", BOX)
    new, _ = detected(tmp_path / "new", box, score, "b")

    found = compare(old, new, measure)

    assert found["sides"]["deploy"]["answers"] == answers
    assert found["verdict"] == verdict_


def test_boxes_below_the_threshold_count_by_the_metric_they_change(tmp_path):
    """No object is shown, and the average precision is gone."""
    old, measure = detected(tmp_path / "old", [8, 8, 40, 30], 0.45, units=0, kept=0, mean_iou=None)
    far = [500.0, 500, 540, 540]
    new, _ = detected(tmp_path / "new", far, 0.45, "b", units=0, kept=0, mean_iou=None)

    found = compare(old, new, measure)

    assert found["sides"]["deploy"]["answers"] == 4
    assert found["verdict"] == DIFFERENT
    assert "train.mAP" in found["reason"]


def test_boxes_that_a_stranger_made_up_are_one_line(tmp_path):
    new, measure = detected(tmp_path, BOX, digest="b")
    rows = [
        {"sample": name, "side": side, "digest": "a", "skipped": None, "boxes": [1.0],
         "scores": [1.0, 0.5], "classes": [0]}
        for name in IMAGES[:4] for side in ("train", "deploy")
    ]  # fmt: skip
    old = PairRun(new.manifest, new.summary, read_answers(packed(rows), new.manifest, "here"))

    with pytest.raises(RunError, match="here: not records of a pair"):
        compare(old, new, measure)


def test_a_detector_whose_boxes_are_elsewhere_is_different(cache, tmp_path):
    """Through a bundle: records, digests and labels fit each other, and every box has moved."""
    card, data = tiny_tasks.card(tmp_path / "model"), tiny_tasks.data(tmp_path / "data")
    path = document(tmp_path, card, data, deploy={"same": "pillow_fp32"}, rules="none")
    made = audit(path, out=tmp_path / "out").folder / "bundle.zip"

    def move(table):
        rows = [
            row | {"boxes": [number + 300 for number in row["boxes"]], "digest": "0" * 16}
            for row in table.to_pylist()
        ]
        return pa.Table.from_pylist(rows, table.schema)

    name = "pairs/tiny/same/records.parquet"
    place = changed(made, tmp_path / "moved.zip", lambda members: rewritten(members, name, move))
    options = ["--model", str(card), "--data", str(data)]

    assert cli.main(["replay", str(made), *options, "--out", str(tmp_path / "a")]) == cli.PASS
    code = cli.main(["replay", str(place), *options, "--out", str(tmp_path / "b")])

    assert code == cli.GATE_FAILED
    (found,) = read(tmp_path / "b" / "summary.json")["pairs"]
    assert found["verdict"] == DIFFERENT
    assert found["sides"]["deploy"]["answers"] == 1, "one image shows no object at all"


# What the audit's own summary states.


def _pairs(key, value):
    return lambda summary: summary["pairs"][1].update({key: value})


def _rule(key, value):
    return lambda summary: summary["gate"]["rules"][1].update({key: value})


def _flips(summary):
    summary["pairs"][1]["flips"]["count"] = 0


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (_flips, "pairs.1.flips.count"),
        (_pairs("value", 0.99), "pairs.1.value"),
        (_pairs("train", 0.99), "pairs.1.train"),
        (_pairs("samples", 1000), "pairs.1.samples"),
        (_pairs("skipped", 1), "pairs.1.skipped"),
        (_pairs("delta", None), "pairs.1.delta"),
        (_pairs("differing", []), "pairs.1.differing"),
        (_pairs("passed", True), "pairs.1.passed"),
        (_rule("because", "forged"), "gate.rules.1.because"),
        (_rule("value", 0.0), "gate.rules.1.value"),
        (_rule("limit", 0.99), "gate.rules.1.limit"),
        (_rule("failed", False), "gate.rules.1.failed"),
        (lambda summary: summary["pairs"][1].pop("flips"), "pairs.1.flips"),
    ],
)
def test_what_an_audit_states_of_a_pair_must_follow(again, bundle, tmp_path, change, field):
    result = again(forged(bundle, tmp_path / "x.zip", summary=change))

    assert of(result)["verdict"] == DIFFERENT
    assert of(result)["reason"].endswith(f"follow from its records, pairs and document: {field}")
    assert of(result, "same")["verdict"] == BIT_EQUAL
    assert not result.passed


def _evidence(summary):
    stack = summary["stacks"]["bgr"]
    stack["evidence"] = dict.fromkeys(stack["evidence"], "captured")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda summary: summary["gate"].update(rules=[]), "gate.rules"),
        (lambda summary: summary["gate"].update(passed=True), "gate.passed"),
        (lambda summary: summary.update(train="other"), "train"),
        (lambda summary: summary.update(pairs=[]), "pairs"),
        (lambda summary: summary["stacks"]["bgr"].update(overrides=[]), "stacks.bgr.overrides"),
        (_evidence, "stacks.bgr.evidence.resize"),
        (lambda summary: summary.pop("stacks"), "stacks"),
    ],
)
def test_what_an_audit_states_of_all_must_follow(again, bundle, tmp_path, change, field):
    result = again(forged(bundle, tmp_path / "x.zip", summary=change))

    assert any(line.endswith(f": {field}") for line in result.summary["contradictions"])
    assert not result.passed


def test_a_rule_of_a_pair_is_judged_anew_by_the_figures_of_the_pair(again, bundle, tmp_path):
    """An outcome that is forged in both summaries still does not follow from the flips."""

    def passes(content):
        content["gate"]["passed"] = True
        content["gate"]["rules"][-1] |= {"failed": False, "value": 0.0}

    def and_its_pair(content):
        passes(content)
        content["pairs"][-1]["passed"] = True

    place = forged(bundle, tmp_path / "x.zip", summary=and_its_pair, **{PAIR: passes})
    found = of(again(place))

    assert found["verdict"] == DIFFERENT
    assert "pairs/tiny/bgr.gate.rules.0.failed" in found["reason"]


def test_a_summary_of_a_pair_that_says_nothing_is_no_crash(again, bundle, tmp_path):
    place = forged(bundle, tmp_path / "x.zip", **{PAIR: lambda summary: summary.clear()})

    result = again(place)

    assert of(result)["verdict"] == DIFFERENT
    assert result.summary["contradictions"][0].endswith(
        "pairs/tiny/bgr/summary.json: command: None is no experiment that is installed here"
    )


def test_rounds_and_latencies_that_were_recorded_follow_from_themselves(
    again, card, data, cache, tmp_path
):
    rule = {"fail_on": "deploy.tail_quality@20ms < 70%", "because": "belt"}
    tail = {"deploy": ["bgr"], "deadlines_ms": [20], "rounds": 4, "rules": [rule]}
    texts = ("deploy.latency.p50 > 9 s", "deploy.latency.p99 > 9 s")
    rules = [{"fail_on": text, "because": "x"} for text in texts]
    path = document(tmp_path, card, data, tail=tail, rules=rules)
    made = audit(path, out=tmp_path / "timed").folder / "bundle.zip"

    result = again(made)

    assert result.summary["contradictions"] == []
    assert {pair["verdict"] for pair in result.summary["pairs"]} == {BIT_EQUAL}
    assert result.summary["not_replayed"] == [rule["fail_on"]]


# Recordings: a bundle names them, and does not hold them.


@pytest.fixture
def recorded(card, data, cache, tmp_path):
    """An audit of a board that answered as the model does, but for the first image."""
    folder = tmp_path / "board"
    folder.mkdir()
    answered(folder, card, data, wrong=1)
    spec = {"schema": 1, "name": "board", "summary": "b", "extends": "pillow_fp32"}
    runtime = {
        "backend": "recorded", "recording": "recording.yaml", "graph_optimization_level": None,
    }  # fmt: skip
    (folder / "board.yaml").write_text(yaml.safe_dump(spec | {"runtime": runtime}))
    path = document(folder, card, data, deploy={"board": "board.yaml"})
    return audit(path, out=tmp_path / "recorded").folder / "bundle.zip"


def answered(folder, card, data, wrong):
    """Write a recording of the strongest colour's class, of which the first *wrong* are others."""
    names = sorted(str(place.relative_to(data)) for place in data.rglob("*.jpg"))
    classes = [["red", "green", "blue"].index(name.split("/")[0]) for name in names]
    said = [(one + (at < wrong)) % 3 for at, one in enumerate(classes)]
    lines = [f"{name},{one}" for name, one in zip(names, said, strict=True)]
    (folder / "said.csv").write_text("\n".join(["image,prediction", *lines]) + "\n")
    digest = hashlib.sha256((card.parent / "model.onnx").read_bytes()).hexdigest()
    spec = {
        "schema": 1, "name": "board", "device": "Board 7", "kind": "predictions",
        "file": "said.csv", "match": "name", "model": digest,
    }  # fmt: skip
    (folder / "recording.yaml").write_text(yaml.safe_dump(spec))


def test_a_recording_that_is_not_here_is_one_line_that_says_what_to_give(again, recorded):
    with pytest.raises(UserError) as raised:
        again(recorded)

    (line,) = str(raised.value).splitlines()
    assert line.startswith("board: recording.yaml: cannot be read")
    assert line.endswith("give --set board.runtime.recording=PATH")


@pytest.mark.parametrize("wrong", [1, 2])
def test_a_recording_elsewhere_is_an_input(again, recorded, card, data, tmp_path, wrong):
    """The same one wherever it lies, and another one."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    answered(other, card, data, wrong)

    result = again(recorded, overrides=[f"board.runtime.recording={other}/recording.yaml"])

    found = of(result, "board")
    assert (found["verdict"], result.passed) == ((BIT_EQUAL, True), (DIFFERENT, False))[wrong - 1]
    assert [line.split(":")[0] for line in found["changed"]["inputs"]] == [
        "deploy recordings.runtime"
    ] * (wrong - 1)
