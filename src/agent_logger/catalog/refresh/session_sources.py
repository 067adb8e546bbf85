"""The sources of a session while its rows are derived, and what each of them reported."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from agent_logger.agents.claude_code.transcript.beginning import Beginning
from agent_logger.catalog.ledger.ledger import shared_key
from agent_logger.catalog.ledger.rows import LedgerRow, micros_of
from agent_logger.files.stored_text import hashed
from agent_logger.model.responses import ModelResponse, ReportedTotal


class BilledResponses:
    """What a source reported, with the keys to find it by."""

    def __init__(self, responses: list[ModelResponse], totals: Sequence[ReportedTotal]) -> None:
        self.responses, self.totals = responses, totals
        self.keys = [hashed(key) for response in responses if (key := shared_key(response))]

    def in_session(self, session: str) -> "BilledResponses":
        """Return the same as that of another session."""
        return BilledResponses(
            [replace(response, session=session) for response in self.responses],
            [replace(total, session=session) for total in self.totals],
        )

    def in_home(self, home: str) -> "BilledResponses":
        """Return the same as what another home has."""
        return BilledResponses(
            [replace(response, home=home) for response in self.responses],
            [replace(total, home=home) for total in self.totals],
        )


@dataclass(slots=True)
class BilledSource:
    agent: str | None
    is_imported: bool
    parent: str | None
    witnesses: int
    size: int
    modified: float
    stamp: str
    billed: BilledResponses
    beginning: Beginning

    @property
    def responses(self) -> list[ModelResponse]:
        return self.billed.responses


@dataclass(slots=True)
class SessionSources:
    """A session while its sources are gathered, and the ledger's rows that are its own."""

    sources: list[BilledSource] = field(default_factory=list)
    rows: list[LedgerRow] = field(default_factory=list)

    @property
    def is_imported(self) -> bool:
        return all(source.is_imported for source in self.sources)

    @property
    def best(self) -> BilledSource:
        """The best source: the agent's own file, which has all threads. Of two copies of it, the one that was written
        first."""
        if len(self.sources) == 1:  # nearly all of many thousand sessions
            return self.sources[0]
        return min(
            self.sources,
            key=lambda source: (
                source.agent is None,
                -len(source.responses),
                micros_of(source.beginning.first_written),
            ),
        )
