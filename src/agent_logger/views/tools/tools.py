"""How tool calls are shown: one table, from a tool's name to what a reader wants of it.

Inputs drift between versions and agents, so everything is read by shape: whatever is missing or odd, a call is shown,
at the least as JSON.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import msgspec

from agent_logger.model.session import ToolCall
from agent_logger.views.diffs import BEGIN, diff_of, patch_diffs
from agent_logger.views.hide import hidden_call
from agent_logger.views.pictures import pictures_in
from agent_logger.views.pieces import (
    Checklist,
    Code,
    Diff,
    Item,
    Json,
    Link,
    Output,
    Piece,
    Progress,
    Prose,
    Shown,
)
from agent_logger.views.tools.fields import Fields
from agent_logger.views.tools.outputs import file_pieces, match_pieces, path_pieces, terminal

Said = tuple[str, tuple[Piece, ...]]  # the summary, and the pieces
Renderer = Callable[["_Call"], Said | None]  # none: the input is not what this tool is given


def shown(call: ToolCall) -> Shown:
    """A call of any tool, from any agent, without keys."""
    call = hidden_call(call)
    it = _Call(call, Fields(call.input))
    render = RENDERERS.get((call.name or "").lower())
    summary, pieces = (render and render(it)) or _any(it)
    return Shown(
        tool=call.name or "(unknown tool)",
        summary=" ".join(summary.split()),
        pieces=(*pieces, *pictures_in(call.raw)),
        is_error=call.is_error,
        is_answered=call.result is not None,
    )


@dataclass(frozen=True, slots=True)
class _Call:
    call: ToolCall
    given: Fields

    @property
    def result(self) -> str:
        return self.call.result or ""

    def answer(self) -> tuple[Piece, ...]:
        """What came back, where its form is not known."""
        return (Output(self.result, self.call.is_error),) if self.result else ()

    def failure(self) -> tuple[Piece, ...]:
        """What came back, unless it only confirms what was asked."""
        return self.answer() if self.call.is_error else ()


# ---------------------------------------------------------------- files


def _read(it: _Call) -> Said | None:
    paths = ", ".join(it.given.texts("paths", "file_paths")) or it.given.path
    if not paths:
        return None
    first, count = it.given.number("offset"), it.given.number("limit")
    lines = f" from line {first}" if first else ""
    lines += f", {count} lines" if count else ""
    if it.call.is_error:
        return paths + lines, it.answer()
    return paths + lines, file_pieces(it.result, language_of(paths))


def _write(it: _Call) -> Said | None:
    path, content = it.given.path, it.given.text("content", "file_text")
    if not path:
        return None
    return f"{path} ({_lines(content)})", (Code(content, language_of(path)), *it.failure())


def _edit(it: _Call) -> Said | None:
    """One replacement or several, by Claude Code, Gemini CLI, opencode, and Anthropic's own editor."""
    edits = [
        (edit.text("old_string", "oldString", "old_str"), edit.text("new_string", "newString", "new_str"))
        for edit in it.given.objects("edits") or [it.given]
    ]
    if not any(old or new for old, new in edits):
        return None
    return _edited(it, [diff_of(it.given.path, edits)])


def _edited(it: _Call, diffs: list[Diff]) -> Said:
    paths = ", ".join(diff.path or "" for diff in diffs)
    added, removed = sum(diff.added for diff in diffs), sum(diff.removed for diff in diffs)
    return f"{paths} (+{added} -{removed})", (*diffs, *it.failure())


def _notebook(it: _Call) -> Said | None:
    if not it.given.path:
        return None
    mode, cell = it.given.text("edit_mode") or "replace", it.given.text("cell_id", "cell_number")
    code = it.given.text("new_source")
    language = "md" if it.given.text("cell_type") == "markdown" else "py"
    pieces = (Code(code, language),) if code else ()
    return f"{it.given.path} {mode} cell {cell}", (*pieces, *it.failure())


def _patch(it: _Call) -> Said | None:
    text = it.call.input if isinstance(it.call.input, str) else it.given.text("input", "patch", "patchText")
    diffs = patch_diffs(text)
    return _edited(it, diffs) if diffs else None


def _editor(it: _Call) -> Said | None:
    """Anthropic's own, which views, creates and edits, and says which in its input."""
    match it.given.text("command"):
        case "view":
            return _read(it)
        case "create":
            return _write(it)
        case "str_replace":
            return _edit(it)
        case "insert":
            return _edited(it, [diff_of(it.given.path, [("", it.given.text("insert_text", "new_str"))])])
        case _:
            return None


def language_of(path: str) -> str | None:
    """By the suffix of a file's name."""
    return PurePosixPath(path).suffix.lstrip(".").lower() or None


def _lines(text: str) -> str:
    count = text.rstrip("\n").count("\n") + 1 if text else 0
    return "1 line" if count == 1 else f"{count:,} lines"


# ---------------------------------------------------------------- commands


def _shell(it: _Call) -> Said | None:
    command = it.given.text("command", "cmd") or _words(it.given.texts("command", "cmd"))
    if not command:
        return None
    if diffs := patch_diffs(command) if BEGIN in command else []:
        return _edited(it, diffs)
    summary = it.given.text("description") or command
    return summary, (terminal(command, it.call.result, is_error=it.call.is_error),)


def _words(argv: list[str]) -> str:
    """What Codex gives to a shell is the last word."""
    return argv[2] if len(argv) == 3 and argv[1] in ("-lc", "-c") else " ".join(argv)


def _background(it: _Call) -> Said:
    shell = it.given.text("bash_id", "shell_id", "task_id") or str(it.given.number("session_id", "pid") or "")
    typed = it.given.text("chars")
    return f"{shell} {typed}".strip(), (terminal(typed, it.call.result, is_error=it.call.is_error),)


# ---------------------------------------------------------------- looking for things


def _grep(it: _Call) -> Said | None:
    if not it.given.text("pattern", "query"):
        return None
    where = it.given.path, it.given.text("glob", "include", "type")
    summary = " in ".join(filter(None, (it.given.text("pattern", "query"), *where)))
    return summary, it.answer() if it.call.is_error else match_pieces(it.result)


def _glob(it: _Call) -> Said | None:
    if not it.given.text("pattern"):
        return None
    summary = " in ".join(filter(None, (it.given.text("pattern"), it.given.path)))
    return summary, it.answer() if it.call.is_error else path_pieces(it.result)


def _list(it: _Call) -> Said | None:
    return (it.given.path, it.answer()) if it.given.path else None


def _fetch(it: _Call) -> Said | None:
    url, asked = it.given.text("url"), it.given.text("prompt")
    if not url and not asked:
        return None
    links = (Link(url),) if url else ()
    return url or asked, (*links, *((Prose(asked),) if asked else ()), *_prose(it))


def _web_search(it: _Call) -> Said | None:
    query = it.given.text("query", "q")
    return (query, _prose(it)) if query else None


def _prose(it: _Call) -> tuple[Piece, ...]:
    """What a model or a page says."""
    return (Prose(it.result),) if it.result and not it.call.is_error else it.answer()


# ---------------------------------------------------------------- agents, plans, questions


def _agent(it: _Call) -> Said | None:
    kind = it.given.text("subagent_type", "agent_type", "agent_name")
    task = it.given.text("prompt", "message", "objective", "task")
    summary = ": ".join(filter(None, (kind, it.given.text("description") or task)))
    if not summary:
        return None
    return summary, (*((Prose(task),) if task else ()), *_prose(it))


_PROGRESS: Mapping[str, Progress] = {"completed": "done", "done": "done", "in_progress": "doing"}


def _plan(it: _Call) -> Said | None:
    items = tuple(
        Item(entry.text("content", "step", "description"), _PROGRESS.get(entry.text("status"), "open"))
        for entry in it.given.objects("todos", "plan")
    )
    if not items:
        return None
    done = sum(item.progress == "done" for item in items)
    now = next((item.text for item in items if item.progress == "doing"), it.given.text("explanation"))
    return ": ".join(filter(None, (f"{done} of {len(items)} done", now))), (Checklist(items), *it.failure())


def _exit_plan(it: _Call) -> Said | None:
    plan = it.given.text("plan")
    return ("a plan", (Prose(plan), *it.answer())) if plan else None


def _question(it: _Call) -> Said | None:
    asked = it.given.objects("questions") or [it.given]
    if not asked[0].text("question"):
        return None
    lines = [line for question in asked for line in _choices(question)]
    return asked[0].text("question"), (Prose("\n".join(lines)), *it.answer())


def _choices(question: Fields) -> Iterator[str]:
    yield question.text("question")
    yield ""
    for option in question.objects("options"):
        yield f"- {': '.join(filter(None, (option.text('label'), option.text('description'))))}"


# ---------------------------------------------------------------- all others


def _any(it: _Call) -> Said:
    """As JSON: the input, and the result if it is."""
    given = () if it.call.input in (None, {}, "") else (Json(it.call.input),)
    return _first_text(it.call.input), (*given, *_json_or_text(it))


def _json_or_text(it: _Call) -> tuple[Piece, ...]:
    if it.call.is_error or it.result[:1] not in ("{", "["):
        return it.answer()
    try:
        return (Json(msgspec.json.decode(it.result)),)
    except (ValueError, RecursionError):
        return it.answer()


def _first_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return next((text for text in value.values() if isinstance(text, str)), "")
    return value if isinstance(value, str) else ""


# Names are lower case. Claude Code's first, then Codex's, Gemini CLI's, opencode's, editors'.
RENDERERS: Mapping[str, Renderer] = {
    **dict.fromkeys(("read", "read_file", "read_many_files", "view", "view_file", "view_image"), _read),
    **dict.fromkeys(("write", "write_file", "write_to_file", "create", "create_file"), _write),
    **dict.fromkeys(("edit", "multiedit", "replace", "edit_file", "str_replace"), _edit),
    **dict.fromkeys(("apply_patch", "patch"), _patch),
    **dict.fromkeys(("str_replace_based_edit_tool", "str_replace_editor"), _editor),
    "notebookedit": _notebook,
    **dict.fromkeys(("bash", "shell", "exec_command", "local_shell", "run_shell_command"), _shell),
    **dict.fromkeys(
        ("bashoutput", "killshell", "killbash", "taskoutput", "taskstop", "write_stdin"), _background
    ),
    **dict.fromkeys(("grep", "grep_search", "search_file_content"), _grep),
    "glob": _glob,
    **dict.fromkeys(("ls", "list", "list_dir", "list_directory"), _list),
    **dict.fromkeys(("webfetch", "web_fetch", "fetch"), _fetch),
    **dict.fromkeys(("websearch", "web_search", "google_web_search", "codesearch"), _web_search),
    **dict.fromkeys(("agent", "task", "invoke_agent", "spawn_agent"), _agent),
    **dict.fromkeys(("todowrite", "todo_write", "update_plan", "write_todos"), _plan),
    "exitplanmode": _exit_plan,
    **dict.fromkeys(("askuserquestion", "ask_user"), _question),
}
