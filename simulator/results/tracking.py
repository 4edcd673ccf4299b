"""``tracking`` of a pair: the tracks that its boxes become, against annotated and other tracks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from simulator.tasks.figures import Delta
from simulator.typed import About, ResultModel, Seconds, Unit

Agreement = Annotated[float | None, About(Unit.SHARE, better=1)]
Fewer = Annotated[int | None, About(Unit.COUNT, better=-1)]


class TrackFigures(ResultModel):
    """How well tracks agree with reference tracks; None where there is nothing to follow."""

    hota: Agreement = Field(description="higher order tracking accuracy: of boxes and of tracks")
    deta: Agreement = Field(description="its part on boxes: detection accuracy")
    assa: Agreement = Field(description="its part on tracks: association accuracy")
    mota: Agreement = Field(description="1 less what is missed, false or switched, by boxes")
    idf1: Agreement = Field(description="share of boxes of the right track, the best pairing")
    switches: Fewer = Field(description="identity switches: a track is another one's from here on")
    fragmentations: Fewer = Field(description="how often a track is lost and found again")


class TrackDeltas(ResultModel):
    """Deployment less training."""

    hota: Delta
    deta: Delta
    assa: Delta
    mota: Delta
    idf1: Delta


class BetweenTracks(TrackFigures):
    """The deployment stack's tracks, with those of the training stack as the reference."""

    lost: Fewer = Field(description="tracks of training that no track of deployment follows")
    gained: Fewer = Field(description="tracks of deployment that follow none of training")
    broken: Fewer = Field(description="tracks of training that several of deployment follow")
    joined: Fewer = Field(description="tracks of deployment that follow several of training")
    boxes: int = Field(description="of tracks of training")
    paired: int = Field(description="of them, those that a track of deployment is on (IoU 0.5)")


class TrackMoment(ResultModel):
    """Frames in a row in which tracks differ."""

    sample: str = Field(description="the first of them")
    frames: int
    start: Seconds | None = Field(
        description="of the first one, from the clip's; None where nobody knows the rate"
    )
    end: Seconds | None = Field(description="of the last one")
    switches: list[str] = Field(
        description="tracks of training whose track of deployment is another one from here on"
    )
    missing: int = Field(description="boxes of tracks of training alone")
    added: int = Field(description="boxes of tracks of deployment alone")


class Tracks(ResultModel):
    """How many tracks each stack has."""

    train: int
    deploy: int


class Tracking(ResultModel):
    """Both stacks' boxes, followed by the same tracker."""

    tracker: str
    clips: int
    frames: int = Field(description="that both stacks answered")
    tracks: Tracks
    train: TrackFigures | None = Field(
        default=None, description="against the annotated tracks; None where there are none"
    )
    deploy: TrackFigures | None = Field(default=None, description="likewise")
    delta: TrackDeltas | None = Field(default=None, description="deployment less training")
    between: BetweenTracks
    moments: list[TrackMoment] = Field(description="the worst first: switches, then other boxes")
