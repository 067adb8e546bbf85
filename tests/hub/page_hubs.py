"""A hub with three people and what their machines have sent, and a client of its application without sockets."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlencode

import pytest
from starlette.routing import BaseRoute
from starlette.types import Message

from agent_logger.archive.run import archive_all
from agent_logger.clock import Clock
from agent_logger.hub.access import AccessOptions, HubAccess
from agent_logger.hub.api import PushApi
from agent_logger.hub.app import hub_app
from agent_logger.hub.folder import HubFolder
from agent_logger.hub.people import People, Role
from agent_logger.hub.storage.sqlite_index import SqliteIndex
from agent_logger.hub.work import HubParts, homes_of_hub
from agent_logger.web.catalog_pool import CatalogPool
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user

ADMIN, LEAD, MEMBER, OTHER = "ann", "lea", "ben", "cleo"
ROLES = {ADMIN: Role.ADMIN, LEAD: Role.LEAD, MEMBER: Role.MEMBER, OTHER: Role.MEMBER}
SESSIONS = {name: ID.format(number) for number, name in enumerate(ROLES, 1)}
HOST = "hub.example"


@dataclass
class Time:
    seconds: float = 1_790_000_000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    cookies: list[str]

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Hub:
    folder: Path
    people: People
    pool: CatalogPool
    time: Time
    api: PushApi
    app: HubAccess
    devices: dict[str, str] = field(default_factory=dict)  # tokens, by person
    readers: dict[str, str] = field(default_factory=dict)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def with_app(self, options: AccessOptions, *more: BaseRoute) -> None:
        self.app = hub_app(self.pool, self.people, options, [*self.api.routes(), *more])

    def ask(
        self,
        path: str,
        reader: str | None = None,
        *,
        method: str = "GET",
        peer: str = "10.0.0.9",
        headers: Mapping[str, str] = {},
        form: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask as a program with the reader token of a person, or with the given headers alone."""
        given = {"host": HOST, **({"authorization": f"Bearer {self.readers[reader]}"} if reader else {}), **headers}
        return self.loop.run_until_complete(self._ask(path, method, peer, given, urlencode(form or {}).encode()))

    def browse(self, path: str, reader: str, *, method: str = "GET", form: Mapping[str, str] | None = None) -> Answer:
        """Ask as the browser of a person who is signed in."""
        origin = {"origin": f"https://{HOST}"} if method != "GET" else {}
        return self.ask(path, method=method, headers={"cookie": self.cookie(reader), **origin}, form=form)

    def cookie(self, reader: str) -> str:
        token = self.people.redeem_link(self.people.link_token(reader), "10.9.9.9")
        return f"agent_logger_hub={token}"

    def refusals(self) -> list[str]:
        return [event.detail for event in self.people.events(1_000_000) if event.event == "refused"]

    async def _ask(self, path: str, method: str, peer: str, headers: Mapping[str, str], body: bytes) -> Answer:
        raw, _, query = path.partition("?")
        messages: list[Message] = []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            "client": (peer, 4711),
            "server": (HOST, 80),
        }

        requests: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if requests:
                return requests.pop()
            await asyncio.Event().wait()  # the client stays
            raise AssertionError

        async def send(message: Message) -> None:
            messages.append(message)

        await asyncio.wait_for(self.app(scope, receive, send), 30)
        start = messages[0]
        names = [(name.decode().lower(), value.decode()) for name, value in start["headers"]]
        content = b"".join(message.get("body", b"") for message in messages[1:])
        return Answer(start["status"], dict(names), content, [value for name, value in names if name == "set-cookie"])


def add_device(hub: Hub, machines: Path, person: str, machine: str, *sessions: str) -> Path:
    """Let a person's machine join, and put its sessions where the hub assembles them."""
    role = ROLES.get(person)
    token = hub.people.exchange_invite(hub.people.invite(person, role), machine, "10.8.8.8")
    assert token
    device = hub.people.device_of(token, "10.8.8.8")
    assert device
    hub.devices[person] = token
    folder, home = machines / device.id, hub.folder / "homes" / device.id
    for session in sessions:
        at = int(session[:8], 16) * 100
        lines = [user(at, f"prompt-of-{person} <script>alert(1)</script>", session)]
        lines += [assistant(at + 1, f"answer-of-{person}", session)]
        lines += tool(at + 2, session, "Bash", {"command": f"tool-of-{person}"}, "done")
        claude_file(folder, session, lines)
        index = SqliteIndex(hub.people.database)
        index.claim(device.person.id, session, index.newest_claim() + 1)
    home.mkdir(parents=True, exist_ok=True)
    before = os.environ["HOME"]
    os.environ["HOME"] = str(folder)
    try:
        archive_all(home)
    finally:
        os.environ["HOME"] = before
    (home / "machine.json").write_text(json.dumps({"machine": machine, "person": person, "v": 1}))
    return home


@contextmanager
def running_hub(folder: Path) -> Iterator[Hub]:
    (folder / "homes").mkdir(parents=True)
    parts, clock = HubParts(HubFolder(folder)), Time()
    people = People(parts.database, Clock(clock, clock))
    pool = CatalogPool(homes_of_hub(HubFolder(folder)))
    api = PushApi(parts.intake("test"), people)
    hub = Hub(folder, people, pool, clock, api, hub_app(pool, people, AccessOptions(), api.routes()))
    try:
        machines = folder.parent / "machines"
        for name in ROLES:
            add_device(hub, machines, name, f"laptop-{name}", SESSIONS[name])
            hub.readers[name] = people.reader_token(name)
        shutil.rmtree(machines)
        settle(hub)
        yield hub
    finally:
        pool.close()
        parts.close()
        hub.loop.close()


def settle(hub: Hub) -> None:
    """Wait until all sessions are read and indexed."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        hub.loop.run_until_complete(hub.pool.refresher.wait_for_refresh())
        coverage, count = hub.loop.run_until_complete(
            hub.pool.query(lambda catalog: (catalog.coverage, catalog.count()))
        )
        if coverage.is_whole and count >= len(ROLES):
            return
    pytest.fail("the hub was not indexed")
