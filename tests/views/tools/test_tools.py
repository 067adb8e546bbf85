"""Tool calls, as neutral pieces: one row per tool and way to call it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.model.session import TOOL_KINDS, ToolCall, tool_kind
from agent_logger.views.pieces import (
    Checklist,
    ChecklistItem,
    Code,
    Diff,
    DiffLine,
    FileList,
    Json,
    Link,
    Matches,
    MatchLine,
    OutputPiece,
    Picture,
    Piece,
    Prose,
    Terminal,
)
from agent_logger.views.tools.tools import RENDERERS, tool_view

PATCH = """*** Begin Patch
*** Add File: new.txt
+hello
*** Update File: src/a.py
*** Move to: src/b.py
@@ def f():
 keep
-old
+new
*** Delete File: gone.txt
*** End Patch
"""
PATCHED = (
    Diff("new.txt", (DiffLine("+", "hello"),), "added"),
    Diff(
        "src/a.py",
        (DiffLine("@", "def f():"), DiffLine(" ", "keep"), DiffLine("-", "old"), DiffLine("+", "new")),
        "moved to src/b.py",
    ),
    Diff("gone.txt", (), "deleted"),
)
REPLACED = Diff("a.py", (DiffLine(" ", "x"), DiffLine("-", "1"), DiffLine("+", "2")))


def called(name: str | None, given: Any, result: str | None, *, is_error: bool = False, raw: Any = None) -> ToolCall:
    return ToolCall(
        id="toolu_1",
        name=name,
        kind=tool_kind(name or ""),
        input=given,
        result=result,
        is_error=is_error,
        started=None,
        ended=None,
        thread="main",
        raw=raw,
    )


CALLS: list[Any] = [
    # Claude Code
    ("Read", {"file_path": "/a.py"}, "     1→x\n     2→y", "/a.py", (Code("x\ny", "py", 1),)),
    (
        "Read",
        {"file_path": "/a.py", "offset": 7, "limit": 2},
        "7\tx\n8\t\n<reminder>",
        "/a.py from line 7, 2 lines",
        (Code("x\n", "py", 7), OutputPiece("<reminder>")),
    ),
    ("Read", {"file_path": "/logo"}, "", "/logo", ()),
    (
        "Write",
        {"file_path": "/a.md", "content": "# A\n"},
        "created",
        "/a.md (1 line)",
        (Code("# A\n", "md"),),
    ),
    (
        "Edit",
        {"file_path": "a.py", "old_string": "x\n1", "new_string": "x\n2"},
        "updated",
        "a.py (+1 -1)",
        (REPLACED,),
    ),
    (
        "MultiEdit",
        {
            "file_path": "a.py",
            "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "", "new_string": "3"}],
        },
        "updated",
        "a.py (+2 -1)",
        (Diff("a.py", (DiffLine("-", "1"), DiffLine("+", "2"), DiffLine("@", ""), DiffLine("+", "3"))),),
    ),
    (
        "NotebookEdit",
        {"notebook_path": "n.ipynb", "cell_id": "c1", "new_source": "1+1", "edit_mode": "insert"},
        "inserted",
        "n.ipynb insert cell c1",
        (Code("1+1", "py"),),
    ),
    (
        "Bash",
        {"command": "ls -la", "description": "List files"},
        "a\nb",
        "List files",
        (Terminal("ls -la", "a\nb"),),
    ),
    ("Bash", {"command": "sleep 9"}, None, "sleep 9", (Terminal("sleep 9"),)),
    ("BashOutput", {"bash_id": "b1"}, "more", "b1", (Terminal("", "more"),)),
    (
        "Grep",
        {"pattern": "def", "path": "src", "output_mode": "content"},
        "a.py:1:def f():\nb.py:22:def g():",
        "def in src",
        (Matches((MatchLine("a.py", 1, "def f():"), MatchLine("b.py", 22, "def g():"))),),
    ),
    ("Grep", {"pattern": "def"}, "Found 2 files\na.py\nb.py", "def", (FileList(("a.py", "b.py")),)),
    ("Grep", {"pattern": "def"}, "No matches found", "def", (OutputPiece("No matches found"),)),
    (
        "Glob",
        {"pattern": "**/*.ts", "path": "/p"},
        "/p/a.ts\n/p/b.ts\n(Results are truncated)",
        "**/*.ts in /p",
        (FileList(("/p/a.ts", "/p/b.ts")), OutputPiece("(Results are truncated)")),
    ),
    ("LS", {"path": "/p"}, "- a\n- b", "/p", (OutputPiece("- a\n- b"),)),
    (
        "WebFetch",
        {"url": "https://example.com", "prompt": "what is it?"},
        "# A page",
        "https://example.com",
        (Link("https://example.com"), Prose("what is it?"), Prose("# A page")),
    ),
    ("WebSearch", {"query": "docs"}, "1. one", "docs", (Prose("1. one"),)),
    (
        "Task",
        {"description": "Look around", "prompt": "List all.", "subagent_type": "Explore"},
        "Two files.",
        "Explore: Look around",
        (Prose("List all."), Prose("Two files.")),
    ),
    (
        "TodoWrite",
        {
            "todos": [
                {"content": "a", "status": "completed"},
                {"content": "b", "status": "in_progress"},
                {"content": "c"},
            ]
        },
        "ok",
        "1 of 3 done: b",
        (Checklist((ChecklistItem("a", "done"), ChecklistItem("b", "doing"), ChecklistItem("c", "open"))),),
    ),
    ("ExitPlanMode", {"plan": "# Do it"}, "approved", "a plan", (Prose("# Do it"), OutputPiece("approved"))),
    (
        "AskUserQuestion",
        {"questions": [{"question": "Tea?", "options": [{"label": "Yes", "description": "hot"}, {"label": "No"}]}]},
        "Yes",
        "Tea?",
        (Prose("Tea?\n\n- Yes: hot\n- No"), OutputPiece("Yes")),
    ),
    # Codex
    (
        "exec_command",
        {"cmd": "ls | wc -l"},
        "Command: /bin/bash -lc 'ls'\nChunk ID: af\nWall time: 0.8 seconds\nProcess exited with code 3\n"
        "Original token count: 1\nOutput:\n1\n",
        "ls | wc -l",
        (Terminal("ls | wc -l", "1\n", 3),),
    ),
    (
        "shell",
        {"command": ["bash", "-lc", "echo hi"]},
        '{"output":"hi\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}',
        "echo hi",
        (Terminal("echo hi", "hi\n", 0),),
    ),
    ("shell", {"command": ["ls", "-l"]}, "x", "ls -l", (Terminal("ls -l", "x"),)),
    ("shell", {"command": ["apply_patch", PATCH]}, "Done", "new.txt, src/a.py, gone.txt (+2 -1)", PATCHED),
    ("apply_patch", PATCH, "Done", "new.txt, src/a.py, gone.txt (+2 -1)", PATCHED),
    ("apply_patch", {"input": PATCH}, "Done", "new.txt, src/a.py, gone.txt (+2 -1)", PATCHED),
    (
        "update_plan",
        {"plan": [{"step": "patch", "status": "completed"}]},
        "",
        "1 of 1 done",
        (Checklist((ChecklistItem("patch", "done"),)),),
    ),
    (
        "spawn_agent",
        {"message": "Count", "agent_type": "default"},
        "ok",
        "default: Count",
        (Prose("Count"), Prose("ok")),
    ),
    # Gemini CLI
    (
        "run_shell_command",
        {"command": "ls"},
        "Command: ls\nDirectory: (root)\nOutput: a\nb\nError: (none)\nExit Code: 2\nSignal: 0",
        "ls",
        (Terminal("ls", "a\nb", 2),),
    ),
    (
        "replace",
        {"file_path": "a.py", "old_string": "x\n1", "new_string": "x\n2"},
        "ok",
        "a.py (+1 -1)",
        (REPLACED,),
    ),
    ("read_file", {"absolute_path": "/a.rs"}, "fn main() {}", "/a.rs", (Code("fn main() {}", "rs"),)),
    ("read_many_files", {"paths": ["a.c", "b.c"]}, "--- a.c", "a.c, b.c", (Code("--- a.c", "c"),)),
    ("list_directory", {"dir_path": "/p"}, "empty", "/p", (OutputPiece("empty"),)),
    # opencode
    ("edit", {"filePath": "a.py", "oldString": "x\n1", "newString": "x\n2"}, "", "a.py (+1 -1)", (REPLACED,)),
    # Anthropic's own editor
    (
        "str_replace_based_edit_tool",
        {"command": "view", "path": "a.py"},
        "1\tx",
        "a.py",
        (Code("x", "py", 1),),
    ),
    (
        "str_replace_based_edit_tool",
        {"command": "str_replace", "path": "a.py", "old_str": "x\n1", "new_str": "x\n2"},
        "ok",
        "a.py (+1 -1)",
        (REPLACED,),
    ),
    (
        "str_replace_based_edit_tool",
        {"command": "insert", "path": "a.py", "insert_line": 1, "insert_text": "x"},
        "ok",
        "a.py (+1 -0)",
        (Diff("a.py", (DiffLine("+", "x"),)),),
    ),
    # what nobody knows
    (
        "mcp__db__query",
        {"sql": "select 1"},
        '[{"a":1}]',
        "select 1",
        (Json({"sql": "select 1"}), Json([{"a": 1}])),
    ),
    ("Strange", ["a"], "{not json", "", (Json(["a"]), OutputPiece("{not json"))),
    (
        "Bash",
        '{"command": "cut of',
        "x",
        '{"command": "cut of',
        (Json('{"command": "cut of'), OutputPiece("x")),
    ),
    ("Edit", {"file": 7}, "x", "", (Json({"file": 7}), OutputPiece("x"))),
    (None, None, "left over", "", (OutputPiece("left over"),)),
]


@pytest.mark.parametrize(
    ("name", "given", "result", "summary", "pieces"),
    CALLS,
    ids=[f"{it[0]} {str(it[1])[:30]}" for it in CALLS],
)
def test_each_tool_call_is_shown_in_the_form_of_its_tool(
    name: str | None, given: Any, result: str | None, summary: str, pieces: tuple[Piece, ...]
) -> None:
    seen = tool_view(called(name, given, result))
    assert (seen.summary, seen.pieces) == (summary, pieces)
    assert seen.is_answered == (result is not None)


@pytest.mark.parametrize(("name", "given"), [(it[0], it[1]) for it in CALLS if it[2] and it[0]])
def test_the_error_of_a_failed_call_is_always_shown(name: str, given: Any) -> None:
    seen = tool_view(called(name, given, "it broke: no space", is_error=True))
    assert seen.is_error
    told = [piece for piece in seen.pieces if isinstance(piece, OutputPiece | Terminal)]
    assert any("it broke" in str(piece) for piece in told)


def test_a_failed_command_of_claude_code_has_its_exit_code() -> None:
    failed = tool_view(called("Bash", {"command": "false"}, "Exit code 1\nno", is_error=True))
    assert failed.pieces == (Terminal("false", "no", 1),)
    prints_it = tool_view(called("Bash", {"command": "cat log"}, "Exit code 1\nno"))
    assert prints_it.pieces == (Terminal("cat log", "Exit code 1\nno"),)


PICTURES = [
    pytest.param(
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}],
        id="Anthropic",
    ),
    pytest.param([{"type": "image", "mimeType": "image/png", "data": "aGk="}], id="MCP"),
    pytest.param({"inlineData": {"mimeType": "image/png", "data": "aGk="}}, id="Gemini"),
    pytest.param([{"type": "input_image", "image_url": "data:image/png;base64,aGk="}], id="responses"),
    pytest.param([{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}], id="chat"),
]


@pytest.mark.parametrize("raw", PICTURES)
def test_images_in_a_tool_result_become_pieces(raw: Any) -> None:
    seen = tool_view(called("Read", {"file_path": "a.png"}, "", raw=raw))
    assert seen.pieces == (Picture("image/png", "aGk="),)


def test_a_remote_image_in_a_tool_result_is_not_a_piece() -> None:
    remote = [{"type": "image", "source": {"type": "url", "url": "https://evil.example/x.png"}}]
    assert tool_view(called("Read", {"file_path": "a.png"}, "", raw=remote)).pieces == ()


@pytest.mark.parametrize("kind", ["read", "write", "edit", "shell", "search", "fetch", "agent"])
def test_every_tool_kind_has_a_renderer(kind: str) -> None:
    """Of each kind most; the rest waits, lists or stops, and is well read as JSON."""
    names = TOOL_KINDS[kind]  # type: ignore[index]
    assert names & RENDERERS.keys(), kind
    assert {name for name in RENDERERS if tool_kind(name) == "other"} == {
        "taskoutput", "taskstop", "todowrite", "todo_write", "update_plan", "write_todos", "exitplanmode",
        "askuserquestion", "ask_user",
    }  # fmt: skip


def test_a_large_edit_is_rendered_quickly() -> None:
    lines = "same\n" * 20_000
    (small,) = tool_view(called("Edit", {"path": "a", "old_string": lines, "new_string": f"{lines}new\n"}, "ok")).pieces
    assert small == Diff("a", (*[DiffLine(" ", "same")] * 3, DiffLine("+", "new")))
    (large,) = tool_view(
        called("Edit", {"path": "a", "old_string": f"a\n{lines}b", "new_string": f"c\n{lines}\nd"}, "ok")
    ).pieces
    assert isinstance(large, Diff)
    assert (large.added, large.removed) == (20_003, 20_002)


KEY = "sk-ant-api03-" + "Qz7" * 20


@pytest.mark.parametrize(("name", "given"), [(it[0], it[1]) for it in CALLS if it[2]])
def test_no_key_is_in_a_rendered_tool_call(name: str | None, given: Any) -> None:
    def with_key(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: with_key(it) for key, it in value.items()}
        if isinstance(value, list):
            return [with_key(it) for it in value]
        return value + KEY if isinstance(value, str) and value not in ("bash", "-lc", "view", "insert") else value

    for is_error in (False, True):
        assert "Qz7Qz7" not in repr(tool_view(called(name, with_key(given), f"1\t{KEY}\n", is_error=is_error)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["command", "file_path", "edits", "todos", "content", "status", "pattern", "url", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(st.sampled_from([*RENDERERS, "Strange"]), json_values, st.none() | st.text(), st.booleans(), json_values)
def test_a_call_with_any_input_and_result_can_be_rendered(
    name: str, given: Any, result: str | None, is_error: bool, raw: Any
) -> None:
    seen = tool_view(called(name, given, result, is_error=is_error, raw=raw))
    assert "\n" not in seen.summary
    assert seen.is_error == is_error
