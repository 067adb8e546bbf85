"""The command that runs this installation, for programs whose PATH need not contain it."""

import sys
from pathlib import Path

from agent_logger import platform
from agent_logger.cli import NAME


def own_command(*arguments: str) -> list[str]:
    """Return a command line that starts with the full path of an executable."""
    program = Path(sys.argv[0]).absolute()
    if program.name == NAME and program.exists():
        return [str(program), *arguments]
    return platform.module_command("agent_logger", *arguments)
