"""Names of the files and folders of a run."""

from __future__ import annotations

MANIFEST, RECORDS, SUMMARY = "manifest.json", "records.parquet", "summary.json"
PLAN = "plan.json"
"""Of a command that leaves no run: its request, and what its results depend on."""
PARTS, PICTURES, LOOKS, ROUNDS, LOGS = "parts", "flips", "looks", "rounds", "loadgen"
ALONE = "alone"
"""Records of samples with each axis alone, while the run goes on."""
EVENTS, CLIPS = "events", "clips"
"""Drawings of the worst faults, and of what permanent ones leave in a video."""
DOCUMENT, MARKDOWN, JUNIT, BUNDLE = "audit.yaml", "audit.md", "junit.xml", "bundle.zip"
"""Files of an audit's run, which has no records of its own but runs in folders below it."""
PAIRS_FOLDER, TAILS_FOLDER, PROFILES_FOLDER, CARDS_FOLDER = "pairs", "tail", "profiles", "cards"
AUDIT_FILES = (DOCUMENT, MARKDOWN, JUNIT, BUNDLE, f"{BUNDLE}.sig")
AUDIT_FOLDERS = (PAIRS_FOLDER, TAILS_FOLDER, PROFILES_FOLDER, CARDS_FOLDER)
