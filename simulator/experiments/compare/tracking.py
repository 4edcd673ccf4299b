"""``simulate --track``: both stacks' boxes are followed through the clips, and tracks compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulator import registry
from simulator.contract import Stage
from simulator.contract.stage import named
from simulator.data.video import shown_at
from simulator.errors import UserError, unknown
from simulator.experiments.record_store import RecordStore
from simulator.experiments.session import Session
from simulator.experiments.summary import SIDES
from simulator.notices import Kind, Notice
from simulator.profile.implementations import Choice, implementation
from simulator.report.reading import Run
from simulator.report.sections.section import Section, part
from simulator.report.table import Cell, Column, Table
from simulator.report.words import count, interval, points
from simulator.results.pair import PairSummary
from simulator.results.tracking import TrackFigures, Tracking
from simulator.tasks.detection.tracks import CLIPS
from simulator.tasks.figures import Figures
from simulator.tasks.score import Footage, Shot
from simulator.typed import Unit

_TITLES = {
    "hota": "HOTA", "deta": "DetA", "assa": "AssA", "mota": "MOTA", "idf1": "IDF1",
    "switches": "identity switches", "fragmentations": "fragmentations",
}  # fmt: skip


USUAL_RATE = 30.0
"""Frames a second where nobody says it; a tracker forgets by it."""


@dataclass(frozen=True, slots=True)
class Following:
    """How the boxes of a run are followed.

    Attributes:
        method: the tracker, as it was asked for.
        tracker: its implementation.
        metrics: that of the measures.
    """

    method: str
    tracker: Choice
    metrics: Choice

    @classmethod
    def of(cls, method: str, session: Session) -> Following:
        """Find a tracker, before anything is run.

        Raises:
            UserError: there is none of this name, or nothing here can be followed.
            MissingLibrary: its library is not installed.
        """
        offered = {
            name: backend
            for backend in registry.serving(Stage.TRACK)
            for admits in backend.admitted(Stage.TRACK)["method"]
            for name in admits  # type: ignore[union-attr]
        }
        if method not in offered:
            raise UserError(f"--track: {unknown('tracker', method, offered)}")
        task = session.card.task
        if not task.tracked_with:
            raise UserError(f"--track {method}: boxes are followed, and {task.name} has none")
        if not session.dataset.films:
            raise UserError(
                f"--track {method}: {session.dataset.root}: frames in order and equally far apart "
                "are followed: give a video, a folder of videos or an annotated sequence, whole or "
                "cut by first and last of a data card; --limit and --until-decided take frames at "
                "random"
            )
        if any(film.rate is None for film in session.dataset.films):
            said = f"{session.dataset.root}: nobody says how many frames a second has: --track"
            remedy = f"takes {USUAL_RATE:g}; write rate in the data card"
            session.notes.append(Notice(Kind.DATA, f"{said} {remedy}"))
        measures = next(registry.serving(Stage.TRACK_METRICS))
        found = cls(
            method,
            implementation(Stage.TRACK, offered[method], {"method": method}),
            implementation(Stage.TRACK_METRICS, measures, {}),
        )
        found.tracker.require()
        found.metrics.require()
        return found

    def figures(self, session: Session, done: RecordStore) -> Figures:
        """Return ``tracking`` of the summary."""
        task = session.card.task
        made = self.tracker.make(), self.metrics.make()
        found = named(task.tracked_with)(task, *made, footage(session, done), session.seed)
        return {"tracker": self.method, **found}


def footage(session: Session, done: RecordStore) -> list[Footage]:
    """Return the frames of each clip with the records of both stacks."""
    train, deploy = map(done.records, SIDES)
    ran = {item.name: (item, at) for at, item in enumerate(done.ran)}
    both = list(zip(train, deploy, strict=True))
    films, times = list[Footage](), shown_at(session.dataset)
    for film, items in session.dataset.frames():
        shots = []
        for item in items:
            known, at = ran.get(item.name, (item, -1))
            seconds = times[item.name].time if times else None
            shots.append(Shot(item.name, seconds, known.truth, both[at] if at >= 0 else None))
        films.append((shots, film.rate or USUAL_RATE))
    return films


def told(found: Tracking | None) -> list[str]:
    """Say what becomes of the tracks, for verdict and page; nothing where nobody asked for them."""
    if found is None:
        return []
    ours, tracks = found.between, found.tracks
    said = [
        f"Of {count(tracks.train, 'track')} of train ({found.tracker}) {ours.lost} lost, "
        f"{ours.broken} broken; of {tracks.deploy:,} of deploy {ours.gained} gained, "
        f"{ours.joined} joined; identities switch {count(ours.switches or 0, 'time')}."
    ]
    if found.delta:
        moved = ((_TITLES[name], found.delta[name]) for name in ("hota", "mota", "idf1"))
        parts = (f"{title} {points(one)} points{interval(one.ci95)}" for title, one in moved)
        short = f"; an interval takes {CLIPS} clips" if found.clips < CLIPS else ""
        said.append(f"Against the annotated tracks: {', '.join(parts)}{short}.")
    return said


def table(found: Tracking) -> Table:
    """Return the figures of each comparison of tracks, one below the other."""
    rows: list[Sequence[Cell]] = []
    compared = [("train, against annotated tracks", found.train),
                ("deploy, against annotated tracks", found.deploy),
                ("deploy, against train's tracks", found.between)]  # fmt: skip
    for name, one in compared:
        if one is not None:
            rows.append([name, *(one[field] for field in _TITLES)])
    rates = [Column(f"{title}, %", Unit.SHARE, 1) for title in list(_TITLES.values())[:5]]
    events = [Column(title, Unit.COUNT, -1) for title in list(_TITLES.values())[5:]]
    assert {*_TITLES} == {*TrackFigures.model_fields}
    return Table([Column("tracks"), *rates, *events], rows, f"Tracks by {found.tracker}")


@part(order=62)
def tracks(run: Run[PairSummary]) -> Section | None:
    """Show both stacks' tracks, and the moments in which they differ most."""
    found = run.summary.tracking
    if found is None:
        return None
    moments: list[Sequence[Cell]] = [
        [one.sample, "–" if one.start is None else f"{one.start:.2f} to {one.end:.2f}",
         one.frames, "; ".join(one.switches) or "–", one.missing, one.added]
        for one in found.moments
    ]  # fmt: skip
    counted = [Column(name, Unit.COUNT) for name in ("train alone", "deploy alone")]
    head = [Column("first frame"), Column("seconds"), Column("frames", Unit.COUNT),
            Column("switches"), *counted]  # fmt: skip
    return Section(
        "tracking",
        "Tracks",
        "Do objects keep their identity on the deployment stack?",
        told(found) if found.moments else [*told(found), "No frame has tracks that differ."],
        notes=[
            f"Both stacks' boxes went through the same tracker ({found.tracker}), class by class. "
            "Tracks are paired by boxes with an IoU of at least 0.5; boxes of tracks of one stack "
            "alone are counted. A switch of 'person 1: 2 → 5' is of train's track 1, which was "
            "deploy's 2 and is its 5 from there on.",
        ],
        tables=[
            table(found),
            *([Table(head, moments, "Frames in a row in which tracks differ")] if moments else []),
        ],
    )
