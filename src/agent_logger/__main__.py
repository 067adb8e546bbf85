"""What `agent-logger` and `python -m agent_logger` run."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    # An agent waits for its hooks, and has no use for their errors: none is shown, no command line is built.
    if sys.argv[1:] == ["hook"] and not os.isatty(0):
        try:
            from agent_logger.hooks.entry import keep_input

            keep_input()
        finally:
            os._exit(0)
    # An agent calls this after every message, and shows whatever is printed.
    if sys.argv[1:] == ["statusline"] and not os.isatty(0):
        try:
            from agent_logger.statusline import print_line

            print_line()
        finally:
            os._exit(0)
    try:
        from agent_logger.cli import main as shell
    except KeyboardInterrupt:  # before there is a command that could say so
        sys.exit(130)
    shell()


if __name__ == "__main__":
    main()
