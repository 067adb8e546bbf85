"""The session logger: an agent's program hands it every message, and it writes one readable file per session.

`log` returns when the message is with the system in one write, so it survives a kill of this process from then on. It
never raises for a message, whatever it is, nor for a disk that fails; `strict` is for programs that prefer to stop.
"""

import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakSet

from agent_logger import config
from agent_logger.errors import AgentLoggerError, StoreError
from agent_logger.home.install import know, redactor
from agent_logger.messages import sdk, sdk_objects
from agent_logger.messages.entries import EXCEPTION
from agent_logger.model.records import EndReason
from agent_logger.platform import on_fork
from agent_logger.protocols.json_text import encode, in_utf8
from agent_logger.recording.exchanges import UserInput
from agent_logger.recording.sdk_query import query_arguments, resumed_session, sdk_query
from agent_logger.recording.session_writer import SessionWriter

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions, Transport
    from claude_agent_sdk import Message as SdkObject

T = TypeVar("T")
log = logging.getLogger("agent_logger")


class SessionLogger:
    """Record the sessions of one client, one after the other, into `sessions_dir`: by default the folder in the
    settings, `./sessions`.

    Any thread may use it. A resumed session continues in its own file; pass `resumed_from` when you resume or fork a
    session, so that the client's counters are read correctly. With `strict`, it raises `StoreError` when it cannot
    write; without, it counts what is lost in `lost`.
    """

    def __init__(
        self,
        sessions_dir: str | os.PathLike[str] | None = None,
        strict: bool = False,
        resumed_from: str | None = None,
    ) -> None:
        self._folder = config.sessions_dir(sessions_dir)
        self._strict = strict
        self._writer = SessionWriter(self._folder, resumed_from=resumed_from)
        self._not_understood = 0
        self._warned = False
        self._lock = threading.RLock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._busy = False
        self._wrapped: WeakSet[AsyncGenerator[Any, None]] = WeakSet()  # streams that this logger logs already
        self._noted_exception: str | None = None  # while nothing was logged after it
        on_fork(self)

    def after_fork(self) -> None:
        """Drop work that another thread may have begun: the parent does it."""
        self._lock = threading.RLock()
        self._waiting.clear()
        self._busy = False

    # ------------------------------------------------------------ what programs call

    def log(self, message: object) -> None:
        """Log any message: an object of the SDK, or the dict it was made from. Anything else is logged as it is."""
        self._do(lambda: self._log(message))

    def log_user_input(self, text_or_blocks: str | Sequence[Any]) -> None:
        """Log what the user says; call this before you send it. Blocks may be dicts or objects of the SDK."""
        self._do(lambda: self._log_user_input(text_or_blocks))

    def close(self, reason: str | None = None) -> None:
        """Write the totals, with a `reason` if you have one. Messages that are logged after this resume the session."""
        self._do(lambda: self._finish(reason, "eof"))

    def query(
        self,
        *,
        prompt: "str | AsyncIterable[dict[str, Any]]",
        options: "ClaudeAgentOptions | None" = None,
        transport: "Transport | None" = None,
    ) -> "AsyncGenerator[SdkObject, None]":
        """Send a prompt to the agent with the Claude Agent SDK, and yield the SDK's messages, each logged first.

        Takes what `claude_agent_sdk.query` takes: the prompt is a text, or an async iterable of messages. Logs the
        prompt, the session that `options` resumes, and the exception that ends the stream, which is raised again. One
        logger can make several queries, one after the other; queries that run at the same time need a logger each.

        Raises `ModuleNotFoundError` if the SDK is not installed.
        """
        sdk_query()  # so that the call fails, and not the first step of a loop
        return self._query(prompt=prompt, options=options, transport=transport)

    def wrap(self, messages: AsyncIterable[T]) -> AsyncGenerator[T, None]:
        """Return an async iterator that logs each message and passes it on.

        Wrap the messages of the client: `logger.wrap(client.receive_response())`. A call of the SDK's `query` is logged
        with its prompt, as `SessionLogger.query` does it. Wrap also the prompts that you stream to a client.
        """
        arguments = query_arguments(messages)
        wrapped = self._query(**arguments) if arguments else self._passed_on(messages)
        self._wrapped.add(wrapped)
        return wrapped

    @property
    def lost(self) -> int:
        """How many records could not be written, plus how many messages could not be read at all."""
        return self._writer.lost + self._not_understood

    @property
    def path(self) -> Path | None:
        """The file of the session: after `close`, that of the last one; `None` before anything was logged. Its name
        changes once, when the client's id is known."""
        return self._writer.path

    @property
    def session_id(self) -> str | None:
        """The client's id of the session; `None` until the client sends it."""
        return self._writer.session_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error:
            self._note_exception(error)
        self.close(_end_by(error) if error else None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    # ------------------------------------------------------------ streams

    async def _passed_on(self, messages: AsyncIterable[T]) -> AsyncGenerator[T, None]:
        try:
            async for message in messages:
                self.log(message)
                yield message
        except GeneratorExit:  # the reader has left; it may have got all it wants
            raise
        except BaseException as error:
            self._note_exception(error)
            raise
        finally:
            if aclose := getattr(messages, "aclose", None):
                await aclose()

    async def _query(self, *, prompt: Any, options: Any = None, **more: Any) -> AsyncGenerator[Any, None]:
        """Log a query from its prompt to its end. The exchange of a reader who leaves early stays open, for whoever
        closes this logger may know why; the next query ends it."""
        self._do(lambda: self._begin_query(prompt, options))
        if not isinstance(prompt, str) and not any(prompt is stream for stream in self._wrapped):
            prompt = self.wrap(prompt)
        stream = self._passed_on(sdk_query()(prompt=prompt, options=options, **more))
        try:
            async with aclosing(stream):
                async for message in stream:
                    yield message
        except GeneratorExit:
            raise
        except BaseException:
            with suppress(Exception):  # of a strict logger, which must not hide this one
                self._do(self._writer.end_exchange)
            raise
        self._do(self._writer.end_exchange)

    # ------------------------------------------------------------ one at a time

    def _do(self, work: Callable[[], None]) -> None:
        """Do the work in order. If a signal handler interrupts a call in progress, that call does the handler's work
        afterwards."""
        with self._lock:
            self._waiting.append(work)
            if self._busy:
                return
            self._busy = True
            try:
                while self._waiting:
                    self._attempt(self._waiting.popleft())
            finally:
                self._busy = False

    def _attempt(self, work: Callable[[], None]) -> None:
        """Run `work`, and catch what it raises unless `strict`: this code runs inside somebody else's program, which
        must not fail because of it."""
        try:
            work()
        except Exception as error:
            self._not_understood += 1
            if self._strict:
                raise
            self._warn(f"a message could not be recorded: {error!r}")
            return
        if self._writer.failed:
            problem = f"{self._writer.path}: {self._writer.failed}"
            if self._strict:
                raise StoreError(problem) from self._writer.error
            self._warn(problem)

    def _warn(self, problem: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning("part of the session could not be recorded: %s", problem)

    # ------------------------------------------------------------ the work

    def _log(self, message: object) -> None:
        self._begin()
        self._noted_exception = None
        redacted = redactor().redact(_json(message), "message")
        read_message = sdk.read(redacted.data)
        self._writer.message(read_message, redacted.redactions)

    def _log_user_input(self, given: str | Sequence[Any]) -> None:
        self._begin()
        content = given if isinstance(given, str) else sdk_objects.blocks(list(given))
        prompt = encode({"type": "user", "message": {"role": "user", "content": content}})
        redacted = redactor().redact(prompt, "user_input")
        message = sdk.read(redacted.data)
        typed = message.content if message.inner else redacted.data.decode("utf-8", "replace")
        self._writer.input(UserInput.of(typed), redacted.redactions)

    def _begin_query(self, prompt: object, options: object) -> None:
        self._begin()
        session, goes_on = resumed_session(options)
        self._writer.client_starts(session, goes_on=goes_on)
        if isinstance(prompt, str) and not self._writer.is_waiting:  # else the program has logged it
            self._log_user_input(prompt)

    def _note_exception(self, error: BaseException) -> None:
        """Log what ended a stream or a block, once, in the exchange that it ended. A strict logger that cannot write it
        must not hide the exception behind its own."""
        with suppress(Exception):
            self._do(lambda: self._log_exception(error))

    def _log_exception(self, error: BaseException) -> None:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if text != self._noted_exception and self._writer.in_flight:
            self._log({"type": "system", "subtype": EXCEPTION, "reason": _end_by(error), "error": text})
            self._noted_exception = text

    def _begin(self) -> None:
        if self not in _open:
            _open.add(self)
            know(self._folder)

    def _finish(self, reason: str | None, end_reason: EndReason) -> None:
        _open.discard(self)
        self._noted_exception = None
        # An error may quote a key.
        redacted_reason = redactor().redact_text(reason, "reason").data if reason else reason
        self._writer.finish(redacted_reason, end_reason)

    def end_with_process(self) -> None:
        """End the session because the process exits. The interpreter calls this."""
        self._do(lambda: self._finish("exit", "exit"))


# By the name of an exception's class: that of an event loop is imported by whoever runs one.
_REASONS = {
    "CancelledError": "cancelled",
    "Cancelled": "cancelled",
    "GeneratorExit": "cancelled",
    "KeyboardInterrupt": "interrupted",
    "SystemExit": "exit",
}


def _end_by(error: BaseException) -> str:
    """Return the reason of a session that this exception ended."""
    return next((_REASONS[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _REASONS), "error")


def _json(message: object) -> bytes:
    encoded = sdk_objects.json_of(message)
    if encoded is not None:
        return encoded
    return in_utf8(message) if isinstance(message, bytes) else str(message).encode("utf-8", "replace")


# ---------------------------------------------------------------- of the process


_open: set[SessionLogger] = set()  # kept until they are closed: one that is not closed is ended at exit


def _at_exit() -> None:
    for logger in list(_open):
        with suppress(AgentLoggerError):  # raised by a strict logger; nobody is left to catch it
            logger.end_with_process()


atexit.register(_at_exit)  # runs before the store's own, which was registered first
os.register_at_fork(after_in_child=_open.clear)  # the sessions are the parent's to end
