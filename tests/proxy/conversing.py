"""A client that talks to a model through a spool, and a recorder behind it."""

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_logger.proxy.recorder.child import RecorderChild
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.frames import CredentialFrame
from agent_logger.proxy.spool.spool import Spool
from tests.proxy.process import wait_until
from tests.proxy.spooling import PATH, Logged, Relay, logged, pipe_with, record, request_head
from tests.proxy.tracking.conversation import TOOLS, Messages, said, user

JSON = (b"content-type: application/json",)


class Client:
    """Asks and is answered, through a spool."""

    def __init__(self, relay: Relay, session: str | None = None) -> None:
        self.relay, self.session = relay, session
        self.history: Messages = []
        self.calls: list[str] = []
        self.message_ids: list[str] = []  # else they are made up

    def ask(self, text: str, **beside: Any) -> str:
        """One turn: a question, and an answer that the next one carries along."""
        self.history.append(user(text))
        answer = said(f"answer to {text}")
        call = self.send(self.history, answer, **beside)
        self.history.append(answer)
        return call

    def send(self, messages: Messages, answer: dict[str, Any] | None, **beside: Any) -> str:
        fields = [f"x-session-id: {self.session}".encode()] if self.session else []
        body = json.dumps({"model": "m", "tools": TOOLS, "messages": messages, **beside}).encode()
        made_up = f"msg_{len(self.calls)}"
        name = self.message_ids[len(self.calls)] if self.message_ids else made_up
        told = {"id": name, "type": "message", "model": "m", "stop_reason": "end_turn"}
        usage = {"usage": {"input_tokens": 10, "output_tokens": 5}}
        call = self.relay.call(
            head=request_head(PATH, *fields),
            body=[body],
            status=b"HTTP/1.1 200 OK" if answer else b"HTTP/1.1 529 Overloaded",
            fields=JSON,
            answer=[json.dumps({**told, **answer, **usage}).encode()] if answer else [b"{}"],
            connection=len(self.calls),
            secrets=(),
        )
        self.calls.append(call)
        return call


class World:
    def __init__(self, folder: Path) -> None:
        self.log_dir, self.home = folder / "logs", folder / "agent-logger"
        self.table = self.log_dir / "sessions.db"
        self.credentials: list[CredentialFrame] = []
        self.open()

    def open(self) -> None:
        self.spool = Spool(spool_folder(self.log_dir), send_credential=self.credentials.append)
        self.relay = Relay(self.spool)

    def record(self) -> Logged:
        """What is on the spool, by a recorder that then ends."""
        assert self.spool.close()
        record(self.log_dir, self.home, self.credentials)
        return logged(self.log_dir)

    @contextlib.contextmanager
    def live(self) -> Iterator[RecorderChild]:
        ours, theirs = pipe_with(self.credentials, keep_open=True)
        child = RecorderChild(self.log_dir, self.home, pipe=ours)
        thread = threading.Thread(target=child.run)
        thread.start()
        try:
            wait_until(lambda: hasattr(child, "recording"))
            yield child
            self.spool.close()
        finally:
            os.close(theirs)
            thread.join(30)
            os.close(ours)
