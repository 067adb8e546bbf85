"""What a session's file shows of its own beginning, to tell a fork from the session it was forked from.

A fork begins with a copy of its parent's lines, with their ids and times. Two traces remain of the order in which the
files were written. A fork that is started with a prompt has lines of its own (`queue-operation`) before the copy, so
the times in its file run backwards there. And only conversation lines are copied: what the client notes between them,
in lines without an id, is in the parent's file alone.
"""

from datetime import datetime
from typing import Protocol

import msgspec

from agent_logger.agents.claude_code.transcript.records import ForkedFrom
from agent_logger.agents.claude_code.transcript.turns import time_of


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """How a session's file begins. A field is `None` where the file does not say."""

    forked_from: str | None = None  # the session that its lines name
    first_written: datetime | None = None  # the first response was written to this file at this time, or later
    own_line_after: int | None = None  # responses before the first line that was not copied


class _Line(Protocol):
    @property
    def uuid(self) -> str | None: ...

    @property
    def timestamp(self) -> str | None: ...

    @property
    def forked_from(self) -> ForkedFrom | str | None: ...


class BeginningReader:
    """Reads the lines of a main file in order, as long as `is_open`.

    `before` is what was read of the file earlier, with that many `responses`, if this reader continues from there.
    """

    def __init__(self, before: Beginning | None = None, responses: int = 0) -> None:
        earlier = before or Beginning()
        self._forked_from = earlier.forked_from
        self._written = earlier.first_written
        self._own_line_after = earlier.own_line_after
        self._latest: datetime | None = None
        self._in_conversation = before is not None
        # Whether a line with an id matters only if it is of a response, or names a session that it was forked from.
        self.is_begun = False
        self._responses = responses
        self._response: str | None = None  # the id of the last one

    @property
    def is_open(self) -> bool:
        """Whether what is written later can change the beginning."""
        return self._written is None or self._own_line_after is None

    def see(self, line: _Line, response: str | None) -> None:
        """Read one line. `response`: the message id, if the line belongs to a response of the main thread."""
        if self._forked_from is None and line.forked_from is not None:
            fork = line.forked_from
            self._forked_from = None if isinstance(fork, str) else fork.session_id
        if self._written is None:
            at = time_of(line.timestamp)
            if at and (self._latest is None or at > self._latest):
                self._latest = at
        if line.uuid:
            self._in_conversation = True
        elif self._in_conversation and self._own_line_after is None:
            self._own_line_after = self._responses
        if response is not None and response != self._response:
            self._response = response
            self._responses += 1
            self._written = self._written or self._latest
            self.is_begun = self._written is not None and self._in_conversation

    def beginning(self) -> Beginning:
        return Beginning(
            forked_from=self._forked_from,
            first_written=self._written,
            own_line_after=self._own_line_after,
        )
