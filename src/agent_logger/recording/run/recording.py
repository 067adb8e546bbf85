"""Record one run: its prompt, every line it prints, how it ended. A failure here never disturbs the run."""

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Raw, structs

from agent_logger import config
from agent_logger.agents.registry import agent_called
from agent_logger.archive.sessions import is_archived
from agent_logger.clock import CLOCK
from agent_logger.home.install import key, know
from agent_logger.home.marks import label_session
from agent_logger.logs.exchange_log import RUN_STARTED
from agent_logger.messages import sdk
from agent_logger.messages.outcome import Failure, RunMetadata, RunOutcome
from agent_logger.messages.sdk import Inner, Result, SdkBlock, SdkMessage
from agent_logger.model.records import ExchangeStats, Exit, Redaction
from agent_logger.model.redaction.command_line import argument_credentials, hidden_arguments
from agent_logger.model.redaction.environment import environment_credentials
from agent_logger.model.redaction.redactor import Redactor
from agent_logger.protocols.json_text import encode
from agent_logger.recording.exchanges import Began, Exchanges, UserInput
from agent_logger.recording.run.events import Event, Events
from agent_logger.recording.run.output import ErrorOutput, RunOutput, prints_sdk_messages
from agent_logger.recording.session_writer import SessionWriter

log = logging.getLogger("agent_logger")
STARTED = b'{"type":"system","subtype":"%s"}' % RUN_STARTED.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """What is known of a run before it starts."""

    argv: list[str]
    began: Began
    prompt: str | None = None
    resumed_from: str | None = None
    goes_on: bool = False  # it continues an earlier session
    forks: bool = False  # with a new id
    label: str | None = None
    owes_result: bool = True  # otherwise only its exit shows whether it failed


class RunRecording:
    """The recording of one run. `folder` is where the log goes; if it is `None`, nothing is written and all else is the
    same."""

    def __init__(self, start: RunStart, folder: Path | None) -> None:
        self.outcome, self.output, self.errors = RunOutcome(), RunOutput(start.began.agent), ErrorOutput()
        self.folder = folder
        self.prompts: list[str] = []
        self._start, self._events = start, Events()
        agent = agent_called(start.began.agent)
        self._prints_older_totals = bool(agent and agent.run and agent.run.prints_session_totals) and start.goes_on
        self._lost = 0  # messages that could not be processed
        own = [*argument_credentials(start.argv), *environment_credentials(config.child_environment())]
        self._redactor = Redactor(key(), own)
        self._sessions: SessionWriter | UnwrittenSession = UnwrittenSession(start.began, goes_on=start.goes_on)
        if folder:
            know(folder)
            argv = [self._redacted_argument(argument) for argument in hidden_arguments(start.argv)]
            began = structs.replace(start.began, argv=argv)
            self._sessions = SessionWriter(folder, resumed_from=start.resumed_from, goes_on=start.goes_on, began=began)
        if start.prompt is None:
            self.note(STARTED)  # so that there is a log from now on, whatever comes
        else:
            self.prompt(start.prompt)

    # ------------------------------------------------------------ as it comes

    def prompt(self, text: str) -> None:
        self.prompts.append(text)
        self._attempt(lambda: self._input(text))

    def out(self, chunk: bytes) -> list[Event]:
        return [event for message in self.output.feed(chunk) for event in self._message(message)]

    def err(self, chunk: bytes) -> None:
        for message in self.errors.feed(chunk):
            self._message(message)

    def note(self, line: bytes) -> None:
        """Record another fact about the run, given as the JSON of a message."""
        self._message(sdk.read(line))

    def note_session(self, session_id: str, matched_by: str) -> None:
        """Record which session the run belongs to, and how that is known."""
        fact = {"type": "system", "subtype": "session_requests", "session_id": session_id, "matched_by": matched_by}
        self.note(encode(fact))

    def ended(self, exited: Exit | None) -> list[Event]:
        events = [event for sdk_message in self.output.end() for event in self._message(sdk_message)]
        for message in self.errors.end():
            self._message(message)
        self._attempt(self._label)
        self._metadata = self._facts(exited)
        self._attempt(lambda: self._sessions.finish(exited=exited))
        return events

    def metadata(self) -> RunMetadata:
        lost, path = self._lost + self._sessions.lost, self._sessions.path
        return self.outcome.metadata(**self._metadata, lost=lost, log=str(path) if path else None)

    def failure(self, exited: Exit | None, *, timed_out: bool = False) -> Failure | None:
        if not (self._start.owes_result or self.outcome.results or timed_out):
            return Failure.OTHER if exited is None or exited.signal or exited.status else None
        return self.outcome.failure(exited, self.errors.last, timed_out=timed_out)

    def has_answers(self) -> bool:
        """Whether the output says that a model was asked: it reports tokens, or a failure after the first turn began.
        An agent that refuses its arguments reports a failure, too, with no turn."""
        return any(
            stats.tokens_in or stats.tokens_out or (stats.is_error and stats.num_turns != 0)
            for stats in self.outcome.results
        )

    def resumable(self, failure: Failure | None) -> str | None:
        """The session that can be continued after this run."""
        if failure is Failure.SESSION_NOT_FOUND:
            return None
        return self.outcome.session_id or self._start.resumed_from

    def advice(self, failure: Failure | None) -> str | None:
        """What to do about the failure, if that is known."""
        session = self._start.resumed_from
        if failure is not Failure.SESSION_NOT_FOUND or session is None or not is_archived(config.home(), session):
            return None
        return f"the archive has a copy: restore it with 'agent-logger archive --restore {session}'"

    # ------------------------------------------------------------ the work

    def _message(self, message: SdkMessage) -> list[Event]:
        events: list[Event] = []
        if self._prints_older_totals and message.result:
            message = structs.replace(message, result=structs.replace(message.result, usage=None))

        def work() -> None:
            redacted = self._redactor.redact(message.raw, "message")
            clean = self._clean(message, redacted.data) if redacted.redactions else message
            self._sessions.message(clean, redacted.redactions)
            self.outcome.add(message, self._sessions.stats)
            events.extend(self._events.of(message, int(CLOCK.wall() * 1000)))

        self._attempt(work)
        return events

    def _clean(self, message: SdkMessage, data: bytes) -> SdkMessage:
        """The message without secrets, to be written. The caller gets what was printed, unchanged."""
        if message.is_text:
            return structs.replace(message, raw=data)
        if prints_sdk_messages(self._start.began.agent):
            return sdk.read(data)
        inner, result = self._clean_inner(message.inner), self._clean_result(message.result)
        return structs.replace(message, raw=data, inner=inner, result=result)

    def _input(self, prompt: str) -> None:
        redacted = self._redactor.redact_text(prompt, "user_input")
        self._sessions.input(UserInput.of(redacted.data), redacted.redactions)

    def _label(self) -> None:
        if self._start.label and self.outcome.session_id:
            label_session(config.home(), self.outcome.session_id, self._start.label)

    def _facts(self, exited: Exit | None) -> dict[str, Any]:
        return {
            "log_cost": self._sessions.cost_usd,
            "goes_on": self._start.goes_on,
            "resumed_from": self._start.resumed_from or self._continued(),
            "continues": self._sessions.continues,
            "exit_status": exited.status if exited else None,
            "signal": exited.signal if exited else None,
        }

    def _continued(self) -> str | None:
        """The session that a run continued which was started with "continue the last one": its log existed before, or
        its client reports counts from before. A session under a new id does not say."""
        if not self._start.goes_on or self._sessions.continues:
            return None
        session_id = self.outcome.session_id if self.outcome.has_history and not self._start.forks else None
        return self._sessions.resumed or session_id

    def _attempt(self, work: Callable[[], None]) -> None:
        """Run `work`, and count and log an exception: whatever goes wrong here must not reach the child."""
        try:
            work()
        except Exception as error:
            if not self._lost:
                log.warning("part of the run could not be recorded: %r", error)
            self._lost += 1

    def _clean_inner(self, inner: Inner | None) -> Inner | None:
        """The inner part of a translated message, without secrets."""
        if inner is None or isinstance(inner.content, str):
            return inner and structs.replace(inner, content=self._hidden(str(inner.content)))
        return structs.replace(inner, content=[*map(self._clean_block, inner.content)])

    def _clean_block(self, block: SdkBlock) -> SdkBlock:
        texts = {name: getattr(block, name) for name in ("text", "thinking", "input", "content")}
        clean = {
            name: Raw(self._redactor.redact(bytes(value), "message").data)
            for name, value in texts.items()
            if isinstance(value, Raw)
        }
        return structs.replace(block, **clean)

    def _clean_result(self, result: Result | None) -> Result | None:
        if not result or not result.errors:
            return result
        return structs.replace(result, errors=[*map(self._hidden, result.errors)])

    def _hidden(self, text: str) -> str:
        return self._redactor.redact_text(text, "message").data

    def _redacted_argument(self, argument: str) -> str:
        text = os.fsencode(argument).decode("utf-8", "replace")
        return self._redactor.redact_text(text, "argv").data


class UnwrittenSession:
    """A session that is counted but not written to a log."""

    path = resumed = cost_usd = continues = None
    lost = 0

    def __init__(self, began: Began, *, goes_on: bool = False) -> None:
        self.stats: ExchangeStats | None = None
        self._exchanges = Exchanges(CLOCK.uuid7, goes_on=goes_on, began=began)

    def input(self, given: UserInput, redactions: tuple[Redaction, ...]) -> None:
        _drop(self._exchanges.input(given, CLOCK.now(), redactions))

    def message(self, message: SdkMessage, redactions: tuple[Redaction, ...]) -> None:
        _drop(self._exchanges.message(message, CLOCK.now(), redactions))
        self.stats = self._exchanges.last_stats

    def finish(self, *, exited: Exit | None) -> None:
        _drop(self._exchanges.finish(None, CLOCK.now(), "eof", exited))


def _drop(records: Iterable[object]) -> None:
    for _ in records:
        pass
