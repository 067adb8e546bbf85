"""A CA that is not ours, for upstreams and for clients that trust nobody else."""

import ssl

import pytest

from tests.proxy.foreign import foreign_files, foreign_server


@pytest.fixture
def foreign_ca() -> str:
    return str(foreign_files()[0])


@pytest.fixture
def foreign() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server with a certificate of that CA, and a client that trusts it alone."""
    return foreign_server(), ssl.create_default_context(cafile=foreign_files()[0])
