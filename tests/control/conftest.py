import pytest

from tests.control.list_log import ListLog, empty_log


@pytest.fixture
def log() -> ListLog:
    return empty_log()
