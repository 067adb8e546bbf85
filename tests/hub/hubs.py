"""A hub as a process of its own, and machines that push to it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from agent_logger import Catalog
from agent_logger.hub.folder import HubFolder
from agent_logger.hub.people import Role
from agent_logger.hub.work import HubParts, homes_of_hub, work_once
from agent_logger.push.client import HubClient
from agent_logger.push.levels import ShareRules
from agent_logger.push.machine import Membership, note_membership
from agent_logger.push.protocol import Level
from agent_logger.push.run import push_once
from agent_logger.push.sender import Sent


class Hub(NamedTuple):
    """A hub that runs."""

    folder: HubFolder
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def invite(self, person: str) -> str:
        parts = HubParts(self.folder)
        try:
            return parts.people.invite(person, Role.MEMBER)
        finally:
            parts.close()

    def join(self, home: Path, person: str, machine: str) -> Membership:
        client = HubClient(self.url)
        answer = client.join(self.invite(person), machine)
        client.close()
        member = Membership(
            url=self.url, token=answer.token, device=answer.device, person=answer.person, machine=answer.machine
        )
        home.mkdir(parents=True, exist_ok=True)
        note_membership(home, member)
        return member


@contextmanager
def running_hub(folder: Path, port: int = 0) -> Iterator[Hub]:
    """Run a hub in this folder, without what makes homes and a catalog of what it gets."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    program = "import sys; from tests.hub.hubs import serve_alone; serve_alone(sys.argv[1], int(sys.argv[2]))"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(folder / "hub"), str(port)],
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=Path(__file__).parents[2],
            env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        )
    assert process.stdout
    url = process.stdout.readline().decode().strip()
    assert url, log.read_text()
    try:
        yield Hub(HubFolder(folder / "hub"), url, process, log)
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def serve_alone(folder: str, port: int, store: str | None = None) -> None:
    from agent_logger.hub.server import HubAddress, serve

    serve(HubParts(HubFolder(Path(folder)), store), HubAddress("127.0.0.1", port), lambda url: print(url, flush=True))


def rules(level: Level, names: Mapping[str, str] | None = None, **levels: Level) -> ShareRules:
    return ShareRules({"*": level, **levels}, names or {})


def push(home: Path, level: Level = "contents") -> Sent:
    return push_once(home, rules(level))


@contextmanager
def catalog_of(folder: HubFolder) -> Iterator[Catalog]:
    """The catalog of a hub, after it took in what was pushed."""
    parts = HubParts(folder)
    report = work_once(parts)
    parts.close()
    assert report.problems == []
    with Catalog(homes_of_hub(folder)) as catalog:
        yield catalog


def stored(folder: HubFolder) -> dict[str, bytes]:
    """Every file of the hub but its own database: what was pushed, homes, catalog."""
    return {
        str(path.relative_to(folder.path)): path.read_bytes()
        for path in sorted(folder.path.rglob("*"))
        if path.is_file()
    }
