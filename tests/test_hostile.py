"""Every door on the whole hostile corpus: nothing raises, nothing is lost, and nothing that is shown drives anything.

Views, search and the browser have theirs in `tests/views`, `tests/catalog/search` and `tests/web`.
"""

import csv
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from agent_logger import FileStorage, SessionLogger, read_session
from agent_logger.agents.registry import AGENTS, readable_agent
from agent_logger.agents.source_files import SourceFiles
from agent_logger.config import SETTINGS, load
from agent_logger.errors import AgentLoggerError, ConfigError
from agent_logger.files.sources import StampCache
from agent_logger.hooks.entry import record_of
from agent_logger.logs.log_records import read_exchanges
from agent_logger.logs.verify import verify_file
from agent_logger.model import records
from agent_logger.model.redaction.redactor import Redactor
from agent_logger.model.session import Usage
from agent_logger.providers.registry import ANTHROPIC, CHAT, GEMINI, RESPONSES, Dialect
from agent_logger.views.html.session import session_html
from agent_logger.views.json import session_json
from agent_logger.views.markdown import session_markdown
from agent_logger.views.printable import printable
from agent_logger.views.terminal.session import session_lines
from agent_logger.web.api.tables import csv_of
from tests.agents.databases.recorded import DATABASES, recorded_database
from tests.agents.foreign import DATA
from tests.agents.foreign import source as file_of
from tests.agents.qwen_code.test_session import CHAT as QWEN_CODE
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.hostile import HOSTILE, LINES, ODD_VALUES, SHORT
from tests.logs.wire_log.wire_records import talks
from tests.proxy.tracking.captures import new_tracker
from tests.proxy.tracking.test_classify import asked
from tests.recording.test_sdk_logger import init, result, said
from tests.views.html_check import Checked
from tests.web.page_process import showing


def as_unicode(text: str) -> str:
    """Return the text as a file of UTF-8 gives it back."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole if whole.isascii() else "".join("\ufffd" if "\ud800" <= it <= "\udfff" else it for it in text)


# ---- files: the agents' and ours

# What a reader goes by: with this changed, a line says nothing at all.
HEADS = {
    "type",
    "role",
    "v",
    "kind",
    "subtype",
    "timestamp",
    "ts",
    "ts_start",
    "time",
    "status",
    "provider",
    "source",
}
SCENARIOS = {
    "claude-code": "claude-cli/2.1.325/subagents",
    "aider": "aider/0.86.2/texts",
    "codex": "codex/0.166.0/exec_resume",
    "continue-cli": "continue-cli/1.5.47/fork",
    "gemini-cli": "gemini-cli/0.61.0/exec_resume",
    "grok-build": "grok-build/1.0.41/waiting",
    "kimi-code": "kimi-code/2.1.0/subagents",
    "goose": "goose/1.52.0/tree",
    "hermes": "hermes/0.19.0/tree",
    "gptme": "gptme/0.35.1/subagent",
    "openclaw": "openclaw/2026.9.6/nested",
    "kilo": "kilo/7.7.9/tree",
    "mini-swe-agent": "mini-swe-agent/2.4.6/format_errors",
    "mistral-vibe": "mistral-vibe/3.0.2/subagents",
    "opencode": "opencode/1.18.33/agents_fork",
    "copilot-cli": "copilot-cli/1.0.102/nested_agents",
    "omp": "pi/0.87.1",
    "openhands": "openhands/1.16.0/agents",
    "cline": "cline/3.0.65/subagent",
    "droid": "droid/0.225.2/subagents",
    "pi": "pi/0.87.1",
    "prime-agent": "pi/0.87.1",
    "qwen-code": "",
}

# The columns with JSON in the databases of agents.
DOCUMENTS = {
    "goose": (("messages", "content_json"), ("messages", "metadata_json")),
    "hermes": (("messages", "tool_calls"), ("sessions", "model_config")),
    "openclaw": (("transcript_events", "event_json"),),
    "kilo": (("message", "data"), ("part", "data")),
    "opencode": (("message", "data"), ("part", "data")),
}
# The files of agents that are documents as a whole.
DOCUMENT_FILES = (
    "*.messages.json",
    "base_state.json",
    "event-*.json",
    "chunks/*.json",
    ".continue/sessions/*-*.json",
)
# The folders of agents that write pi's lines.
PI_FOLDERS = {"omp": ".omp", "prime-agent": ".prime"}

Change = Callable[[Any], Any]


def with_texts(texts: Iterator[str], document: Any) -> Any:
    """Return the document with a hostile text in place of every text but those of HEADS."""
    if isinstance(document, dict):
        return {
            key: value if key in HEADS and isinstance(value, str) else with_texts(texts, value)
            for key, value in document.items()
        }
    if isinstance(document, list):
        return [with_texts(texts, value) for value in document]
    return next(texts) if isinstance(document, str) else document


def with_values(values: Iterator[Any], document: Any, depth: int = 0) -> Any:
    """Return the document with an odd value in every seventh place."""
    if isinstance(document, dict):
        return {key: next(values)(value, depth) for key, value in document.items()}
    if isinstance(document, list):
        return [next(values)(value, depth) for value in document]
    return document


def odd_places(values: list[Any], every: int = 7) -> Iterator[Any]:
    odd, number = cycle(values), 0
    changes: Iterator[Any]

    def change() -> Iterator[Any]:
        nonlocal number
        while True:
            number += 1
            value = next(odd) if number % every == 0 else None
            yield (
                lambda old, depth, value=value, at=number: (
                    value if at % every == 0 else with_values(changes, old, depth + 1)
                )
            )

    changes = change()
    return changes


CHANGES: dict[str, Callable[[], Change]] = {
    "texts": lambda: (lambda texts: lambda document: with_texts(texts, document))(cycle(SHORT)),
    "values": lambda: (lambda places: lambda document: with_values(places, document))(odd_places(ODD_VALUES)),
    "values, more of them": lambda: (lambda places: lambda document: with_values(places, document))(
        odd_places(ODD_VALUES, 3)
    ),
}


def changed_lines(data: bytes, change: Change) -> bytes:
    """Return the lines with all documents changed but the first, which says whose file it is."""
    first, *rest = [line for line in data.splitlines() if line]
    return b"".join(line + b"\n" for line in (first, *(json.dumps(change(json.loads(it))).encode() for it in rest)))


def damaged_lines(data: bytes) -> bytes:
    """Return the lines with a damaged one after each of them, and all damage there is at the end."""
    bad = cycle(LINES.values())
    return b"".join(line + b"\n" + next(bad) + b"\n" for line in data.splitlines()) + b"\n".join(LINES.values())


def home_of(agent: str, folder: Path, change: Callable[[bytes], bytes], document: Change) -> Path:
    """Make the home of a recorded session, with its lines changed, and the rows of its database."""
    home = folder / "recorded"
    if agent == "qwen-code":
        path = home / ".qwen/projects/-p/chats/38c8e15b-1614-4a4f-8b5c-0e2f6f0e1a11.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(QWEN_CODE)
    elif agent in DATABASES:
        path = recorded_database(agent, SCENARIOS[agent].partition("/")[2], home)
        with closing(sqlite3.connect(path)) as database, database:
            for table, column in DOCUMENTS[agent]:
                rows = database.execute(f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL").fetchall()
                new = [(json.dumps(document(json.loads(data))), row) for row, data in rows]
                database.executemany(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", new)
    else:
        recorded = next((DATA / SCENARIOS[agent]).rglob("home"))
        shutil.copytree(recorded, home, dirs_exist_ok=True)
        if agent in PI_FOLDERS:
            (home / ".pi").rename(home / PI_FOLDERS[agent])
    for path in home.rglob("*.jsonl"):
        if data := path.read_bytes():
            path.write_bytes(change(data))
    for path in (path for name in DOCUMENT_FILES for path in home.rglob(name)):
        path.write_text(json.dumps(document(json.loads(path.read_bytes()))))
    if agent == "aider":
        for path in home.rglob(".aider.*.history*"):
            path.write_bytes(damaged_lines(path.read_bytes()))
    if agent == "mini-swe-agent":
        for path in home.rglob("runs/*.json"):
            trajectory = json.loads(path.read_bytes())
            messages = [document(message) for message in trajectory["messages"]]
            path.write_text(json.dumps({**trajectory, "messages": messages}))
    return home


def sources(agent: str, home: Path) -> list[SourceFiles]:
    reader = readable_agent(agent)
    assert reader and reader.location
    folders = [home / name for name in reader.location.default] or [home]
    return [reader.open_session(found) for found in reader.discover(folders, StampCache())]


def test_every_agent_with_files_is_tried() -> None:
    assert {agent.name for agent in AGENTS if agent.reader} == set(SCENARIOS)


@pytest.mark.parametrize("agent", SCENARIOS)
@pytest.mark.parametrize("kind", [*CHANGES, "damaged lines"])
def test_no_file_of_an_agent_stops_its_reader_or_drives_a_view(agent: str, kind: str, tmp_path: Path) -> None:
    document = CHANGES[kind]() if kind in CHANGES else lambda it: it
    change = damaged_lines if kind == "damaged lines" else lambda data: changed_lines(data, document)
    home = home_of(agent, tmp_path, change, document)
    reader = readable_agent(agent)
    assert reader
    found = sources(agent, home)
    assert found
    for source in found:
        list(reader.responses_of(source))
    for source in sources(agent, home):
        session = reader.session_of(source)
        json.loads(session_json(session))
        page, text = "".join(session_html(session)), "".join(session_markdown(session))
        lines = "\n".join(session_lines(session, 80))
        Checked(page)
        assert all(printable(it, lines=True) == it for it in (page, text, lines))


@pytest.mark.parametrize("agent", SCENARIOS)
def test_a_file_of_damaged_lines_alone_bills_nothing(agent: str) -> None:
    reader = readable_agent(agent)
    assert reader
    for data in (*LINES.values(), b"\n".join(LINES.values())):
        assert all(response.usage is None for response in reader.responses_of(file_of(data)))
        assert reader.session_of(file_of(data)).usage == Usage()
        assert reader.parent_of(file_of(data)) is None


def wire_log() -> bytes:
    talk = next(it for it in talks() if it.name.endswith("2.1.325/tools_stream"))
    return b"".join(records.encode(it) + b"\n" for it in talk.records())


def exchange_log(folder: Path) -> bytes:
    with SessionLogger(folder) as logger:
        for message in (init(), said("hello"), result(0.1)):
            logger.log(message)
    assert logger.path
    return logger.path.read_bytes()


def test_every_text_can_be_written_as_a_line_of_a_record() -> None:
    for text in HOSTILE:
        resumed = records.Resume(ts="2026-11-15T08:00:00.000Z", session_id=text)
        line = records.encode_line(resumed)
        assert line == records.encode(resumed) + b"\n"
        assert line.count(b"\n") == 1
        assert json.loads(line)["session_id"] == text


@pytest.mark.parametrize("log", ["wire", "exchange"])
@pytest.mark.parametrize("kind", [*CHANGES, "damaged lines"])
def test_no_line_of_a_log_stops_its_readers(log: str, kind: str, tmp_path: Path) -> None:
    data = wire_log() if log == "wire" else exchange_log(tmp_path / "recorded")
    change = CHANGES[kind]() if kind in CHANGES else None
    path = tmp_path / "20261115-084532-a7f3.jsonl"
    path.write_bytes(changed_lines(data, change) if change else damaged_lines(data))
    report = verify_file(path)
    assert report.damage or kind == "texts"
    try:
        session = read_session(path)
    except AgentLoggerError as error:  # a first line that is nobody's
        assert printable(str(error)) == str(error)
    else:
        json.loads(session_json(session))
        Checked("".join(session_html(session)))


# ---- upstreams

DIALECTS = {dialect.name: dialect for dialect in (ANTHROPIC, CHAT, RESPONSES, GEMINI)}
EVENTS: dict[str, list[dict[str, Any]]] = {
    ANTHROPIC.name: [
        {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "TEXT"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ],
    CHAT.name: [
        {
            "id": "m",
            "model": "x",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": "TEXT"}}],
        },
        {
            "id": "m",
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1},
        },
    ],
    RESPONSES.name: [
        {"type": "response.created", "response": {"id": "m", "model": "x", "output": []}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "TEXT"},
        {"type": "response.completed", "response": {"id": "m", "output": [{"content": [{"text": "TEXT"}]}]}},
    ],
    GEMINI.name: [
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": "TEXT"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1},
        }
    ],
}


def stream(events: list[Any]) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_every_text_of_an_answer_arrives(dialect: Dialect) -> None:
    for text in HOSTILE:
        events = json.loads(json.dumps(EVENTS[dialect.name]).replace('"TEXT"', json.dumps(text)))
        answer = dialect.read(stream(events))
        found = json.loads(msgspec.json.encode(answer.message))
        assert json.dumps(as_unicode(text))[1:-1] in json.dumps(found), text


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_no_value_or_line_of_an_answer_stops_its_reader(dialect: Dialect) -> None:
    for every in range(1, 20):
        places = odd_places(ODD_VALUES, every)
        for _ in range(10):
            answer = dialect.read(stream([with_values(places, event) for event in EVENTS[dialect.name]]))
            msgspec.json.encode(answer)
    for line in LINES.values():
        for body in (line, b"data: %b\n\n" % line, stream(EVENTS[dialect.name]) + line):
            msgspec.json.encode(dialect.read(body))


PATHS = ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/g:generateContent"]


@pytest.mark.parametrize("path", PATHS)
def test_no_request_stops_the_tracker(path: str) -> None:
    tracker = new_tracker()
    for body in LINES.values():
        tracker.request(asked(path=path, body=body, headers={}))
    for text in HOSTILE:
        message = {"role": text, "content": text, "parts": [{"text": text}]}
        fields = {"messages": [message], "input": [message], "contents": [message], "model": text, text: text}
        body = json.dumps({**fields, "metadata": {"user_id": text}, "system": text}).encode()
        header = "".join(it for it in text[:1000] if " " <= it < "\x7f")
        headers = {"user-agent": header, "session-id": header, "x-claude-code-session-id": header}
        tracker.request(asked(path=path, body=body, headers=headers))


# ---- programs: the SDK logger, the storage, hooks


def test_every_text_that_a_program_logs_comes_back(tmp_path: Path) -> None:
    with SessionLogger(tmp_path, strict=True) as logger:
        for number, text in enumerate(HOSTILE):
            logger.log_user_input(text)
            logger.log(init() if number == 0 else said("go on"))
            logger.log(said(text))
            logger.log(result(0))
    assert logger.path
    read = read_exchanges(logger.path.parent, logger.path.stem)
    assert [it.user_input for it in read] == [as_unicode(text) for text in HOSTILE]
    assert [it.messages[-2].text for it in read] == [as_unicode(text) for text in HOSTILE]


def test_no_value_that_a_program_logs_raises_or_is_dropped(tmp_path: Path) -> None:
    with SessionLogger(tmp_path, strict=True) as logger:
        logger.log_user_input("go")
        logger.log(init())
        for value in ODD_VALUES:
            logger.log(value)
            logger.log({"type": "assistant", "message": value})
            logger.log(said("x", content=value, usage=value, model=value))
        logger.log(result(0, usage=ODD_VALUES, modelUsage=ODD_VALUES))
    assert logger.path
    [exchange] = read_exchanges(logger.path.parent, logger.path.stem)
    assert len(exchange.messages) >= 2 * len(ODD_VALUES)
    assert verify_file(logger.path).damage == []
    json.loads(session_json(read_session(logger.path)))


def test_every_text_that_is_stored_comes_back(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with FileStorage(tmp_path / "root", tmp_path / "project") as storage:
        for text in HOSTILE:
            assert storage.append("s", {"type": "user", "message": {"role": "user", "content": text}, "x": text})
        stored = storage.load("s")
    assert stored is not None
    assert [it["x"] for it in stored] == HOSTILE
    read_session(storage.folder / "s.jsonl")


def test_every_input_of_a_hook_becomes_a_record(home: Path) -> None:
    inputs = list(LINES.values())
    for value in (*HOSTILE, *ODD_VALUES):
        names = ("session_id", "transcript_path", "hook_event_name", "cwd", "prompt")
        inputs.append(json.dumps(dict.fromkeys(names, value)).encode())
    for data in inputs:
        line, _ = record_of(data, len(data), home)
        assert b"\n" not in line
        assert isinstance(records.decode(line, "hook"), records.Hook)


def test_redaction_leaves_what_holds_no_key_as_it_is() -> None:
    redactor = Redactor(bytes(32))
    for text in HOSTILE:
        assert redactor.redact_text(text, "").data in (text, as_unicode(text))
    for data in LINES.values():
        assert redactor.redact(data, "").data == data


# ---- people: arguments, settings, addresses, tables

ARGUMENTS = [
    ["show"], ["show", "--json"], ["find"], ["search"], ["search", "--json"], ["tree"], ["export", "--to", "md"],
    ["usage", "--explain"], ["usage", "--project"], ["usage", "--since"], ["rm", "--yes"], ["verify"],
    ["ls", "--agent"], ["ls", "--project"], ["ls", "--model"], ["ls", "--title"], ["ls", "--since"],
    ["ls", "--witness"], ["archive", "--restore"], ["config", "--config"], ["nonsense"],
]  # fmt: skip

# One process for all commands: most of the time of each would be its start.
PROGRAM = """
import io, json, sys
from agent_logger.cli import main
for line in json.load(sys.stdin):
    sys.argv[1:] = line
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        code = repr(error)
    printed = sys.stdout.getvalue(), sys.stderr.getvalue()
    sys.__stdout__.write(json.dumps([line, code, *printed]) + chr(10))
"""


def can_be_argument(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def leads_elsewhere(text: str) -> bool:
    """Say whether a path leads out of the test: `verify /` reads the whole machine, as it is told to."""
    return os.path.isdir(os.path.join("/bin", text))


@pytest.mark.parametrize("command", ARGUMENTS, ids=" ".join)
def test_no_argument_stops_a_command_or_drives_a_terminal(home: Path, command: list[str]) -> None:
    claude_file(home, ID.format(1), [user(1, "hi", ID.format(1)), assistant(2, "yes", ID.format(1))])
    folder = home.parent / "work"
    folder.mkdir()
    texts = [text for text in HOSTILE if can_be_argument(text) and not leads_elsewhere(text)]
    lines = [[*command, text] for text in texts]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(lines), env=environment, cwd=folder,
        capture_output=True, text=True, check=True, timeout=110,
    )  # fmt: skip
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ended) == len(lines)
    for line, code, stdout, stderr in ended:
        assert code in (0, 1, 2, None), (line, code, stderr)
        assert "Traceback" not in stderr, (line, stderr)
        assert printable(stdout, lines=True) == stdout, line
        assert printable(stderr, lines=True) == stderr, line
    assert [it for it in folder.rglob("*") if it.is_file()] == []


def test_a_setting_is_taken_or_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in SETTINGS.values():
        for text in filter(can_be_argument, HOSTILE):
            monkeypatch.setenv(setting.variable, text)
            try:
                load()
            except ConfigError as error:
                assert setting.variable in str(error)
                assert len(str(error)) < 1000
        monkeypatch.delenv(setting.variable)


ADDRESSES = [
    "/search?q={}", "/sessions?project={}&title={}&model={}&agent={}&since={}", "/sessions/{}", "/sessions/{}/wire",
    "/{}", "/api/v1/search?q={}", "/api/v1/sessions?project={}&limit={}", "/api/v1/sessions/{}",
    "/api/v1/ledger?since={}", "/api/v1/sessions?format={}", "/static/{}", "/open?token={}",
]  # fmt: skip


def test_no_address_stops_the_page_or_comes_back_as_markup(home: Path) -> None:
    claude_file(home, ID.format(1), [user(1, "hi", ID.format(1)), assistant(2, "yes", ID.format(1))])
    with showing(home) as page:
        cookie = page.cookie()
        for address in ADDRESSES:
            for text in HOSTILE:
                given = quote(text[:4000], safe="", errors="surrogatepass")
                answer = page.ask(address.replace("{}", given), cookie=cookie)
                assert answer.status in (200, 303, 307, 400, 401, 404), (
                    address,
                    text,
                    answer.status,
                )
                shown = answer.body.decode()
                if "static" not in address:
                    assert printable(shown, lines=True) == shown, (address, text)
                if "html" in answer.headers.get("content-type", "") and re.search("<[a-z!?]", text):
                    assert text not in shown, (address, text)


class Row(msgspec.Struct):
    text: str
    texts: list[str]
    value: Any


def test_no_cell_of_a_table_is_a_formula() -> None:
    items = [Row(text, [text], text) for text in HOSTILE]
    items += [Row("", [], value) for value in ODD_VALUES]
    table = csv_of(items, Row)
    rows = list(csv.reader(io.StringIO(table)))[1:]
    assert len(rows) == len(items)
    assert [cell for row in rows for cell in row if printable(cell, lines=True) != cell] == []
    formulas = [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))]
    assert [cell for cell in formulas if not is_number(cell)] == []
    assert [cell for row in rows for cell in row if cell[:1] in "\t\r\n" and cell] == []


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
