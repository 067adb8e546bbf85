"""The facts in the files of a Claude Code session beside the conversation: where and when, titles, compactions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from agent_logger.agents.claude_code.transcript.records import (
    CompactionMessage,
    CompactMetadata,
    CostRecord,
    CustomTitleRecord,
    SessionRecord,
    SummaryRecord,
    SystemRecord,
    TitleRecord,
)
from agent_logger.agents.claude_code.transcript.tree import Tree
from agent_logger.model.session import Compaction


@dataclass(slots=True)
class Facts:
    began: datetime | None = None
    ended: datetime | None = None  # the last line caused by a person or an agent; else the last line
    is_ended_by_bookkeeping: bool = True
    session_id: str | None = None
    cwd: str | None = None
    reported_cost_usd: float | None = None
    compactions: list[Compaction] = field(default_factory=list)

    def see(self, record: SessionRecord, at: datetime | None, *, is_bookkeeping: bool) -> None:
        """Note what every line may say: where and when. Clients also write lines long after a session, as when it is
        opened."""
        if at:
            if self.began is None or at < self.began:
                self.began = at
            if self.ended is None or self.is_ended_by_bookkeeping > is_bookkeeping:
                self.ended, self.is_ended_by_bookkeeping = at, is_bookkeeping
            elif at > self.ended and self.is_ended_by_bookkeeping == is_bookkeeping:
                self.ended = at
        if self.cwd is None:
            self.cwd = record.cwd or None
        if self.session_id is None:
            self.session_id = record.session_id or None

    def take(self, record: SessionRecord, at: datetime | None, thread: str) -> None:
        match record:
            case SystemRecord(subtype="compact_boundary"):
                self.compactions.append(compaction_of(record.compact_metadata, at, thread))
            case CostRecord():
                self.reported_cost_usd = record.total_cost_usd


def compaction_of(metadata: CompactMetadata | CompactionMessage | None, at: datetime | None, thread: str) -> Compaction:
    return Compaction(
        at=at,
        thread=thread,
        trigger=metadata.trigger if metadata else None,
        tokens_before=metadata.pre_tokens if metadata else None,
        tokens_after=metadata.post_tokens if metadata else None,
    )


class Titles:
    """The titles that lines give, the person's before the client's; the last one of each counts."""

    def __init__(self) -> None:
        self.summaries: dict[str, str] = {}  # summaries by the last line that they cover
        self._custom: str | None = None
        self._own: str | None = None
        self._summary: str | None = None  # a summary that does not name its line

    def take(self, record: SessionRecord) -> None:
        if isinstance(record, TitleRecord):
            self._own = record.ai_title or self._own
        elif isinstance(record, CustomTitleRecord):
            self._custom = record.custom_title or self._custom
        elif isinstance(record, SummaryRecord) and record.summary:
            if record.leaf_uuid:
                self.summaries[record.leaf_uuid] = record.summary
            else:
                self._summary = record.summary

    def title(self, tree: Tree, others: Mapping[str, str]) -> str | None:
        """Return the session's title. Summaries are often in the file of the session that was started next: `others`
        are those. Of several, the one for the latest line counts."""
        return self._custom or self._own or self._summary or self._of_lines(tree, others)

    def _of_lines(self, tree: Tree, others: Mapping[str, str]) -> str | None:
        texts = {**others, **self.summaries}
        return next((texts[parent] for parent in reversed(tree.parents) if parent in texts), None) if texts else None
