"""`agent-logger run`: run an agent with recording enabled."""

import logging
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.messages.outcome import Failure, RunMetadata
from agent_logger.model.plurals import pluralize
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from agent_logger.model.records import Exit
    from agent_logger.recording.run.doors import DoorChoice
    from agent_logger.recording.run.events import Event
    from agent_logger.recording.run.passthrough import Overheard
    from agent_logger.recording.run.proxied import ProxiedRun, RequestSummary
    from agent_logger.recording.run.recording import RunRecording, RunStart
    from agent_logger.recording.run.session_files import SessionFiles

NOT_FOUND, NOT_RUNNABLE = 127, 126  # exit codes, as in a shell
BEHIND = "agent_logger.run.behind"


class RunReport(RunMetadata, frozen=True, kw_only=True):
    """What `--json` prints: the answer, whether the run succeeded, and its metadata."""

    success: bool
    data: Any = None  # the last result's text, or its structured output
    failure: Failure | None
    error: str | None


class _WithCommand(click.Command):
    """A command that leaves everything after `--` unread, for the agent."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[BEHIND] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[OPTIONS] PROMPT")
        formatter.write_usage(ctx.command_path, "[OPTIONS] -- COMMAND [ARGUMENTS]")


@click.command(cls=_WithCommand)
@click.argument("prompt", required=False)
@click.option("--resume", metavar="ID", help="Continue a session, by its id or its label.")
@click.option("--continue", "continue_", is_flag=True, help="Continue the last session of this folder.")
@click.option("--fork", is_flag=True, help="Continue the session as a fork, with a new id.")
@click.option("--label", metavar="NAME", help="Label for the session.")
@click.option("--model", metavar="NAME", help="Model to use.")
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Stop after this many turns.")
@click.option("--permission-mode", metavar="MODE", help="What the agent may do without asking.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Stop the agent after this time.",
)
@click.option(
    "--door",
    type=click.Choice(["auto", "base-url", "forward"]),
    default="auto",
    help="How requests reach the proxy: by base URLs, or as through an HTTPS proxy. Default: what the agent needs.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a JSON report instead of the agent's output; 'agent-logger schema run' describes it.",
)
@settings_options("sessions_dir", "log_dir")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    settings: config.Configuration,
    prompt: str | None,
    timeout: float | None,
    door: "DoorChoice",
    as_json: bool,
    **options: Any,
) -> int:
    """Run an agent with recording enabled, for this run only.

    \b
    Examples:
      agent-logger run -- claude             in the terminal, as usual
      agent-logger run "Fix the timer"       one prompt for claude
      agent-logger run -- codex exec --json "Fix the timer"

    The output of the agent is passed on byte for byte, and this command exits with its exit code. Each output line is
    written to a log in the sessions folder before the next one is read.

    The agent's requests go through the proxy: a running one, or one that is started, logs to the folder of agent-logger
    in your home, and is shared by all runs. Only the environment and the arguments of this agent are changed. The last
    line on stderr says how many requests were recorded, and if none was, why.
    """
    logging.getLogger("agent_logger").addHandler(_Notes())
    behind: Sequence[str] | None = ctx.meta.get(BEHIND)
    if not behind and prompt is None:
        ctx.fail("nothing to run: give a prompt, or a command after --")
    run = _Run(settings, as_json=as_json, timeout=timeout, door=door)
    if behind is None:
        return run.prompt(prompt or "", options)
    if prompt is not None:
        ctx.fail("give either a prompt or a command after --, not both")
    if given := [name for name, value in options.items() if value]:
        ctx.fail(f"--{given[0].strip('_').replace('_', '-')} works only with a prompt; pass it to the command after --")
    from agent_logger.agents import command_lines as argv

    if sys.stdout.isatty() and not argv.is_headless(behind):
        return run.in_terminal(list(behind))
    return run.piped(list(behind))


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _output.note(f"agent-logger: {record.getMessage()}")


# ---------------------------------------------------------------- three ways


class _Run:
    def __init__(
        self, settings: config.Configuration, *, as_json: bool, timeout: float | None, door: "DoorChoice"
    ) -> None:
        self._settings, self._as_json, self._timeout, self._door = settings, as_json, timeout, door

    def prompt(self, prompt: str, options: dict[str, Any]) -> int:
        from agent_logger.recording.run.claude_command import command as command_of

        try:
            command = command_of(prompt, sessions_dir=self._sessions_dir, **options)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        return self._pass(command.start, command.given, show=_show if sys.stdout.isatty() else None)

    @property
    def _sessions_dir(self) -> Path:
        """The folder of the logs: in the home, where runs in any folder are together, unless the user chose one."""
        settings = self._settings
        return settings.home / "sessions" if settings.is_default("sessions_dir") else settings.sessions_dir

    def _proxied(self, start: "RunStart") -> "AbstractContextManager[ProxiedRun]":
        from agent_logger.agents.registry import agent_called
        from agent_logger.recording.run.proxied import proxied

        settings = self._settings
        log_dir = None if settings.is_default("log_dir") else settings.log_dir
        agent = agent_called(start.began.agent)
        return proxied(start.argv, Path.cwd(), agent, log_dir=log_dir, door=self._door)

    def piped(self, words: list[str]) -> int:
        from agent_logger.agents import command_lines as argv
        from agent_logger.recording.run.passthrough import Overheard

        agent, prompt = argv.agent_of(words), argv.prompt_of(words)
        overheard = None
        if agent and argv.is_headless(words) and _is_sent_to(0):
            overheard = Overheard(prompt, is_messages=argv.takes_messages(words))
        return self._pass(_start(words, None if overheard else prompt), None, overheard=overheard)

    def in_terminal(self, words: list[str]) -> int:
        from agent_logger.recording.run.child import Child
        from agent_logger.recording.run.passthrough import Signals
        from agent_logger.recording.run.recording import RunRecording

        start = _start(words, None)
        with Signals() as signals, self._proxied(start) as sent:
            files = _files(start)
            try:
                child = signals.reach(Child(sent.child.argv, env=sent.child.environment, given=None, piped=False))
            except OSError as error:
                return _not_started(start, error, as_json=self._as_json)
            sent.attach(child)
            with child:
                recording = RunRecording(start, self._sessions_dir)
                exited = child.wait_in_terminal()
            if files:
                files.note(recording)
            requests = _finish(sent, recording, files)
            recording.ended(exited)
        return self._report_end(recording, exited, requests)

    def _pass(
        self,
        start: "RunStart",
        given: bytes | None,
        *,
        show: "Callable[[list[Event]], None] | None" = None,
        overheard: "Overheard | None" = None,
    ) -> int:
        from agent_logger.recording.run.child import Child
        from agent_logger.recording.run.passthrough import Signals, pass_on
        from agent_logger.recording.run.recording import RunRecording

        hear = overheard.hear if overheard else None
        with Signals() as signals, self._proxied(start) as sent:
            files, argv, environment = _files(start), sent.child.argv, sent.child.environment
            try:
                child = Child(argv, env=environment, given=given, overhear=hear, timeout=self._timeout)
            except OSError as error:
                return _not_started(start, error, as_json=self._as_json)
            signals.reach(child)
            sent.attach(child)
            with child:
                recording = RunRecording(start, self._sessions_dir)
                if overheard:
                    overheard.recording = recording
                silent = (lambda _: None) if self._as_json else show
                requests: list[RequestSummary | None] = []

                def identify() -> None:
                    requests.append(_finish(sent, recording, files))
                    if files and not recording.outcome.session_id:
                        files.note(recording)

                exited = pass_on(child, recording, show=silent, overheard=overheard, identify=identify)
        return self._report_end(recording, exited, requests[0], timed_out=child.timed_out)

    def _report_end(
        self,
        recording: "RunRecording",
        exited: "Exit",
        requests: "RequestSummary | None",
        *,
        timed_out: bool = False,
    ) -> int:
        from agent_logger.recording.run.child import end_as
        from agent_logger.recording.run.proxied import with_requests

        metadata = with_requests(recording.metadata(), requests)
        failure = recording.failure(exited, timed_out=timed_out)
        advice = recording.advice(failure)
        if self._as_json:
            _output.json(_run_report(recording, metadata, failure, advice))
        has_own_result = recording.outcome.results or timed_out  # otherwise the agent itself has reported why
        summary = _summary(metadata, failure if has_own_result else None)
        last_line_names_session = requests and requests.requests and metadata.session_id
        if len(summary) > 1 or not last_line_names_session:
            _output.note(f"agent-logger: {' · '.join(summary)}")
        if advice:
            _output.note(f"agent-logger: {advice}")
        if requests:
            for text in _not_recorded(requests):
                _output.note(f"agent-logger: {text}")
            _output.note(_requests_line(requests, metadata, self._settings.home))
        sys.stdout.flush()
        return end_as(exited)


def _finish(sent: "ProxiedRun", recording: "RunRecording", files: "SessionFiles | None") -> "RequestSummary | None":
    """Wait for the requests of the run. If nothing else names its session, the agent's own files do, or else they."""

    def has_answers() -> bool:
        return recording.has_answers() or (files is not None and files.has_answers())

    def answers_of(session: str) -> frozenset[str]:
        return files.answers_of(session) if files else frozenset()

    requests = sent.finish(has_answers=has_answers, answers_of=answers_of)
    if not recording.outcome.session_id:
        own = files.own_session(recording.prompts) if files else None
        if session := own or (requests.session if requests else None):
            found_by = "prompt" if recording.prompts else "only_file"
            recording.note_session(session, found_by if own else "requests")
    return requests


def _files(start: "RunStart") -> "SessionFiles | None":
    from agent_logger.agents.registry import agent_called
    from agent_logger.recording.run.session_files import SessionFiles

    agent = agent_called(start.began.agent)
    return SessionFiles(agent, Path.cwd()) if agent else None


def _start(words: list[str], prompt: str | None) -> "RunStart":
    from agent_logger.agents import command_lines as argv
    from agent_logger.recording.exchanges import Began
    from agent_logger.recording.run.recording import RunStart

    agent = argv.agent_of(words)
    name = agent.name if agent else None
    return RunStart(
        argv=words,
        began=Began("run", name, cwd=os.getcwd(), is_new=argv.starts_new(words, name)),
        prompt=prompt,
        resumed_from=argv.resumed_by(words),
        goes_on=argv.goes_on(words),
        forks="--fork-session" in words,
        owes_result=argv.is_headless(words),
    )


def _is_sent_to(descriptor: int) -> bool:
    """Whether the descriptor is a pipe or a file, which an agent without a terminal reads to its end."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


# ---------------------------------------------------------------- what is said


def _show(events: "list[Event]") -> None:
    """Print the events for a person who watches."""
    for event in events:
        if event.type == "content" and not event.parent_tool_use_id:
            _output.echo(_output.hidden(event.text or ""), lines=True)
        elif event.type == "tool_use":
            _output.note(f"> {event.tool} {_brief(event.input)}")


def _brief(given: Any) -> str:
    texts = [text for text in given.values() if isinstance(text, str)] if isinstance(given, dict) else [str(given)]
    line = " ".join(_output.hidden(", ".join(texts)).split())
    return line if len(line) <= 70 else f"{line[:67]}..."


def _not_recorded(requests: "RequestSummary") -> Iterator[str]:
    """Yield what of the agent's traffic was not recorded."""
    from agent_logger.views.recorded_runs import gaps, unread_text

    yield from gaps(requests.last_run)
    if text := unread_text(requests.last_run):
        yield text


def _requests_line(requests: "RequestSummary", metadata: RunMetadata, home: Path) -> str:
    """The last line: how many requests were recorded, what they cost, and how to see them."""
    from agent_logger.views.figures import money
    from agent_logger.views.recorded_runs import no_requests_text

    count = f"{pluralize(requests.requests, 'request')} recorded{'' if requests.is_complete else ' so far'}"
    if requests.reason:
        detail = requests.problem or no_requests_text(requests.last_run)
        return f"{pluralize(0, 'request')} recorded · {requests.reason}: {detail}"
    session = metadata.session_id or requests.session
    parts = [count, "cost unknown" if requests.cost.usd is None else money(requests.cost)]
    parts += [f"agent-logger show {screen.short_id(session)}"] if session else []
    parts += [f"in {requests.log_dir}"] if requests.log_dir != home / "logs" else []
    return " · ".join(parts)


def _run_report(
    recording: "RunRecording", metadata: RunMetadata, failure: Failure | None, advice: str | None
) -> RunReport:
    texts = (recording.outcome.error or recording.errors.last, advice)
    error = "; ".join(filter(None, texts)) or None if failure else None
    data = recording.outcome.data if failure is None else None
    return RunReport(success=failure is None, data=data, failure=failure, error=error, **structs.asdict(metadata))


def _summary(metadata: RunMetadata, failure: Failure | None) -> list[str]:
    from agent_logger.views.figures import dollars, seconds_text

    log = metadata.log
    where = f"recorded in {log}" if log and os.path.exists(log) else "not recorded"
    parts = [f"session {screen.short_id(metadata.session_id)}" if metadata.session_id else where]
    if metadata.turns is not None:
        parts.append(pluralize(metadata.turns, "turn"))
    if metadata.tokens:
        tokens = metadata.tokens
        read = tokens.input + tokens.cache_creation + tokens.cache_read
        parts.append(f"{read:,} in, {tokens.output:,} out tokens")
        parts.append("cost unknown" if metadata.cost is None else dollars(metadata.cost))
    if metadata.duration_ms is not None:
        parts.append(seconds_text(metadata.duration_ms / 1000))
    if failure:
        parts.append(failure.replace("_", " "))
    if metadata.lost:
        parts.append(f"{pluralize(metadata.lost, 'record')} lost")
    return parts


def _not_started(start: "RunStart", error: OSError, *, as_json: bool) -> int:
    """Report that the agent did not start. Nothing is recorded: there was no agent to have a session with."""
    from agent_logger.recording.run.child import why_not_started

    why = why_not_started(start.argv[0], error)
    if as_json:
        missing = Failure.EXECUTABLE_MISSING
        _output.json(RunReport(success=False, failure=missing, error=why, resumed_from=start.resumed_from))
    _output.note(f"agent-logger: {why}")
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
