"""The tables of `catalog.db` and `catalog-text.db`, and the named steps from one version of them to the next.

Everything in it is derived and may be deleted at any time. Times are microseconds since 1970, UTC; texts were redacted
before they were written. The views are for people, and for programs such as `datasette`. Search has a file of its own
(`catalog-text.db`), so that filling it keeps nobody from writing here.
"""

from typing import NamedTuple


class SchemaStep(NamedTuple):
    name: str
    sql: str


_SESSIONS_AND_LEDGER = """
CREATE TABLE facts (              -- of the catalog itself
    name TEXT PRIMARY KEY,        -- changes: grows with every change; prices: the day of the price list; made: its id;
                                  -- removed: a hash of the names of sessions that were
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO facts VALUES ('made', lower(hex(randomblob(8))));

CREATE TABLE remembered (         -- what files told that need not be opened again to be known
    path TEXT PRIMARY KEY,
    stamp TEXT NOT NULL,
    told TEXT NOT NULL            -- JSON
) WITHOUT ROWID;

CREATE TABLE sources (            -- a session as one witness has it: a log, a transcript, a row of a database
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,     -- its path; in a database, with # and the session's id behind it
    path TEXT NOT NULL,
    agent TEXT,                   -- whose file it is; none for a log of ours
    name TEXT NOT NULL,           -- of the log, or the client's id
    others TEXT,                  -- JSON: paths of its sub-agents' files; none: its reader looks for them
    session TEXT NOT NULL,        -- sessions.id
    parent TEXT,                  -- the session it says it was forked from
    witnesses INTEGER NOT NULL,   -- bits: wire 1, transcript 2, sdk 4, run 8, hook 16
    size INTEGER NOT NULL,        -- bytes of all its files
    modified REAL NOT NULL,       -- seconds since 1970
    stamp TEXT NOT NULL,          -- inodes, sizes and times of its files
    damage TEXT                   -- why it could not be read
);
CREATE INDEX sources_session ON sources (session);
CREATE INDEX sources_name ON sources (name);

CREATE TABLE told (               -- what a source told of the model's responses
    source INTEGER PRIMARY KEY,   -- sources.id
    position BLOB,                -- how far its main file was read: JSON
    responses BLOB NOT NULL       -- MessagePack
);

CREATE TABLE keys (               -- what responses are known by, so that copies of them in other sessions are found
    key INTEGER NOT NULL,         -- 8 bytes of a hash
    source INTEGER NOT NULL,      -- sources.id
    PRIMARY KEY (key, source)
) WITHOUT ROWID;

CREATE TABLE sessions (           -- a conversation, from all its witnesses
    id TEXT PRIMARY KEY,          -- the client's, else the name of our log
    family TEXT NOT NULL,         -- the same for all sessions that have responses in common, as forks have
    agent TEXT,
    project TEXT,
    title TEXT,
    models TEXT NOT NULL,         -- JSON
    started INTEGER,
    ended INTEGER,
    active INTEGER NOT NULL,      -- when it was last active: ended, else when its files were last written to
    exchanges INTEGER NOT NULL,
    turns INTEGER NOT NULL,       -- responses in the ledger
    tool_calls INTEGER NOT NULL,
    errors INTEGER NOT NULL,      -- tool calls that failed
    active_seconds REAL,          -- that its agent was at work
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cache_write_1h_tokens INTEGER NOT NULL,  -- part of cache_write_tokens
    nano_usd INTEGER,             -- none if no response has a price
    unpriced INTEGER NOT NULL,    -- responses that have none
    unpriced_reason TEXT,
    reported_cost_usd REAL,       -- what the client said
    context_tokens INTEGER,
    peak_context_tokens INTEGER,
    witnesses INTEGER NOT NULL,   -- bits, as in sources
    parent TEXT,                  -- the session it was forked from, as its responses tell
    own_parent TEXT,              -- the same, as itself says
    told_project TEXT,            -- the next three: as its responses tell, where the session itself does not
    first_at INTEGER,
    last_at INTEGER,
    modified REAL NOT NULL,       -- when any of its files was last written to
    size INTEGER NOT NULL,
    stamp TEXT NOT NULL,          -- of its sources together
    detailed TEXT                 -- the stamp that title, exchanges and tools are of; none: not read yet
) WITHOUT ROWID;
CREATE INDEX sessions_active ON sessions (active);
CREATE INDEX sessions_family ON sessions (family);

CREATE TABLE places (             -- where responses stand
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL,        -- sessions.id
    project TEXT,
    agent TEXT NOT NULL,
    thread TEXT NOT NULL,
    UNIQUE (session, project, agent, thread)
);

CREATE TABLE kinds (              -- what answered
    id INTEGER PRIMARY KEY,
    family TEXT NOT NULL,         -- whose ids these are
    model TEXT,
    tier TEXT,
    UNIQUE (family, model, tier)
);

CREATE TABLE ledger (             -- every response of a model once; every total is a sum over these rows
    place INTEGER NOT NULL REFERENCES places,  -- where it stood first
    kind INTEGER NOT NULL REFERENCES kinds,
    at INTEGER,
    message_id TEXT,
    input_tokens INTEGER,         -- none in all five: no usage was told
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    cache_write_1h_tokens INTEGER,
    nano_usd INTEGER,
    unpriced_reason TEXT,         -- why there is no price
    reported_cost_usd REAL,
    witnesses INTEGER NOT NULL,   -- bits, as in sources
    copies INTEGER NOT NULL,      -- how many times it was told
    joined_by TEXT,
    partial INTEGER NOT NULL
);
CREATE INDEX ledger_place ON ledger (place);

CREATE TABLE tools (              -- which tools a response called
    key INTEGER PRIMARY KEY,      -- 8 bytes of a hash of its message id
    calls TEXT NOT NULL           -- JSON: names, and how often each
);

CREATE VIEW session_list AS
SELECT id, agent, coalesce(project, told_project) AS project, title,
    datetime(coalesce(started, first_at) / 1000000, 'unixepoch') AS started,
    datetime(coalesce(ended, last_at) / 1000000, 'unixepoch') AS ended, exchanges, turns, tool_calls, errors,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, nano_usd / 1e9 AS cost_usd, unpriced,
    coalesce(own_parent, parent) AS parent
FROM sessions ORDER BY active DESC;

CREATE VIEW responses AS
SELECT session, datetime(at / 1000000, 'unixepoch') AS at, model, tier, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, nano_usd / 1e9 AS cost_usd, unpriced_reason, project, agent, thread,
    message_id, copies, joined_by, partial
FROM ledger JOIN places ON places.id = place JOIN kinds ON kinds.id = kind;

CREATE VIEW spending AS
SELECT date(at) AS day, model, project, agent, count(*) AS responses, sum(input_tokens) AS input_tokens,
    sum(output_tokens) AS output_tokens, sum(cache_read_tokens) AS cache_read_tokens,
    sum(cache_write_tokens) AS cache_write_tokens, sum(cost_usd) AS cost_usd
FROM responses GROUP BY 1, 2, 3, 4;
"""

_IN_FLIGHT = """
-- whether its last exchange has no end yet
ALTER TABLE sessions ADD COLUMN in_flight INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET detailed = NULL;
"""

_REPORTED = """
-- what the client says that all of it cost; reported_cost_usd is the sum of what it said of single responses
ALTER TABLE sessions ADD COLUMN own_reported_usd REAL;
UPDATE sessions SET detailed = NULL;
"""

_FOLDERS = """
-- of its path, up to the last slash
ALTER TABLE sources ADD COLUMN folder TEXT GENERATED ALWAYS AS (rtrim(path, replace(path, '/', ''))) VIRTUAL;
CREATE INDEX sources_folder ON sources (folder);

CREATE TABLE folders (            -- all that is in them is in sources, as long as they look like this
    path TEXT PRIMARY KEY,
    look TEXT NOT NULL            -- a hash of the stamps of what is in it
) WITHOUT ROWID;

CREATE INDEX sessions_behind ON sessions (size) WHERE detailed IS NOT stamp;
"""

_MARKS = """
-- where a long session is read on for its details: JSON
ALTER TABLE sessions ADD COLUMN mark BLOB;
"""

_TOOLS = """
DROP TABLE tools;
CREATE TABLE tools (              -- which tools a response called, as a session has it
    session TEXT NOT NULL,        -- sessions.id
    key INTEGER NOT NULL,         -- 8 bytes of a hash of its message id
    calls TEXT NOT NULL,          -- JSON: names, and how often each
    PRIMARY KEY (session, key)
) WITHOUT ROWID;
UPDATE sessions SET detailed = NULL, mark = NULL;
"""

_ENDINGS = """
-- when an answer has ended, and what of a cut one was billed, are told by another rule: our logs are read again
UPDATE sources SET stamp = '' WHERE agent IS NULL;
DELETE FROM folders;
UPDATE sessions SET detailed = NULL, mark = NULL;
"""

_DESCENT = """
-- all is read again for what the next columns hold
DELETE FROM sources;
DELETE FROM told;
DELETE FROM keys;
DELETE FROM sessions;
DELETE FROM places;
DELETE FROM ledger;
DELETE FROM tools;
DELETE FROM folders;

-- the next two: of an agent's main file, to tell a fork from its parent
ALTER TABLE sources ADD COLUMN first_written INTEGER;   -- its first response was written to it then, or later
ALTER TABLE sources ADD COLUMN own_line_after INTEGER;  -- responses before the first line that forks do not copy
CREATE INDEX sources_parent ON sources (parent) WHERE parent IS NOT NULL;

CREATE TABLE summaries (          -- that files have, of their own session or another
    leaf TEXT NOT NULL,           -- the id of the line that it ends at
    source INTEGER NOT NULL,      -- sources.id
    text TEXT NOT NULL,
    PRIMARY KEY (leaf, source)
) WITHOUT ROWID;
CREATE INDEX summaries_source ON summaries (source);

-- parent: the session it was forked from, as a witness says, else as its responses tell
DROP VIEW session_list;
ALTER TABLE sessions DROP COLUMN own_parent;
CREATE VIEW session_list AS
SELECT id, agent, coalesce(project, told_project) AS project, title,
    datetime(coalesce(started, first_at) / 1000000, 'unixepoch') AS started,
    datetime(coalesce(ended, last_at) / 1000000, 'unixepoch') AS ended, exchanges, turns, tool_calls, errors,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, nano_usd / 1e9 AS cost_usd, unpriced, parent
FROM sessions ORDER BY active DESC;

-- exchanges and turns of a fork are those that came after it; these are the others. None: not known
ALTER TABLE sessions ADD COLUMN inherited_exchanges INTEGER;
ALTER TABLE sessions ADD COLUMN inherited_turns INTEGER NOT NULL DEFAULT 0;
-- turns as they are shown: also those that came to nothing. None: not read yet
ALTER TABLE sessions ADD COLUMN own_turns INTEGER;
-- its place in its family: parents first, then what began first
ALTER TABLE sessions ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
"""

_TOTALS = """
-- what clients say that stretches of a session took in all: MessagePack. All sources are read again for it.
ALTER TABLE told ADD COLUMN totals BLOB;
UPDATE sources SET stamp = '';
UPDATE told SET position = NULL;
UPDATE sessions SET detailed = NULL, mark = NULL;
DELETE FROM folders;
"""

_DAMAGE = """
-- lines of its files that cannot be read, and the stamp that the count is of; none: not counted yet
ALTER TABLE sources ADD COLUMN damaged_lines INTEGER;
ALTER TABLE sources ADD COLUMN damage_stamp TEXT;

CREATE TABLE damage (             -- files of sources, with how far their lines were looked at
    path TEXT PRIMARY KEY,
    source INTEGER NOT NULL,      -- sources.id
    places INTEGER NOT NULL,      -- lines that cannot be read
    count BLOB NOT NULL           -- where to go on: JSON
) WITHOUT ROWID;
CREATE INDEX damage_source ON damage (source);
CREATE TRIGGER damage_gone AFTER DELETE ON sources BEGIN DELETE FROM damage WHERE source = old.id; END;
"""

_MODELS_AND_ENDINGS = """
-- of models, those that answered beside the conversation alone: JSON. The first of models is the main thread's
ALTER TABLE sessions ADD COLUMN side_models TEXT NOT NULL DEFAULT '[]';
-- how its last exchange ended, as the session tells it; none: it has no end yet
ALTER TABLE sessions ADD COLUMN ending TEXT;
-- whether its agent said that the session has ended
ALTER TABLE sessions ADD COLUMN over INTEGER NOT NULL DEFAULT 0;

-- all files are read again: what they say is understood better
UPDATE sources SET stamp = '';
UPDATE told SET position = NULL;
DELETE FROM folders;
UPDATE sessions SET detailed = NULL, mark = NULL;
"""

_UNLISTED_CALLS = """
-- whether calls may have been made that are in no sum: for titles and the like, which the agent's file leaves out
ALTER TABLE sessions ADD COLUMN unlisted_calls INTEGER NOT NULL DEFAULT 0;

-- until when a request of it that has no answer may be in flight: seconds since 1970. Then it counts as unknown
ALTER TABLE sources ADD COLUMN in_flight_until REAL;
CREATE INDEX sources_in_flight ON sources (in_flight_until) WHERE in_flight_until IS NOT NULL;

-- all files are read again: requests without an answer count as unknown
UPDATE sources SET stamp = '';
UPDATE told SET position = NULL;
DELETE FROM folders;
UPDATE sessions SET detailed = NULL, mark = NULL;
"""

_CLOSED_LOGS = """
-- of a log of ours: the stamp that it had when no process had it open; none: not tried yet
ALTER TABLE sources ADD COLUMN closed_stamp TEXT;
-- the logs that a program may have open; those of the proxy (witness bit 1) are live only while they grow
CREATE INDEX sources_open ON sources (session)
    WHERE agent IS NULL AND key = path AND NOT witnesses & 1 AND closed_stamp IS NOT stamp;
CREATE INDEX sessions_modified ON sessions (modified);
"""

_TEXTS = """
CREATE TABLE facts (              -- of the index itself
    name TEXT PRIMARY KEY,        -- whole: the state of the catalog that it has all texts of
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE indexed (            -- sessions that are in the index
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    stamp TEXT NOT NULL,          -- sessions.stamp of the catalog, when it was indexed
    mark BLOB                     -- where a long session is read on: JSON
);

CREATE TABLE shards (
    id INTEGER PRIMARY KEY,       -- its index is the table words_<id>
    rows INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    text_bytes INTEGER NOT NULL,
    next INTEGER NOT NULL         -- the number of its next row
);

CREATE TABLE texts (              -- where the text of a row of an index stands; in a fork too, if it has a copy
    words INTEGER NOT NULL,       -- the shard, and 40 bits: the row's number in it
    session INTEGER NOT NULL,     -- indexed.id
    exchange INTEGER NOT NULL,    -- its number; 0 outside of all
    turn INTEGER NOT NULL,        -- its place among the turns; -1 for what a person typed
    kind INTEGER NOT NULL,        -- 0 input, 1 text, 2 thinking, 3 a tool's call and result
    at INTEGER NOT NULL,          -- milliseconds since 1970; 0: not known
    until INTEGER NOT NULL,       -- of the result
    error INTEGER NOT NULL,
    hash INTEGER NOT NULL,        -- of the text
    PRIMARY KEY (words, session)
) WITHOUT ROWID;
CREATE INDEX texts_session ON texts (session, exchange);
"""

_NUMBERED = """
-- a turn behind one that was cut before its first word has another number: all is indexed again
UPDATE indexed SET stamp = '', mark = NULL;
DELETE FROM facts WHERE name = 'whole';
"""

STEPS = (
    SchemaStep("sessions and ledger", _SESSIONS_AND_LEDGER),
    SchemaStep("exchanges in flight", _IN_FLIGHT),
    SchemaStep("what clients say of whole sessions", _REPORTED),
    SchemaStep("folders that look as they did", _FOLDERS),
    SchemaStep("where sessions are read on", _MARKS),
    SchemaStep("tools by session", _TOOLS),
    SchemaStep("answers that ended and cuts that were billed", _ENDINGS),
    SchemaStep("descent and what forks inherit", _DESCENT),
    SchemaStep("totals of clients", _TOTALS),
    SchemaStep("damaged lines", _DAMAGE),
    SchemaStep("models of the conversation, and how it ended", _MODELS_AND_ENDINGS),
    SchemaStep("calls that nobody tells of", _UNLISTED_CALLS),
    SchemaStep("closed logs", _CLOSED_LOGS),
)
TEXT_STEPS = (
    SchemaStep("texts and shards", _TEXTS),
    SchemaStep("turns that were cut have a number", _NUMBERED),
    SchemaStep("turns are counted otherwise", "UPDATE indexed SET stamp = '', mark = NULL;"),
)
