"""The block in Claude Code's settings that makes it call us: add it to their text, and remove it.

Everything except the value of `hooks` stays the same to the byte: the order of the keys, unknown settings, the
indentation.
"""

import json
import re
import shlex
from typing import Any

from agent_logger.errors import SourceError

# Those that versions since August 2025 know. An event that a version does not know makes it drop the whole file.
EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Notification",
    "PreCompact",
    "SubagentStop",
    "Stop",
    "SessionEnd",
)
TIMEOUT_SECONDS = 10  # after that the client continues without us
_OURS = re.compile(r"agent[-_]logger['\"]? hook$")

Hooks = dict[str, Any]


def block(command: list[str]) -> dict[str, Hooks]:
    """The block for settings that have no hooks yet."""
    return {"hooks": _added({}, shlex.join(command))}


def add_hooks(text: str, command: list[str]) -> str:
    """The settings with our hooks beside the existing ones. Raises `SourceError` if they cannot be read."""
    return _with_hooks(text, _added(_taken_out(_hooks(text)), shlex.join(command)))


def remove_hooks(text: str) -> str:
    """The settings without our hooks."""
    hooks = _hooks(text)
    left = _taken_out(hooks)
    return text if left == hooks else _with_hooks(text, left)


def commands_in(text: str) -> dict[str, list[str]]:
    """Our commands that the settings call, by event; empty if the settings cannot be read."""
    try:
        hooks = _hooks(text)
    except SourceError:
        return {}
    ours = {event: [command for command in _commands(hooks[event]) if _OURS.search(command)] for event in hooks}
    return {event: commands for event, commands in ours.items() if commands}


def _added(hooks: Hooks, command: str) -> Hooks:
    ours = {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_SECONDS}]}
    return hooks | {event: [*_groups(hooks.get(event, [])), ours] for event in EVENTS}


def _taken_out(hooks: Hooks) -> Hooks:
    """The hooks without ours. Groups that are empty then go too, and events without groups; what others left empty
    stays."""
    left = {}
    for event, groups in hooks.items():
        groups_left = _without_ours(groups) if isinstance(groups, list) else groups
        if groups_left or groups_left == groups:
            left[event] = groups_left
    return left


def _without_ours(groups: list[Any]) -> list[Any]:
    groups_left = []
    for group in groups:
        entries = group.get("hooks") if isinstance(group, dict) else None
        others = [entry for entry in entries if not _is_ours(entry)] if isinstance(entries, list) else entries
        if others or others == entries:
            groups_left.append(group if others == entries else {**group, "hooks": others})
    return groups_left


def _is_ours(entry: object) -> bool:
    command = entry.get("command") if isinstance(entry, dict) else None
    return isinstance(command, str) and bool(_OURS.search(command))


def _commands(groups: object) -> list[str]:
    entries = [entry for group in _groups(groups) if isinstance(group, dict) for entry in _groups(group.get("hooks"))]
    return [entry["command"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("command"), str)]


def _groups(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# ---------------------------------------------------------------- the text

_BLANKS = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\{[ \t]*\r?\n([ \t]+)\"")


def _hooks(text: str) -> Hooks:
    try:
        settings = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise SourceError(f"the settings are not JSON: {error}") from error
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict):
        raise SourceError("the settings, or the hooks in them, are not a JSON object")
    for event in EVENTS:
        if not isinstance(hooks.get(event, []), list):
            raise SourceError(f"the hooks of {event} in the settings are not a list")
    return hooks


def _with_hooks(text: str, hooks: Hooks) -> str:
    if not text.strip():
        return json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False) + "\n"
    match = _INDENT.match(text.lstrip())
    indent = match[1] if match else "  "
    members = _members(text)
    spans = [(start, end, at) for name, start, at, end in members if name == "hooks"]
    if spans and hooks:
        _, end, at = spans[-1]
        return text[:at] + _formatted(hooks, indent) + text[end:]
    if spans:
        return _cut(text, members)
    last = members[-1][3] if members else text.index("{") + 1
    comma = "," if members else ""
    tail = text[last:] if members or "\n" in text[last : text.rindex("}")] else "\n" + text[last:].lstrip()
    return f'{text[:last]}{comma}\n{indent}"hooks": {_formatted(hooks, indent)}{tail}'


def _formatted(hooks: Hooks, indent: str) -> str:
    return json.dumps(hooks, indent=indent, ensure_ascii=False).replace("\n", f"\n{indent}")


def _cut(text: str, members: list[tuple[str, int, int, int]]) -> str:
    """The text without the `hooks` member, and without the comma that separated it from its neighbour."""
    number = max(at for at, member in enumerate(members) if member[0] == "hooks")
    if number > 0:
        return text[: members[number - 1][3]] + text[members[number][3] :]
    if len(members) > 1:
        return text[: members[0][1]] + text[members[1][1] :]
    return text[: text.index("{") + 1] + text[text.rindex("}") :]


def _members(text: str) -> list[tuple[str, int, int, int]]:
    """The members of the outermost object, whose JSON was checked before: name, start, start of the value, end of the
    value."""
    decoder, members = json.JSONDecoder(), []
    at = _past_blanks(text, text.index("{") + 1)
    while text[at] != "}":
        name, colon = decoder.raw_decode(text, at)
        value = _past_blanks(text, _past_blanks(text, colon) + 1)
        _, end = decoder.raw_decode(text, value)
        members.append((name, at, value, end))
        at = _past_blanks(text, end)
        at = _past_blanks(text, at + 1) if text[at] == "," else at
    return members


def _past_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at
