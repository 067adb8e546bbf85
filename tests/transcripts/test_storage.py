"""Sessions kept for an agent: both storages keep the same promises; files have the shape that is documented."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agent_logger
from agent_logger import FileStorage, InMemoryStorage, SessionStorage, platform, read_session
from agent_logger.agents.claude_code.naming import project_folders
from agent_logger.catalog.ledger.metrics import metrics_of
from agent_logger.errors import StoreError
from agent_logger.files.parts import parts_of
from agent_logger.home.facts import register_log_folder
from agent_logger.journal.seal import seal
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.verify import verify_file
from agent_logger.transcripts.store import Transcripts
from agent_logger.transcripts.testing import run_storage_conformance
from agent_logger.transcripts.testing.storage import assistant, user
from tests.commands import run_command

MESSAGE = "01a1dfef-2177-7726-a983-a2f73e848838"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my.project"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/feature/tea\n")
    return folder


@pytest.fixture
def storage(tmp_path: Path, project: Path) -> Iterator[FileStorage]:
    with FileStorage(tmp_path / "root", project) as storage:
        yield storage


def lines(storage: FileStorage, session: str = "s") -> list[dict[str, Any]]:
    """What stands in the file."""
    return [json.loads(line) for line in (storage.folder / f"{session}.jsonl").read_bytes().splitlines()]


def result(text: Any, tool: str = "t1", **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": tool, "content": text}
    return {"type": "user", "message": {"role": "user", "content": [block]}, **more}


# ---------------------------------------------------------------- one suite over both

STORAGES: dict[str, Callable[[Path], FileStorage | InMemoryStorage]] = {
    "files": lambda folder: FileStorage(folder / "root", folder, agent="mine", version="1.4"),
    "memory": lambda folder: InMemoryStorage(folder, agent="mine", version="1.4"),
}


@pytest.mark.parametrize("make", STORAGES.values(), ids=STORAGES)
def test_either_storage_can_be_used_as_the_other(
    make: Callable[[Path], FileStorage | InMemoryStorage], tmp_path: Path
) -> None:
    with make(tmp_path) as storage:
        assert isinstance(storage, SessionStorage)
        storage.append("s", user("Why is it slow?"))
        storage.append("t", user("Titled"))
        storage.append("t", {"type": "ai-title", "aiTitle": "A title"})
        storage.close("s")
        assert {it.id: it.summary for it in storage.list()} == {"s": "Why is it slow?", "t": "A title"}
        assert storage.read_memory() == storage.read_memory(tmp_path / "other") == ""
        storage.write_memory("Use tabs.")
        storage.write_memory("Use spaces.", tmp_path / "other")
        assert (storage.read_memory(), storage.read_memory(tmp_path)) == ("Use tabs.", "Use tabs.")
        assert storage.read_memory(tmp_path / "other") == "Use spaces."
        assert storage.lost == 0
    storage.append("s", user("And now?"))  # after the end of the block
    storage.close()
    storage.close()
    messages = storage.load("s") or []
    assert [(it["message"]["content"], it["version"]) for it in messages] == [
        ("Why is it slow?", "1.4"),
        ("And now?", "1.4"),
    ]
    assert [it.message_count for it in storage.list()] == [2, 2]


@pytest.mark.needs("jsonschema")
def test_the_schema_accepts_every_line_of_a_transcript(storage: FileStorage) -> None:
    schema = json.loads((Path(agent_logger.__file__).parent / "schemas/transcript-log.json").read_text())
    validator = pytest.importorskip("jsonschema").Draft202012Validator(schema)
    for message in (user("one"), assistant("two", usage={"input_tokens": 1}), result("x" * 40_000), {"type": "odd"}):
        storage.append("s", message)
    storage.append("s", {"type": "session_header", "v": 1, "id": "another"})  # somebody's message all the same
    storage.close()
    for line in lines(storage):
        validator.validate(line)
    assert len(lines(storage)) == 7
    assert not validator.is_valid({"no": "type"}) and not validator.is_valid({"type": "session_header"})


def test_a_storage_in_memory_has_every_public_name_of_one_in_files() -> None:
    public = {name for name in dir(FileStorage) if not name.startswith("_")} - {"after_fork"}
    assert public <= set(dir(InMemoryStorage())), "beside `root` and `folder`, which are files"


def test_file_storage_passes_the_conformance_suite(tmp_path: Path) -> None:
    numbers = count()
    run_storage_conformance(lambda: FileStorage(tmp_path / str(next(numbers)), tmp_path))


def test_in_memory_storage_passes_the_conformance_suite() -> None:
    run_storage_conformance(InMemoryStorage)


class _Forgetful(InMemoryStorage):
    def append(self, session_id: str, message: object) -> bool:
        return True


class _Late(InMemoryStorage):
    def load(self, session_id: str) -> list[dict[str, Any]] | None:
        return (super().load(session_id) or [])[:-1] or None


class _Careless(InMemoryStorage):
    def delete(self, session_id: str) -> None:
        self._sessions.clear()


@pytest.mark.parametrize("broken", [_Forgetful, _Late, _Careless])
def test_the_conformance_suite_detects_broken_storages(broken: Callable[[], SessionStorage]) -> None:
    with pytest.raises(AssertionError):
        run_storage_conformance(broken)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
TYPES = st.sampled_from(["user", "assistant", "progress", "part", "gap", "verbatim", "session_header", "large", "x"])
OWN = ("sessionId", "session_id", "persistedOutputs", "type")
MESSAGES = st.builds(
    lambda kind, rest: {"type": kind, **{key: it for key, it in rest.items() if key not in OWN}},
    TYPES,
    st.dictionaries(st.text() | st.sampled_from(["message", "uuid", "v", "timestamp", "cwd", "parentUuid"]), JSON),
)


@settings(max_examples=40, deadline=None)
@given(messages=st.lists(MESSAGES, min_size=1, max_size=4))
def test_any_message_round_trips_in_both_storages(
    tmp_path_factory: pytest.TempPathFactory, messages: list[dict[str, Any]]
) -> None:
    root = tmp_path_factory.mktemp("root")
    storages: list[SessionStorage] = [FileStorage(root, root), InMemoryStorage(root)]
    for storage in storages:
        for message in messages:
            assert storage.append("s", message)
        for line, message in zip(storage.load("s") or [], messages, strict=True):
            model = {"model", "usage", "stop_reason"} if message["type"] == "assistant" else set()
            told = {key: it for key, it in message.items() if it is not None and key not in model | {"message"}}
            assert {key: line[key] for key in told} == told
        assert [it.message_count for it in storage.list()] == [len(messages)]
    UPKEEP.finish()


# ---------------------------------------------------------------- the file


def test_a_transcript_begins_with_a_header_that_never_changes(storage: FileStorage, project: Path) -> None:
    storage.append("s", user("one"))
    first = lines(storage)[0]
    storage.append("s", {"type": "assistant", "message": {"model": "m", "content": []}, "cwd": "/else"})
    storage.close()
    assert lines(storage)[0] == first
    told = ("type", "v", "id", "cwd", "project_path", "git_branch", "agent", "model", "version")
    assert [first[name] for name in told] == [
        "session_header", 1, "s", str(project), str(project), "feature/tea", None, None, None,
    ]  # fmt: skip
    assert {"log", "part", "machine", "writer", "created"} <= first.keys()


def test_a_header_names_agent_version_and_model(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, tmp_path, agent="mine", version="7")
    storage.append("s", assistant("hi", model="m-1"))
    header, message = lines(storage)
    assert (header["agent"], header["version"], header["model"]) == ("mine", "7", "m-1")
    assert message["version"] == "7"


def test_each_message_is_one_write_of_one_line(storage: FileStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.append("s", user("one"))
    written: list[bytes] = []
    write = os.write

    def noted(fd: int, data: bytes) -> int:
        written.append(bytes(data))
        return write(fd, data)

    monkeypatch.setattr(os, "write", noted)
    storage.append("s", assistant("two"))
    assert [json.loads(it)["type"] for it in written] == ["assistant"]
    assert written[0].endswith(b"\n")


def test_the_project_folder_is_named_as_by_claude_code(storage: FileStorage, project: Path) -> None:
    storage.append("s", user("one"))
    assert storage.folder == storage.root / "projects" / project_folders(project)[0]
    assert (storage.folder / "s.jsonl").exists()


def test_appending_never_rewrites_existing_bytes(storage: FileStorage) -> None:
    path = storage.folder / "s.jsonl"
    before = b""
    for number in range(20):
        storage.append("s", user(f"{number}"))
        after = path.read_bytes()
        assert after.startswith(before)
        assert len(after) > len(before)
        before = after


def test_a_session_resumed_elsewhere_stays_in_its_project_folder(storage: FileStorage, tmp_path: Path) -> None:
    storage.append("s", user("one"))
    storage.close()
    elsewhere = FileStorage(storage.root, tmp_path)
    assert elsewhere.append("s", user("two"))
    first, second = elsewhere.load("s") or []
    assert second["parentUuid"] == first["uuid"]
    assert list(storage.folder.parent.iterdir()) == [storage.folder]
    assert [it["type"] for it in lines(storage)].count("session_header") == 1


def test_a_resumed_long_session_continues_from_its_last_message(storage: FileStorage) -> None:
    for number in range(300):
        storage.append("s", user("x" * 1_000, uuid=f"u{number}", permissionMode="plan"))
    storage.close()
    again = FileStorage(storage.root, storage.cwd)
    again.append("s", user("two"))
    last = (again.load("s") or [])[-1]
    assert (last["parentUuid"], last["permissionMode"]) == ("u299", "plan")


@pytest.mark.needs("claude_agent_sdk")
def test_an_sdk_message_object_can_be_appended(storage: FileStorage) -> None:
    sdk = pytest.importorskip("claude_agent_sdk")
    text = sdk.TextBlock(text="Hello")
    storage.append("s", sdk.AssistantMessage(content=[text], model="claude-x", usage={"output_tokens": 3}))
    line = (storage.load("s") or [])[0]
    assert line["type"] == "assistant"
    assert line["message"]["content"] == [{"type": "text", "text": "Hello"}]
    assert (line["message"]["model"], line["message"]["usage"]) == ("claude-x", {"output_tokens": 3})


def test_a_stored_session_is_readable_by_read_session(storage: FileStorage) -> None:
    storage.append("s", user("Why?"))
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    inner = {"role": "assistant", "id": "msg_01abcdefghijklmnop", "content": [use]}
    storage.append("s", {"type": "assistant", "message": inner, "usage": {"input_tokens": 1, "output_tokens": 2}})
    storage.append("s", result("y" * 40_000))
    session = read_session(storage.folder / "s.jsonl")
    assert (session.id, session.title, session.project) == ("s", "Why?", storage.cwd)
    assert session.witnesses == {"transcript"}
    assert (session.usage.input_tokens, session.usage.output_tokens) == (1, 2)
    assert [(it.name, len(it.result or "")) for it in session.tool_calls] == [("Bash", 40_000)]
    assert verify_file(storage.folder / "s.jsonl").damage == []


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in our home", "in a folder of its own"])
def test_ls_and_show_find_a_stored_session(tmp_path: Path, elsewhere: bool) -> None:
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "AGENT_LOGGER_HOME": str(tmp_path / "ours"),
    }
    root = repr(str(tmp_path / "mine")) if elsewhere else "None"
    program = f"""
from agent_logger import FileStorage
with FileStorage({root}, agent="mine") as storage:
    storage.append("a-session", {{"type": "user", "message": {{"role": "user", "content": "Make tea"}}}})
    said = {{"role": "assistant", "content": "Done", "model": "m-1", "usage": {{"output_tokens": 3}}}}
    storage.append("a-session", {{"type": "assistant", "message": said}})
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=tmp_path)
    said = [run_command(command, environment).stdout for command in (["ls", "--json"], ["show", "a-session"])]
    (found,) = json.loads(said[0])
    assert (found["id"], found["agent"], found["title"]) == ("a-session", "mine", "Make tea")
    assert found["witnesses"] == ["transcript"]
    assert "Make tea" in said[1]
    assert "Done" in said[1]


USAGES = [
    ({"inputTokens": 1000, "outputTokens": 2000}, (1000, 2000, 0.011, 0)),
    ({"prompt_tokens": 1000, "completion_tokens": 2000}, (1000, 2000, 0.011, 0)),
    ({"tokensIn": 1000, "tokensOut": 2000}, (None, None, None, 1)),
    ({"inputTokens": "1000", "outputTokens": 2000}, (None, None, None, 1)),
    ({"inputTokens": -1000, "outputTokens": 2000}, (None, None, None, 1)),
    ({}, (None, None, None, 1)),
]


@pytest.mark.parametrize("beside", [False, True], ids=["in the message", "beside it"])
@pytest.mark.parametrize(("usage", "expected"), USAGES, ids=str)
def test_usage_is_read_in_both_spellings_and_unknown_usage_has_no_price(
    tmp_path: Path, usage: object, expected: tuple[object, ...], beside: bool
) -> None:
    told = {"model": "claude-haiku-4-5", "usage": usage, "stopReason": "end_turn"}
    inner = {"role": "assistant", "content": [{"type": "text", "text": "Done"}]}
    with FileStorage(tmp_path / "kept") as storage:
        storage.append("s", user("Why?"))
        storage.append(
            "s",
            {"type": "assistant", "message": inner, **told}
            if beside
            else {"type": "assistant", "message": {**inner, **told}},
        )
        session = read_session(storage.folder / "s.jsonl")
    counted = metrics_of(session)
    assert session.turns[0].stop_reason == "end_turn"
    assert (counted.turns, counted.usage.input_tokens, counted.usage.output_tokens) == (
        1,
        expected[0] or 0,
        expected[1] or 0,
    )
    assert (counted.cost.usd, counted.cost.unpriced) == expected[2:]
    home = tmp_path / "ours"
    register_log_folder(home, tmp_path / "kept" / "projects")
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "AGENT_LOGGER_HOME": str(home)}
    (listed,) = json.loads(run_command(["ls", "--json"], environment).stdout)
    names = ("input_tokens", "output_tokens", "cost_usd", "unpriced")
    assert tuple(listed[name] for name in names) == expected


def test_a_sealed_session_can_be_listed_loaded_and_continued(storage: FileStorage) -> None:
    storage.append("s", user("one"))
    storage.close()
    UPKEEP.finish()
    assert seal(parts_of(storage.folder, "s")[0])
    assert [it.message_count for it in storage.list()] == [1]
    storage.append("s", user("two"))
    first, second = storage.load("s") or []
    assert second["parentUuid"] == first["uuid"]


def test_messages_of_two_concurrent_writers_are_loaded_in_time_order(storage: FileStorage) -> None:
    both = [storage, FileStorage(storage.root, storage.cwd)]
    for number in range(6):
        both[number % 2].append("s", user(f"{number}"))
        time.sleep(0.002)
    assert len(parts_of(storage.folder, "s")) == 2
    assert [it["message"]["content"] for it in storage.load("s") or []] == list("012345")
    assert [it.user_input for it in read_session(storage.folder / "s.jsonl").exchanges] == list("012345")


# ---------------------------------------------------------------- long results


def test_a_long_tool_result_is_stored_in_a_file_and_previewed_in_the_line(storage: FileStorage) -> None:
    text = "é\n" * 20_000
    storage.append("s", result(text, "toolu_1"))
    file = storage.folder / "s" / "tool-results" / "toolu_1.txt"
    assert file.read_text() == text
    line = lines(storage)[1]
    shown = line["message"]["content"][0]["content"]
    assert str(file) in shown
    assert "58.6KB" in shown
    assert text[:2_048] in shown
    assert len(shown) < 2_500
    assert line["persistedOutputs"][0]["characters"] == 40_000
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_side_file_is_synced_before_the_line_that_names_it(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.append("s", user("one"))
    UPKEEP.finish()
    synced: list[str] = []
    monkeypatch.setattr(platform, "sync", lambda fd: synced.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name))
    with UPKEEP._working:  # the upkeep's own thread waits
        storage.append("s", result("x" * 40_000))
    UPKEEP.finish()
    assert synced == ["t1.txt", "s.jsonl"]


@pytest.mark.parametrize("size", [29_999, 30_000, 30_001])
def test_a_tool_result_over_30_000_characters_goes_to_a_file(storage: FileStorage, size: int) -> None:
    storage.append("s", result("x" * size))
    assert (storage.folder / "s" / "tool-results").exists() == (size > 30_000)
    assert storage.load("s") and (storage.load("s") or [])[0]["message"]["content"][0]["content"] == "x" * size


def test_a_tool_result_with_a_missing_or_changed_file_loads_the_preview(storage: FileStorage) -> None:
    for tool in ("gone", "changed"):
        storage.append("s", result("x" * 40_000, tool))
    folder = storage.folder / "s" / "tool-results"
    (folder / "gone.txt").unlink()
    (folder / "changed.txt").write_text("short")
    for message in storage.load("s") or []:
        assert message["message"]["content"][0]["content"].startswith("<persisted-output>")


@pytest.mark.parametrize("file", ["/etc/passwd", "tool-results/../../x", "../t.jsonl", "tool-results/link.txt"])
def test_a_line_cannot_reference_a_file_outside_its_session(storage: FileStorage, tmp_path: Path, file: str) -> None:
    storage.append("s", result("x" * 40_000))
    secret = tmp_path / "secret"
    secret.write_text("s" * 40_000)
    (storage.folder / "s" / "tool-results" / "link.txt").symlink_to(secret)
    path = storage.folder / "s.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"tool-results/t1.txt"', json.dumps(file).encode()))
    assert "ssss" not in json.dumps(storage.load("s"))


def test_a_message_with_the_side_file_field_is_rejected(storage: FileStorage) -> None:
    with pytest.raises(ValueError, match="persistedOutputs"):
        storage.append("s", user("one", persistedOutputs=[]))


def test_a_long_tool_result_stays_in_its_line_if_no_file_can_be_written(storage: FileStorage) -> None:
    storage.append("s", user("one"))
    (storage.folder / "s").write_text("a file where the folder should be")
    assert storage.append("s", result("x" * 40_000))
    assert (storage.load("s") or [])[1]["message"]["content"][0]["content"] == "x" * 40_000


# ---------------------------------------------------------------- beside the sessions


def test_user_prompts_of_all_sessions_are_in_the_history_file(storage: FileStorage) -> None:
    storage.append("a", user("First"))
    storage.append("a", assistant("no"))
    storage.append("a", result("no"))
    storage.append("a", user("no", isMeta=True))
    storage.append("a", user("no", isSidechain=True))
    storage.append("b", user("Second"))
    said = [json.loads(line) for line in (storage.root / "history.jsonl").read_bytes().splitlines()]
    assert [(it["display"], it["sessionId"], it["project"]) for it in said] == [
        ("First", "a", storage.cwd),
        ("Second", "b", storage.cwd),
    ]
    assert said[0].keys() == {"display", "pastedContents", "timestamp", "project", "sessionId"}


def test_memory_is_stored_per_project(storage: FileStorage, tmp_path: Path) -> None:
    assert storage.read_memory() == ""
    storage.write_memory("- tea, not coffee\n")
    assert storage.read_memory() == "- tea, not coffee\n"
    assert (storage.folder / "memory" / "MEMORY.md").read_text() == "- tea, not coffee\n"
    assert storage.read_memory(tmp_path) == ""
    for session in ("memory", "Memory", "a.bodies"):
        storage.append(session, result("x" * 40_000))
        storage.delete(session)
    assert storage.read_memory() == "- tea, not coffee\n"


def test_the_file_name_of_a_hashed_id_is_a_different_session_id(storage: FileStorage) -> None:
    storage.append("../up", user("one"))
    (path,) = storage.folder.glob("*.jsonl")
    storage.append(path.stem, user("two"))
    assert [len(storage.load(it) or []) for it in ("../up", path.stem)] == [1, 1]


def test_memory_is_not_written_through_a_symlink(storage: FileStorage, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    storage.folder.mkdir(parents=True)
    (storage.folder / "memory").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError):
        storage.write_memory("x")
    assert list((tmp_path / "outside").iterdir()) == []


def test_no_session_is_read_written_or_deleted_through_a_symlink(tmp_path: Path) -> None:
    outside = FileStorage(tmp_path / "outside", tmp_path)
    outside.append("s", user("secret"))
    storage = FileStorage(tmp_path / "root", tmp_path)
    storage.folder.parent.mkdir(parents=True)
    storage.folder.symlink_to(outside.folder)
    assert storage.load("s") is None
    assert storage.list() == []
    with pytest.raises(StoreError):
        storage.append("t", user("one"))
    storage.delete("s")
    assert len(outside.load("s") or []) == 1
    assert sorted(it.name for it in outside.folder.glob("*.jsonl")) == ["s.jsonl"]


def test_deleting_a_session_removes_all_its_files(storage: FileStorage) -> None:
    storage.append("s", result("x" * 40_000))
    storage.append("s", {"type": "x", "long": "y" * (17 << 20)})
    assert len((storage.load("s") or [])[1]["long"]) == 17 << 20
    storage.delete("s")
    assert [it.name for it in storage.folder.iterdir()] == [".gitignore"]


# ---------------------------------------------------------------- summaries


def summary(storage: FileStorage) -> tuple[str, str] | None:
    found = [it for it in lines(storage) if it["type"] == "summary"]
    return (found[-1]["by"], found[-1]["summary"]) if found else None


def test_a_summary_consists_of_the_first_prompt_and_the_files(storage: FileStorage) -> None:
    storage.append("s", user("Fix the\ntimer"))
    use = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/work/timer.py"}}
    storage.append("s", {"type": "assistant", "message": {"role": "assistant", "content": [use]}})
    last = (storage.load("s") or [])[-1]["uuid"]
    storage.close("s")
    assert summary(storage) == ("agent-logger", "Fix the timer · files: /work/timer.py")
    assert lines(storage)[-1]["leafUuid"] == last
    assert storage.list()[0].summary == "Fix the timer · files: /work/timer.py"
    assert storage.list()[0].message_count == len(storage.load("s") or []) == 2


def test_the_title_of_the_client_is_preferred_as_summary(storage: FileStorage) -> None:
    storage.append("s", user("Fix it"))
    storage.append("s", {"type": "ai-title", "aiTitle": "The timer"})
    storage.close()
    assert summary(storage) == ("client", "The timer")


def test_closing_twice_or_without_a_message_writes_nothing(storage: FileStorage) -> None:
    storage.append("s", user("Fix it"))
    storage.close()
    before = (storage.folder / "s.jsonl").read_bytes()
    storage.close()
    storage.close("s")
    storage.close("never")
    assert (storage.folder / "s.jsonl").read_bytes() == before


COMMANDS = [
    pytest.param("""sh -c 'wc -c >/dev/null; echo " Tea  timer"'""", ("command", "Tea timer"), id="says it"),
    pytest.param(
        "sh -c 'cat | tail -n 1'",
        ("command", "Agent: key [redacted]"),
        id="is given the conversation, redacted",
    ),
    pytest.param("sh -c 'echo no; exit 3'", ("agent-logger", "Fix it"), id="fails"),
    pytest.param("/no/such/program", ("agent-logger", "Fix it"), id="is not there"),
    pytest.param("true", ("agent-logger", "Fix it"), id="says nothing"),
    pytest.param("sleep 30", ("agent-logger", "Fix it"), id="takes too long"),
]


@pytest.mark.parametrize(("command", "expected"), COMMANDS)
def test_a_summary_command_may_write_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, expected: tuple[str, str]
) -> None:
    monkeypatch.setenv("AGENT_LOGGER_SUMMARY_COMMAND", command)
    monkeypatch.setattr("agent_logger.transcripts.summary.SECONDS", 1)
    with FileStorage(tmp_path, tmp_path) as storage:
        storage.append("s", user("Fix it"))
        storage.append("s", assistant("key sk-ant-api03-" + "abcDEF123456-" * 4 + "AA"))
    by, text = summary(storage) or ("", "")
    if expected[1].startswith("Agent"):
        assert by == "command"
        assert "abcDEF123456-abcDEF123456" not in text
        assert text.startswith("Agent: key ")
    else:
        assert (by, text) == expected


# ---------------------------------------------------------------- branches


def test_the_git_branch_is_read_without_a_subprocess(tmp_path: Path, project: Path) -> None:
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    tree, git = tmp_path / "tree", project / ".git" / "worktrees" / "tree"
    tree.mkdir()
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/other\n")
    (tree / ".git").write_text(f"gitdir: {git}\n")
    storage = FileStorage(tmp_path / "root", deep)
    storage.append("s", user("in a folder of the repository"))
    storage.append("s", user("in a work tree", cwd=str(tree)))
    (git / "HEAD").write_text("0123456789abcdef0123456789abcdef01234567\n")
    storage.append("s", user("detached"))
    storage.append("s", user("nowhere", cwd="/"))
    assert [it.get("gitBranch") for it in storage.load("s") or []] == ["feature/tea", "other", "HEAD", None]


def test_the_storage_modules_do_not_import_the_sdk() -> None:
    modules = "agent_logger.transcripts.storage, agent_logger.transcripts.testing"
    program = f"import sys, {modules}; sys.exit('claude_agent_sdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    assert {"FileStorage", "InMemoryStorage", "SessionStorage"} <= set(dir(agent_logger))
    assert issubclass(FileStorage, Transcripts)
