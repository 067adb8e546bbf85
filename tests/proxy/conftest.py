"""Runs the tests of a module by both doors, where the module says so (`DOORS`)."""

from collections.abc import Iterator

import pytest

from tests.proxy.wires import DOOR


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    doors = getattr(metafunc.module, "DOORS", ())
    if doors:
        only = metafunc.definition.get_closest_marker("door")
        metafunc.parametrize("door", only.args if only else doors, indirect=True, scope="module")


@pytest.fixture(scope="module", autouse=True)
def door(request: pytest.FixtureRequest) -> Iterator[str]:
    """The door by which clients come."""
    name = str(getattr(request, "param", "base-url"))
    token = DOOR.set(name)
    yield name
    DOOR.reset(token)
