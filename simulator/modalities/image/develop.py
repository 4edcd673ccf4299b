"""The section of a profile that develops raw planes."""

from __future__ import annotations

from pydantic import Field

from simulator.profile.section import OpenSection


class Sensor(OpenSection):
    """How pixels become a raw plane, where a file has none."""

    tone: str | None = Field(None, description="the tone curve that is inverted")
    pattern: str | None = Field(None, description="of the color filters, two rows of two")
    bits: int | None = Field(None, description="of a sample")


class Develop(OpenSection):
    """How a raw plane becomes RGB."""

    black_level: str | None = Field(None, description="subtract the sample of no light, or forget")
    white_balance: str | None = Field(None, description="whose gains of red, green and blue")
    demosaic: str | None = Field(None, description="from one color a site to three a pixel")
    color_matrix: str | None = Field(None, description="from the camera's colors to sRGB's")
    tone: str | None = Field(None, description="from linear light to levels")
    denoise: str | None = None
    bits: int | None = Field(None, description="of a sample between balance and demosaic")
    sensor: Sensor | None = Field(None, description="makes the raw plane of decoded pixels")
