"""A scripted stand-in for the model APIs, for real clients and for tests. See README.md."""

from .calls import Call
from .server import FakeAPI
from .turns import answers

__all__ = ["Call", "FakeAPI", "answers"]
