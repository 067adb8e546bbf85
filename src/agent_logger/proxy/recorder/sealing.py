"""The sealing of old parts, now and then, in a thread of its own."""

import logging
import threading
import time
from pathlib import Path

from agent_logger.errors import SourceError
from agent_logger.journal.seal import seal_due
from agent_logger.proxy.recorder.logs import inner_folders

SEAL_FIRST_SECONDS, SEAL_SECONDS = 60.0, 3600.0

log = logging.getLogger("agent_logger.proxy")


class Sealing:
    def __init__(self, log_dir: Path, after_seconds: float | None) -> None:
        self._log_dir, self._after_seconds = log_dir, after_seconds
        self._due_at = time.monotonic() + SEAL_FIRST_SECONDS
        self._thread: threading.Thread | None = None

    def start_if_due(self) -> None:
        if time.monotonic() < self._due_at or (self._thread and self._thread.is_alive()):
            return
        self._due_at = time.monotonic() + SEAL_SECONDS
        self._thread = threading.Thread(target=self._seal, name="agent-logger-seal", daemon=True)
        self._thread.start()

    def _seal(self) -> None:
        for folder in [self._log_dir, *inner_folders(self._log_dir)]:
            try:
                for _ in seal_due(folder, self._after_seconds):
                    pass
            except (OSError, SourceError) as error:
                log.warning("%s: cannot seal: %s", folder, error)
