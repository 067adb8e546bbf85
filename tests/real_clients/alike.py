"""What two runs of a scenario must have in common: all but names that are made up anew, and times."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from tests.fakeapi import Call
from tests.fakeapi.encodings import UNPACKERS

# Names made up by the clients, by the scripted API, and for temporary files.
_MADE_UP = [
    (re.compile(pattern), shown)
    for pattern, shown in (
        (r"(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])", "<uuid>"),
        (r"\b(msg|toolu|req|resp|rs|fc|call|chatcmpl|ses|prt)[-_][0-9A-Za-z]{12,}\b", r"<\1>"),
        (r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", "<hash>"),  # Claude Code's name for the device
        (r"\ba[0-9a-f]{16}\b", "<agent>"),
        (r"\b0m[0-9a-z]{7}-[0-9a-f]{8}\b", "<run>"),  # of a sub-agent
        (r"(cc_version=[0-9.]+\.)[0-9a-f]{3}\b", r"\1<hex>"),
        (r"\bcch=[0-9a-f]{5}\b", "cch=<hex>"),
        (r"/cc-socks/\d+", "/cc-socks/<pid>"),
        (r"(Chunk ID: )[0-9a-f]{6}\b", r"\1<hex>"),  # of Codex, before a command's output
        (r"(Wall time: |duration_ms: )[0-9.]+", r"\1<time>"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?", "<time>"),
        (r"/tool-results/\w+\.txt", "/tool-results/<name>.txt"),
        (r"list_directory_\d+_", "list_directory_<time>_"),  # Gemini CLI's name for a call
        (r"(inference gateway \(127\.0\.0\.1:)\d+", r"\1<port>"),
        (r"http://127\.0\.0\.1:\d+(/(anthropic|openai|gemini)/127\.0\.0\.1:\d+)?", "<url>"),
    )
]
_TIMES = re.compile(r"([_-]ms|Ms|_time)$|^(time|timestamp|start|end)$")


def plain(text: str) -> str:
    for pattern, shown in _MADE_UP:
        text = pattern.sub(shown, text)
    return text


def alike(value: Any) -> Any:
    """A JSON value without what no two runs share; JSON in a string is looked into."""
    match value:
        case dict():
            return {plain(key): _of_key(key, it) for key, it in value.items()}
        case list():
            return [alike(it) for it in value]
        case str():
            return alike(found) if (found := _json(value)) is not None else plain(value)
    return value


def _of_key(key: str, value: Any) -> Any:
    return "<time>" if _TIMES.search(key) else alike(value)


def _json(text: str) -> Any:
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def output(stdout: str) -> list[Any]:
    """Line by line; a line may have JSON behind a word."""
    whole = _json(stdout.strip())
    if whole is not None:
        return [alike(whole)]
    lines = []
    for line in stdout.split("\n"):
        word, _, rest = line.partition(" ")
        lines.append([word, alike(rest)] if _json(rest) is not None else alike(line))
    return lines


def said(stdout: str) -> list[Any]:
    """The same in any order: a tool may be done before or after the next words of the model have come."""
    return sorted(output(stdout), key=_text)


HOP_BY_HOP = {"connection", "host", "content-length"}  # the last follows from the body


def request(call: Call) -> Any:
    """A call as it reached the API."""
    headers = [[name, alike(value)] for name, value in call.headers if name.lower() not in HOP_BY_HOP]
    for header in headers:
        if header[0].lower() == "sec-websocket-key":
            header[1] = "<made up>"
    coding = next((value for name, value in call.headers if name.lower() == "content-encoding"), "")
    body = UNPACKERS[coding](call.body).decode() if call.body else ""
    return [call.transport, call.method, plain(call.path), call.lane, call.turn, headers, alike(body)]


def requests(calls: Sequence[Call], *, parallel: bool = False) -> list[Any]:
    """In an order that does not depend on who of several sub-agents was first; nor do their results, if they are
    `parallel`."""
    found = [request(call) for call in calls]
    return sorted((_unordered(it) for it in found) if parallel else found, key=_text)


def _unordered(value: Any) -> Any:
    match value:
        case dict():
            mark = "cache_control" if value.get("type") == "tool_result" else ""  # it is on the last one
            return {key: _unordered(it) for key, it in value.items() if key != mark}
        case list():
            items = [_unordered(it) for it in value]
            results = [isinstance(it, dict) and it.get("type") == "tool_result" for it in items]
            return sorted(items, key=_text) if all(results) else items
    return value


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def differences(ours: Any, theirs: Any, place: str = "") -> Iterator[str]:
    """What is not the same, each with its place: whole requests are too long to be looked at."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            yield from differences(ours.get(key, ABSENT), theirs.get(key, ABSENT), f"{place}/{key}")
    elif isinstance(ours, list) and isinstance(theirs, list):
        for number, (one, other) in enumerate(zip_longest(ours, theirs, fillvalue=ABSENT)):
            yield from differences(one, other, f"{place}[{number}]")
    elif ours != theirs:
        one, other = str(ours), str(theirs)
        same = next((number for number, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
        yield f"{place}: {one[max(0, same - 40) : same + 80]!r}, not {other[max(0, same - 40) : same + 80]!r}"


ABSENT = "<absent>"
