import pytest

from agent_logger.catalog import catalog


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search takes in all there is to find, however busy this machine is."""
    monkeypatch.setattr(catalog, "INDEX_SECONDS", 60.0)
