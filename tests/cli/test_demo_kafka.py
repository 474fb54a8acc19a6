"""What the demo on Kafka asks, and what it may remove."""

import pytest

from services.produce.forget import forget
from services.runtime.settings import KafkaSettings
from skyband.cli.demo_kafka import _result, own_definitions
from skyband.cli.documents import result_document
from skyband.errors import DefinitionError
from skyband.files.definitions import dump_definitions, load_definitions
from skyband.local.demo import DEFINITIONS
from skyband.model.result import Result, ResultRow


def test_its_topics_are_its_own_and_no_source_waits_for_another() -> None:
    made = own_definitions(load_definitions(DEFINITIONS), "demo-0a1b2c3d-")
    assert [s.topic for s in made.group.streams] == ["demo-0a1b2c3d-departure_delay", "demo-0a1b2c3d-arrival_delay"]
    assert made.group.max_drift_us > 31 * 86_400_000_000
    assert load_definitions(dump_definitions(made)) == made


def test_results_are_read_back_to_the_bit() -> None:
    import json

    rows = (ResultRow(1, "größe", 0.1 + 0.2, {"a": 1e-300}), ResultRow(2, "b", -5.0, {}))
    result = Result("most-delayed", "", 5, 10, rows)
    assert _result(json.dumps(result_document("most-delayed", 5, 10, rows))) == result


@pytest.mark.parametrize("prefix", ["", "demo-", "flights", "demo-0a1b2c3d", "demo-0a1b2c3d-x", "demo-0A1B2C3D-"])
def test_nothing_else_can_be_removed(prefix: str) -> None:
    with pytest.raises(DefinitionError, match="is no prefix of a demo"):
        forget(KafkaSettings(), prefix)
