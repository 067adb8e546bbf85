"""`agent-logger run`: run an agent with recording enabled."""

import logging
import os
import shutil
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.messages.outcome import Failure, RunMetadata
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from agent_logger.model.records import Exit
    from agent_logger.recording.run.events import Event
    from agent_logger.recording.run.passthrough import Overheard
    from agent_logger.recording.run.recording import RunRecording, RunStart
    from agent_logger.recording.run.session_files import SessionFiles

NOT_FOUND, NOT_RUNNABLE = 127, 126  # what a shell says
BEHIND = "agent_logger.run.behind"


class RunReport(RunMetadata, frozen=True, kw_only=True):
    """What `--json` prints: the metadata of the run, and whether it succeeded."""

    success: bool
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
@click.option("--fork", is_flag=True, help="Continue under a new id.")
@click.option("--label", metavar="NAME", help="Label for the session.")
@click.option("--model", metavar="NAME", help="Model to use.")
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Stop after this many turns.")
@click.option("--permission-mode", metavar="MODE", help="What the agent may do without asking.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="End the agent after this time.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a JSON report instead of the agent's output (docs/schemas/run.json).",
)
@settings_options("sessions_dir", "log_dir")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    settings: config.Configuration,
    prompt: str | None,
    timeout: float | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Run an agent with recording enabled, for this run only.

    \b
    Examples:
      agent-logger run -- claude             in the terminal, as always
      agent-logger run "Fix the timer"       one prompt for claude
      agent-logger run -- codex exec --json "Fix the timer"

    What the agent prints is passed on byte for byte, and its exit code is ours. A line on stderr sums the run up. Every
    line is in the log of its session, in the sessions folder, before the next.

    An agent that uses the terminal keeps it: the proxy records it, either a running one or one that is started for it.
    Nothing except its environment is changed.
    """
    logging.getLogger("agent_logger").addHandler(_Notes())
    behind: Sequence[str] | None = ctx.meta.get(BEHIND)
    if not behind and prompt is None:
        ctx.fail("say what to run: a prompt, or a command behind --")
    run = _Run(settings, as_json=as_json, timeout=timeout)
    if behind is None:
        return run.prompt(prompt or "", options)
    if prompt is not None:
        ctx.fail("a command behind --, or a prompt: one of the two")
    if given := [name for name, value in options.items() if value]:
        ctx.fail(f"--{given[0].strip('_').replace('_', '-')} is for a prompt; tell it the command behind --")
    from agent_logger.agents import command_lines as argv

    if sys.stdout.isatty() and not argv.is_headless(behind):
        return run.in_terminal(list(behind))
    return run.piped(list(behind))


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _output.note(f"agent-logger: {record.getMessage()}")


# ---------------------------------------------------------------- three ways


class _Run:
    def __init__(self, settings: config.Configuration, *, as_json: bool, timeout: float | None) -> None:
        self._settings, self._as_json, self._timeout = settings, as_json, timeout

    def prompt(self, prompt: str, options: dict[str, Any]) -> int:
        from agent_logger.recording.run.claude_command import command as command_of

        try:
            command = command_of(prompt, sessions_dir=self._settings.sessions_dir, **options)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        return self._pass(command.start, command.given, show=_show if sys.stdout.isatty() else None)

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
        from agent_logger.recording.run.terminal import proxy_for_child

        start, settings = _start(words, None), self._settings
        if not (
            shutil.which(words[0]) or os.path.lexists(words[0])
        ):  # no proxy for an agent that is not there
            return _not_started(start, FileNotFoundError(), as_json=self._as_json)
        with Signals() as signals, proxy_for_child(settings.home, settings.log_dir) as (environment, problem):
            if problem:
                _output.note(f"agent-logger: {problem}; the agent runs without the proxy")
            files = _files(start)
            try:
                child = signals.reach(Child(words, env=environment, given=None, piped=False))
            except OSError as error:
                return _not_started(start, error, as_json=self._as_json)
            with child:
                recording = RunRecording(start, settings.sessions_dir)
                exited = child.wait_in_terminal()
            if files:
                files.note(recording)
            recording.ended(exited)
        return _tell(recording, exited, as_json=self._as_json)

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

        files, hear = _files(start), overheard.hear if overheard else None
        with Signals() as signals:
            try:
                child = signals.reach(Child(start.argv, given=given, overhear=hear, timeout=self._timeout))
            except OSError as error:
                return _not_started(start, error, as_json=self._as_json)
            with child:
                recording = RunRecording(start, self._settings.sessions_dir)
                if overheard:
                    overheard.recording = recording
                silent = (lambda _: None) if self._as_json else show
                exited = pass_on(child, recording, show=silent, overheard=overheard, files=files)
        return _tell(recording, exited, as_json=self._as_json, timed_out=child.timed_out)


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
    return RunStart(
        argv=words,
        began=Began(
            "run",
            agent.name if agent else None,
            cwd=os.getcwd(),
            is_new=agent is not None and not argv.goes_on(words),
        ),
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
    texts = (
        [text for text in given.values() if isinstance(text, str)]
        if isinstance(given, dict)
        else [str(given)]
    )
    line = " ".join(_output.hidden(", ".join(texts)).split())
    return line if len(line) <= 70 else f"{line[:67]}..."


def _tell(recording: "RunRecording", exited: "Exit", *, as_json: bool, timed_out: bool = False) -> int:
    from agent_logger.recording.run.child import end_as

    metadata = recording.metadata()
    failure = recording.failure(exited, timed_out=timed_out)
    if as_json:
        error = (recording.outcome.error or recording.errors.last or None) if failure else None
        fields = {name: getattr(metadata, name) for name in metadata.__struct_fields__}
        _output.json(RunReport(success=failure is None, failure=failure, error=error, **fields))
    is_told = recording.outcome.results or timed_out  # else the agent itself has said why
    _output.note(f"agent-logger: {_summary(metadata, failure if is_told else None)}")
    sys.stdout.flush()
    return end_as(exited)


def _summary(metadata: RunMetadata, failure: Failure | None) -> str:
    from agent_logger.views.figures import counted, dollars, seconds_text

    parts = [
        f"session {screen.short_id(metadata.session_id)}" if metadata.session_id else _where(metadata.log)
    ]
    if metadata.turns is not None:
        parts.append(counted(metadata.turns, "turn"))
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
        parts.append(f"{metadata.lost} records lost")
    return " · ".join(parts)


def _where(log: str | None) -> str:
    return f"recorded in {log}" if log and Path(log).exists() else "not recorded"


def _not_started(start: "RunStart", error: OSError, *, as_json: bool) -> int:
    """Report that the agent did not start. Nothing is recorded: there was no agent to have a session with."""
    from agent_logger.recording.run.child import why_not_started

    why = why_not_started(start.argv[0], error)
    if as_json:
        missing = Failure.EXECUTABLE_MISSING
        _output.json(RunReport(success=False, failure=missing, error=why, resumed_from=start.resumed_from))
    _output.note(f"agent-logger: {why}")
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
