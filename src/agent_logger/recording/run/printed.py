"""Read the output of a run that somebody else started."""

import os

from agent_logger.agents.claude_code import AGENT as CLAUDE_CODE
from agent_logger.agents.registry import resume_command
from agent_logger.clock import CLOCK
from agent_logger.messages.outcome import Failure, RunOutcome
from agent_logger.recording.exchanges import Began
from agent_logger.recording.run.events import Event, Events
from agent_logger.recording.run.output import RunOutput, agent_printing, in_one_line
from agent_logger.recording.run.recording import UnwrittenSession
from agent_logger.recording.run.runner import RunResult


def read_output(stdout: str | bytes) -> RunResult:
    """Read what an agent printed, and return the same result as `run`, with its events.

    The output is one JSON object, an array, in one line or several, or one object per line, as Claude Code, Codex,
    Gemini CLI, opencode and Qwen Code print it; which of them it was is seen in the output. Nothing is recorded. The
    `timestamp` of an event is the time of this call. Never raises: output without a result has `Failure.NO_RESULT`.
    """
    data = stdout.encode("utf-8", "replace") if isinstance(stdout, str) else bytes(stdout)
    return _Printed(data).result()


class _Printed:
    def __init__(self, data: bytes) -> None:
        self._data, self._agent = data, agent_printing(data)
        self._output, self._outcome, self._cwd = RunOutput(self._agent), RunOutcome(), os.getcwd()
        self._events: list[Event] = []
        self._read()

    def _read(self) -> None:
        session, events = UnwrittenSession(Began("run", self._agent)), Events()
        lines = in_one_line(self._data) or self._data
        for message in [*self._output.feed(lines + b"\n"), *self._output.end()]:
            session.message(message, ())
            self._outcome.add(message, session.stats)
            self._events += events.of(message, int(CLOCK.wall() * 1000))
            if message.init and message.init.cwd:
                self._cwd = message.init.cwd

    def result(self) -> RunResult:
        outcome, failure = self._outcome, self._outcome.failure(None, "\n".join(self._output.warnings))
        return RunResult(
            success=failure is None,
            data=outcome.data,
            error=(outcome.error or "the output has no result") if failure else None,
            failure=failure,
            stdout=self._data.decode("utf-8", "replace"),
            stderr=None,
            warnings=self._output.warnings,
            metadata=outcome.metadata(),
            events=self._events,
            _resume=self._resume(failure),
        )

    def _resume(self, failure: Failure | None) -> tuple[list[str], str] | None:
        if failure is Failure.SESSION_NOT_FOUND or not self._outcome.session_id:
            return None
        command = resume_command(self._agent or CLAUDE_CODE.name, self._outcome.session_id)
        return (command, self._cwd) if command else None
