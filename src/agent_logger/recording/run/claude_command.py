"""The command line of one prompt for `claude`: which options it is told, and what goes by its standard input."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

from agent_logger import config
from agent_logger.agents.command_lines import resumed_by, starts_new
from agent_logger.home.facts import session_labelled
from agent_logger.home.install import hmac_of
from agent_logger.model.records import SystemPrompt
from agent_logger.recording.exchanges import Began
from agent_logger.recording.run.recording import Start

AGENT = "claude-code"
ARGUMENT_BYTES = 64 << 10  # a longer prompt goes by standard input: the system takes 128 KB in one argument
STREAM = ("--output-format", "stream-json", "--verbose")
StrPath = str | os.PathLike[str]
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class RunOptions(TypedDict, total=False):
    """What a run can be told; docs/run.md explains each."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A run that is to be."""

    start: Start
    given: bytes  # to its standard input
    cwd: str
    timeout: float | None
    sessions_dir: Path | None  # `None`: it is not recorded
    include_events: bool

    @property
    def executable(self) -> str:
        return self.start.argv[0]


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt and its options, with what holds where nothing is said."""

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
    """Raises `ValueError` for what makes no sense."""
    asked = Asked(prompt, **options)
    if asked.resume is not None:
        asked = replace(asked, resume=session_labelled(config.home(), asked.resume) or asked.resume)
    _check(asked)
    folder, is_argument = os.path.abspath(os.path.expanduser(asked.cwd or ".")), _fits_an_argument(prompt)
    sessions_dir = Path(asked.sessions_dir or "./sessions").expanduser().absolute()
    words = [asked.executable, "-p", *([prompt] if is_argument else []), *_arguments(asked)]
    is_new = starts_new(["claude", *_arguments(asked)], AGENT)
    began = Began("run", AGENT, cwd=folder, system_prompt=_noted(asked) or None, is_new=is_new)
    return Command(
        start=Start(
            argv=words,
            began=began,
            prompt=prompt,
            resumed_from=asked.resume or resumed_by(["claude", *asked.extra_args]),
            goes_on=not is_new,
            forks=asked.fork or FLAGS["fork"] in asked.extra_args,
            label=asked.label,
        ),
        given=b"" if is_argument else prompt.encode("utf-8", "replace"),
        cwd=folder,
        timeout=asked.timeout,
        sessions_dir=sessions_dir if asked.record else None,
        include_events=asked.include_events,
    )


def _check(asked: Asked) -> None:
    for name, value in (("resume", asked.resume), ("session_id", asked.session_id)):
        if value is not None and not _ID.fullmatch(value):
            raise ValueError(f"{name}={value!r} is no session id, and no label that is known")
    if asked.fork and not (asked.resume or asked.continue_):
        raise ValueError("fork needs resume or continue: there is nothing to fork")
    if asked.resume and asked.continue_:
        raise ValueError("either resume or continue: they name different sessions")
    if not asked.prompt.strip():
        raise ValueError("the prompt is empty")
    if asked.timeout is not None and not asked.timeout > 0:
        raise ValueError(f"timeout={asked.timeout:g}: it is to be more than 0 seconds")
    if isinstance(asked.extra_args, str):
        raise ValueError("extra_args is a list of arguments, not one text")


def _fits_an_argument(prompt: str) -> bool:
    """One word alone could be taken for a subcommand, a dash for an option."""
    size = len(prompt.encode("utf-8", "replace"))
    return size <= ARGUMENT_BYTES and len(prompt.split()) > 1 and prompt[0] != "-" and "\0" not in prompt


def _arguments(asked: Asked) -> Iterator[str]:
    """Flags are joined with their values, or one that begins with a dash would be taken for an option."""
    if not any(it.startswith("--output-format") for it in asked.extra_args):
        yield from STREAM
    for name, flag in FLAGS.items():
        value = getattr(asked, name)
        if value not in (None, False):
            yield flag if value is True else f"{flag}={value}"
    yield from asked.extra_args


def _noted(asked: Asked) -> list[SystemPrompt]:
    given = {form: it for form in SYSTEM_PROMPTS if (it := getattr(asked, form)) is not None}
    return [SystemPrompt(form=form, hmac=_hmac(form, value)) for form, value in given.items()]


def _hmac(form: str, value: StrPath) -> str | None:
    if not form.endswith("_file"):
        return hmac_of(str(value).encode("utf-8", "surrogatepass"))
    try:
        return hmac_of(Path(value).read_bytes())
    except OSError:
        return None  # the agent will say so
