import pytest
from pydantic import ValidationError

from services.sketch.settings import SketchSettings


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYBAND_SKETCH_BITMAPS", "256")
    monkeypatch.setenv("SKYBAND_SKETCH_PUBLISH_S", "0.5")
    found = SketchSettings()
    assert (found.bitmaps, found.publish_s, found.sample_bytes) == (256, 0.5, 20_000)


def test_bitmaps_are_a_power_of_two() -> None:
    with pytest.raises(ValidationError, match="100 is no power of two; use 64 or 128"):
        SketchSettings(bitmaps=100)
