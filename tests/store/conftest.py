from collections.abc import Iterator

import pytest

from tests.store.writer import Writers


@pytest.fixture(scope="session")
def writers() -> Iterator[Writers]:
    with Writers() as writers:
        yield writers
