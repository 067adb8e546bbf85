"""What a session comes to."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_logger.catalog.ledger.metrics import Metrics, ToolUsage, metrics_of
from agent_logger.model.session import (
    TOOL_KINDS,
    Block,
    Cost,
    Exchange,
    Session,
    ToolKind,
    Turn,
    Usage,
    tool_kind,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def use(name: str, given: Any = None, call: str | None = None, second: float | None = None) -> Block:
    time = None if second is None else at(second)
    return Block(kind="tool_use", name=name, input=given, id=call or f"toolu_{name:_>20}", at=time)


def result(call: str, second: float | None = None, *, is_error: bool = False) -> Block:
    time = None if second is None else at(second)
    return Block(kind="tool_result", text="done", id=call, at=time, is_error=is_error)


def turn(*blocks: Block, number: int = 1, **said: Any) -> Turn:
    usage = Usage(input_tokens=100, output_tokens=10)
    given = {"message_id": f"msg_01{number:022d}", "model": "claude-haiku-4-5", "usage": usage, **said}
    return Turn(blocks=blocks, **given)


def measured(*turns: Turn, **said: Any) -> Metrics:
    return metrics_of(Session(id="s", exchanges=[Exchange(number=1, turns=turns)], **said))


def test_a_session_that_has_a_start_alone_has_no_duration() -> None:
    assert metrics_of(Session(id="s", started=at(1))).wall_seconds is None
    assert metrics_of(Session(id="s", ended=at(1))).wall_seconds is None


@pytest.mark.parametrize("given", [{"patterns": ["/a", "/b"]}, {"paths": "/a"}, {"file_paths": {"/a": 1}}])
def test_only_lists_under_known_names_are_paths(given: dict[str, Any]) -> None:
    assert measured(turn(use("Read", given))).files_read == []


# ---------------------------------------------------------------- tools


def test_tool_calls_are_counted_by_tool_name() -> None:
    blocks = [use("Bash", {}, f"toolu_{n:020}", n) for n in range(3)] + [use("Read", {}, "toolu_a0000000000000", 3)]
    results = [
        result("toolu_00000000000000000000", 1.5),
        result("toolu_00000000000000000001", 9, is_error=True),
    ]
    assert measured(turn(*blocks, *results)).tools == [
        ToolUsage(name="Bash", kind="shell", calls=3, errors=1, seconds=9.5),
        ToolUsage(name="Read", kind="read", calls=1, errors=0, seconds=None),
    ]


def test_a_repeated_tool_call_counts_once_with_a_result_from_another_turn() -> None:
    call = "toolu_01AbCdEfGhIjKlMnOpQr"
    first, again = turn(use("Bash", {}, call, 0)), turn(use("Bash", {}, call, 0), number=2)
    late = turn(result(call, 4, is_error=True), number=3)
    assert measured(first, again, late).tools == [ToolUsage(name="Bash", kind="shell", calls=1, errors=1, seconds=4.0)]


def test_short_tool_call_ids_are_unique_only_within_one_turn() -> None:
    turns = [turn(use("bash", {}, "call_0"), use("bash", {}, "call_1"), number=n) for n in range(3)]
    assert [it.calls for it in measured(*turns).tools] == [6]


def test_a_clock_set_back_gives_no_negative_duration() -> None:
    call = "toolu_01AbCdEfGhIjKlMnOpQr"
    assert measured(turn(use("Bash", {}, call, 9), result(call, 1))).tools[0].seconds == 0


def test_a_tool_result_without_its_call_counts_as_an_unknown_tool() -> None:
    assert measured(turn(result("toolu_01AbCdEfGhIjKlMnOpQr"))).tools == [
        ToolUsage(name=None, kind="other", calls=1, errors=0, seconds=None)
    ]


# The seed's eight, and what the agents of `tests/data` offer their models.
KINDS: list[tuple[ToolKind, str]] = [
    ("read", "Read view_image NotebookRead read_file read_many_files read"),
    ("write", "Write write_file write"),
    ("edit", "Edit MultiEdit NotebookEdit replace edit apply_patch"),
    (
        "shell",
        "Bash BashOutput KillShell exec_command write_stdin run_shell_command bash read_background_output shell",
    ),
    (
        "search",
        "Glob Grep WebSearch LS list_directory grep_search google_web_search glob grep web_search ToolSearch",
    ),
    ("fetch", "WebFetch web_fetch webfetch"),
    ("agent", "Task Agent spawn_agent wait_agent invoke_agent task"),
    ("mcp", "mcp__github__list ListMcpResourcesTool"),
    ("other", "TodoWrite AskUserQuestion Skill update_topic update_plan made_up"),
]


@pytest.mark.parametrize(("kind", "names"), KINDS)
def test_tools_of_all_agents_have_a_kind(kind: ToolKind, names: str) -> None:
    assert {name: tool_kind(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


def test_a_tool_has_one_kind() -> None:
    names = [name for names in TOOL_KINDS.values() for name in names]
    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)


# ---------------------------------------------------------------- files

PATCH = """*** Begin Patch
*** Add File: new.py
+*** Update File: quoted.py
*** Update File: old dir/old.py
*** Move to: moved.py
@@
-*** Delete File: also quoted.py
*** Delete File: gone.py
*** End Patch
"""

FILES = [
    pytest.param("Read", {"file_path": "/a"}, (["/a"], [], []), id="Claude Code reads"),
    pytest.param("Write", {"file_path": "/a"}, ([], ["/a"], []), id="writes"),
    pytest.param("MultiEdit", {"file_path": "/a"}, ([], [], ["/a"]), id="edits"),
    pytest.param("NotebookEdit", {"notebook_path": "/a"}, ([], [], ["/a"]), id="edits a notebook"),
    pytest.param("read", {"filePath": "/a"}, (["/a"], [], []), id="opencode"),
    pytest.param("read_file", {"absolute_path": "/a"}, (["/a"], [], []), id="older Gemini CLI"),
    pytest.param("read_many_files", {"paths": ["/a", 1, "/b"]}, (["/a", "/b"], [], []), id="many"),
    pytest.param("Grep", {"path": "/a"}, ([], [], []), id="a search reads no file"),
    pytest.param("Bash", {"command": "cat /a"}, ([], [], []), id="nor, as far as we know, a shell"),
    pytest.param("apply_patch", PATCH, ([], ["new.py"], ["old dir/old.py", "moved.py", "gone.py"]), id="a patch"),
    pytest.param("apply_patch", {"input": PATCH}, ([], ["new.py"], ["old dir/old.py", "moved.py", "gone.py"]), id="in"),
    pytest.param(
        "shell",
        {"command": ["apply_patch", PATCH]},
        ([], ["new.py"], ["old dir/old.py", "moved.py", "gone.py"]),
        id="a patch through a shell",
    ),
    pytest.param("str_replace_based_edit_tool", {"command": "view", "path": "/a"}, (["/a"], [], []), id="one tool"),
    pytest.param("str_replace_based_edit_tool", {"command": "create", "path": "/a"}, ([], ["/a"], []), id="for all"),
    pytest.param("str_replace_based_edit_tool", {"command": "insert", "path": "/a"}, ([], [], ["/a"]), id="three"),
    pytest.param("Read", {"file_path": 7, "path": None}, ([], [], []), id="odd"),
    pytest.param("Read", ["/a"], ([], [], []), id="odder"),
    pytest.param("Read", None, ([], [], []), id="nothing"),
]


@pytest.mark.parametrize(("tool", "given", "files"), FILES)
def test_files_are_read_from_the_tool_inputs(tool: str, given: Any, files: tuple[list[str], ...]) -> None:
    measure = measured(turn(use(tool, given)))
    assert (measure.files_read, measure.files_written, measure.files_edited) == files


def test_a_file_is_listed_once_and_not_for_a_failed_call() -> None:
    calls = [f"toolu_{n:020}" for n in range(3)]
    blocks = [use("Read", {"file_path": path}, call) for call, path in zip(calls, ["/b", "/a", "/b"], strict=True)]
    assert measured(turn(*blocks)).files_read == ["/b", "/a"]
    assert measured(turn(*blocks, result(calls[1], is_error=True))).files_read == ["/b"]


# ---------------------------------------------------------------- time


def test_active_time_counts_at_most_five_minutes_of_a_pause() -> None:
    turns = [turn(use("Bash", second=20), started=at(5), ended=at(10)), turn(started=at(3620), number=2)]
    measure = measured(*turns, started=at(0), ended=at(3650))
    assert (measure.wall_seconds, measure.active_seconds) == (3650, 15 + 300)


def test_active_time_excludes_gaps_between_exchanges_and_counts_overlaps_once() -> None:
    exchanges = [
        Exchange(number=1, started=at(0), ended=at(1)),
        Exchange(
            number=2,
            started=at(240),
            ended=at(250),
            turns=[turn(started=at(245), ended=at(270), thread="agent:a")],
        ),
        Exchange(number=3, started=at(260), ended=at(280)),
        Exchange(number=4, user_input="nobody knows when"),
    ]
    aside = [turn(started=at(300), ended=at(302), thread="side")]
    session = Session(id="s", started=at(0), ended=at(302), exchanges=exchanges, side_turns=aside)
    assert (metrics_of(session).wall_seconds, metrics_of(session).active_seconds) == (302, 1 + 40 + 2)


def test_wall_time_accepts_unordered_times_and_times_without_a_zone() -> None:
    turns = [turn(started=at(50)), turn(started=at(10).replace(tzinfo=None), number=2)]
    assert measured(*turns).wall_seconds == 40


def test_durations_are_none_without_times() -> None:
    measure = measured(turn())
    assert (measure.wall_seconds, measure.active_seconds) == (None, None)


# ---------------------------------------------------------------- tokens


def test_metrics_contain_tokens_cost_and_context() -> None:
    large = Usage(input_tokens=5, cache_read_tokens=900, output_tokens=10)
    copied = turn(number=1)
    measure = measured(
        turn(number=1),
        copied,
        turn(number=2, usage=large, model="claude-opus-4-5"),
        turn(number=3, thread="agent:a1", usage=Usage(input_tokens=7000)),
        turn(number=6, usage=Usage(), model="<synthetic>", thread="side"),
        turn(number=4, usage=None, complete=False, model="claude-cut"),
        turn(number=5),
    )
    assert (measure.exchanges, measure.turns, measure.output_tokens) == (1, 7, 30)
    assert measure.usage == Usage(input_tokens=7205, cache_read_tokens=900, output_tokens=30)
    assert (measure.context_tokens, measure.peak_context_tokens) == (100, 905)
    assert measure.models == ["claude-haiku-4-5", "claude-opus-4-5"]
    assert measure.cost.nano_usd == 2 * 150_000 + 7_000_000 + (25_000 + 450_000 + 250_000)


def test_an_empty_session_has_empty_metrics() -> None:
    measure = metrics_of(Session(id="s"))
    assert (measure.turns, measure.tools, measure.models, measure.wall_seconds) == (0, [], [], None)
    assert (measure.cost, measure.context_tokens) == (Cost(nano_usd=None), None)
