"""A bucket whose service is wrong, slow, down, killed, or answers what nobody receives."""

import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent_logger.errors import StoreError
from agent_logger.hub.storage.bucket import BucketStore
from agent_logger.hub.storage.store import FolderStore, ObjectStore
from agent_logger.hub.storage.stores import open_store
from tests.hub.storage.faulty_proxy import Faults, faulty_proxy
from tests.ports import free_port
from tests.seaweedfs import BUCKET, KEY, KEY_ID, SeaweedServer, running_store

needs_service = pytest.mark.needs("seaweedfs")

OPERATIONS: dict[str, Callable[[ObjectStore], Any]] = {
    "store an object": lambda store: store.create("a/b", b"x"),
    "read an object": lambda store: store.read("a/b"),
    "list the objects": lambda store: list(store.names("a")),
    "delete objects": lambda store: store.delete("a"),
}


@pytest.fixture(params=OPERATIONS)
def operation(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def failure_of(operation: str, store: ObjectStore) -> str:
    """Return the message of the error. It is not that an object is absent, and no part of it has a key."""
    with pytest.raises(OSError, match=r"^cannot ") as caught:
        OPERATIONS[operation](store)
    assert not isinstance(caught.value, FileNotFoundError)
    everything = "".join(traceback.format_exception(caught.value, chain=True))
    for key in (KEY_ID, KEY, os.environ.get("AWS_SECRET_ACCESS_KEY", KEY)):
        assert key not in everything
    message = str(caught.value)
    assert "\n" not in message
    listing = operation == "delete objects" and message.startswith("cannot list the objects")
    assert listing or message.startswith(f"cannot {operation} in ")
    return message.partition(" in ")[2]


@needs_service
def test_a_bucket_that_does_not_exist_is_named(bucket_server: SeaweedServer, operation: str) -> None:
    assert failure_of(operation, open_store("s3://wrong/prefix")) == "s3://wrong/prefix: there is no such bucket"


@needs_service
@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("AWS_SECRET_ACCESS_KEY", "another+key/0000", "SignatureDoesNotMatch"),
        ("AWS_ACCESS_KEY_ID", "SOMEBODYELSE0000", "InvalidAccessKeyId"),
    ],
)
def test_a_wrong_key_is_an_error_without_the_key(
    bucket_server: SeaweedServer, monkeypatch: pytest.MonkeyPatch, operation: str, variable: str, value: str, code: str
) -> None:
    monkeypatch.setenv(variable, value)
    reason = failure_of(operation, open_store(f"s3://{BUCKET}"))
    assert reason == f"s3://{BUCKET}: access denied, 403 Forbidden ({code}): check the keys"


@contextmanager
def service_that_answers(status: int, content: str) -> Iterator[int]:
    """A service with one answer to everything. Yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content.encode())

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_an_answer_that_quotes_the_key_is_not_shown(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    """As Amazon answers a wrong signature."""
    quoted = f"<AWSAccessKeyId>{KEY_ID}</AWSAccessKeyId><StringToSign>{KEY}</StringToSign>"
    with service_that_answers(403, f"<Error><Code>SignatureDoesNotMatch</Code>{quoted}</Error>") as port:
        use_endpoint(monkeypatch, f"http://127.0.0.1:{port}")
        reason = failure_of(operation, open_store("s3://bucket"))
    assert reason == "s3://bucket: access denied, 403 Forbidden (SignatureDoesNotMatch): check the keys"


@pytest.mark.parametrize(
    ("status", "content", "reason"),
    [
        (200, KEY, "its answer is not one of a store"),
        (200, f"<a>{KEY}", "its answer is not one of a store"),
        (200, "", "its answer is not one of a store"),
        (301, "", "the bucket is in another region: set AWS_REGION"),
        (400, KEY, "it answered 400 Bad Request"),
        (501, KEY, "it answered 501 Not Implemented"),
    ],
)
def test_no_answer_is_quoted(monkeypatch: pytest.MonkeyPatch, status: int, content: str, reason: str) -> None:
    with service_that_answers(status, content) as port:
        use_endpoint(monkeypatch, f"http://127.0.0.1:{port}")
        store = open_store("s3://bucket")
        for operation in ("store an object", "list the objects", "delete objects"):
            assert failure_of(operation, store) == f"s3://bucket: {reason}"


def test_a_password_in_the_location_is_in_no_error() -> None:
    with pytest.raises(StoreError) as caught:
        open_store("s3://user:secret@")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def use_endpoint(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    values = {"ACCESS_KEY_ID": KEY_ID, "SECRET_ACCESS_KEY": KEY, "ENDPOINT_URL": url, "ALLOW_HTTP": "true"}
    for name, value in values.items():
        monkeypatch.setenv(f"AWS_{name}", value)


def test_a_service_that_is_down_is_an_error_within_seconds(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    use_endpoint(monkeypatch, f"http://127.0.0.1:{free_port()}")
    started = time.monotonic()
    assert failure_of(operation, open_store("s3://bucket/p")) == "s3://bucket/p: no connection to its endpoint"
    assert time.monotonic() - started < 10


def test_a_password_in_the_endpoint_is_in_no_error(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    use_endpoint(monkeypatch, f"http://user:{KEY.replace('/', '')}@127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY.replace("/", ""))
    assert failure_of(operation, open_store("s3://bucket")) == "s3://bucket: no connection to its endpoint"


def test_plain_http_is_refused_unless_allowed(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    use_endpoint(monkeypatch, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    assert "AWS_ALLOW_HTTP=true" in failure_of(operation, open_store("s3://bucket"))


@pytest.mark.parametrize("endpoint", ["nonsense", "http://", "http://[::1"])
def test_an_endpoint_that_is_no_url_is_an_error(monkeypatch: pytest.MonkeyPatch, operation: str, endpoint: str) -> None:
    use_endpoint(monkeypatch, endpoint)
    reason = failure_of(operation, open_store("s3://bucket"))
    assert reason in (
        "s3://bucket: no request can be made: is its endpoint a URL?",
        "s3://bucket: no connection to its endpoint",
    )


def test_missing_keys_are_named(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    """Without keys, those of the machine it runs on are asked for, at the address that clouds have for that."""
    use_endpoint(monkeypatch, f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match="cannot use s3://bucket: a key is missing: SecretAccessKey"):
        open_store("s3://bucket")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert "set AWS_ACCESS_KEY_ID" in failure_of(operation, open_store("s3://bucket"))


@pytest.mark.parametrize("location", ["http://host/bucket", "s4://bucket", "s3://", "memory:///", "az://container"])
def test_a_location_that_is_no_store_is_an_error(location: str) -> None:
    with pytest.raises(StoreError, match=location.partition(":")[0]):
        open_store(location)


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_folder_is_a_store(tmp_path: Path, form: str) -> None:
    store = open_store(form.format(tmp_path / "some store"))
    assert isinstance(store, FolderStore)
    assert store.create("a/b", b"x")
    assert (tmp_path / "some store/a/b").read_bytes() == b"x"


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=f"cannot use the folder {tmp_path}/file/store"):
        open_store(str(tmp_path / "file/store"))


def test_a_bucket_without_its_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "agent_logger.hub.storage.bucket", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(StoreError, match=r"pip install 'agent-logger\[hub\]'"):
        open_store("s3://bucket")


# ---------------------------------------------------------------- answers that are lost


@pytest.fixture
def faults(bucket_server: SeaweedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    with faulty_proxy(bucket_server.port) as (faults, port):
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        yield faults


@pytest.fixture
def store(bucket_server: SeaweedServer, faults: Faults) -> ObjectStore:
    return open_store(bucket_server.new_location())


@needs_service
@pytest.mark.parametrize(
    "answers", [["lose"], ["done 503"], ["not 503"], ["not 409"], ["lose", "done 500", "lose"], ["not 503", "lose"]]
)
def test_an_object_is_created_though_answers_are_lost(store: ObjectStore, faults: Faults, answers: list[str]) -> None:
    faults.next["PUT"] = list(answers)
    assert store.create("a/b", b"content")
    assert faults.requests.count("PUT") == len(answers) + 1
    assert store.read("a/b") == b"content"
    assert list(store.names("")) == ["a/b"]
    assert not store.create("a/b", b"content"), "that was somebody else's, or another time"


@needs_service
@pytest.mark.parametrize("answers", [["lose"], ["done 503"], ["not 503"], ["not 409"]])
def test_an_object_of_somebody_else_is_not_taken_for_created(
    store: ObjectStore, faults: Faults, answers: list[str]
) -> None:
    assert store.create("a/b", b"of somebody else")
    faults.next["PUT"] = list(answers)
    assert not store.create("a/b", b"content")
    assert store.read("a/b") == b"of somebody else"


@needs_service
def test_an_object_whose_creation_is_never_answered_is_not_acknowledged(store: ObjectStore, faults: Faults) -> None:
    faults.next["PUT"] = ["lose"] * 10
    started = time.monotonic()
    assert failure_of("store an object", store).endswith("the connection broke")
    assert time.monotonic() - started < 10
    assert faults.requests == ["PUT"] * 4


@needs_service
@pytest.mark.parametrize("fault", ["lose", "done 503", "not 500"])
def test_reading_listing_and_deleting_are_repeated(store: ObjectStore, faults: Faults, fault: str) -> None:
    content = os.urandom(3_000_000)
    for number in range(3):
        assert store.create(f"a/{number}", content)
    faults.next = {"GET": [fault]}
    assert store.read("a/1") == content
    faults.next = {"GET": [fault]}
    assert sorted(store.names("a")) == ["a/0", "a/1", "a/2"]
    faults.next = {"POST": [fault], "DELETE": [fault]}
    store.delete("a")
    assert list(store.names("")) == []


@needs_service
def test_an_answer_that_is_cut_is_not_taken_for_the_whole(store: ObjectStore, faults: Faults) -> None:
    content = os.urandom(3_000_000)
    for number in range(3):
        assert store.create(f"a/{number}", content)
    faults.next = {"GET": ["cut"]}
    assert store.read("a/1") == content
    faults.next = {"GET": ["cut"]}
    assert failure_of("list the objects", store).endswith("the connection broke")
    faults.next = {"POST": ["cut"]}
    assert failure_of("delete objects", store).endswith("the connection broke")
    store.delete("a")
    assert list(store.names("")) == []


@needs_service
def test_many_pages_are_listed_though_answers_are_lost(store: ObjectStore, faults: Faults) -> None:
    names = [f"a/{number:05}" for number in range(1500)]
    for name in names:
        assert store.create(name, b"")
    faults.next = {"GET": ["", "lose"]}
    assert sorted(store.names("")) == names


# ---------------------------------------------------------------- a service that is killed


@pytest.fixture
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SeaweedServer]:
    with running_store() as server:
        for name, value in server.variables().items():
            monkeypatch.setenv(name, value)
        yield server


@needs_service
def test_acknowledged_objects_survive_the_death_of_the_service(own_server: SeaweedServer) -> None:
    store = open_store(own_server.new_location())
    acknowledged: dict[str, bytes] = {}
    attempted: set[str] = set()
    stopped = threading.Event()

    def write(writer: int) -> None:
        chance = random.Random(writer)
        for number in range(100_000):
            if stopped.is_set():
                return
            name, data = f"{writer}/{number:06}", chance.randbytes(chance.choice([0, 10, 1000, 300_000]))
            attempted.add(name)
            with suppress(OSError):
                if store.create(name, data):
                    acknowledged[name] = data

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        before = len(acknowledged)
        while len(acknowledged) < before + 50:
            time.sleep(0.01)
        own_server.kill()
        own_server.start()
    stopped.set()
    for thread in threads:
        thread.join()
    names = set(store.names(""))
    assert set(acknowledged) <= names <= attempted
    assert {name: store.read(name) for name in acknowledged} == acknowledged


@needs_service
def test_a_service_that_comes_back_is_used_again(own_server: SeaweedServer) -> None:
    store = open_store(own_server.new_location())
    assert store.create("a/b", b"x")
    own_server.kill()
    for operation in OPERATIONS:
        started = time.monotonic()
        assert "no connection to its endpoint" in failure_of(operation, store)
        assert time.monotonic() - started < 10
    own_server.start()
    assert store.read("a/b") == b"x"
    assert store.create("a/c", b"y")
    assert sorted(store.names("")) == ["a/b", "a/c"]


@needs_service
@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_service_that_answers_nothing_is_an_error_within_a_minute(own_server: SeaweedServer) -> None:
    store = open_store(own_server.new_location())
    assert store.create("a/b", b"x")
    own_server.suspend()
    for operation in OPERATIONS:
        started = time.monotonic()
        reason = failure_of(operation, store)
        assert time.monotonic() - started < 60
        assert "no answer within 30 seconds" in reason
    own_server.resume()
    assert store.read("a/b") == b"x"


def test_the_store_of_a_bucket_is_the_one_of_its_url() -> None:
    assert isinstance(open_store("s3://bucket/prefix"), BucketStore)
    assert isinstance(open_store("gs://bucket/prefix"), BucketStore)
