"""A client that talks to a model, as the tracker sees it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from agent_logger.clock import timestamp
from agent_logger.model.records import Record, Request, Response, Timing, encode
from agent_logger.proxy.tracking.memory import Log, Memory
from agent_logger.proxy.tracking.tracker import Decision, TrackedAnswer, TrackedRequest, Tracker
from tests.proxy.tracking.captures import KEY, Names

TOOLS = [{"name": "Bash"}]
Messages = list[dict[str, Any]]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def history(*texts: str) -> Messages:
    """Of the user and of the model, in turn."""
    return [said(text) if number % 2 else user(text) for number, text in enumerate(texts)]


@dataclass
class Recorder:
    """What the recorder does with the tracker, its logs in memory."""

    names: Names = field(default_factory=Names)
    logs: dict[tuple[str, str], list[bytes]] = field(default_factory=dict)
    clock: Iterator[int] = field(default_factory=count)
    tracker: Tracker = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self, known: Memory | None = None) -> None:
        self.tracker = Tracker(KEY, self.names.begin, self.names.number, known)

    def ask(
        self,
        messages: Messages,
        session: str | None = None,
        *,
        body: dict[str, Any] | None = None,
        **headers: str,
    ) -> Decision:
        if session:
            headers["x-session-id"] = session
        content = {"messages": messages, "tools": TOOLS, **(body or {})}
        return self.request("/v1/messages", content, headers)

    def request(self, path: str, body: dict[str, Any], headers: dict[str, str], *, message: bool = False) -> Decision:
        asked = TrackedRequest(
            provider="anthropic",
            upstream="api.anthropic.com",
            method="GET" if message else "POST",
            path=path,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
            body=json.dumps(body).encode(),
            ts=self._ts(),
            message=message,
        )
        decision = self.tracker.request(asked)
        if decision.session:
            request = Request(
                ts=asked.ts,
                seq=decision.seq,
                method=asked.method,
                path=path,
                headers={},
                body=None,
                fingerprint=decision.fingerprint,
                thread=decision.thread,
                kind=decision.kind,
                identity=decision.of_request,
                retry_of=decision.retry_of,
            )
            self._append(decision.session, *decision.before(asked), request)
        return decision

    def answer(self, decision: Decision, text: str, **more: Any) -> str | None:
        return self.end(decision, message=said(text), **more)

    def end(
        self,
        decision: Decision,
        *,
        status: int | None = 200,
        complete: bool = True,
        message: dict[str, Any] | None = None,
        message_id: str | None = None,
        stop_reason: str | None = None,
    ) -> str | None:
        ts = self._ts()
        answered = TrackedAnswer(
            ts=ts,
            status=status,
            complete=complete,
            message=message,
            message_id=message_id,
            stop_reason=stop_reason,
        )
        after = self.tracker.answered(decision, answered)
        if decision.session:
            response = Response(
                ts=ts,
                seq=decision.seq,
                status=status,
                headers=None,
                timing=Timing(ttfb_ms=None, total_ms=None),
                fingerprint=after,
                complete=complete,
                message=msgspec.Raw(json.dumps(message).encode()) if message else msgspec.UNSET,
                message_id=message_id,
                stop_reason=stop_reason,
            )
            self._append(decision.session, response)
        return after

    def talk(self, *texts: str, session: str | None = None, **headers: str) -> Decision:
        """One call, answered: the last text is the answer, those before it the history."""
        decision = self.ask(history(*texts[:-1]), session, body=None, **headers)
        self.answer(decision, texts[-1])
        return decision

    def all_logs(self) -> list[Log]:
        return [Log(provider, name, lines) for (provider, name), lines in sorted(self.logs.items(), reverse=True)]

    def _append(self, session: str, *records: Record) -> None:
        self.logs.setdefault(("anthropic", session), []).extend(map(encode, records))

    def _ts(self) -> str:
        return timestamp(1_794_700_000 + next(self.clock))
