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
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from agent_logger.errors import AgentLoggerError, StoreError
from agent_logger.home.install import know, redactor
from agent_logger.messages import sdk, sdk_objects
from agent_logger.model.records import EndReason
from agent_logger.platform import on_fork
from agent_logger.protocols.json_text import encode, in_utf8
from agent_logger.recording.exchanges import UserInput
from agent_logger.recording.session_writer import SessionWriter

T = TypeVar("T")
log = logging.getLogger("agent_logger")


class SessionLogger:
    """Record the sessions of one client, one after the other, into `sessions_dir`.

    Any thread may use it. A resumed session continues in its own file; pass `resumed_from` when you resume or fork a
    session, so that the client's counters are read correctly. With `strict`, it raises `StoreError` when it cannot
    write; without, it counts what is lost in `lost`.
    """

    def __init__(
        self,
        sessions_dir: str | os.PathLike[str] = "./sessions",
        strict: bool = False,
        resumed_from: str | None = None,
    ) -> None:
        self._folder = Path(sessions_dir).expanduser().absolute()  # the working folder may change
        self._strict = strict
        self._writer = SessionWriter(self._folder, resumed_from=resumed_from)
        self._not_understood = 0
        self._warned = False
        self._lock = threading.RLock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._busy = False
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

    async def wrap(self, messages: AsyncIterable[T]) -> AsyncGenerator[T, None]:
        """Log each message, then pass it through: messages of the client, or the prompts on their way to it."""
        try:
            async for message in messages:
                self.log(message)
                yield message
        finally:
            if aclose := getattr(messages, "aclose", None):
                await aclose()

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

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        self.close("error" if kind else None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        self.close("error" if kind else None)

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
            self._warn(f"a message is lost: {error!r}")
            return
        if self._writer.failed:
            problem = f"{self._writer.path}: {self._writer.failed}"
            if self._strict:
                raise StoreError(problem)
            self._warn(problem)

    def _warn(self, problem: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning("the session is not recorded whole: %s", problem)

    # ------------------------------------------------------------ the work

    def _log(self, message: object) -> None:
        self._begin()
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

    def _begin(self) -> None:
        if self not in _open:
            _open.add(self)
            know(self._folder)

    def _finish(self, reason: str | None, end_reason: EndReason) -> None:
        _open.discard(self)
        redacted_reason = (
            redactor().redact_text(reason, "reason").data if reason else reason
        )  # an error may quote a key
        self._writer.finish(redacted_reason, end_reason)

    def end_with_process(self) -> None:
        self._do(lambda: self._finish("exit", "exit"))


def _json(message: object) -> bytes:
    encoded = sdk_objects.json_of(message)
    if encoded is not None:
        return encoded
    return in_utf8(message) if isinstance(message, bytes) else str(message).encode("utf-8", "replace")


# ---------------------------------------------------------------- of the process


_open: set[SessionLogger] = set()  # held until they are closed: a forgotten one gets its end at exit


def _at_exit() -> None:
    for logger in list(_open):
        with suppress(AgentLoggerError):  # raised by a strict logger; nobody is left to catch it
            logger.end_with_process()


atexit.register(_at_exit)  # runs before the store's own, which was registered first
os.register_at_fork(after_in_child=_open.clear)  # the sessions are the parent's to end
