"""`show` and `export`, over the files of real agents and over text that means harm."""

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agents.claude_code.claude_files import SESSION, assistant, user
from tests.commands import run_command
from tests.hostile import HOSTILE, SHORT
from tests.views.sessions import all_tools, call, hostile, turn, with_agents

from agent_logger.model.session import Block, Exchange, Session
from agent_logger.views.printable import printable
from agent_logger.views.terminal.rows import TextRow, fit, fold, row_text
from agent_logger.views.terminal.screen import width
from agent_logger.views.terminal.session import SessionText, session_lines

DATA = Path(__file__).parents[1] / "data"
RECORDED = next(DATA.glob("claude-cli/2.1.325/subagents/home/.claude/projects/*/*.jsonl"))
KEY = "sk-ant-api03-" + "Qz7" * 20
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COLUMNS": "80", "TZ": "UTC"}
        return run_command([str(it) for it in arguments], clean, folder=tmp_path)

    return run


def text(session: Session, columns: int = 80) -> str:
    return "\n".join(session_lines(session, columns))


def of_one_turn(blocks: list[Block]) -> Session:
    return Session(id="x", exchanges=[Exchange(number=1, turns=[turn(0, blocks)])])


# ---- the conversation


def test_the_last_session_of_an_empty_home_is_an_error_that_says_how_to_record_one(run: Run) -> None:
    shown = run("show", "last")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith("agent-logger: No sessions yet. 'agent-logger run -- claude' records one;")


def test_a_session_is_shown_with_turn_numbers_costs_and_subagents(run: Run) -> None:
    shown = run("show", RECORDED)
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert max(map(width, lines)) <= 80
    numbers = [int(found[1]) for found in map(re.compile(r" +#(\d+) ").match, lines) if found]
    assert numbers == [0, 1, 2, 3, 4, 5]
    assert "   #1 │ Looking at the directory." in shown.stdout
    assert "      │   from-subagent" in shown.stdout
    assert all("$0.0" in line for line in lines if re.match(r" +#\d", line))


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize(
    "session", [all_tools(), with_agents(), hostile("日本語 " * 60)], ids=["tools", "agents", "wide"]
)
def test_no_line_is_wider_than_the_terminal(session: Session, columns: int) -> None:
    assert max(map(width, session_lines(session, columns))) <= columns


def test_an_abandoned_exchange_is_marked_as_taken_back(run: Run, tmp_path: Path) -> None:
    lines = [
        user("u1", "first"),
        assistant("a1", "msg_01aaaaaaaaaaaa1", "one", parent="u1"),
        user("u2", "second", parent="a1"),
        assistant("a2", "msg_01aaaaaaaaaaaa2", "two", parent="u2"),
        user("u3", "third", parent="a1"),
        assistant("a3", "msg_01aaaaaaaaaaaa3", "three", parent="u3"),
    ]
    file = tmp_path / f"{SESSION}.jsonl"
    file.write_text("".join(json.dumps(it) + "\n" for it in lines))
    shown = run("show", file).stdout
    first, second, third = shown.index("one"), shown.index("two"), shown.index("three")
    assert (
        first < second < shown.index("(rewound: the conversation continued from a point before this exchange)") < third
    )
    for shape in ("md", "html"):
        assert run("export", file, "--to", shape).stdout.count("(rewound: ") == 1


def test_thinking_is_shown_as_one_line_by_default() -> None:
    session = of_one_turn([Block(kind="thinking", text="first\n" + "word " * 100)])
    folded_ = [row_text(row, 80) for row in SessionText(session, 80).rows()]
    whole = [row_text(row, 80) for row in SessionText(session, 80, thinking=True).rows()]
    assert sum("~" in line for line in folded_) == 1
    assert sum("~" in line for line in whole) > 5


def test_long_output_is_truncated_except_in_a_single_turn(run: Run, tmp_path: Path) -> None:
    output = "\n".join(f"line {number}" for number in range(100))
    session = Session(
        id="x", exchanges=[Exchange(number=1, turns=[turn(0, call(1, "Bash", {"command": "seq"}, output))])]
    )
    assert "line 8" in text(session)
    assert "line 10" not in text(session)
    assert "(91 more lines)" in text(session)
    rows = SessionText(session, 80, whole=True).turn(0)
    assert rows is not None
    assert "line 99" in "\n".join(row_text(row, 80) for row in rows)
    assert SessionText(session, 80).turn(1) is None


def test_every_turn_can_be_shown_separately() -> None:
    session = with_agents()
    for number in range(len(session.turns)):
        rows = SessionText(session, 80, whole=True).turn(number)
        assert rows is not None
        assert row_text(next(rows), 80).lstrip().startswith(f"#{number} ")


def test_a_single_turn_lists_its_witnesses(run: Run) -> None:
    assert run("show", RECORDED, "--turn", 0).stdout.splitlines()[-1] == "      seen by transcript"


def test_a_missing_turn_exits_with_1(run: Run) -> None:
    done = run("show", RECORDED, "--turn", 6)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no turn 6: the session has 6 turns, numbered from 0" in done.stderr


# ---- other views


def test_a_single_turn_is_printed_as_json(run: Run) -> None:
    assert json.loads(run("show", RECORDED, "--turn", 1, "--json").stdout)["thread"].startswith("agent:")


def test_tools_and_files_are_counted(run: Run) -> None:
    lines = run("show", RECORDED, "--tools").stdout.splitlines()
    assert lines[0].split() == ["tool", "kind", "calls", "errors", "time"]
    assert [line.split()[:4] for line in lines[1:]] == [
        ["Agent", "agent", "2", "0"],
        ["Bash", "shell", "1", "0"],
        ["Read", "read", "1", "0"],
    ]
    assert json.loads(run("show", RECORDED, "--tools", "--json").stdout)[0]["calls"] == 2
    assert run("show", RECORDED, "--files").stdout.splitlines()[1].split() == [
        "read",
        "/home/user/project/seed.txt",
    ]
    assert json.loads(run("show", RECORDED, "--files", "--json").stdout) == {
        "read": ["/home/user/project/seed.txt"],
        "written": [],
        "edited": [],
    }


def test_show_reports_that_no_tools_or_files_were_used(run: Run) -> None:
    hello = next((DATA / "claude-cli/2.1.325/hello_json/home").rglob("*.jsonl"))
    assert run("show", hello, "--tools").stderr == "No tools were called.\n"
    assert run("show", hello, "--files").stderr == "No files were read, written or edited.\n"


def test_raw_prints_the_lines_of_the_file(run: Run) -> None:
    done = run("show", RECORDED, "--raw")
    assert done.stdout == RECORDED.read_text()
    assert done.stderr == f"{RECORDED}:\n"


def test_raw_redacts_header_credentials_of_older_logs(run: Run, tmp_path: Path) -> None:
    lines = [
        '{"type":"session_start","v":1,"ts":"2026-01-01T00:00:00.000Z","provider":"openai","upstream":"h","session":"x"}',
        '{"type":"request","v":1,"ts":"2026-01-01T00:00:00.000Z","seq":1,"method":"POST","path":"/v1?key=pA55phrase",'
        '"headers":{"X-Auth-Token":"tiny1"},"body":"{\\"k\\":\\"pA55phrase\\"}","fingerprint":null}',
    ]
    file = tmp_path / "old.jsonl"
    file.write_text("\n".join(lines) + "\n")
    done = run("show", file, "--raw")
    assert done.returncode == 0, done.stderr
    assert "[redacted]" in done.stdout and not re.search("tiny1|pA55phrase", done.stdout)


def test_raw_redacts_keys(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(f'{{"type":"user","text":"{KEY}"}}\n'.encode() + b"\xff torn")
    done = run("show", file, "--raw")
    assert done.stdout.splitlines() == ['{"type":"user","text":"sk-ant-...7Qz7"}', "\ufffd torn"]


@pytest.mark.parametrize(
    "options", [["--turn", "1", "--raw"], ["--tools", "--files"], ["--wire"], ["--turn", "-1"]], ids=" ".join
)
def test_conflicting_options_exit_with_2(run: Run, options: list[str]) -> None:
    assert run("show", RECORDED, *options).returncode == 2


# ---- export


@pytest.mark.parametrize(("form", "start"), [("html", "<!doctype html>\n"), ("md", "# "), ("json", "{\n")])
def test_an_exported_file_is_only_readable_by_its_owner(run: Run, tmp_path: Path, form: str, start: str) -> None:
    printed = run("export", RECORDED, "--to", form)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.startswith(start)
    assert printed.stdout.endswith("\n") and not printed.stdout.endswith("\n\n")
    done = run("export", RECORDED, "--to", form, "-o", "out")
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "out").read_text() == printed.stdout
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600
    assert run("export", RECORDED, "--to", form, "-o", "out").returncode == 1


def test_exported_json_equals_the_json_of_show(run: Run) -> None:
    assert run("export", RECORDED, "--to", "json").stdout == run("show", RECORDED, "--json").stdout


# ---- a terminal

OURS = re.compile(r"\x1b\[(?:0|1|2|3[1-7])(?:;\d+)?m")  # colours, and nothing else


def on_terminal(arguments: list[str], home: Path) -> str:
    ours, theirs = pty.openpty()
    clean = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80", "TERM": "xterm", "PAGER": "cat"}
    child = subprocess.Popen([sys.executable, "-m", "agent_logger", *arguments], stdout=theirs, env=clean, cwd=home)
    os.close(theirs)
    shown = b"".join(iter(lambda: _read(ours), b""))
    assert child.wait() == 0
    os.close(ours)
    return shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


def transcript(texts: list[str]) -> Iterator[str]:
    for number, hostile_text in enumerate(texts):
        content = [
            {"type": "thinking", "thinking": hostile_text},
            {"type": "text", "text": hostile_text},
            {
                "type": "tool_use",
                "id": f"toolu_{number:024}",
                "name": hostile_text,
                "input": {hostile_text: hostile_text},
            },
            {
                "type": "tool_use",
                "id": f"toolu_b{number:023}",
                "name": "Bash",
                "input": {"command": hostile_text},
            },
        ]
        message = {"id": f"msg_{number:024}", "role": "assistant", "model": hostile_text, "content": content}
        result = {"type": "tool_result", "tool_use_id": f"toolu_b{number:023}", "content": hostile_text}
        yield json.dumps({"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": hostile_text}})
        yield json.dumps({"type": "assistant", "uuid": f"a{number}", "message": message, "gitBranch": hostile_text})
        yield json.dumps({"type": "user", "uuid": f"r{number}", "message": {"role": "user", "content": [result]}})


@pytest.mark.parametrize(
    "arguments",
    [
        ["show"],
        ["show", "--thinking"],
        ["show", "--turn", "1"],
        ["show", "--tools"],
        ["show", "--raw"],
        ["show", "--json"],
    ]
    + [["export", "--to", form] for form in ("md", "html", "json")],
    ids=" ".join,
)
def test_only_colours_of_agent_logger_reach_a_terminal(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "projects" / "-p" / "33333333-1111-4111-8111-111111111111.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(transcript(HOSTILE)) + "\n")
    shown = on_terminal([arguments[0], str(file), *arguments[1:]], tmp_path)
    left = OURS.sub("", shown).replace("\r\n", "\n")
    assert printable(left, lines=True) == left
    assert len(left) > 100


def test_colours_are_used_only_on_terminals(run: Run, tmp_path: Path) -> None:
    assert "\x1b[" not in run("show", RECORDED).stdout
    assert "\x1b[" in on_terminal(["show", str(RECORDED)], tmp_path)


def test_control_characters_in_a_row_are_escaped() -> None:
    row = TextRow((("\x1b[2J", "strong"), ("\u202e", "")), number="\x07", note="\r")
    assert row_text(row, 40).split() == ["\\x07", "\\x1b[2J\\u202e", "\\r"]


def test_colour_codes_in_tool_output_are_removed() -> None:
    session = of_one_turn(call(1, "Bash", {"command": "ls"}, "\x1b[31mred\x1b[0m\x1b]0;t\x07 and\r\nmore"))
    assert "        red and\n        more" in text(session)


texts = st.lists(st.sampled_from(SHORT) | st.characters(), max_size=30).map("".join)


@settings(max_examples=15, deadline=None)
@given(texts, st.integers(20, 120))
def test_arbitrary_text_is_escaped_and_fits_the_terminal(hostile_text: str, columns: int) -> None:
    for line in session_lines(hostile(hostile_text), columns):
        assert printable(line) == line
        assert columns < 40 or width(line) <= columns


@given(st.text(st.characters() | st.sampled_from("日本 \n\t")), st.integers(8, 60))
def test_wrapped_and_truncated_text_fits_the_columns(text_: str, columns: int) -> None:
    assert all(width(line) <= columns for line in fold(text_, columns))
    assert width(fit(text_, columns)) <= columns
    assert _letters("".join(fold(text_, columns))) == _letters(printable(text_, lines=True))


def _letters(shown: str) -> str:
    return re.sub(r"[ \n\t]", "", shown)


# ---- speed


def test_the_first_lines_of_a_session_of_10_000_messages_are_shown_quickly() -> None:
    turns = [
        turn(i, [Block(kind="text", text="word " * 50), *call(i, "Bash", {"command": "ls"}, "a\n" * 50)])
        for i in range(5_000)  # each with an answer to its tool
    ]
    session = Session(id="x", exchanges=[Exchange(number=i + 1, turns=turns[i * 10 : i * 10 + 10]) for i in range(500)])
    started = time.process_time()
    lines = session_lines(session, 80)
    for _ in range(100):
        next(lines)
    assert time.process_time() - started < 0.3
