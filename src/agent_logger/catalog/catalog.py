"""The catalog: every session there is, from all that was found on this machine, in answer to questions.

The door for commands, the page, and programs that build on this.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from agent_logger.catalog.calls import CallDetail, WireCall, call_detail, calls_of
from agent_logger.catalog.ledger import Ledger, LedgerRow
from agent_logger.catalog.live import is_live
from agent_logger.catalog.metrics import metrics_of
from agent_logger.catalog.served import calls_by_turn
from agent_logger.catalog.sessions import Place, joined, places, witnesses_of
from agent_logger.catalog.summary import Filter, Hit, SessionSummary
from agent_logger.catalog.totals import By, Total, totals
from agent_logger.errors import SourceError
from agent_logger.session import Session
from agent_logger.store.projects import project_of

AROUND = 60  # characters of a snippet before and behind what was looked for


class Catalog:
    """`with Catalog.open() as catalog: ...`"""

    def __init__(self, home: Path) -> None:
        self.home = home

    @classmethod
    def open(cls, home: Path | None = None) -> Self:
        """Over the home of this user, and all the files of agents that it knows of."""
        return cls(home or Path.home() / ".agent-logger")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        pass

    def sessions(
        self, wanted: Filter | None = None, *, limit: int | None = None, offset: int = 0
    ) -> list[SessionSummary]:
        """The one last active first."""
        found = [it for it in self._summaries() if _is_wanted(it, wanted or Filter())]
        return found[offset:][:limit]

    def summary(self, session_id: str) -> SessionSummary | None:
        return next((it for it in self._summaries() if it.id == session_id), None)

    def session(self, session_id: str) -> Session | None:
        """From all its witnesses. By the client's id, the name of a log, or a beginning that no other has."""
        return joined(witnesses_of(self.home, session_id))

    def calls(self, session_id: str) -> list[WireCall]:
        """Of the session, as the wire saw them, in the order of time; none if it did not."""
        return calls_of(place.path for place in witnesses_of(self.home, session_id) if place.agent is None)

    def call(self, session_id: str, call: str) -> CallDetail | None:
        """One of them in full, by its id, or the beginning of it."""
        return call_detail(self.calls(session_id), call)

    def calls_by_turn(self, session_id: str) -> dict[int | None, list[WireCall]]:
        """The same under the turns they were made for, by the place in `Session.turns`; `None`: there is no turn."""
        session = self.session(session_id)
        return calls_by_turn(session, self.calls(session_id)) if session else {}

    def ledger(self, wanted: Filter | None = None, *, session: str | None = None) -> Iterator[LedgerRow]:
        """Every response of a model once; of one session only, if that is given."""
        ledger = Ledger()
        for place in places(self.home):
            ledger.add(place.responses())
        asked = wanted or Filter()
        return (row for row in ledger.rows() if session in (None, row.session) and _counts(row, asked))

    def usage(self, by: By = "day", wanted: Filter | None = None) -> dict[str | None, Total]:
        return totals(self.ledger(wanted), by)

    def search(self, words: str, *, limit: int = 20) -> Sequence[Hit]:
        """The best first."""
        hits = (hit for place in places(self.home) for hit in _hits(place.read(), words.lower()))
        return [hit for hit, _ in zip(hits, range(limit), strict=False)]

    def _summaries(self) -> Iterator[SessionSummary]:
        for place in places(self.home):
            try:
                yield _summary(place, place.read())
            except (SourceError, OSError):
                continue


def _summary(place: Place, session: Session) -> SessionSummary:
    metrics = metrics_of(session)
    return SessionSummary(
        id=session.id,
        agent=session.agent or place.agent,
        project=project_of(session.project) if session.project else None,
        title=session.title,
        models=tuple(metrics.models),
        started=session.started,
        ended=session.ended,
        exchanges=metrics.exchanges,
        turns=metrics.turns,
        tool_calls=sum(it.calls for it in metrics.tools),
        errors=sum(it.errors for it in metrics.tools),
        active_seconds=metrics.active_seconds,
        usage=metrics.usage,
        cost=metrics.cost,
        reported_cost_usd=None,
        context_tokens=metrics.context_tokens,
        peak_context_tokens=metrics.peak_context_tokens,
        witnesses=session.witnesses,
        parent=session.parent,
        live=is_live(session, place.modified, time.time()),
        paths=(place.path,),
    )


def _is_wanted(it: SessionSummary, wanted: Filter) -> bool:
    last = it.ended or it.started
    return (
        wanted.agent in (None, it.agent)
        and (wanted.project or "").lower() in (it.project or "").lower()
        and any((wanted.model or "").lower() in model.lower() for model in it.models or ("",))
        and (wanted.title or "").lower() in (it.title or "").lower()
        and (wanted.since is None or bool(last and last >= wanted.since))
        and (wanted.until is None or bool(it.started and it.started < wanted.until))
        and (wanted.min_cost_usd is None or (it.cost.usd or 0) >= wanted.min_cost_usd)
        and (wanted.witness is None or wanted.witness in it.witnesses)
        and (it.live or not wanted.live)
    )


def _counts(row: LedgerRow, wanted: Filter) -> bool:
    return (
        wanted.agent in (None, row.agent)
        and (wanted.project or "").lower() in (row.project or "").lower()
        and (wanted.model or "").lower() in (row.model or "").lower()
        and (wanted.since is None or bool(row.at and row.at >= wanted.since))
        and (wanted.until is None or bool(row.at and row.at < wanted.until))
        and (wanted.witness is None or wanted.witness in row.witnesses)
    )


def _hits(session: Session, words: str) -> Iterator[Hit]:
    number = 0
    for exchange in session.exchanges:
        texts: list[tuple[int | None, str, str]] = [(None, "input", exchange.user_input or "")]
        for turn in exchange.turns:
            texts += [(number, block.kind, block.text) for block in turn.blocks]
            number += 1
        for place, kind, text in texts:
            if (at := text.lower().find(words)) >= 0:
                start = max(0, at - AROUND)
                yield Hit(
                    session=session.id,
                    title=session.title,
                    exchange=exchange.number,
                    turn=place,
                    kind=kind,
                    at=exchange.started,
                    snippet=text[start : at + len(words) + AROUND],
                    marks=((at - start, at - start + len(words)),),
                )
