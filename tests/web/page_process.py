"""The page in a process of its own, as its user runs it, and a client that is no browser."""

import http.client
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from agent_logger.home.homes import homes_of
from agent_logger.web.server import link_to_running


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Page:
    """`agent-logger view` over the sessions of a home. `file_bytes`: how large any file that it writes may be."""

    def __init__(self, home: Path, *arguments: str, file_bytes: int = resource.RLIM_INFINITY) -> None:
        self.home = home
        given = [value for flag, value in pairwise(arguments) if flag == "--home"]
        database = dict(pairwise(arguments)).get("--database")
        self.homes = homes_of(home / ".agent-logger", given)._replace(database=database)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agent_logger", "view", "--page-port", "0", *arguments],
            cwd=home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, resource.RLIM_INFINITY)),
        )
        assert self.process.stderr
        said = self.process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)(/open\?token=\S+)", said)
        assert found, said + self.process.stderr.read()
        self.port, self.way_in = int(found[1]), found[2]
        self.url = f"http://127.0.0.1:{self.port}"

    def settle(self) -> None:
        """Until it has read everything once. Before that it says so, and finds half; how long it is, others decide."""
        cookie, give_up = self.cookie(), time.monotonic() + 180
        while (answer := self.ask("/search", cookie=cookie)).status != 200 or "search index is" in answer.text:
            assert time.monotonic() < give_up
            time.sleep(0.05)

    def link(self) -> str:
        """A new one, as `agent-logger view` makes it."""
        link = link_to_running(self.homes)
        assert link
        return link

    def second_view(self) -> str:
        """What a second `agent-logger view` says."""
        line = [sys.executable, "-m", "agent_logger", "view", "--no-open"]
        done = subprocess.run(line, env=self.environment, capture_output=True, text=True, check=True, timeout=30)
        return done.stderr

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> Answer:
        """With these headers alone; `Host` is ours unless it is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"host": f"127.0.0.1:{self.port}"} | {name.replace("_", "-"): it for name, it in headers.items()}
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            told = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, told, response.read())
        finally:
            connection.close()

    @cached_property
    def let_in(self) -> str:
        """The cookie of a browser that was here before."""
        return self.cookie()

    def cookie(self) -> str:
        answer = self.ask(self.link().removeprefix(self.url))
        assert answer.status == 303
        return answer.headers["set-cookie"].partition(";")[0]

    def stop(self) -> int:
        self.process.terminate()
        self.process.communicate(timeout=30)
        return self.process.returncode


@contextmanager
def showing(home: Path, *arguments: str, file_bytes: int = resource.RLIM_INFINITY) -> Iterator[Page]:
    page = Page(home, "--no-open", *arguments, file_bytes=file_bytes)
    try:
        if file_bytes == resource.RLIM_INFINITY:  # else it can read nothing to its end
            page.settle()
        yield page
    finally:
        if page.process.poll() is None:
            page.stop()
