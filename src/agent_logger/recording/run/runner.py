"""Run a command-line agent with one prompt and record it: `run`, `run_async`, `stream`.

One `run` is one process and one prompt. All three do the same work in one thread: the caller's thread, or a thread of
its own that hands events to an event loop and waits while nobody takes them.
"""

import asyncio
import inspect
import os
import signal
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack, cast

import msgspec

from agent_logger.agents.claude_code import AGENT as CLAUDE_CODE
from agent_logger.messages.outcome import Failure, RunMetadata
from agent_logger.model.records import Exit
from agent_logger.recording.run.child import Child, in_foreground, why_not_started
from agent_logger.recording.run.claude_command import Command, RunOptions, RunRequest, command
from agent_logger.recording.run.events import Event
from agent_logger.recording.run.proxied import RequestSummary, proxied, with_requests
from agent_logger.recording.run.recording import RunRecording

WAITING_EVENTS = 1000  # events in the queue before the agent has to wait
INTERRUPT_SECONDS = 3.0  # to wait for an agent that the terminal interrupted together with us


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How a run ended. What is unknown is `None`.

    `success` is true if the agent ended with a result that is no error; `data` is then its answer: the last result's
    text, or its structured output. Otherwise `failure` is the kind of failure and `error` a message. `metadata` has the
    session, the cost, the tokens and the log; `stdout` and `stderr` are the whole output (`None` after `stream`),
    `warnings` the lines of it that were not understood, and `events` what happened, if that was asked for.
    """

    success: bool
    data: Any  # the last result's text, or its structured output
    error: str | None
    failure: Failure | None
    stdout: str | None  # whole; `None` after `stream`
    stderr: str | None
    warnings: list[str]  # output lines that were not understood
    metadata: RunMetadata
    events: list[Event] | None  # with `include_events`
    _resume: tuple[list[str], str] | None = field(default=None, repr=False)

    @property
    def session_id(self) -> str | None:
        """The session's id, as the agent reported it last; `None` if it reported none."""
        return self.metadata.session_id

    def resume_command(self) -> tuple[list[str], str] | None:
        """Return the command that continues the session: an argv, and the folder to run it in. A session can be
        continued after a limit, a timeout or an error, too. `None` if there is none: the agent reported no session, or
        the one to resume was not found."""
        return self._resume

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as values that JSON has, with `session_id`."""
        public = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return cast("dict[str, Any]", msgspec.to_builtins({**public, "session_id": self.session_id}))


def run(prompt: str, **options: Unpack[RunOptions]) -> RunResult:
    """Run `claude` with this prompt, wait for its end, and return the result.

    `resume` continues a session, by its id or label; `continue_` the last one of the folder; `fork` either as a new
    session. `session_id` is the id of a new session, `label` a name for it. `include_events` keeps the events in the
    result. `max_turns`, `model`, `permission_mode` and the four system prompts are those of the command. `cwd` is the
    folder to run in, `timeout` the seconds after which the agent is stopped. `executable` and `extra_args` change the
    command line. The run is recorded in `sessions_dir`, unless `record` is false.

    Raises `ValueError` for options that make no sense and `TypeError` for unknown ones, before anything is started. All
    later errors are in the result.
    """
    return _Run(command(prompt, **options)).work(lambda _: None)


async def run_async(prompt: str, **options: Unpack[RunOptions]) -> RunResult:
    """Do what `run` does, with the same options, in an event loop. Cancelling it ends the agent."""
    async with Stream(_Run(command(prompt, **options))) as events:
        async for _ in events:
            pass
    return events.result


def stream(prompt: str, **options: Unpack[RunOptions]) -> "Stream":
    """Run `claude` as `run` does, with the same options, and return the events as they happen.

    Use it as `async with stream("Why?") as events: async for event in events: ...`; leaving the block stops the agent.
    After the last event, `events.result` is the result, without `stdout` and `stderr`.
    """
    return Stream(_Run(command(prompt, **options), keeps_output=False))


def _show_options(*functions: Any) -> None:
    """Give the functions a signature that lists the options and their defaults, for `help`."""
    options = inspect.signature(RunRequest)
    for function in functions:
        returned = inspect.signature(function).return_annotation
        function.__signature__ = options.replace(return_annotation=returned)


_show_options(run, run_async, stream)


class _Run:
    """A process, from its start to its result. `work` is for one thread; any thread may call `end`."""

    def __init__(self, command: Command, *, keeps_output: bool = True) -> None:
        self._command, self._keeps_output = command, keeps_output
        self._child: Child | None = None
        self._is_to_end = False

    def end(self) -> None:
        self._is_to_end = True
        if child := self._child:
            child.end()

    def work(self, tell: Callable[[Event], None]) -> RunResult:
        command = self._command
        with proxied(command.start.argv, Path(command.cwd), CLAUDE_CODE, off=not command.record_requests) as sent:
            argv, environment = sent.child.argv, sent.child.environment
            try:
                child = Child(argv, cwd=command.cwd, env=environment, given=command.given, timeout=command.timeout)
            except (OSError, ValueError) as error:
                return self._not_started(error)
            sent.attach(child)
            with child:
                self._child = child
                heard = self._heard(tell, command.sessions_dir)
                if self._is_to_end:
                    child.end()
                exited = _pumped(child, heard)
            heard.requests = sent.finish(has_answers=heard.recording.has_answers)
        return self._result(heard, exited, timed_out=child.timed_out)

    def _heard(self, tell: Callable[[Event], None], folder: Path | None) -> "_Heard":
        recording = RunRecording(self._command.start, folder)
        keeps_events = self._command.include_events
        return _Heard(recording, tell, keeps_output=self._keeps_output, keeps_events=keeps_events)

    def _not_started(self, error: Exception) -> RunResult:
        """The result of a run that did not start. Nothing is recorded: there was no agent to have a session with."""
        heard = self._heard(lambda _: None, None)
        heard.ended(None)
        if not os.path.isdir(self._command.cwd):
            return self._run_result(heard, Failure.OTHER, f"the folder {self._command.cwd} does not exist")
        why = why_not_started(self._command.executable, error, self._command.cwd)
        return self._run_result(heard, Failure.EXECUTABLE_MISSING, why)

    def _result(self, heard: "_Heard", exited: Exit, *, timed_out: bool) -> RunResult:
        recording = heard.recording
        failure = recording.failure(exited, timed_out=timed_out)
        error = f"timed out after {self._command.timeout:g} s" if timed_out else recording.outcome.error
        return self._run_result(heard, failure, error or recording.errors.last or _how(exited))

    def _run_result(self, heard: "_Heard", failure: Failure | None, error: str) -> RunResult:
        recording = heard.recording
        session = recording.resumable(failure)
        advice = recording.advice(failure)
        return RunResult(
            success=failure is None,
            data=recording.outcome.data if failure is None else None,
            error="; ".join(filter(None, (error, advice))) if failure else None,
            failure=failure,
            stdout=heard.stdout,
            stderr=heard.stderr,
            warnings=recording.output.warnings,
            metadata=with_requests(recording.metadata(), heard.requests),
            events=heard.events,
            _resume=([self._command.executable, "--resume", session], self._command.cwd) if session else None,
        )


def _pumped(child: Child, heard: "_Heard") -> Exit:
    try:
        exited = child.pump(heard.out, heard.err)
    except BaseException:  # usually Ctrl-C: the agent's reaction is part of the run
        child.end(after=INTERRUPT_SECONDS if in_foreground() else 0.0)
        heard.ended(child.pump(heard.out, heard.err))
        raise
    heard.ended(exited)
    return exited


def _how(exited: Exit) -> str:
    how = f"by {signal.Signals(exited.signal).name}" if exited.signal else f"with status {exited.status}"
    return f"exited {how}, without a result"


class _Heard:
    """What the child printed: records it, passes its events on, and keeps what the result needs."""

    def __init__(
        self,
        recording: RunRecording,
        tell: Callable[[Event], None],
        *,
        keeps_output: bool,
        keeps_events: bool,
    ) -> None:
        self.recording, self._tell = recording, tell
        self.events: list[Event] | None = [] if keeps_events else None
        self.requests: RequestSummary | None = None
        self._out = bytearray() if keeps_output else None
        self._err = bytearray() if keeps_output else None

    @property
    def stdout(self) -> str | None:
        return None if self._out is None else self._out.decode("utf-8", "replace")

    @property
    def stderr(self) -> str | None:
        return None if self._err is None else self._err.decode("utf-8", "replace")

    def out(self, chunk: bytes) -> None:
        if self._out is not None:
            self._out += chunk
        self._hear(self.recording.out(chunk))

    def err(self, chunk: bytes) -> None:
        if self._err is not None:
            self._err += chunk
        self.recording.err(chunk)

    def ended(self, exited: Exit | None) -> None:
        self._hear(self.recording.ended(exited))

    def _hear(self, events: list[Event]) -> None:
        for event in events:
            if self.events is not None:
                self.events.append(event)
            self._tell(event)


# ---------------------------------------------------------------- for an event loop


class Stream:
    """The events of a run. The run starts when the first event is requested; leaving the `async with` block ends the
    agent."""

    def __init__(self, work: _Run) -> None:
        self._handover = _Handover(work)
        weakref.finalize(self, self._handover.leave)

    @property
    def result(self) -> RunResult:
        """The result of the run, after the last event. Raises `RuntimeError` before."""
        if self._handover.result is None:
            raise RuntimeError("the run has not ended: read its events to the end first")
        return self._handover.result

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self._handover.take()
        if event is None:
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """End the agent if it runs, and wait for its end. `result` then says how it ended."""
        self._handover.leave()
        while await self._handover.take() is not None:
            pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        await asyncio.shield(self.aclose())


class _Handover:
    """The queue between the thread of a run and an event loop. Holds no reference to the stream, which may be garbage
    collected meanwhile."""

    def __init__(self, work: _Run) -> None:
        self.result: RunResult | None = None
        self._run = work
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room = threading.Semaphore(WAITING_EVENTS)
        self._left = self._over = False
        self._raised: BaseException | None = None

    async def take(self) -> Event | None:
        if self._loop is None and not self._left:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._work, name="agent-logger-run", daemon=True).start()
        if self._over or self._loop is None:
            return None
        event = await self._queue.get()
        self._room.release()
        self._over = event is None
        if self._over and self._raised:
            raise self._raised
        return event

    def leave(self) -> None:
        """Stop handing events over, and end the run: nobody listens any more."""
        self._left = True
        self._run.end()
        self._room.release()

    def _work(self) -> None:
        try:
            self.result = self._run.work(self._tell)
        except BaseException as error:  # the top of this thread: `take` raises it to the caller
            self._raised = error
        finally:
            self._put(None)

    def _tell(self, event: Event) -> None:
        if not self._left:
            self._room.acquire()
            self._put(event)

    def _put(self, event: Event | None) -> None:
        assert self._loop
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, event)
        except RuntimeError:  # the loop is closed
            self.leave()
