"""The schemas of model cards, data cards, audits and suites, beside that of profiles."""

import functools
import json
import re
from pathlib import Path

import pytest
import yaml
from json_checker import errors

ROOT = Path(__file__).parents[2]
KINDS = ("model-card", "data-card", "audit", "suite", "condition-suite", "campaign", "repairs")
SCHEMAS = {
    kind: json.loads((ROOT / "profiles" / f"{kind}.schema.json").read_text(encoding="utf-8"))
    for kind in KINDS
}


def wrong(kind, document):
    return errors(document, SCHEMAS[kind], SCHEMAS[kind])


@functools.cache
def shown(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", text, re.DOTALL))
    return [one for one in found if isinstance(one, dict) and "schema" in one]


@pytest.mark.parametrize(
    ("kind", "page"),
    [("model-card", "model-cards.md"), ("data-card", "data-cards.md"), ("audit", "audit.md"),
     ("suite", "suites.md"), ("condition-suite", "conditions.md"),
     ("campaign", "faults.md"), ("repairs", "repair.md")],
)  # fmt: skip
def test_what_the_documents_show_is_green(kind, page):
    documents = shown(page)

    assert documents
    assert [wrong(kind, document) for document in documents] == [[]] * len(documents)


SHIPPED = [
    ("model-card", "docs/cards"),
    ("condition-suite", "suites/conditions"),
    ("campaign", "suites/campaigns"),
    ("suite", "suites"),
    ("repairs", "suites/repairs"),
]


@pytest.mark.parametrize(
    ("kind", "path"),
    [(kind, path) for kind, folder in SHIPPED for path in sorted((ROOT / folder).glob("*.yaml"))],
    ids=lambda value: getattr(value, "stem", value),
)
def test_every_document_that_we_ship_is_green(kind, path):
    assert wrong(kind, yaml.safe_load(path.read_text(encoding="utf-8"))) == []


def stack(key):
    return {"profile": "pillow_fp32", "set": {key: "opencv"}}


OVERRIDES = (
    "resize", "resize.backend", "runtime.threads", "precision.quantizer.calibration.samples",
    "precision.cast.keep.nodes", "runtime.provider_options.arena", "evidence.decoder.kind",
    "postprocess.nms.iou_threshold", "graph.pooling.ceil_mode",
)  # fmt: skip


@pytest.mark.parametrize("key", OVERRIDES)
def test_every_kind_of_key_may_be_overridden(key):
    audit = shown("audit.md")[0] | {"deploy": {"box": stack(key)}}

    assert wrong("audit", audit) == []


def card(**changed):
    return shown("model-cards.md")[0] | changed


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("model-card", card(task="clasification")),
        ("model-card", card(output={"kind": "logit"})),
        ("model-card", card(task="detection")),
        ("model-card", card(modle="m.onnx")),
        ("model-card", card(input={"height": 1})),
        ("data-card", shown("data-cards.md")[0] | {"format": "cocoo"}),
        ("data-card", shown("data-cards.md")[0] | {"ignore": [255]}),
        ("audit", shown("audit.md")[0] | {"rules": [{"fail_on": "flip_rate > 1%"}]}),
        ("audit", shown("audit.md")[0] | {"deploy": {"box": {"profil": "x"}}}),
        ("audit", shown("audit.md")[0] | {"deploy": {"box": stack("resize.backnd")}}),
        ("audit", shown("audit.md")[0] | {"train": stack("resise")}),
        ("condition-suite", shown("conditions.md")[0] | {"where": "somewhere"}),
        ("campaign", shown("faults.md")[0] | {"bits": "some"}),
        ("repairs", shown("repair.md")[0] | {"order": ["euros"]}),
        ("repairs", shown("repair.md")[0] | {"axes": {"a": {"b": {"set": {"resise": 1}}}}}),
        ("suite", shown("suites.md")[0] | {"colums": {}}),
        ("suite", shown("suites.md")[0] | {"columns": {"a": {"b": {"runtime.thread": 1}}}}),
        ("suite", shown("suites.md")[0] | {"combined": {"decode.idtc": "ifast"}}),
    ],
)
def test_mistakes_are_red(kind, document):
    assert wrong(kind, document) != []
