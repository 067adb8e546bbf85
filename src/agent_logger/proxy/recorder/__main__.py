"""The recorder's process; the supervisor starts it."""

import argparse
import logging
import os
import signal
import sys
from pathlib import Path

from agent_logger.proxy.call_lines import CallLines
from agent_logger.proxy.recorder.child import RecorderChild

NICENESS = 5  # agents and the relay come first where the processor is busy


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The recorder; `agent-logger proxy` starts it.")
    parser.add_argument("log_dir", type=Path)
    parser.add_argument("home", type=Path)
    parser.add_argument("--credentials-only", action="store_true")
    parser.add_argument("--seal-after", type=float)
    parser.add_argument(
        "--lines", action="store_true", help="print one line of JSON per call, not only for calls of registered runs"
    )
    options = parser.parse_args(argv)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)  # the proxy gets them too, and says when to finish
    os.nice(NICENESS)
    child = RecorderChild(
        options.log_dir.absolute(),
        options.home.absolute(),
        pipe=sys.stdin.fileno(),
        patterns=not options.credentials_only,
        seal_after_seconds=options.seal_after,
        lines=CallLines(sys.stdout.fileno(), everything=options.lines),
    )
    return child.run()


if __name__ == "__main__":
    status = main()
    logging.shutdown()
    sys.stderr.flush()
    os._exit(status)  # without waiting for threads
