"""The command line: one module per command, imported when it is called.

`main` turns every way a command can end into an exit code: 0 fine, 1 failed, 2 wrong usage or setting, 130 stopped by
Ctrl-C. A command returns its exit code, or nothing for 0.
"""

import os
import re
import select
import sys
from importlib import import_module
from io import TextIOWrapper
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, NoReturn

import click

from agent_logger.errors import AgentLoggerError, ConfigError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

NAME = "agent-logger"
IMPLIED = "start"  # what `agent-logger --port 9000` means

# Each command is `command` in the module of its name; the line is here so that help and
# completion import none of them.
SECTIONS = {
    "Record": {
        "start": "start recording (the same as no command)",
        "run": "run an agent with recording enabled",
        "proxy": "start the proxy alone",
        "demo": "record and show a scripted conversation; needs no key",
    },
    "Read": {
        "view": "open the page in a browser",
        "ls": "list sessions, newest first",
        "show": "show one session as a conversation",
        "search": "search for words in all sessions",
        "tree": "show a session's forks and sub-agents",
        "tail": "follow all live sessions",
        "usage": "show tokens and cost by day, week, month, session, model, project, agent, tool",
        "find": "print the path of a session's file",
        "cat": "print every record of a log, sealed or not, as JSONL",
        "tag": "keep labels, a pin or a note with a session",
        "export": "export sessions to files",
    },
    "Keep": {
        "archive": "copy agents' sessions; --restore brings one back",
        "import": "import sessions of other machines: bundles, session files, homes",
        "hook": "store what an agent's hooks report; --install sets them up",
    },
    "Share": {
        "join": "join a team's hub with an invite",
        "share": "show or set how much of which project is shared",
        "push": "send what is shared to the hub",
        "withdraw": "withdraw a session from the hub, for good",
        "leave": "leave the hub",
        "hub": "serve a hub for a team, and invite people",
    },
    "Check": {
        "status": "show whether the proxy is recording",
        "doctor": "check the setup and suggest fixes",
        "verify": "read all logs and report damage",
        "du": "show how much disk space the logs use",
        "rm": "delete the recordings of a session",
        "prune": "delete the recordings of old or large sessions",
    },
    "Set up": {
        "init": "set up a project folder so that its logs stay out of git",
        "service": "keep the proxy and the page running in the background",
        "env": "print shell commands that send agents through the proxy",
        "ca": "show or renew the certificate of the forward door",
        "statusline": "print a line for Claude Code's status bar",
        "context": "show which instructions and settings Claude Code uses here",
        "config": "show every setting, its value and its source",
        "schema": "print the JSON schema of a command's JSON or of a log",
        "completion": "print the completion script for bash, zsh or fish",
    },
}
COMMANDS = {name: line for section in SECTIONS.values() for name, line in section.items()}


def module_of(command: str) -> str:
    """Return the module of a command. A word of Python is no name for a module."""
    return f"{__name__}.{command}_" if iskeyword(command) else f"{__name__}.{command}"


EXAMPLES = [
    ("agent-logger demo", "record a scripted session; needs no key"),
    ("agent-logger run -- claude", "record this session"),
    ("agent-logger status", "check that it is recording"),
    ("agent-logger ls", "list the newest sessions"),
    ("agent-logger usage", "show what the agents cost"),
    ("agent-logger verify", "check everything that was recorded"),
    ("agent-logger verify ~/.claude/projects", "check an agent's own files"),
    ("agent-logger config --json", "print the settings for a program"),
]


class Shell(click.Group):
    """The group of all commands. Imports only the command that is called."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(module_of(cmd_name)).command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name for option in self.get_params(ctx) for name in option.opts}
        # `agent-logger <TAB>` asks for the commands, so there nothing is implied.
        bare = not args and not ctx.resilient_parsing
        args = _as_options(args)
        if bare or (args and args[0].startswith("-") and args[0] not in own):
            args = [IMPLIED, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            from agent_logger.cli._hints import command_hint

            ctx.fail(f"unknown command {args[0]!r}{command_hint(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, EOFError) as error:
            if isinstance(error, BrokenPipeError) and _reader_is_gone():
                raise
            raise _MisreadError from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        if not incomplete.startswith("-"):
            return [CompletionItem(name, help=COMMANDS[name]) for name in COMMANDS if name.startswith(incomplete)]
        implied = self.get_command(ctx, IMPLIED)
        assert implied is not None
        with implied.make_context(IMPLIED, [], parent=ctx, resilient_parsing=True) as inner:
            items = [
                *click.Command.shell_complete(self, ctx, incomplete),
                *implied.shell_complete(inner, incomplete),
            ]
        return list({item.value: item for item in items}.values())

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[COMMAND] [OPTIONS]")

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(max(map(len, COMMANDS))), line) for name, line in commands.items()])

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            formatter.write_dl(EXAMPLES)
        formatter.write("\n'agent-logger COMMAND --help' explains a command.\n")


def _print_version(ctx: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    if not is_asked or ctx.resilient_parsing:
        return
    import platform
    import sqlite3

    from agent_logger import __version__

    click.echo(f"{NAME} {__version__} (Python {platform.python_version()}, SQLite {sqlite3.sqlite_version})")
    ctx.exit()


@click.command(cls=Shell, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the versions.",
)
def shell() -> None:
    """The flight recorder for coding agents: every session, word for word.

    Without a command, it runs start and takes the options of start.
    """


def _as_options(args: list[str]) -> list[str]:
    """`help`, `help ls` and `version`, which other programs have as commands, as the options that they are here."""
    match args:
        case ["help", *command]:
            return [*command[:1], "--help"]
        case ["version"]:
            return ["--version"]
    return args


class _MisreadError(Exception):
    """A wrapper for an error that click misreads, and then stays silent: it takes every broken pipe for that of stdout,
    and every end of file for the user's Ctrl-D."""


def main() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run())


def _run() -> int:
    try:
        code = shell.main(prog_name=NAME, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        return _fail(_usage(error), error.exit_code)
    except ConfigError as error:
        return _fail(str(error), 2)
    except AgentLoggerError as error:
        return _fail(str(error), 1)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:
        from agent_logger.config import debug  # only now: `--help` needs no settings

        if debug():
            raise
        _drop_unwritten_output()
        cause = error.__cause__ if isinstance(error, _MisreadError) else error
        if isinstance(cause, OSError) and cause.filename and cause.strerror:  # a file of the user's, not a bug
            return _fail(f"{cause.filename}: {cause.strerror}", 1)
        text = f"{type(cause).__name__}: {cause}".rstrip(": ")
        return _fail(f"{text} (AGENT_LOGGER_DEBUG=1 shows where)", 1)


def _fail(message: str, code: int) -> int:
    from agent_logger.cli._output import note, printable

    note(f"{NAME}: {printable(message)}")
    return code


def _usage(error: click.ClickException) -> str:
    message = _NUMBER.sub(lambda match: NUMBERS[match[1]], " ".join(error.format_message().split()).rstrip("."))
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return message
    if (hint := _hint(error, context)) and isinstance(error, click.NoSuchOption):
        message = error.message.rstrip(".")  # without click's guess
    return f"{message}{hint} (see {context.command_path} --help)"


def _hint(error: click.ClickException, context: click.Context) -> str:
    from agent_logger.cli._hints import argument_hint, option_hint

    options = {name for parameter in context.command.params for name in parameter.opts}
    if isinstance(error, click.NoSuchOption):
        return option_hint(error.option_name, options)
    extra = _EXTRA.match(error.message)
    return argument_hint(extra[1], options) if extra else ""


# As click says it.
_NUMBER = re.compile(r"is not a valid (integer|float)(?: range)?$")
NUMBERS = {"integer": "is not a whole number", "float": "is not a number"}
_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)")


def _drop_unwritten_output() -> None:
    """Drop what a full disk did not take: Python would try to write it once more at exit, and print its own error."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _reader_is_gone() -> bool:
    """Whether stdout or stderr is a pipe whose reader has closed it, such as `| head`."""
    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
