"""libsamplerate, the Secret Rabbit Code."""

from __future__ import annotations

from simulator.contract import Array, Backend, Library, Offer, Resampler, SampleError, Stage

_LIBRARY = Library("samplerate", distribution="samplerate", extra="audio")


class SamplerateResampler(Resampler):
    """Resamples with ``samplerate.resample``; *quality* is one of its converter types."""

    def _resample(self, samples: Array, rate: int, wanted: int) -> Array:
        try:
            found: Array = _LIBRARY.resample(samples, wanted / rate, self.options["quality"])
        except Exception as error:  # its own class of errors
            raise SampleError(f"libsamplerate: {' '.join(str(error).split())}") from error
        return found


BACKEND = Backend(
    name="samplerate",
    summary="libsamplerate: sinc filters of three lengths, straight lines, held samples",
    library=_LIBRARY,
    offers=(
        Offer(
            Stage.RESAMPLE,
            {"quality": ("sinc_best", "sinc_medium", "sinc_fastest", "linear", "zero_order_hold")},
            SamplerateResampler,
            source="https://libsndfile.github.io/libsamplerate/api_misc.html: converters",
        ),
    ),
)
