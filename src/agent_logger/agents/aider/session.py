"""Turns a history of aider into a session, and into its responses.

A history is one session: every start of aider continues it. aider writes how many tokens it sent, but rounded, and by a
count of its own if the answer was streamed: the tokens of a response are unknown.
"""

import hashlib
import re
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from agent_logger.agents.aider.history import Passage, passages
from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.objects import local_time_of, time_of_ms
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.model.remainders import with_remainders
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import ClientTotal, ModelTotal, Session
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.blocks import base
from agent_logger.providers.lenient import fitting

AGENT_NAME = "aider"
FAMILY = "unknown"  # of response ids: there are none
INPUTS = ".aider.input.history"
ABOUT = "about"
_MODEL = re.compile(r"(?:Main model|Model): (\S+) with .* edit format")
_COUNTED = re.compile(r"Tokens: .* received\.")
_FAILED = re.compile(r"litellm\.\w+: ")
_TYPED_AT = re.compile(r"# (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+)")
MOST_AHEAD = 50  # inputs that may be in their history alone, one after the other
_APART = timedelta(microseconds=1)  # between answers to the same prompt, which have no time of their own
COMMANDS = ("/", "!")  # begin what is for aider itself


class AboutHistory(msgspec.Struct, gc=False):
    """What is known of a history beside its text."""

    modified: float | None = None  # milliseconds since 1970
    project: str | None = None


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the history."""
    history = _History(source)
    session = Session(
        id=id_of(source.main) or source.main.name,
        agent=AGENT_NAME,
        title=history.conversation.title(),
        project=history.about.project,
        started=history.conversation.started,
        ended=history.conversation.ended,
        exchanges=history.conversation.as_exchanges(),
        totals=history.totals(),
    )
    return with_remainders(session)


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    """Yield nothing: each response is reported as a total that is unknown, until another witness tells its tokens."""
    yield from ()


def billed_of(source: SourceFiles) -> tuple[list[ModelResponse], list[ReportedTotal]]:
    history, name = _History(source), id_of(source.main) or source.main.name
    return [], [
        ReportedTotal(session=name, project=history.about.project, agent=AGENT_NAME, family=FAMILY, total=total)
        for total in history.totals()
    ]


def id_of(file: File) -> str:
    """Return the id of a session: a hash of what was written until the first prompt, and its first start. Empty if
    nothing was asked."""
    head: list[Passage] = []
    for passage in passages(_lines(file)):
        if passage.kind in ("prompt", "answer"):
            break
        head.append(passage)
    else:
        return ""
    if not head:
        return ""
    digest = hashlib.sha256("\n".join(passage.text for passage in head).encode("utf-8", "replace")).hexdigest()[:8]
    start = re.sub(r"[-:]", "", head[0].text).replace(" ", "-") if head[0].kind == "start" else AGENT_NAME
    return f"{digest}-{start}"


def _lines(file: File) -> Iterator[str]:
    return (entry.value for entry in file.entries if isinstance(entry, JsonEntry) and type(entry.value) is str)


class _History:
    """The passages of a history, read in order."""

    def __init__(self, source: SourceFiles) -> None:
        self.conversation = Conversation()
        described = (entry.value for file in source.others for entry in file.entries if isinstance(entry, JsonEntry))
        self.about = fitting(AboutHistory, next(described, {}))
        self._typed = deque(_typed_inputs(source.text(INPUTS) or ""))
        self._model: str | None = None
        self._at = time_of_ms(self.about.modified)  # the time of the latest prompt, or start, if one has a time
        self._command: str | None = None  # which is a prompt only if it is answered
        self._turn: OpenTurn | None = None  # the answer that aider has not counted yet
        for passage in passages(_lines(source.main)):
            self._take(passage)
        if self.conversation.exchanges:
            self.conversation.see(time_of_ms(self.about.modified))

    def totals(self) -> list[ClientTotal]:
        """Return a total for each answer that came to its end: nobody knows how much it took. It was asked for before
        the next prompt."""
        exchanges = self.conversation.exchanges
        starts = [exchange.started for exchange in exchanges[1:]] + [self.conversation.ended]
        return [
            ClientTotal(
                witness="transcript",
                models=(ModelTotal(model=turn.model, usage=None),),
                started=exchange.started + place * _APART if exchange.started else None,
                ended=max(filter(None, (exchange.started, end)), default=None),
                exchange=number,
            )
            for number, (exchange, end) in enumerate(zip(exchanges, starts, strict=False), 1)
            for place, turn in enumerate(exchange.turns)
            if turn.complete
        ]

    def _take(self, passage: Passage) -> None:
        match passage.kind:
            case "start":
                self._start(passage.text)
            case "prompt":
                self._ask(passage.text)
            case "answer":
                self._answer(passage.text)
            case "notice":
                self._note(passage.text)

    def _start(self, time: str) -> None:
        exchanges = self.conversation.exchanges
        if exchanges and not exchanges[-1].turns and not exchanges[-1].end_reason:
            exchanges[-1].end_reason = "cut"  # the process before was killed
        self._command = self._turn = None
        self._at = local_time_of(time) or self._at

    def _ask(self, text: str) -> None:
        self._command, self._turn = None, None
        self._at = self._time_of(text) or self._at
        if text.startswith(COMMANDS):
            self._command = text
        elif text:
            self.conversation.ask(text, self._at)

    def _answer(self, text: str) -> None:
        if self._command:
            self.conversation.ask(self._command, self._at)
            self._command = None
        turn = self._turn = OpenTurn(model=self._model, complete=False)
        turn.see(self._at)
        self.conversation.add(turn)
        self.conversation.current().end_reason = None  # an error before it was overcome
        self.conversation.put(turn, base.text(text), self._at)

    def _note(self, text: str) -> None:
        if match := _MODEL.match(text):
            self._model = match[1].rpartition("/")[2]
        elif _COUNTED.match(text):
            if self._turn:
                self._turn.complete = True
                self._turn = None
        elif _FAILED.match(text):
            self._turn = None
            self.conversation.end("failed", self._at)

    def _time_of(self, text: str) -> datetime | None:
        """Return when a prompt was typed. Prompts are in the same order in the history of inputs."""
        words = "".join(text.split())
        for count, (time, typed) in enumerate(islice(self._typed, MOST_AHEAD), 1):
            if typed == words:
                for _ in range(count):
                    self._typed.popleft()
                return time
        return None


def _typed_inputs(text: str) -> Iterator[tuple[datetime | None, str]]:
    """Yield what was typed, without blanks, and when."""
    time, words = None, ""
    for line in text.split("\n"):
        if match := _TYPED_AT.fullmatch(line):
            if words:
                yield time, words
            time, words = local_time_of(match[1]), ""
        elif line.startswith("+"):
            words += "".join(line[1:].split())
    if words:
        yield time, words
