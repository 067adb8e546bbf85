"""How tool calls are shown: one table, from a tool's name to what a reader needs.

Inputs differ between versions and agents, so everything is read by shape: whatever is missing or odd, the call is
shown, at least as JSON.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import msgspec

from agent_logger.model.plurals import pluralize
from agent_logger.model.session import ToolCall
from agent_logger.views.diffs import BEGIN, diff_of, patch_diffs
from agent_logger.views.hide import hidden_call
from agent_logger.views.pictures import pictures_in
from agent_logger.views.pieces import (
    Checklist,
    ChecklistItem,
    Code,
    Diff,
    Json,
    Link,
    OutputPiece,
    Piece,
    Progress,
    Prose,
    ToolView,
)
from agent_logger.views.tools.fields import Fields
from agent_logger.views.tools.outputs import file_pieces, match_pieces, path_pieces, terminal

Rendering = tuple[str, tuple[Piece, ...]]  # the summary, and the pieces
Renderer = Callable[["_Call"], Rendering | None]  # none: the input is not what this tool takes


def tool_view(call: ToolCall) -> ToolView:
    """The view of a call of any tool, from any agent, without keys."""
    call = hidden_call(call)
    rendered_call = _Call(call, Fields(call.input))
    render = RENDERERS.get((call.name or "").lower())
    summary, pieces = (render and render(rendered_call)) or _default_rendering(rendered_call)
    return ToolView(
        tool=call.name or "(unknown tool)",
        summary=" ".join(summary.split()),
        pieces=(*pieces, *pictures_in(call.raw)),
        is_error=call.is_error,
        is_answered=call.result is not None,
    )


@dataclass(frozen=True, slots=True)
class _Call:
    call: ToolCall
    fields: Fields

    @property
    def result(self) -> str:
        return self.call.result or ""

    def answer(self) -> tuple[Piece, ...]:
        """The result, in an unknown form."""
        return (OutputPiece(self.result, self.call.is_error),) if self.result else ()

    def failure(self) -> tuple[Piece, ...]:
        """The result, unless it only confirms the call."""
        return self.answer() if self.call.is_error else ()


# ---------------------------------------------------------------- files


def _read(call: _Call) -> Rendering | None:
    paths = ", ".join(call.fields.texts("paths", "file_paths")) or call.fields.path
    if not paths:
        return None
    first, count = call.fields.number("offset"), call.fields.number("limit")
    lines = f" from line {first}" if first else ""
    lines += f", {pluralize(count, 'line')}" if count else ""
    if call.call.is_error:
        return paths + lines, call.answer()
    return paths + lines, file_pieces(call.result, language_of(paths))


def _write(call: _Call) -> Rendering | None:
    path, content = call.fields.path, call.fields.text("content", "file_text")
    if not path:
        return None
    return f"{path} ({_lines(content)})", (Code(content, language_of(path)), *call.failure())


def _edit(call: _Call) -> Rendering | None:
    """The view of one replacement or several, by Claude Code, Gemini CLI, opencode, and Anthropic's own editor."""
    edits = [
        (edit.text("old_string", "oldString", "old_str"), edit.text("new_string", "newString", "new_str"))
        for edit in call.fields.objects("edits") or [call.fields]
    ]
    if not any(old or new for old, new in edits):
        return None
    return _edit_rendering(call, [diff_of(call.fields.path, edits)])


def _edit_rendering(call: _Call, diffs: list[Diff]) -> Rendering:
    paths = ", ".join(diff.path or "" for diff in diffs)
    added, removed = sum(diff.added for diff in diffs), sum(diff.removed for diff in diffs)
    return f"{paths} (+{added} -{removed})", (*diffs, *call.failure())


def _notebook(call: _Call) -> Rendering | None:
    if not call.fields.path:
        return None
    mode, cell = call.fields.text("edit_mode") or "replace", call.fields.text("cell_id", "cell_number")
    code = call.fields.text("new_source")
    language = "md" if call.fields.text("cell_type") == "markdown" else "py"
    pieces = (Code(code, language),) if code else ()
    return f"{call.fields.path} {mode} cell {cell}", (*pieces, *call.failure())


def _patch(call: _Call) -> Rendering | None:
    text = call.call.input if isinstance(call.call.input, str) else call.fields.text("input", "patch", "patchText")
    diffs = patch_diffs(text)
    return _edit_rendering(call, diffs) if diffs else None


def _editor(call: _Call) -> Rendering | None:
    """The view of a call of Anthropic's own editor, which views, creates and edits, as its input says."""
    match call.fields.text("command"):
        case "view":
            return _read(call)
        case "create":
            return _write(call)
        case "str_replace":
            return _edit(call)
        case "insert":
            return _edit_rendering(
                call, [diff_of(call.fields.path, [("", call.fields.text("insert_text", "new_str"))])]
            )
        case _:
            return None


def language_of(path: str) -> str | None:
    """The language of a file, from the suffix of its name."""
    return PurePosixPath(path).suffix.lstrip(".").lower() or None


def _lines(text: str) -> str:
    count = text.rstrip("\n").count("\n") + 1 if text else 0
    return pluralize(count, "line")


# ---------------------------------------------------------------- commands


def _shell(call: _Call) -> Rendering | None:
    command = call.fields.text("command", "cmd") or _words(call.fields.texts("command", "cmd"))
    if not command:
        return None
    if diffs := patch_diffs(command) if BEGIN in command else []:
        return _edit_rendering(call, diffs)
    summary = call.fields.text("description") or command
    return summary, (terminal(command, call.call.result, is_error=call.call.is_error),)


def _words(argv: list[str]) -> str:
    """The command of a shell; Codex puts it into the last of three arguments."""
    return argv[2] if len(argv) == 3 and argv[1] in ("-lc", "-c") else " ".join(argv)


def _background(call: _Call) -> Rendering:
    shell = call.fields.text("bash_id", "shell_id", "task_id") or str(call.fields.number("session_id", "pid") or "")
    typed = call.fields.text("chars")
    return f"{shell} {typed}".strip(), (terminal(typed, call.call.result, is_error=call.call.is_error),)


# ---------------------------------------------------------------- looking for things


def _grep(call: _Call) -> Rendering | None:
    if not call.fields.text("pattern", "query"):
        return None
    where = call.fields.path, call.fields.text("glob", "include", "type")
    summary = " in ".join(filter(None, (call.fields.text("pattern", "query"), *where)))
    return summary, call.answer() if call.call.is_error else match_pieces(call.result)


def _glob(call: _Call) -> Rendering | None:
    if not call.fields.text("pattern"):
        return None
    summary = " in ".join(filter(None, (call.fields.text("pattern"), call.fields.path)))
    return summary, call.answer() if call.call.is_error else path_pieces(call.result)


def _list(call: _Call) -> Rendering | None:
    return (call.fields.path, call.answer()) if call.fields.path else None


def _fetch(call: _Call) -> Rendering | None:
    url, prompt = call.fields.text("url"), call.fields.text("prompt")
    if not url and not prompt:
        return None
    links = (Link(url),) if url else ()
    return url or prompt, (*links, *((Prose(prompt),) if prompt else ()), *_prose(call))


def _web_search(call: _Call) -> Rendering | None:
    query = call.fields.text("query", "q")
    return (query, _prose(call)) if query else None


def _prose(call: _Call) -> tuple[Piece, ...]:
    """The text of a model or a web page."""
    return (Prose(call.result),) if call.result and not call.call.is_error else call.answer()


# ---------------------------------------------------------------- agents, plans, questions


def _agent(call: _Call) -> Rendering | None:
    kind = call.fields.text("subagent_type", "agent_type", "agent_name")
    task = call.fields.text("prompt", "message", "objective", "task")
    summary = ": ".join(filter(None, (kind, call.fields.text("description") or task)))
    if not summary:
        return None
    return summary, (*((Prose(task),) if task else ()), *_prose(call))


_PROGRESS: Mapping[str, Progress] = {"completed": "done", "done": "done", "in_progress": "doing"}


def _plan(call: _Call) -> Rendering | None:
    items = tuple(
        ChecklistItem(entry.text("content", "step", "description"), _PROGRESS.get(entry.text("status"), "open"))
        for entry in call.fields.objects("todos", "plan")
    )
    if not items:
        return None
    done = sum(item.progress == "done" for item in items)
    now = next((item.text for item in items if item.progress == "doing"), call.fields.text("explanation"))
    return ": ".join(filter(None, (f"{done} of {len(items)} done", now))), (Checklist(items), *call.failure())


def _exit_plan(call: _Call) -> Rendering | None:
    plan = call.fields.text("plan")
    return ("a plan", (Prose(plan), *call.answer())) if plan else None


def _question(call: _Call) -> Rendering | None:
    questions = call.fields.objects("questions") or [call.fields]
    if not questions[0].text("question"):
        return None
    lines = [line for question in questions for line in _choices(question)]
    return questions[0].text("question"), (Prose("\n".join(lines)), *call.answer())


def _choices(question: Fields) -> Iterator[str]:
    yield question.text("question")
    yield ""
    for option in question.objects("options"):
        yield f"- {': '.join(filter(None, (option.text('label'), option.text('description'))))}"


# ---------------------------------------------------------------- all others


def _default_rendering(call: _Call) -> Rendering:
    """The input as JSON, and the result as JSON if it is JSON."""
    fields = () if call.call.input in (None, {}, "") else (Json(call.call.input),)
    return _first_text(call.call.input), (*fields, *_json_or_text(call))


def _json_or_text(call: _Call) -> tuple[Piece, ...]:
    if call.call.is_error or call.result[:1] not in ("{", "["):
        return call.answer()
    try:
        return (Json(msgspec.json.decode(call.result)),)
    except (ValueError, RecursionError):
        return call.answer()


def _first_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return next((text for text in value.values() if isinstance(text, str)), "")
    return value if isinstance(value, str) else ""


# Names are lower case. Claude Code's first, then Codex's, Gemini CLI's, opencode's, editors'.
RENDERERS: Mapping[str, Renderer] = {
    **dict.fromkeys(("read", "read_file", "read_many_files", "view", "view_file", "view_image"), _read),
    **dict.fromkeys(("write", "write_file", "write_to_file", "create", "create_file"), _write),
    **dict.fromkeys(("edit", "multiedit", "replace", "edit_file", "str_replace"), _edit),
    **dict.fromkeys(("apply_patch", "applypatch", "patch"), _patch),
    **dict.fromkeys(("str_replace_based_edit_tool", "str_replace_editor"), _editor),
    "notebookedit": _notebook,
    **dict.fromkeys(("bash", "shell", "exec_command", "local_shell", "run_shell_command", "execute"), _shell),
    **dict.fromkeys(("bashoutput", "killshell", "killbash", "taskoutput", "taskstop", "write_stdin"), _background),
    **dict.fromkeys(("grep", "grep_search", "search_file_content"), _grep),
    "glob": _glob,
    **dict.fromkeys(("ls", "list", "list_dir", "list_directory"), _list),
    **dict.fromkeys(("webfetch", "web_fetch", "fetch", "fetchurl"), _fetch),
    **dict.fromkeys(("websearch", "web_search", "google_web_search", "codesearch"), _web_search),
    **dict.fromkeys(("agent", "task", "invoke_agent", "spawn_agent", "subagent"), _agent),
    **dict.fromkeys(("todowrite", "todo_write", "update_plan", "write_todos"), _plan),
    "exitplanmode": _exit_plan,
    **dict.fromkeys(("askuserquestion", "ask_user"), _question),
}
