"""What the page and the API of a hub show of a session that was pushed over HTTP, at each level, to everybody."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agent_logger.clock import Clock
from agent_logger.hub.access import AccessOptions
from agent_logger.hub.api import PushApi
from agent_logger.hub.app import hub_app
from agent_logger.hub.folder import HubFolder
from agent_logger.hub.people import People, Role
from agent_logger.hub.roles import NUMBERS_BY, ROUTES, Access
from agent_logger.hub.work import HubParts, homes_of_hub
from agent_logger.push.protocol import Level
from agent_logger.web.api.endpoints import V1
from agent_logger.web.catalog_pool import CatalogPool
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.hub.hubs import catalog_of, push
from tests.hub.hubs import running_hub as serving_hub
from tests.hub.page_hubs import Hub, Time
from tests.hub.test_page import ask, path_of

SESSION = ID.format(5)
READERS = {"boss": Role.ADMIN, "lea": Role.LEAD, "ann": Role.MEMBER, "ben": Role.MEMBER}
CONTENTS = {"canaryprompt", "canaryoutput", "canaryfolder", "canarybranch", "canaryhost"}
CANARIES = {*CONTENTS, "canarytitle", "canaryfile"}
SHOWN: dict[Level, set[str]] = {"numbers": set(), "titles": {"canarytitle", "canaryfile"}}
EVERY_GET = [
    key.partition(" ")[2]
    for key, rule in ROUTES.items()
    if key.startswith("GET")
    and not key.endswith("/events")  # these do not end
    and "/static" not in key
    and rule.access in (Access.READER, Access.ADMIN, Access.ANYBODY)
]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose only session has a word of its own in everything that is not a number."""
    home = tmp_path / "ann" / ".agent-logger"
    monkeypatch.setenv("HOME", str(home.parent))
    lines = [
        user(1, "canaryprompt", SESSION, gitBranch="canarybranch"),
        *tool(2, SESSION, "Edit", {"file_path": "/x/canaryfolder/canaryfile.py"}, "canaryoutput"),
        assistant(5, "canaryprompt", SESSION),
        {"type": "summary", "summary": "canarytitle", "leafUuid": f"u5-{SESSION[:8]}"},
    ]
    lines = [{**line, "cwd": "/home/canaryhost/canaryfolder"} for line in lines]
    claude_file(home.parent, SESSION, lines, project="-home-canaryhost-canaryfolder")
    return home


@contextmanager
def page_of(folder: HubFolder) -> Iterator[Hub]:
    """The page of a hub, for people of every role."""
    with closing(HubParts(folder)) as parts:
        clock = Time(time.time())
        people = People(parts.database, Clock(clock, clock))
        pool = CatalogPool(homes_of_hub(folder), reads_files=False)
        api = PushApi(parts.intake("test"), people)
        hub = Hub(folder.path, people, pool, clock, api, hub_app(pool, people, AccessOptions(), api.routes()))
        try:
            for name, role in READERS.items():
                people.invite(name, role)
                hub.readers[name] = people.reader_token(name)
            hub.loop.run_until_complete(pool.refresher.wait_for_refresh())
            yield hub
        finally:
            pool.close()
            hub.loop.close()


def canaries_in(hub: Hub) -> set[str]:
    """The words that any route shows to anybody."""
    found: set[str] = set()
    answered = 0
    for reader in READERS:
        for route in EVERY_GET:
            paths = [path_of(route, SESSION)]
            if route == f"{V1}/usage":
                paths += [f"{paths[0]}?by={by}" for by in {*NUMBERS_BY, "project", "session"}]
            for path in paths:
                status, text = ask(hub, path, reader)
                answered += status == 200
                found |= {canary for canary in CANARIES if canary in text}
    assert answered > 100, "most routes answer"
    return found


@pytest.mark.parametrize("level", SHOWN)
def test_no_route_shows_more_than_the_level(tmp_path: Path, machine: Path, level: Level) -> None:
    with serving_hub(tmp_path / "hub") as served:
        with closing(HubParts(served.folder)) as parts:
            parts.people.invite("boss")
        served.join(machine, "ann", "laptop")
        push(machine, level)
        with catalog_of(served.folder) as catalog:
            assert catalog.session(SESSION)
        with page_of(served.folder) as hub:
            assert canaries_in(hub) == SHOWN[level]


def test_no_route_shows_what_was_lowered(tmp_path: Path, machine: Path) -> None:
    """The same routes show contents that are shared: the search above finds what there is."""
    with serving_hub(tmp_path / "hub") as served:
        with closing(HubParts(served.folder)) as parts:
            parts.people.invite("boss")
        served.join(machine, "ann", "laptop")
        push(machine, "contents")
        with catalog_of(served.folder) as catalog:
            assert catalog.index()
        with page_of(served.folder) as hub:
            assert canaries_in(hub) >= {"canaryprompt", "canaryoutput", "canaryfolder", "canaryfile", "canarytitle"}
        push(machine, "numbers")
        with catalog_of(served.folder):
            pass
        with page_of(served.folder) as hub:
            assert canaries_in(hub) == set()
