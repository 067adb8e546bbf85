"""The command line that gives `claude` one prompt: which options it gets, and what goes to its standard input."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

from agent_logger import config
from agent_logger.agents.claude_code import AGENT as CLAUDE_CODE
from agent_logger.agents.command_lines import resumed_by, starts_new
from agent_logger.home.install import hmac_of
from agent_logger.home.marks import session_labelled
from agent_logger.model.records import SystemPrompt
from agent_logger.recording.exchanges import Began
from agent_logger.recording.run.recording import RunStart

# A longer prompt is passed on standard input: the system accepts 128 KB in one argument.
ARGUMENT_BYTES = 64 << 10
STREAM = ("--output-format", "stream-json", "--verbose")
StrPath = str | os.PathLike[str]
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class RunOptions(TypedDict, total=False):
    """The options of a run; docs/run.md explains each."""

    resume: str | None
    continue_: bool
    fork: bool
    session_id: str | None
    label: str | None
    include_events: bool
    max_turns: int | None
    model: str | None
    permission_mode: str | None
    system_prompt: str | None
    system_prompt_file: StrPath | None
    append_system_prompt: str | None
    append_system_prompt_file: StrPath | None
    cwd: StrPath | None
    timeout: float | None
    executable: str
    extra_args: Sequence[str]
    sessions_dir: StrPath | None
    record: bool
    record_requests: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A run that has not started yet."""

    start: RunStart
    given: bytes  # to its standard input
    cwd: str
    timeout: float | None
    sessions_dir: Path | None  # `None`: it is not recorded
    include_events: bool
    record_requests: bool

    @property
    def executable(self) -> str:
        return self.start.argv[0]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A prompt and its options, with the default of each option."""

    prompt: str
    _: KW_ONLY
    resume: str | None = None
    continue_: bool = False
    fork: bool = False
    session_id: str | None = None
    label: str | None = None
    include_events: bool = False
    max_turns: int | None = None
    model: str | None = None
    permission_mode: str | None = None
    system_prompt: str | None = None
    system_prompt_file: StrPath | None = None
    append_system_prompt: str | None = None
    append_system_prompt_file: StrPath | None = None
    cwd: StrPath | None = None
    timeout: float | None = None
    executable: str = "claude"
    extra_args: Sequence[str] = ()
    sessions_dir: StrPath | None = None
    record: bool = True
    record_requests: bool = True


SYSTEM_PROMPTS = (
    "system_prompt",
    "system_prompt_file",
    "append_system_prompt",
    "append_system_prompt_file",
)
FLAGS = {
    "resume": "--resume",
    "continue_": "--continue",
    "fork": "--fork-session",
    "session_id": "--session-id",
    "max_turns": "--max-turns",
    "model": "--model",
    "permission_mode": "--permission-mode",
    **{form: f"--{form.replace('_', '-')}" for form in SYSTEM_PROMPTS},
}


def command(prompt: str, **options: Unpack[RunOptions]) -> Command:
    """Build the command of a run. Raises `ValueError` for options that make no sense."""
    _check_names(options)
    run_options = RunRequest(prompt, **options)
    if run_options.resume is not None:
        run_options = replace(
            run_options, resume=session_labelled(config.home(), run_options.resume) or run_options.resume
        )
    _check(run_options)
    folder, is_argument = (
        os.path.abspath(os.path.expanduser(run_options.cwd or ".")),
        _fits_an_argument(prompt),
    )
    words = [run_options.executable, "-p", *([prompt] if is_argument else []), *_arguments(run_options)]
    is_new = starts_new(["claude", *_arguments(run_options)], CLAUDE_CODE.name)
    began = Began("run", CLAUDE_CODE.name, cwd=folder, system_prompt=_noted(run_options) or None, is_new=is_new)
    return Command(
        start=RunStart(
            argv=words,
            began=began,
            prompt=prompt,
            resumed_from=run_options.resume or resumed_by(["claude", *run_options.extra_args]),
            goes_on=not is_new,
            forks=run_options.fork or FLAGS["fork"] in run_options.extra_args,
            label=run_options.label,
        ),
        given=b"" if is_argument else prompt.encode("utf-8", "replace"),
        cwd=folder,
        timeout=run_options.timeout,
        sessions_dir=config.sessions_dir_of_runs(run_options.sessions_dir) if run_options.record else None,
        include_events=run_options.include_events,
        record_requests=run_options.record and run_options.record_requests,
    )


def _check_names(options: Iterable[str]) -> None:
    """Raise `TypeError` for an option that does not exist, as a function with these parameters does."""
    for name in options:
        if name not in RunOptions.__annotations__:
            from difflib import get_close_matches

            near = get_close_matches(name, RunOptions.__annotations__, 1)
            raise TypeError(f"there is no option {name!r}{f'; did you mean {near[0]!r}?' if near else ''}")


def _check(options: RunRequest) -> None:
    for name, value in (("resume", options.resume), ("session_id", options.session_id)):
        if value is not None and not _ID.fullmatch(value):
            raise ValueError(f"{name}={value!r} is neither a session id nor a known label")
    if options.fork and not (options.resume or options.continue_):
        raise ValueError("fork needs resume or continue")
    if options.resume and options.continue_:
        raise ValueError("use either resume or continue, not both")
    if not options.prompt.strip():
        raise ValueError("the prompt is empty")
    if options.timeout is not None and not options.timeout > 0:
        raise ValueError(f"timeout={options.timeout:g}: must be more than 0 seconds")
    if isinstance(options.extra_args, str):
        raise ValueError("extra_args must be a list of arguments, not a string")


def _fits_an_argument(prompt: str) -> bool:
    """Whether the prompt can be an argument: a single word could be taken for a subcommand, a leading dash for an
    option."""
    size = len(prompt.encode("utf-8", "replace"))
    return size <= ARGUMENT_BYTES and len(prompt.split()) > 1 and prompt[0] != "-" and "\0" not in prompt


def _arguments(options: RunRequest) -> Iterator[str]:
    """The options as arguments. Each flag is joined with its value, or a value that begins with a dash would be taken
    for an option."""
    if not any(argument.startswith("--output-format") for argument in options.extra_args):
        yield from STREAM
    for name, flag in FLAGS.items():
        value = getattr(options, name)
        if value not in (None, False):
            yield flag if value is True else f"{flag}={value}"
    yield from options.extra_args


def _noted(options: RunRequest) -> list[SystemPrompt]:
    given = {form: prompt for form in SYSTEM_PROMPTS if (prompt := getattr(options, form)) is not None}
    return [SystemPrompt(form=form, hmac=_hmac(form, value)) for form, value in given.items()]


def _hmac(form: str, value: StrPath) -> str | None:
    if not form.endswith("_file"):
        return hmac_of(str(value).encode("utf-8", "surrogatepass"))
    try:
        return hmac_of(Path(value).read_bytes())
    except OSError:
        return None  # the agent will say so
