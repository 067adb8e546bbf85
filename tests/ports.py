"""A port for somebody who has to be told one."""

import random
import socket
from contextlib import suppress

# Below those that systems give away by themselves: there nobody takes it meanwhile, and whoever tries to connect before
# it is listened on is not connected with himself.
FIRST, LAST = 20_000, 32_000


def free_port() -> int:
    while True:
        port = random.SystemRandom().randrange(FIRST, LAST)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
