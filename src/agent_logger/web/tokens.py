"""Access to the page: a link that works once, then a cookie.

Both are signed with a key that only this user can read. So every program of the user can make a link for a running page
(`agent-logger view` does), and a browser that was let in stays so when the page is restarted. A link is for one run of
the page: which links were used is remembered in memory alone.
"""

import hmac
import secrets
import time
from collections.abc import Callable

LINK_SECONDS = 600
COOKIE_SECONDS = 7 * 86_400


class PageTokens:
    """The tokens of the page on one port. `key` is the install's; `run` is different each time the page is started."""

    def __init__(self, key: bytes, port: int, run: str, clock: Callable[[], float] = time.time) -> None:
        self._key, self._clock = key, clock
        self._scopes = {"link": f"{port}\n{run}", "cookie": f"{port}"}
        self._port = port
        self._used_links: dict[str, float] = {}  # used links, and when they expire
        self.cookie_name = f"agent_logger_{port}"  # browsers distinguish cookies by host, not by port

    def link(self) -> str:
        return f"http://127.0.0.1:{self._port}/open?token={self._sign('link', LINK_SECONDS)}"

    def redeem(self, token: str) -> str | None:
        """The value of a cookie in exchange for a link's token, once."""
        now = self._clock()
        self._used_links = {link: until for link, until in self._used_links.items() if until > now}
        if token in self._used_links or not self._is_valid("link", token):
            return None
        self._used_links[token] = now + LINK_SECONDS
        return self._sign("cookie", COOKIE_SECONDS)

    def admits(self, cookie: str) -> bool:
        return self._is_valid("cookie", cookie)

    def _sign(self, purpose: str, seconds: int) -> str:
        payload = f"{int(self._clock()) + seconds}.{secrets.token_urlsafe(16)}"
        return f"{payload}.{self._signature(purpose, payload)}"

    def _is_valid(self, purpose: str, token: str) -> bool:
        payload, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(purpose, payload).encode()):
            return False
        return int(payload.partition(".")[0]) > self._clock()

    def _signature(self, purpose: str, payload: str) -> str:
        message = f"agent-logger page\n{purpose}\n{self._scopes[purpose]}\n{payload}"
        return hmac.digest(self._key, message.encode(), "sha256").hex()
