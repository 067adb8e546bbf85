"""The names and home folders of this machine and its user, which `--mask` hides, and the authors of a repository."""

import os
import platform as system
import pwd
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from agent_logger.exports.masks.mask import Machine
from agent_logger.files.git import git_folders

FIRST_USER = 1000  # the user id from which on accounts are those of people, as a rule
LAST_USER = 60_000
MOST_AUTHORS = 2000
MOST_COMMITS = "20000"
GIT_SECONDS = 20.0


def this_machine(words: Iterable[str] = ()) -> Machine:
    """Return what a mask hides, whichever session it is. `words`: those of the settings."""
    return Machine(tuple(dict.fromkeys(_homes())), tuple(dict.fromkeys([*_names(), *words])))


def _homes() -> Iterator[str]:
    """Yield the home folders of the user and of other people on this machine."""
    own = os.getuid()
    with suppress(RuntimeError):
        yield from _usable(str(Path.home()))
        yield from _usable(str(Path.home().resolve()))
    for account in pwd.getpwall():
        if account.pw_uid in (0, own) or FIRST_USER <= account.pw_uid <= LAST_USER:
            yield from _usable(account.pw_dir)


def _usable(folder: str) -> Iterator[str]:
    """Yield a folder that can be the home of one user, and not of the whole system."""
    name = folder.rstrip("/")
    if name.startswith("/") and name not in ("/home", "/Users", "/nonexistent", "/usr", "/var", "/tmp", "/bin"):
        yield name


def _names() -> Iterator[str]:
    with suppress(KeyError):
        account = pwd.getpwuid(os.getuid())
        yield account.pw_name
        yield account.pw_gecos.split(",")[0].strip()
    host = system.node()
    for name in dict.fromkeys((host, host.split(".")[0])):
        if name.lower() != "localhost":
            yield name


def git_authors(project: str) -> list[str]:
    """Return the names of those who wrote commits in the repository of a folder; none if there is no repository or no
    git. Settings of the repository run no program."""
    git = shutil.which("git")
    folder = Path(project)
    if git is None or not os.path.isdir(folder) or next(git_folders(folder), None) is None:
        return []
    quiet = ["-c", "log.showSignature=false", "-c", "core.fsmonitor=false", "-c", "core.pager=cat"]
    log = ["log", "--all", f"--max-count={MOST_COMMITS}", "--no-show-signature", "--format=%an%n%cn"]
    try:
        done = subprocess.run(
            [git, "--no-pager", "-C", project, *quiet, *log],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    names = dict.fromkeys(done.stdout.decode("utf-8", "replace").splitlines())
    return [name for name in names if len(name.strip()) > 1][:MOST_AUTHORS]
