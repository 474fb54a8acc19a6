"""Which programs run and what they are told."""

from pathlib import Path

import pytest

from services.up import plan
from services.up.plan import Addresses, demo_programs, environment_of, next_command, service_programs
from services.up.settings import UpSettings, default_folder, read_settings
from skyband.local import demo

ADDRESSES = Addresses("127.0.0.1:9092", "127.0.0.1:50051", "127.0.0.1:50052")


def test_each_service_knows_kafka_and_has_a_name_of_its_own_in_groups() -> None:
    programs = service_programs(ADDRESSES)
    assert {program.name for program in programs} == {"align", "sketch", "engine", "fanout", "control"}
    assert all(program.environment["SKYBAND_KAFKA_BOOTSTRAP"] == ADDRESSES.kafka for program in programs)
    assert all(program.command[-1] == f"services.{program.name}" for program in programs)
    assert all(program.serves for program in programs)
    assert len({program.environment["SKYBAND_MEMBER"] for program in programs}) == len(programs)


def test_control_says_where_results_are_and_fanout_serves_them_there() -> None:
    programs = {program.name: program.environment for program in service_programs(ADDRESSES)}
    assert programs["control"]["SKYBAND_LISTEN"] == ADDRESSES.control
    assert programs["control"]["SKYBAND_CONTROL_RESULTS_ADDRESS"] == programs["fanout"]["SKYBAND_LISTEN"]


def test_the_demo_is_the_one_of_the_package() -> None:
    assert (plan.DEFINITIONS, plan.FLIGHTS) == (demo.DEFINITIONS, demo.FLIGHTS)
    apply, produce = demo_programs(ADDRESSES, UpSettings(Path("folder"), speed=0.5))
    assert apply.environment["SKYBAND_SERVER"] == ADDRESSES.control
    assert str(plan.DEFINITIONS) in apply.command
    assert produce.command[-2:] == ("--speed", "0.5")
    assert not apply.serves
    assert not produce.serves


def test_the_checkout_comes_first_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/other")
    environment = environment_of(service_programs(ADDRESSES)[0], Path("ready.json"))
    assert environment["PYTHONPATH"].split(":") == [str(plan.ROOT), "/other"]
    assert environment["SKYBAND_READY_FILE"] == "ready.json"


def test_the_next_command_names_the_server_only_if_it_is_not_the_usual_one() -> None:
    settings = UpSettings(Path("folder"))
    assert next_command(ADDRESSES, settings) == "skyband queries watch flights/most-delayed"
    other = Addresses(ADDRESSES.kafka, "127.0.0.1:50061", "127.0.0.1:50062")
    assert next_command(other, settings).startswith("SKYBAND_SERVER=127.0.0.1:50061 skyband ")


def test_state_is_kept_where_the_user_keeps_state() -> None:
    assert default_folder({"XDG_STATE_HOME": "/state"}) == Path("/state/skyband/up")
    assert default_folder({}) == Path.home() / ".local" / "state" / "skyband" / "up"


@pytest.mark.parametrize("words", [["--port", "0"], ["--port", "70000"], ["--speed", "-1"], ["--speed", "nan"], ["x"]])
def test_wrong_options_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        read_settings(words)
    assert refused.value.code == 2


def test_options_are_read() -> None:
    words = ["--folder", "F", "--port", "1", "--kafka-port", "2", "--empty", "--speed", "3", "--fresh", "--stop"]
    assert read_settings(words) == UpSettings(Path("F"), 1, 2, empty=True, speed=3.0, fresh=True, stop=True)
