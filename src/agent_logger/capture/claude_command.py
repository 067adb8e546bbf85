"""The command line of one prompt for `claude`: which options it is told, and what goes by its standard input."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from agent_logger import config
from agent_logger.capture.install import hmac_of
from agent_logger.capture.run_recording import Start
from agent_logger.formats.exchanges import Began
from agent_logger.records import SystemPrompt
from agent_logger.store.facts import session_labelled

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


def command(
    prompt: str,
    *,
    resume: str | None = None,
    continue_: bool = False,
    fork: bool = False,
    session_id: str | None = None,
    label: str | None = None,
    include_events: bool = False,
    max_turns: int | None = None,
    model: str | None = None,
    permission_mode: str | None = None,
    system_prompt: str | None = None,
    system_prompt_file: StrPath | None = None,
    append_system_prompt: str | None = None,
    append_system_prompt_file: StrPath | None = None,
    cwd: StrPath | None = None,
    timeout: float | None = None,
    executable: str = "claude",
    extra_args: Sequence[str] = (),
    sessions_dir: StrPath | None = None,
    record: bool = True,
) -> Command:
    """Raises `ValueError` for what makes no sense."""
    if resume is not None:
        resume = session_labelled(config.home(), resume) or resume
    _check(resume=resume, session_id=session_id)
    if fork and not (resume or continue_):
        raise ValueError("fork needs resume or continue: there is nothing to fork")
    if resume and continue_:
        raise ValueError("either resume or continue: they name different sessions")
    if not prompt.strip():
        raise ValueError("the prompt is empty")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout={timeout:g}: it is to be more than 0 seconds")
    if isinstance(extra_args, str):
        raise ValueError("extra_args is a list of arguments, not one text")
    system_prompts = {
        "system_prompt": system_prompt,
        "system_prompt_file": system_prompt_file,
        "append_system_prompt": append_system_prompt,
        "append_system_prompt_file": append_system_prompt_file,
    }
    named = {
        "resume": resume,
        "continue": continue_,
        "fork_session": fork,
        "session_id": session_id,
        "max_turns": max_turns,
        "model": model,
        "permission_mode": permission_mode,
        **system_prompts,
    }
    folder, is_argument = os.path.abspath(cwd or "."), _fits_an_argument(prompt)
    formats = () if any(it.startswith("--output-format") for it in extra_args) else STREAM
    start = Start(
        argv=[executable, "-p", *([prompt] if is_argument else []), *formats, *_flags(named), *extra_args],
        began=Began("run", AGENT, cwd=folder, system_prompt=_noted(system_prompts) or None),
        prompt=prompt,
        resumed_from=resume,
        goes_on=bool(resume or continue_),
        label=label,
    )
    return Command(
        start=start,
        given=b"" if is_argument else prompt.encode("utf-8", "replace"),
        cwd=folder,
        timeout=timeout,
        sessions_dir=Path(sessions_dir or "./sessions").expanduser().absolute() if record else None,
        include_events=include_events,
    )


def _check(**ids: str | None) -> None:
    for name, value in ids.items():
        if value is not None and not _ID.fullmatch(value):
            raise ValueError(f"{name}={value!r} is no session id, and no label that is known")


def _fits_an_argument(prompt: str) -> bool:
    """One word alone could be taken for a subcommand, a dash for an option."""
    size = len(prompt.encode("utf-8", "replace"))
    return size <= ARGUMENT_BYTES and len(prompt.split()) > 1 and prompt[0] != "-" and "\0" not in prompt


def _flags(named: Mapping[str, object]) -> list[str]:
    """Joined with their values, or one that begins with a dash would be taken for an option."""
    given = {f"--{name.replace('_', '-')}": it for name, it in named.items() if it not in (None, False)}
    return [name if value is True else f"{name}={value}" for name, value in given.items()]


def _noted(system_prompts: Mapping[str, StrPath | None]) -> list[SystemPrompt]:
    given = {form: it for form, it in system_prompts.items() if it is not None}
    return [SystemPrompt(form=form, hmac=_hmac(form, value)) for form, value in given.items()]


def _hmac(form: str, value: StrPath) -> str | None:
    if not form.endswith("_file"):
        return hmac_of(str(value).encode("utf-8", "surrogatepass"))
    try:
        return hmac_of(Path(value).read_bytes())
    except OSError:
        return None  # the agent will say so
