import pytest

from agent_logger.capture import install


@pytest.fixture(autouse=True)
def _own_home() -> None:
    """Every test has a home of its own; what a process remembers of one is not another's."""
    for remembered in (install.key, install.redactor, install.know):
        remembered.cache_clear()
