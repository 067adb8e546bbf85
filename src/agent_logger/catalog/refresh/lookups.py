"""Logs that are read again because agents have written: their calls do not tell their session, which is looked up in
the agents' files, and these may become known after the log."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from agent_logger.catalog.database import Database, json_list
from agent_logger.catalog.discovery.reader import session_of
from agent_logger.catalog.ledger.stored_responses import decode_responses, decode_totals
from agent_logger.catalog.source_queries import SOURCE, source_of
from agent_logger.errors import SourceError
from agent_logger.files.sources import NO_MAIN_FILE, Source
from agent_logger.files.stored_text import storable
from agent_logger.model.responses import utc

LATE_SECONDS = 600.0  # an agent may write an answer into its file this long after it came


def logs_to_look_up(database: Database, changed: Sequence[Source]) -> list[Source]:
    """Return the logs whose sessions may be in these changed files of agents. Logs that changed, too, are left out."""
    agents = {source.agent for source in changed if source.agent}
    keys = json_list(source.key for source in changed)
    rows = database.execute(
        f"""
        SELECT possible_agents, {SOURCE} FROM sources
        WHERE possible_agents IS NOT NULL AND key NOT IN (SELECT value FROM json_each(?))
        """,
        (keys,),
    )
    logs = [(agents.intersection(msgspec.json.decode(names)), source_of(values)) for names, *values in rows]
    waiting = {log.key: (names, log) for names, log in logs if names}
    if not waiting:
        return []
    to_read: list[Source] = []
    for source in changed:
        same = [log for names, log in waiting.values() if source.agent in names and source.home == log.home]
        if same:
            since = _last_time(database, source) or _start_of(source)
            new = [log for log in same if log.modified > since - LATE_SECONDS]
            to_read += new
            for log in new:
                del waiting[log.key]
    return to_read


def _last_time(database: Database, source: Source) -> float:
    """Return the time of the last answer that is known of a session of an agent; 0 if none is."""
    query = """
        SELECT responses, totals FROM sources JOIN source_responses ON source = sources.id
        WHERE key = ? AND read_error IS NULL AND stamp NOT LIKE ?
    """
    row = database.execute(query, (storable(source.key), f"{NO_MAIN_FILE}%")).fetchone()
    if row is None:
        return 0.0
    times = [response.at for response in decode_responses(row[0])]
    times += [total.total.ended for total in decode_totals(row[1])]
    return max((utc(time).timestamp() for time in times if time), default=0.0)


def _start_of(source: Source) -> float:
    """Return when a session of an agent began; 0 if that is not known."""
    with suppress(SourceError, OSError):
        if started := session_of(source).started:
            return utc(started).timestamp()
    return 0.0
