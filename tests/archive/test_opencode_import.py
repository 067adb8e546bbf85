"""A session of opencode comes back as files that its own import takes: its database is only ever read."""

import json
import os
import shlex
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.agents.opencode.import_document import import_document
from agent_logger.agents.source_files import File
from agent_logger.archive.run import archive_all
from agent_logger.protocols.jsonl import JsonEntry
from tests.commands import run_command

DATA = Path(__file__).parents[1] / "data" / "opencode"
MAIN, SUB, FORK = (
    "ses_e2090ac44ffeRxh9TZzNatan0E",
    "ses_e2090a3a1ffetWAEKGMxCYMYhA",
    "ses_e209093e4ffebVAVMYwIIYHZLz",
)


@pytest.fixture
def own(home: Path) -> Path:
    return home / ".agent-logger"


@pytest.fixture
def database(home: Path) -> Path:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as made:
        made.executescript((DATA / "1.18.33/agents_fork/opencode.sql").read_text())
    return path


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as made, made:
        assert made.execute(statement, values).rowcount


def rows(path: Path, table: str) -> dict[str, dict[str, Any]]:
    with closing(sqlite3.connect(path)) as made:
        made.row_factory = sqlite3.Row
        return {row["id"]: dict(row) for row in made.execute(f"SELECT * FROM {table}")}


def deleted(database: Path, own: Path) -> Path:
    """Archived, then all sessions are gone from the database."""
    assert archive_all(own).failed == []
    for table in ("part", "message", "session"):
        change(database, f"DELETE FROM {table}")
    return database


def archive(*options: str | Path, code: int = 0) -> Any:
    done = run_command(["archive", *map(str, options)], os.environ)
    assert done.returncode == code, done.stderr
    return done


def restored(own: Path, session: str) -> dict[str, Any]:
    archive("--restore", session, "--yes")
    document = json.loads((own / "restored" / f"{session}.json").read_text())
    assert isinstance(document, dict)
    return document


def state_of(path: Path) -> tuple[bytes, list[str], int]:
    return path.read_bytes(), sorted(os.listdir(path.parent)), path.stat().st_mtime_ns


# ---------------------------------------------------------------- the document


def test_the_document_contains_every_row_as_stored(database: Path, own: Path) -> None:
    messages, parts = rows(database, "message"), rows(database, "part")
    session = rows(database, "session")[MAIN]
    deleted(database, own)
    document = restored(own, MAIN)
    info = document["info"]
    assert {key: info[key] for key in ("id", "slug", "projectID", "directory", "title", "version")} == {
        "id": MAIN,
        "slug": session["slug"],
        "projectID": session["project_id"],
        "directory": session["directory"],
        "title": session["title"],
        "version": session["version"],
    }
    assert info["time"] == {"created": session["time_created"], "updated": session["time_updated"]}
    assert info["tokens"]["cache"]["read"] == session["tokens_cache_read"]
    assert "parentID" not in info
    found = {message["info"]["id"]: message for message in document["messages"]}
    assert list(found) == [key for key, row in messages.items() if row["session_id"] == MAIN]
    for key, message in found.items():
        ids = {"id": key, "sessionID": MAIN}
        assert message["info"] == {**json.loads(messages[key]["data"]), **ids}
        owned = {name: row for name, row in parts.items() if row["message_id"] == key}
        assert message["parts"] == [
            {**json.loads(row["data"]), "id": name, "sessionID": MAIN, "messageID": key}
            for name, row in sorted(owned.items())
        ]


def test_a_subagent_has_its_own_file_that_names_the_parent(database: Path, own: Path) -> None:
    deleted(database, own)
    restored(own, MAIN)
    assert sorted(path.name for path in (own / "restored").iterdir()) == sorted([f"{MAIN}.json", f"{SUB}.json"])
    sub = json.loads((own / "restored" / f"{SUB}.json").read_text())
    assert sub["info"]["parentID"] == MAIN


def test_the_text_of_a_row_is_copied_verbatim(database: Path, own: Path) -> None:
    """Numbers that Python would write in another way, and halves of characters, which opencode writes itself."""
    odd = '{ "type":"text", "text":"a\\ud83d \u2028","metadata":{"n":1.0e3,"big":12345678901234567890123,"far":1e999}}'
    change(database, "UPDATE part SET data = ? WHERE data LIKE '%How many files%' AND session_id = ?", odd, MAIN)
    deleted(database, own)
    restored(own, MAIN)
    assert odd[:-1] in (own / "restored" / f"{MAIN}.json").read_text()


def test_the_id_column_takes_precedence_over_an_id_in_the_data(database: Path, own: Path) -> None:
    change(
        database,
        """UPDATE message SET data = json_set(data, '$.id', 'msg_wrong', '$.sessionID', 'ses_wrong')
        WHERE session_id = ?""",
        FORK,
    )
    names = [key for key, row in rows(database, "message").items() if row["session_id"] == FORK]
    deleted(database, own)
    messages = [message["info"] for message in restored(own, FORK)["messages"]]
    assert [(message["id"], message["sessionID"]) for message in messages] == [(name, FORK) for name in names]


# ---------------------------------------------------------------- nothing of others is written to


def test_restore_does_not_change_the_database_or_add_files_beside_it(database: Path, own: Path) -> None:
    deleted(database, own)
    before = state_of(database)
    restored(own, MAIN)
    assert state_of(database) == before


def test_restore_does_not_recreate_a_missing_database(database: Path, own: Path) -> None:
    archive_all(own)
    shutil.rmtree(database.parent)
    assert restored(own, FORK)["info"]["id"] == FORK
    assert not database.parent.exists()


def test_restore_does_not_change_the_archived_copy(database: Path, own: Path) -> None:
    deleted(database, own)
    (copy,) = (own / "archive").rglob("opencode.db")
    before = state_of(copy)
    restored(own, MAIN)
    assert state_of(copy) == before


def test_nothing_is_written_for_a_session_that_opencode_still_has(database: Path, own: Path) -> None:
    archive_all(own)
    done = archive("--restore", MAIN, "--yes")
    assert (done.stdout, done.stderr) == ("", f"nothing to do: opencode still has session {MAIN}\n")
    assert not (own / "restored").exists()


def test_only_incomplete_sessions_are_written(database: Path, own: Path) -> None:
    """To import the others again would move them to another folder."""
    archive_all(own)
    change(database, "DELETE FROM part WHERE id = (SELECT max(id) FROM part WHERE session_id = ?)", SUB)
    archive("--restore", MAIN, "--yes")
    assert [path.name for path in (own / "restored").iterdir()] == [f"{SUB}.json"]


def test_an_unreadable_database_does_not_prevent_a_restore(database: Path, own: Path) -> None:
    archive_all(own)
    database.write_bytes(b"damaged" * 1000)
    before = state_of(database)
    assert restored(own, MAIN)["messages"]
    assert state_of(database) == before


# ---------------------------------------------------------------- files and commands


def test_restored_files_are_private_and_a_second_restore_keeps_them(database: Path, own: Path) -> None:
    deleted(database, own)
    first = archive("--restore", MAIN, "--yes")
    path = own / "restored" / f"{MAIN}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    before = state_of(path)
    again = archive("--restore", MAIN, "--yes")
    assert state_of(path) == before
    assert first.stdout.splitlines()[-2:] == again.stdout.splitlines()[-2:]
    assert f"keep {path}, which is identical" in again.stdout


def test_an_existing_file_is_not_overwritten(database: Path, own: Path, tmp_path: Path) -> None:
    deleted(database, own)
    folder = tmp_path / "named"
    folder.mkdir()
    (folder / f"{MAIN}.json").write_text("mine")
    (folder / f"{MAIN}-2.json").symlink_to(tmp_path / "nowhere")
    done = archive("--restore", MAIN, "--yes", "--to", folder)
    assert (folder / f"{MAIN}.json").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert json.loads((folder / f"{MAIN}-3.json").read_text())["info"]["id"] == MAIN
    assert f"{MAIN}-3.json" in done.stdout


def test_a_link_in_place_of_the_restore_folder_is_not_followed(database: Path, own: Path, tmp_path: Path) -> None:
    deleted(database, own)
    (tmp_path / "elsewhere").mkdir()
    (own / "restored").symlink_to(tmp_path / "elsewhere")
    done = archive("--restore", MAIN, "--yes", code=1)
    assert "cannot write" in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_commands_to_run_next_are_printed_in_80_columns(database: Path, own: Path, home: Path) -> None:
    project = home / "my project"
    project.mkdir()
    change(database, "UPDATE session SET directory = ?", str(project))
    deleted(database, own)
    printed = archive("--restore", MAIN, "--yes").stdout
    _, _, commands = printed.partition("Run these commands to import the session:\n")
    assert all(len(line) <= 80 for line in commands.splitlines())
    fake = home / "bin" / "opencode"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\npwd\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o700)
    environment = {"PATH": f"{fake.parent}:/usr/bin:/bin", "HOME": str(home)}
    ran = subprocess.run(["sh", "-ec", commands], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [
        *(str(project), "import", str(own / "restored" / f"{MAIN}.json")),
        *(str(project), "import", str(own / "restored" / f"{SUB}.json")),
    ]


def test_a_missing_project_folder_is_reported_and_not_entered(database: Path, own: Path) -> None:
    change(database, "UPDATE session SET directory = '/nowhere/$(id)'")
    deleted(database, own)
    done = archive("--restore", MAIN, "--yes")
    assert "cd " not in done.stdout
    assert "/nowhere/$(id) does not exist: run the commands in the folder" in done.stderr


def test_a_folder_with_a_hostile_name_is_quoted_for_the_shell(database: Path, own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a;touch $HOME'b"
    folder.mkdir()
    change(database, "UPDATE session SET directory = ?", str(folder))
    deleted(database, own)
    line = next(it for it in archive("--restore", MAIN, "--yes").stdout.splitlines() if "cd " in it)
    assert shlex.split(line) == ["cd", str(folder)]


def test_json_output_lists_files_and_next_commands(database: Path, own: Path) -> None:
    deleted(database, own)
    report = json.loads(archive("--restore", FORK, "--yes", "--json").stdout)
    path = str(own / "restored" / f"{FORK}.json")
    assert report == {
        "session": FORK,
        "agent": "opencode",
        "files": [{"path": path, "state": "written"}],
        "next": [{"folder": "/home/user/project", "arguments": ["opencode", "import", path]}],
        "left_out": [],
        "completed_rows": 0,
    }
    again = json.loads(archive("--restore", FORK, "--yes", "--json").stdout)
    assert again == {**report, "files": [{"path": path, "state": "there"}]}


def test_nothing_is_written_without_confirmation(database: Path, own: Path) -> None:
    deleted(database, own)
    line = [sys.executable, "-m", "agent_logger", "archive", "--restore", MAIN]
    refused = subprocess.run(line, input="n\n", capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert [line.split()[0] for line in refused.stdout.splitlines()] == ["write", "write"]
    assert not (own / "restored").exists()


def test_the_to_option_is_only_for_agents_with_an_import(home: Path, own: Path, tmp_path: Path) -> None:
    session = "707575f7-6966-4682-abc3-e62e1560a136"
    path = home / ".claude" / "projects" / "-p" / f"{session}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    archive_all(own)
    done = archive("--restore", session, "--to", tmp_path, code=2)
    assert "--to is for sessions of opencode" in done.stderr
    assert "--to works only with --restore" in archive("--to", tmp_path, code=2).stderr


# ---------------------------------------------------------------- hostile and old rows


BROKEN = [
    pytest.param("not JSON", "not a JSON object", id="no JSON"),
    pytest.param("", "not a JSON object", id="empty"),
    pytest.param("[1]", "an array", id="an array"),
    pytest.param('{"type":"text"', "not a JSON object", id="cut"),
    pytest.param('{"type":"text","text":NaN}', "not a JSON object", id="not a number"),
    pytest.param('{"type":"text","text":' + "[" * 50_000 + "]" * 50_000 + "}", "not a JSON object", id="nested"),
    pytest.param('{"type":"text"}', "opencode import refuses it", id="no text"),
    pytest.param('{"type":"text","text":null}', "opencode import refuses it", id="null"),
    pytest.param('{"text":"x"}', "no `type`", id="no type"),
    pytest.param('{"type":"tool","tool":"x","callID":"y","state":{}}', "no `status`", id="no status"),
    pytest.param(b"\xff\xfe\x00", "not a JSON object", id="bytes"),
    pytest.param(5, "a single value", id="a number"),
]


@pytest.mark.parametrize(("data", "reason"), BROKEN)
def test_a_part_that_the_import_would_reject_is_left_out_and_reported(
    database: Path, own: Path, data: object, reason: str
) -> None:
    name = next(key for key, row in rows(database, "part").items() if row["session_id"] == FORK)
    change(database, "UPDATE part SET data = ? WHERE id = ?", data, name)
    deleted(database, own)
    report = json.loads(archive("--restore", FORK, "--yes", "--json").stdout)
    ((session, row, told),) = [tuple(it.values()) for it in report["left_out"]]
    assert (session, row) == (FORK, f"part {name}")
    assert reason in told
    document = json.loads(Path(report["files"][0]["path"]).read_text())
    assert len(document["messages"]) == 6
    assert name not in [part["id"] for message in document["messages"] for part in message["parts"]]


def test_a_message_that_cannot_be_imported_is_left_out_with_its_parts(database: Path, own: Path) -> None:
    names = [key for key, row in rows(database, "message").items() if row["session_id"] == FORK]
    change(database, "UPDATE message SET data = '{' WHERE id = ?", names[1])
    change(database, "UPDATE message SET data = json_remove(data, '$.tokens') WHERE id = ?", names[2])
    change(database, "DELETE FROM message WHERE id = ?", names[3])
    deleted(database, own)
    report = json.loads(archive("--restore", FORK, "--yes", "--json").stdout)
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((DATA.parents[2] / "src/agent_logger/schemas/restore.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(report)
    document = json.loads(Path(report["files"][0]["path"]).read_text())
    assert [message["info"]["id"] for message in document["messages"]] == [names[0], *names[4:]]
    reasons = {row["row"]: row["reason"] for row in report["left_out"]}
    assert "not a JSON object" in reasons[f"message {names[1]}"]
    assert "tokens" in reasons[f"message {names[2]}"]
    assert "its message is not in the document" in reasons.values()


def test_a_session_without_messages_is_restored(database: Path, own: Path) -> None:
    change(database, "DELETE FROM part WHERE session_id = ?", FORK)
    change(database, "DELETE FROM message WHERE session_id = ?", FORK)
    deleted(database, own)
    assert restored(own, FORK)["messages"] == []


def test_broken_columns_of_the_session_are_left_out(database: Path, own: Path) -> None:
    change(
        database,
        """UPDATE session SET model = '{', metadata = '[]', revert = '{"messageID":5}', permission = 'x', agent = 5,
        summary_diffs = '[[]]', cost = 9e999, tokens_input = 'many', share_url = 7, time_archived = 'then',
        title = x'ff', workspace_id = 'none' WHERE id = ?""",
        FORK,
    )
    deleted(database, own)
    info = restored(own, FORK)["info"]
    assert not {"model", "metadata", "revert", "permission", "workspaceID"} & set(info)
    assert info["summary"] == {"additions": 0, "deletions": 0, "files": 0}
    assert info["tokens"]["input"] == 0
    assert info["title"] == "\ufffd"


def test_columns_missing_in_an_older_database_are_not_an_error(database: Path, own: Path) -> None:
    for column in ("tokens_input", "cost", "agent", "model", "path", "workspace_id", "metadata"):
        with closing(sqlite3.connect(database)) as made:
            made.execute(f"ALTER TABLE session DROP COLUMN {column}")
    deleted(database, own)
    document = restored(own, FORK)
    assert "tokens" not in document["info"]
    assert len(document["messages"]) == 6


@pytest.mark.parametrize("name", ["../../evil", "ses_/../x", "abc", "ses_" + "a" * 300, "ses_\n"])
def test_an_id_that_is_not_a_safe_file_name_is_refused(database: Path, own: Path, name: str) -> None:
    for table, column in (("session", "id"), ("message", "session_id"), ("part", "session_id")):
        with closing(sqlite3.connect(database)) as made, made:
            made.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (name, FORK))
    change(database, "UPDATE session SET id = ? WHERE id = ?", f"{name}/sub", SUB)
    deleted(database, own)
    done = archive(f"--restore={name}", "--yes", code=1)
    assert "is not a session id of opencode" in done.stderr
    report = json.loads(archive("--restore", MAIN, "--yes", "--json").stdout)
    assert [Path(file["path"]).name for file in report["files"]] == [f"{MAIN}.json"]
    assert [row["row"] for row in report["left_out"]] == ["session"]
    assert not list(own.parent.rglob("evil*"))


def old_rows(session: str) -> File:
    """What opencode 0.5 wrote, as the rows that newer versions made of it in their database."""
    lines = [json.loads(line) for line in (DATA / "0.5.29/agents/storage.jsonl").read_text().splitlines()]
    objects = [(Path(line["path"]), line["content"]) for line in lines]
    entries: list[dict[str, Any]] = [{"table": "session", "id": session, "title": "Old"}]
    for path, value in sorted(objects, key=lambda it: it[1]["id"]):
        if f"/message/{session}" in str(path):
            data = {key: field for key, field in value.items() if key not in ("id", "sessionID")}
            entries.append({"table": "message", "id": value["id"], "data": json.dumps(data).encode()})
    for path, value in sorted(objects, key=lambda it: it[1]["id"]):
        if f"/part/{session}" in str(path):
            row = {"table": "part", "id": value["id"], "message_id": value["messageID"]}
            entries.append({**row, "data": json.dumps(value).encode()})
    return File(session, [JsonEntry(n, 0, row, b"") for n, row in enumerate(entries, 1)])


def test_messages_of_older_versions_get_the_fields_that_the_import_requires() -> None:
    document = import_document(old_rows("ses_e1eb46393ffehM9PcfXZN3xCsw"))
    assert document.left_out == []
    messages = [message["info"] for message in json.loads(document.data)["messages"]]
    assert len(messages) == 10
    assert document.completed == len(messages) + document.data.count(b'"step-finish"')
    prompts = [message for message in messages if message["role"] == "user"]
    answers = [message for message in messages if message["role"] == "assistant"]
    assert [answer["parentID"] for answer in answers] == [prompt["id"] for prompt in prompts]
    assert {answer["agent"] for answer in answers} == {"build"}
    model = {"providerID": "anthropic", "modelID": "fake-1"}
    assert [(prompt["agent"], prompt["model"]) for prompt in prompts] == [("build", model)] * 5


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
FIELDS = st.dictionaries(
    st.sampled_from(["role", "type", "text", "time", "state", "tokens", "agent", "model", "id", "sessionID"]),
    VALUES | st.sampled_from(["user", "assistant", "text", "tool", "step-finish"]),
)
DATA_VALUES = st.none() | st.integers() | st.binary() | FIELDS.map(lambda it: json.dumps(it).encode()) | st.text()
ROWS = st.fixed_dictionaries(
    {"table": st.sampled_from(["session", "message", "part", "other"])},
    optional={
        "id": st.sampled_from(["msg_1", "msg_2", "prt_1"]) | VALUES,
        "message_id": st.sampled_from(["msg_1", "msg_2"]) | VALUES,
        "data": DATA_VALUES,
        "model": st.text() | VALUES,
        "title": VALUES,
        "time_created": VALUES,
        "summary_files": VALUES,
        "tokens_input": VALUES,
        "cost": VALUES,
    },
)


@given(st.lists(ROWS, max_size=8))
def test_malformed_rows_still_give_a_valid_export_document(entries: list[Any]) -> None:
    every = [{"table": "session"}, *entries]
    file = File("ses_1", [JsonEntry(number, 0, row, b"") for number, row in enumerate(every, 1)])
    document = json.loads(import_document(file).data, parse_constant=pytest.fail)
    assert document["info"]["id"] == "ses_1"
    assert all(message["info"]["sessionID"] == "ses_1" for message in document["messages"])


KILLED = """
import os, signal, sys
from pathlib import Path
from agent_logger import platform
from agent_logger.archive import restore
platform.sync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)
home = Path(sys.argv[1])
restore.carry_out(restore.plan(home, restore.find(home, sys.argv[2])))
"""


def test_a_kill_during_writing_leaves_no_partial_document_under_its_final_name(database: Path, own: Path) -> None:
    deleted(database, own)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(own), FORK], check=False)
    assert killed.returncode == -signal.SIGKILL
    left = list((own / "restored").iterdir())
    assert len(left) == 1
    assert left[0].suffix != ".json"
    assert stat.S_IMODE(left[0].stat().st_mode) == 0o600
    assert len(restored(own, FORK)["messages"]) == 6
