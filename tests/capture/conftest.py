import pytest

from agent_logger.capture import logger


@pytest.fixture(autouse=True)
def _own_home() -> None:
    """Every test has a home of its own; what a process remembers of one is not another's."""
    for remembered in (logger._redactor, logger._know):
        remembered.cache_clear()
