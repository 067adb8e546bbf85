"""Recording the demo's conversation, message by message, into an exchange log."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from agent_logger.demo.conversation import Happening, UserInput
from agent_logger.formats import sdk_messages
from agent_logger.formats.sdk_messages import SdkMessage
from agent_logger.records import (
    Exchange,
    LiveMessage,
    LiveStart,
    Message,
    SessionEnd,
    SessionStart,
    Stats,
    Tokens,
)
from agent_logger.store.clock import CLOCK
from agent_logger.store.journal import Journal
from agent_logger.store.layout import safe_name


class Recording:
    """One session on its way into `folder`. Use it in a `with`: leaving it writes the totals."""

    def __init__(self, folder: Path, session_id: str) -> None:
        name = time.strftime("%Y%m%d_%H%M%S", time.gmtime()) + "_" + safe_name(session_id[:8])
        self.journal = Journal(folder, name, "exchange")
        self._session_id = session_id
        self._live: LiveStart | None = None
        self._messages: list[Message] = []
        self._exchanges: list[Exchange] = []
        self._last_result: SdkMessage | None = None

    def follow(self, happenings: Iterable[Happening]) -> Iterator[Happening]:
        """Pass on what happens, each of it after it is on disk."""
        for happening in happenings:
            if isinstance(happening, UserInput):
                self._begin(happening.text)
            else:
                self._log(sdk_messages.read(happening.message))
            yield happening

    def _begin(self, text: str) -> None:
        self._live = LiveStart(
            id=CLOCK.uuid7(),
            session_id=self._session_id,
            exchange=len(self._exchanges) + 1,
            ts_start=CLOCK.now(),
            user_input=text,
        )
        self._messages = []
        self.journal.begin(self._live)

    def _log(self, message: SdkMessage) -> None:
        if message.is_init and not self._exchanges:
            self.journal.append(_start(message))
        for entry in sdk_messages.entries(message, CLOCK.now()):
            self._messages.append(entry)
            if self._live:
                self.journal.add(LiveMessage(id=self._live.id, message=entry))
        if message.is_result and self._live:
            self._end(self._live, message)

    def _end(self, live: LiveStart, result: SdkMessage) -> None:
        exchange = Exchange(
            id=live.id,
            session_id=live.session_id,
            exchange=live.exchange,
            ts_start=live.ts_start,
            ts_end=CLOCK.now(),
            user_input=live.user_input,
            messages=self._messages,
            stats=sdk_messages.stats(result, self._last_result),
            end_reason="result",
        )
        self.journal.end(exchange)
        self._exchanges.append(exchange)
        self._last_result = result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.append(_end(self._session_id, self._exchanges))
        self.journal.close()


def _start(init: SdkMessage) -> SessionStart:
    return SessionStart(
        session_id=init.session_id,
        ts=CLOCK.now(),
        model=init.model,
        cwd=init.cwd,
        tools_available=init.tools,
        permission_mode=init.permissionMode,
        witness="sdk",
    )


def _end(session_id: str, exchanges: list[Exchange]) -> SessionEnd:
    stats = [it.stats for it in exchanges if it.stats]
    tools = {entry.tool_use_id: entry.name for it in exchanges for entry in it.messages if entry.name}
    return SessionEnd(
        session_id=session_id,
        ts=CLOCK.now(),
        total_exchanges=len(exchanges),
        total_duration_ms=sum(it.duration_ms or 0 for it in stats),
        total_duration_api_ms=sum(it.duration_api_ms or 0 for it in stats),
        total_cost_usd=round(sum(it.cost_usd or 0 for it in stats), 9),
        total_tokens=_tokens(stats[-1]) if stats else None,
        tools_used=dict(Counter(name for name in tools.values() if name)),
    )


def _tokens(stats: Stats) -> Tokens:
    return Tokens(
        input=stats.tokens_in or 0,
        output=stats.tokens_out or 0,
        cache_creation=stats.cache_creation or 0,
        cache_read=stats.cache_read or 0,
    )
