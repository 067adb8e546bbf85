"""A proxy on loopback that is the whole internet of a test: it answers CONNECT to any host. See `internet.py`."""

from .client_hello import ClientHello
from .internet import Internet, Tunnel
from .sites import Site

__all__ = ["ClientHello", "Internet", "Site", "Tunnel"]
