"""What a hub takes from a machine that does not keep to the protocol: nothing, and nothing of others is changed."""

import hashlib
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec
import pytest

from agent_logger.files.sealed import zstd
from agent_logger.hub.work import HubParts
from agent_logger.push.client import HubClient
from agent_logger.push.machine import Membership
from agent_logger.push.protocol import MOST_RANGE_BYTES, HubRefusalError, ObjectHead, Statement
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.hub.hubs import Hub, catalog_of, push, running_hub, stored

OBJECT = "0" * 32
PLACE = ("archive", "claude-code", "x-1", "projects", "p", "s.jsonl")
HEAD = ObjectHead(session="s", level="contents", revision=1, form="lines", rules="r", place=PLACE, origin="/x")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with running_hub(tmp_path_factory.mktemp("hub")) as hub:
        yield hub


@pytest.fixture
def member(hub: Hub, home: Path) -> Membership:
    return hub.join(home / ".agent-logger", "mallory", "machine")


@pytest.fixture
def client(hub: Hub, member: Membership) -> Iterator[HubClient]:
    client = HubClient(hub.url, member.token)
    yield client
    client.close()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def error_of(hub: Hub, token: str | None, method: str, path: str, body: bytes = b"", **headers: str) -> str:
    """Make a request, and return the code of the error."""
    connection = http.client.HTTPConnection(urlsplit(hub.url).netloc, timeout=20)
    own = {"Agent-Logger-Protocol": "1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if token is not None:
        own["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path, body, own)
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status < 300:
        return "taken"
    if not answer.startswith(b"{"):
        return "no route"
    return str(json.loads(answer)["error"])


PLACES = {
    "above": ("logs", "..", "..", "x.jsonl"),
    "absolute": ("logs", "/etc/passwd"),
    "with a slash": ("logs", "a/../../b.jsonl"),
    "with a backslash": ("logs", "a\\b.jsonl"),
    "with NUL": ("logs", "a\0b.jsonl"),
    "of the home": ("config.toml",),
    "of the catalog": ("catalog.db", "x"),
    "of the documents": ("documents", "x.json"),
    "of an import": ("archive", "imported", "x", "y", "z"),
    "of the folder's name": ("archive", "claude-code", "x-1", ".folder"),
    "of an older generation": ("archive", "claude-code", "x-1", "s.jsonl~1"),
    "of a sealed file": ("archive", "claude-code", "x-1", "s.jsonl.zst"),
    "of a live file": ("logs", "x.live"),
    "hidden": ("logs", ".spool", "x"),
    "of an agent with a slash": ("archive", "../x", "x-1", "s.jsonl"),
    "too long": ("logs", "a" * 256),
    "too deep": ("logs", *["a"] * 16),
    "empty": (),
    "with an empty name": ("logs", ""),
    "with a dot": ("logs", ".", "x.jsonl"),
    "with a control character": ("logs", "a\x1b[31m.jsonl"),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_place_that_is_not_one_of_a_recording_is_refused(client: HubClient, place: tuple[str, ...]) -> None:
    session = f"s{abs(hash(place))}"
    client.state_level(session, Statement(level="contents", revision=1))
    origin = "/x" if place[:1] == ("archive",) else ""
    with pytest.raises(HubRefusalError) as refused:
        client.begin(OBJECT, 1, msgspec.structs.replace(HEAD, session=session, place=place, origin=origin))
    assert refused.value.refusal.error == "malformed"


def test_only_devices_that_were_invited_are_answered(hub: Hub, member: Membership) -> None:
    level = msgspec.json.encode(Statement(level="none", revision=1))
    for token in (None, "", "x", "a" * 43, f"{member.token}x", member.token[:-1]):
        assert error_of(hub, token, "PUT", "/push/v1/sessions/a", level) == "unauthorized"
    assert error_of(hub, member.token, "PUT", "/push/v1/sessions/a", level) == "taken"


def test_an_invite_works_once(hub: Hub) -> None:
    invite, client = hub.invite("carol"), HubClient(hub.url)
    assert client.join(invite, "one").person == "carol"
    for text in (invite, "", "x" * 43):
        with pytest.raises(HubRefusalError) as refused:
            client.join(text, "two")
        assert refused.value.refusal.error == "unauthorized"
    client.close()


def test_a_machine_that_left_is_refused(hub: Hub, member: Membership, client: HubClient) -> None:
    client.leave()
    with pytest.raises(HubRefusalError) as refused:
        client.report()
    assert refused.value.refusal.error == "unauthorized"


def test_a_newer_version_gets_the_versions_of_the_hub(hub: Hub, member: Membership) -> None:
    answer = error_of(hub, member.token, "GET", "/push/v1/device", Agent_Logger_Protocol="2")
    assert answer == "version"


def test_ids_are_only_ever_values(hub: Hub, client: HubClient, member: Membership) -> None:
    for session in ("'; DROP TABLE levels; --", '" OR 1=1 --', "../../../etc/passwd", "a/b", "%2e%2e%2f", "ü"):
        client.state_level(session, Statement(level="numbers", revision=1))
        assert error_of(hub, member.token, "PUT", f"/push/v1/objects/{quote(session, safe='')}/1") != "taken"
    for session in ("", "a\0b", "a\nb", "x" * 513):
        with pytest.raises((HubRefusalError, OSError)):
            client.state_level(session, Statement(level="numbers", revision=1))
    store = hub.folder.store
    assert all(path.is_relative_to(store) for path in store.rglob("*"))
    assert not list(store.rglob("*passwd*"))


@pytest.fixture
def begun(client: HubClient) -> HubClient:
    client.state_level("s", Statement(level="contents", revision=1))
    client.begin(OBJECT, 1, HEAD)
    return client


def test_ranges_fit_together_or_are_refused(hub: Hub, member: Membership, begun: HubClient) -> None:
    def put(offset: int, data: bytes, generation: int = 1, **headers: str) -> str:
        path = f"/push/v1/objects/{OBJECT}/{generation}/{offset}"
        return error_of(hub, member.token, "PUT", path, data, **{"Content_SHA256": digest(data), **headers})

    assert put(5, b"later\n") == "gap"
    assert put(0, b"first\n", Content_SHA256=digest(b"other\n")) == "bad_hash"
    assert put(0, b"first\n", Content_SHA256="nothing") == "malformed"
    assert put(0, b"first\n", generation=2) == "unknown_object"
    assert put(0, b"first\n") == "taken"
    assert put(0, b"first\n") == "taken"
    assert put(0, b"other\n") == "conflict"
    assert put(0, b"first\nand more\n") == "conflict"
    assert put(3, b"st\n") == "conflict"
    assert put(6, b"") == "malformed"
    assert put(-1, b"x") != "taken"
    assert put(1 << 60, b"x") == "malformed"
    assert put(6, b"x", Modified="yesterday") == "taken"
    begun.begin(OBJECT, 2, HEAD)
    assert put(7, b"more\n") == "stale_generation"


def test_bodies_that_are_too_large_are_refused(hub: Hub, member: Membership, begun: HubClient) -> None:
    path = f"/push/v1/objects/{OBJECT}/1/0"

    def put(body: bytes, data: bytes, **headers: str) -> str:
        try:
            return error_of(hub, member.token, "PUT", path, body, Content_SHA256=digest(data), **headers)
        except (ConnectionError, http.client.HTTPException):  # it did not wait for the end
            return "too_large"

    assert put(bytes(MOST_RANGE_BYTES + 1), b"") == "too_large"
    bomb = zstd.compress(bytes(1 << 30), 3)
    assert len(bomb) < 1 << 20
    assert put(bomb, b"", Content_Encoding="zstd") == "too_large"
    data = b"a line\n" * 1000
    packed = zstd.compress(data, 3)
    assert put(packed[:-5], data, Content_Encoding="zstd") == "malformed"
    assert put(packed * 2, data, Content_Encoding="zstd") == "malformed"
    assert put(b"x" * 100, data, Content_Encoding="zstd") == "malformed"
    assert put(packed, data, Content_Encoding="gzip") == "malformed"
    assert put(packed, data, Content_Encoding="zstd") == "taken"
    head = msgspec.json.encode(msgspec.structs.replace(HEAD, rules="r" * 70_000))
    assert error_of(hub, member.token, "PUT", f"/push/v1/objects/{OBJECT}/3", head) == "too_large"
    deep = b"[" * 60_000
    assert error_of(hub, member.token, "PUT", f"/push/v1/objects/{OBJECT}/3", deep) == "malformed"


def test_a_document_is_the_one_that_its_head_says(hub: Hub, client: HubClient) -> None:
    client.state_level("d", Statement(level="numbers", revision=2))
    data = b'{"session":"d"}'
    head = ObjectHead(
        session="d", level="numbers", revision=2, form="document", length=len(data), sha256=digest(b"other")
    )
    client.begin("1" * 32, 1, head)
    with pytest.raises(HubRefusalError) as refused:
        client.append("1" * 32, 1, 0, data, 0.0)
    assert refused.value.refusal.error == "bad_hash"
    with pytest.raises(HubRefusalError) as refused:
        client.append("1" * 32, 1, 0, data + b"more", 0.0)
    assert refused.value.refusal.error == "too_large"


def test_a_level_cannot_be_exceeded(client: HubClient) -> None:
    client.state_level("low", Statement(level="numbers", revision=1))
    for head in (msgspec.structs.replace(HEAD, session="low"), msgspec.structs.replace(HEAD, session="unstated")):
        with pytest.raises(HubRefusalError) as refused:
            client.begin("2" * 32, 1, head)
        assert refused.value.refusal.error == "stale_revision"


def test_objects_and_responses_of_others_stay_as_they_are(
    hub: Hub, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another person pushes the same objects, the same session, and responses with the same ids."""
    ann, name = tmp_path / "ann", ID.format(9)
    monkeypatch.setenv("HOME", str(ann))
    device = hub.join(ann / ".agent-logger", "ann", "laptop").device
    claude_file(ann, name, [user(1, "hers", name), assistant(2, "an answer", name)])
    push(ann / ".agent-logger")
    before = {file: data for file, data in stored(hub.folder).items() if file.startswith(f"store/devices/{device}/")}
    with catalog_of(hub.folder) as catalog:
        rows = [row for row in catalog.ledger() if row.session == name]

    member = hub.join(home / ".agent-logger", "mallory", "machine")
    client = HubClient(hub.url, member.token)
    for file in before:
        match file.split("/"):
            case [_, _, _, "objects", taken, generation, "head.json"]:
                head = msgspec.json.decode(before[file], type=ObjectHead)
                client.state_level(head.session, Statement(level="contents", revision=head.revision))
                client.begin(taken, int(generation), head)
                forged = json.dumps(assistant(2, "forged", name)).replace("102", "999999999").encode() + b"\n"
                client.append(taken, int(generation), 0, forged, 0.0)
                with pytest.raises(HubRefusalError):
                    client.append(taken, int(generation), 10_000, forged, 0.0)
    with catalog_of(hub.folder) as catalog:
        counted = [row for row in catalog.ledger() if row.session == name and row.message_id == rows[0].message_id]
        assert [(row.usage, row.home) for row in counted] == [(row.usage, row.home) for row in rows]
    client.withdraw(name)
    client.close()
    after = stored(hub.folder)
    assert {file: after.get(file) for file in before} == before
    with catalog_of(hub.folder) as catalog:
        assert [row for row in catalog.ledger() if row.session == name] == rows


def test_a_flood_is_slowed_down(hub: Hub, member: Membership) -> None:
    connection = http.client.HTTPConnection(urlsplit(hub.url).netloc, timeout=20)
    headers = {"Agent-Logger-Protocol": "1", "Authorization": f"Bearer {member.token}"}
    statuses = set()
    for _ in range(2000):
        connection.request("GET", "/push/v1/device", headers=headers)
        response = connection.getresponse()
        response.read()
        statuses.add(response.status)
        if response.status == 503:
            assert response.headers["Retry-After"]
            break
    connection.close()
    assert statuses <= {200, 503}


def test_the_log_has_lines_of_json_without_what_was_pushed(hub: Hub, begun: HubClient) -> None:
    begun.state_level("a-secret-session", Statement(level="numbers", revision=1))
    lines = [json.loads(line) for line in hub.log.read_bytes().splitlines()]
    assert {"ts", "level", "event", "request", "status", "device", "bytes", "ms"} <= set(lines[-1])
    assert b"a-secret-session" not in hub.log.read_bytes()


def test_health_needs_no_token(hub: Hub) -> None:
    connection = http.client.HTTPConnection(urlsplit(hub.url).netloc, timeout=20)
    connection.request("GET", "/health")
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert answer["status"] == "ok"


def test_refusals_are_recorded(hub: Hub, member: Membership) -> None:
    error_of(hub, "b" * 43, "GET", "/push/v1/device")
    parts = HubParts(hub.folder)
    events = parts.people.events()
    parts.close()
    assert "refused" in {event.event for event in events}
