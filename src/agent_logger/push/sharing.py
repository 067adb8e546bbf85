"""What is shared of the sessions on this machine: each at its level, as objects."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.errors import SourceError
from agent_logger.push.documents import OutgoingDocument, document_of
from agent_logger.push.files import OutgoingFile, files_of
from agent_logger.push.levels import ShareRules
from agent_logger.push.protocol import LEVELS, MOST_SESSION_BYTES, HubRefusalError, Level, check_place, project_name
from agent_logger.push.sender import SharedObject, SharedSession
from agent_logger.push.state import PushState
from agent_logger.views.hidden_files import redaction_rules

UNKNOWN = "unknown"
NO_PROJECT = ""  # in the state of a session


class Sharing:
    """Finds what is shared. `key`: the one of this installation, under which names are made."""

    def __init__(self, catalog: Catalog, key: bytes, rules: ShareRules) -> None:
        self._catalog, self._key, self._rules = catalog, key, rules
        self._home: Path = catalog.home

    def sessions(self, where: Filter | None = None) -> Iterator[SharedSession]:
        """Yield the sessions of this machine, at the level that the rules give them; the one last active first."""
        stamps = self._catalog.stamps()
        for summary in self._catalog.sessions(where or Filter()):
            if summary.imported or summary.prompts_only or len(summary.id.encode()) > MOST_SESSION_BYTES:
                continue
            level = self._rules.level_of(summary.project)
            name = self._name_of(summary.project)
            stamp = stamps.get(summary.id, ("", 0))[0]
            yield SharedSession(
                id=summary.id,
                level=level,
                project=summary.project or NO_PROJECT,
                objects=partial(self._objects, summary, level, name, stamp),
                version=f"{stamp} {name} {redaction_rules()}" if stamp and not summary.live else "",
            )

    def of_gone(self, state: PushState, present: set[str]) -> Iterator[SharedSession]:
        """Yield the sessions that were pushed, and are no longer on this machine, where they are shared less now."""
        for session, session_state in state.sessions():
            level = self._rules.level_of(session_state.project or None)
            if session not in present and not session_state.is_withdrawn:
                yield SharedSession(session, min(level, session_state.level, key=_rank), session_state.project, list)

    def _name_of(self, project: str | None) -> str | None:
        """Return the name under which a project is shared, below the level `contents`."""
        if project is None:
            return None
        return self._rules.name_of(project) or project_name(self._key, project)

    def _objects(
        self, summary: SessionSummary, level: Level, project: str | None, stamp: str
    ) -> Sequence[SharedObject]:
        match level:
            case "none":
                return []
            case "contents":
                return list(self._files(summary.id, stamp))
        titled = self._catalog.session(summary.id) if level == "titles" else None
        rows = self._catalog.ledger(session=summary.id)
        document = document_of(summary.id, summary.agent or UNKNOWN, project, rows, titled)
        return [OutgoingDocument(self._key, level, document)]

    def _files(self, session: str, stamp: str) -> Iterator[SharedObject]:
        for source in self._catalog.sources(session):
            with suppress(SourceError, OSError):
                for file in files_of(source):
                    outgoing = OutgoingFile(self._key, self._home, file, f"{stamp} {source.stamp}")
                    with suppress(HubRefusalError):  # a name that has another meaning in an archive
                        check_place(outgoing.place, outgoing.origin)
                        yield outgoing


def _rank(level: Level) -> int:
    return LEVELS.index(level)
