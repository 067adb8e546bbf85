"""The calls of a turn as the proxy saw them, as rows of a terminal: the exact request, and what came back."""

from collections.abc import Iterator, Sequence

import msgspec

from agent_logger.catalog.joining.calls import CallDetail, WireCall
from agent_logger.logs.wire_log.answers import body_of
from agent_logger.logs.wire_log.requests import Changes, RequestView
from agent_logger.model.plurals import pluralize
from agent_logger.model.records import Headers, Response
from agent_logger.model.redaction.redactor import hidden, hidden_header
from agent_logger.model.session import SIDE
from agent_logger.views.figures import bytes_text, seconds_text, tokens
from agent_logger.views.request_diff import RequestDiff, message_text
from agent_logger.views.terminal.pieces import piece_lines
from agent_logger.views.terminal.rows import Style, TextRow, fold, room


class WireText:
    def __init__(self, columns: int) -> None:
        self._columns = columns

    def rows(self, calls: Sequence[CallDetail]) -> Iterator[TextRow]:
        """The call that produced the turn, in full; failed attempts and side calls, in a line each."""
        newest = own_call(calls)
        for call in calls:
            yield from self._text(_call_summary(call.call), "strong" if call is newest else "")
        yield from self._request(newest)
        if newest.response:
            yield from self._response(newest.call, newest.response)

    def diff_rows(self, before: CallDetail, after: CallDetail, diff: RequestDiff) -> Iterator[TextRow]:
        """What differs between the requests of two calls."""
        yield from self._text(f"- {_call_summary(before.call)}", "removed")
        yield from self._text(f"+ {_call_summary(after.call)}", "added")
        for piece in diff.diffs:
            yield TextRow()
            for text, style in piece_lines(piece):
                yield from self._text(text, style)
        yield TextRow()
        unchanged = pluralize(diff.unchanged_messages, "message")
        yield from self._text(f"{unchanged} unchanged" if diff.diffs else f"no difference, {unchanged} unchanged")

    def _request(self, detail: CallDetail) -> Iterator[TextRow]:
        yield from self._section(f"{detail.request.method} {detail.request.path}")
        yield from self._headers(detail.request.headers)
        if detail.request_view is None:
            yield from self._text(body_of(detail.request).decode("utf-8", "replace"))
            return
        if detail.request_view.system:
            yield from self._section(f"System prompt, {bytes_text(len(detail.request_view.system.encode()))}")
            yield from self._text(detail.request_view.system)
        if detail.request_view.tools:
            yield from self._section(pluralize(len(detail.request_view.tools), "tool"))
            yield from self._text(", ".join(detail.request_view.tools))
        yield from self._messages(detail.request_view, detail.changes)

    def _messages(self, request: RequestView, changes: Changes | None) -> Iterator[TextRow]:
        """The messages that are new since the previous call; all of them, if it was the first."""
        new = request.messages if changes is None else changes.messages
        head = pluralize(len(request.messages), "message")
        if changes is not None:
            head += f", {len(new)} of them new since call {changes.since[:13]}"
        yield from self._section(head)
        for line in _change_texts(changes) if changes else ():
            yield from self._text(line, "failed")
        for message in new:
            yield from self._text(f"{message.role}:", "strong")
            yield from self._text(message_text(message))

    def _response(self, call: WireCall, response: Response) -> Iterator[TextRow]:
        status = f"{response.status or 'no response'} {response.status_text or ''}".strip()
        yield from self._section(status + ("" if call.complete is not False else f", cut off: {response.reason}"))
        yield from self._headers(response.headers or {})
        yield TextRow()
        yield from self._text(answer_text(response))

    def _section(self, title: str) -> Iterator[TextRow]:
        yield TextRow()
        yield from self._text(title, "person")

    def _headers(self, headers: Headers) -> Iterator[TextRow]:
        for name, value in headers.items():
            for text in [value] if isinstance(value, str) else value:
                yield from self._text(f"{name}: {hidden_header(name, text)}", "quiet")

    def _text(self, text: str, style: Style = "") -> Iterator[TextRow]:
        return (TextRow.of(line, style) for line in fold(hidden(text), room(self._columns, 0)))


def own_call(calls: Sequence[CallDetail]) -> CallDetail:
    """The call that produced a turn, among those that were made for it."""
    own = [call for call in calls if call.call.thread != SIDE and call.call.complete]
    return own[-1] if own else calls[-1]


def _call_summary(call: WireCall) -> str:
    times = [
        "" if call.ttfb_ms is None else f"first byte {seconds_text(call.ttfb_ms / 1000)}",
        "" if call.total_ms is None else f"total {seconds_text(call.total_ms / 1000)}",
    ]
    sizes = f"{bytes_text(call.request_bytes or 0)} up, {bytes_text(call.response_bytes or 0)} down"
    parts = [call.call[:13], call.kind or call.thread, str(call.status or "no response"), *times, sizes]
    parts += [f"retry of call {call.retry_of}"] if call.retry_of else []
    parts += [tokens(call.usage)] if call.usage else []
    return " · ".join(filter(None, parts))


def _change_texts(changes: Changes) -> Iterator[str]:
    """Changes that a reader would not expect."""
    if changes.dropped:
        yield f"{pluralize(changes.dropped, 'message')} of the previous call removed"
    if changes.model:
        yield f"the model changed from {changes.model.before}"
    if changes.system:
        yield "the system prompt changed"
    for word, names in (
        ("added", changes.tools_added),
        ("removed", changes.tools_removed),
        ("changed", changes.tools_changed),
    ):
        if names:
            yield f"tools {word}: {', '.join(names)}"


def answer_text(response: Response) -> str:
    """The reassembled answer if it is a model's; otherwise the body as received."""
    if isinstance(response.message, msgspec.Raw):
        return msgspec.json.format(bytes(response.message), indent=2).decode("utf-8", "replace")
    return body_of(response).decode("utf-8", "replace")
