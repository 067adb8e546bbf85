"""The tables of `catalog.db` and `catalog-text.db`, one script for each file.

Everything in them is derived and may be deleted at any time. So there are no steps from one version to the next: with
every change of a script its version grows by one, and a file of an older version is replaced and filled again. Times
are microseconds since 1970, UTC; texts were redacted before they were written. The views are for people, and for
programs such as `datasette`. Search has a file of its own (`catalog-text.db`), so that filling it does not block
writing here.
"""

from typing import NamedTuple


class Schema(NamedTuple):
    """The script that makes the tables of a file, and its version: `PRAGMA user_version`, which never goes back."""

    version: int
    sql: str


CATALOG = Schema(
    20,
    """
CREATE TABLE properties (         -- of the catalog itself
    name TEXT PRIMARY KEY,        -- catalog_id: a new one for every catalog; change_count: grows with every change;
                                  -- price_date: of the price list; tombstones: a hash of the ids of removed sessions;
                                  -- sealing_time: when logs were last sealed, in seconds since 1970
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO properties VALUES ('catalog_id', lower(hex(randomblob(8))));

CREATE TABLE stamp_cache (        -- values from inside files; a file with the same stamp is not opened again for them
    path TEXT PRIMARY KEY,
    stamp TEXT NOT NULL,
    value TEXT NOT NULL           -- JSON
) WITHOUT ROWID;

CREATE TABLE folder_hashes (      -- folders whose sessions are all in sources, as long as they have this hash
    path TEXT PRIMARY KEY,
    hash TEXT NOT NULL            -- of the names and stamps of what is in it
) WITHOUT ROWID;

CREATE TABLE sources (            -- a session as one witness has it: a log, a transcript, a row of a database
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,     -- its path; in a database, with # and the session's id behind it
    path TEXT NOT NULL,
    folder TEXT GENERATED ALWAYS AS (rtrim(path, replace(path, '/', ''))) VIRTUAL,  -- the path up to the last slash
    agent TEXT,                   -- whose file it is; none for a log of ours
    imported TEXT,                -- the import that it belongs to; none: it is of this machine. What is imported does
                                  -- not count where this machine has the session
    home TEXT NOT NULL,           -- path of the other home that it is in; empty: the own one's, or an agent's
    machine TEXT NOT NULL,        -- its machine: as home; of what was imported, "imported:" and the machine's name
    name TEXT NOT NULL,           -- of the log, or the client's id
    other_paths TEXT,             -- JSON: paths of its sub-agents' files; none: its reader looks for them
    session TEXT NOT NULL,        -- sessions.id
    parent TEXT,                  -- the session or the log that it says it was forked from
    repeated_id TEXT,             -- the id that its agent gave the session, if other sessions may have the same; then
                                  -- session may be another
    possible_agents TEXT,         -- of a log of ours: JSON, the agents in whose files its session is looked up, because
                                  -- its calls do not tell it; none: they do
    witnesses INTEGER NOT NULL,   -- bits: wire 1, transcript 2, sdk 4, run 8, hook 16
    size INTEGER NOT NULL,        -- bytes of all its files
    modified REAL NOT NULL,       -- seconds since 1970
    stamp TEXT NOT NULL,          -- inodes, sizes and times of its files
    read_error TEXT,              -- why it could not be read; 'removed': it is of a session that the user removed
    first_write INTEGER,          -- of an agent's main file: its first response was written to it then, or later
    responses_before_own_line INTEGER,  -- of the same: responses before the first line that forks do not copy
    in_flight_until REAL,         -- until then a request without an answer may be in flight, after that it counts as
                                  -- unknown: seconds since 1970
    damaged_lines INTEGER,        -- lines of its files that cannot be read
    damage_stamp TEXT,            -- the stamp that damaged_lines is of; none: not counted yet
    closed_stamp TEXT             -- of a log of ours: the stamp that it had when no process had it open; none: not
                                  -- tried yet
);
CREATE INDEX sources_session ON sources (session);
CREATE INDEX sources_name ON sources (name);
CREATE INDEX sources_folder ON sources (folder);
CREATE INDEX sources_parent ON sources (parent) WHERE parent IS NOT NULL;
CREATE INDEX sources_repeated_id ON sources (repeated_id) WHERE repeated_id IS NOT NULL;
CREATE INDEX sources_to_look_up ON sources (key) WHERE possible_agents IS NOT NULL;
CREATE INDEX sources_in_flight ON sources (in_flight_until) WHERE in_flight_until IS NOT NULL;
-- logs that a program may have open; those of the proxy (witness bit 1) are live only while they grow
CREATE INDEX sources_open_logs ON sources (session)
    WHERE agent IS NULL AND key = path AND NOT witnesses & 1 AND closed_stamp IS NOT stamp;

CREATE TABLE source_responses (   -- the model's responses as a source has them
    source INTEGER PRIMARY KEY,   -- sources.id
    position BLOB,                -- how far its main file was read: JSON
    responses BLOB NOT NULL,      -- MessagePack, compressed by zstd
    totals BLOB                   -- the client's own totals for stretches of the session: MessagePack
);

CREATE TABLE response_keys (      -- ids of responses, to find the other sessions that have a copy of one
    key INTEGER NOT NULL,         -- 8 bytes of a hash
    source INTEGER NOT NULL,      -- sources.id
    PRIMARY KEY (key, source)
) WITHOUT ROWID;

CREATE TABLE summaries (          -- that files have, of their own session or another
    leaf TEXT NOT NULL,           -- the id of the line that it ends at
    source INTEGER NOT NULL,      -- sources.id
    text TEXT NOT NULL,
    PRIMARY KEY (leaf, source)
) WITHOUT ROWID;
CREATE INDEX summaries_source ON summaries (source);

CREATE TABLE damage_counts (      -- damaged lines by file
    path TEXT PRIMARY KEY,
    source INTEGER NOT NULL,      -- sources.id
    damaged_lines INTEGER NOT NULL,
    position BLOB NOT NULL        -- how far the file was checked: JSON
) WITHOUT ROWID;
CREATE INDEX damage_counts_source ON damage_counts (source);
CREATE TRIGGER source_deletion AFTER DELETE ON sources
    BEGIN DELETE FROM damage_counts WHERE source = old.id; END;

CREATE TABLE sessions (           -- a conversation, from all its witnesses
    id TEXT PRIMARY KEY,          -- the client's, else the name of our log
    family TEXT NOT NULL,         -- the same for all sessions that have responses in common, as forks have
    family_position INTEGER NOT NULL,  -- in the family: parents first, then what began first
    parent TEXT,                  -- the session it was forked from, as a witness says, else as its responses show
    agent TEXT,
    models TEXT NOT NULL,         -- JSON; the main thread's first
    side_models TEXT NOT NULL,    -- JSON; those of models that answered only side calls
    responses INTEGER NOT NULL,   -- in the ledger
    inherited_hash INTEGER NOT NULL,  -- of a fork, a hash of the responses that count in other sessions; 0: none
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cache_write_1h_tokens INTEGER NOT NULL,  -- part of cache_write_tokens
    nano_usd INTEGER,             -- none if no response has a price
    unpriced_responses INTEGER NOT NULL,
    unpriced_reason TEXT,
    reported_cost_usd REAL,       -- the sum of the client's own costs of single responses
    has_unlisted_calls INTEGER NOT NULL,  -- whether calls may be in no sum: for titles and the like, which the agent's
                                  -- file leaves out
    context_tokens INTEGER,
    peak_context_tokens INTEGER,
    response_project TEXT,        -- this and the next two: from its responses, where the session itself does not say
    first_response INTEGER,       -- its time
    last_response INTEGER,        -- its time
    last_active INTEGER NOT NULL, -- when it ended, else when its files were last written to
    witnesses INTEGER NOT NULL,   -- bits, as in sources
    modified REAL NOT NULL,       -- when any of its files was last written to: seconds since 1970
    size INTEGER NOT NULL,        -- bytes of all its files
    stamp TEXT NOT NULL,          -- of its sources together
    details_stamp TEXT,           -- the stamp that the details are of, which are all below; another: to be read
    title TEXT,
    project TEXT,
    started INTEGER,
    ended INTEGER,
    exchanges INTEGER NOT NULL DEFAULT 0,
    inherited_exchanges INTEGER,  -- of a fork, those from before it; none: not known
    turns INTEGER,                -- also those without a response in the ledger
    tool_calls INTEGER NOT NULL DEFAULT 0,
    errors INTEGER NOT NULL DEFAULT 0,  -- tool calls that failed
    active_seconds REAL,          -- during which its agent was working
    reported_session_cost_usd REAL,  -- the client's own cost of the whole session
    in_flight INTEGER NOT NULL DEFAULT 0,  -- whether its last exchange has no end yet
    ending TEXT,                  -- how its last exchange ended; none: it has no end yet
    is_over INTEGER NOT NULL DEFAULT 0,  -- whether its agent said that the session has ended
    details_position BLOB         -- where reading the details of a long session continues: JSON
) WITHOUT ROWID;
CREATE INDEX sessions_last_active ON sessions (last_active);
CREATE INDEX sessions_family ON sessions (family);
CREATE INDEX sessions_modified ON sessions (modified);
CREATE INDEX sessions_without_details ON sessions (size) WHERE details_stamp IS NOT stamp;

CREATE TABLE response_tools (     -- which tools a response called, as a session has it
    session TEXT NOT NULL,        -- sessions.id
    message_key INTEGER NOT NULL, -- 8 bytes of a hash of its message id
    calls TEXT NOT NULL,          -- JSON: names, and how often each
    PRIMARY KEY (session, message_key)
) WITHOUT ROWID;

CREATE TABLE ledger_places (      -- session, project, agent, thread and home of ledger rows
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL,        -- sessions.id
    project TEXT,
    agent TEXT NOT NULL,
    thread TEXT NOT NULL,
    home TEXT NOT NULL,           -- as machine in sources
    UNIQUE (session, project, agent, thread, home)
);

CREATE TABLE model_tiers (        -- the models that answered, with their tiers
    id INTEGER PRIMARY KEY,
    vendor TEXT NOT NULL,         -- whose message ids these are: anthropic, openai, gemini
    model TEXT,
    tier TEXT,
    UNIQUE (vendor, model, tier)
);

CREATE TABLE ledger (             -- every response of a model once; every total is a sum over these rows
    place INTEGER NOT NULL REFERENCES ledger_places,  -- the first place that had it
    model_tier INTEGER NOT NULL REFERENCES model_tiers,
    at INTEGER,
    message_id TEXT,
    input_tokens INTEGER,         -- none in all five: the usage is unknown
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    cache_write_1h_tokens INTEGER,
    nano_usd INTEGER,
    unpriced_reason TEXT,         -- why there is no price
    reported_cost_usd REAL,       -- what the client says
    witnesses INTEGER NOT NULL,   -- bits, as in sources
    copies INTEGER NOT NULL,      -- in how many places it was recorded
    joined_by TEXT,               -- by what its copies were matched
    partial INTEGER NOT NULL      -- whether it was cut before its end
);
CREATE INDEX ledger_place ON ledger (place);

CREATE VIEW session_list AS
SELECT id, agent, coalesce(project, response_project) AS project, title,
    datetime(coalesce(started, first_response) / 1000000, 'unixepoch') AS started,
    datetime(coalesce(ended, last_response) / 1000000, 'unixepoch') AS ended, exchanges,
    coalesce(turns, responses) AS turns, tool_calls, errors, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, nano_usd / 1e9 AS cost_usd, unpriced_responses, parent
FROM sessions ORDER BY last_active DESC;

CREATE VIEW responses AS
SELECT session, datetime(at / 1000000, 'unixepoch') AS at, model, tier, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, nano_usd / 1e9 AS cost_usd, unpriced_reason, project, agent, thread,
    message_id, copies, joined_by, partial
FROM ledger JOIN ledger_places ON ledger_places.id = place JOIN model_tiers ON model_tiers.id = model_tier;

CREATE VIEW spending AS
SELECT date(at) AS day, model, project, agent, count(*) AS responses, sum(input_tokens) AS input_tokens,
    sum(output_tokens) AS output_tokens, sum(cache_read_tokens) AS cache_read_tokens,
    sum(cache_write_tokens) AS cache_write_tokens, sum(cost_usd) AS cost_usd
FROM responses GROUP BY 1, 2, 3, 4;
""",
)

TEXT_INDEX = Schema(
    5,
    """
CREATE TABLE properties (         -- of the index itself
    name TEXT PRIMARY KEY,        -- catalog_state: the state of the catalog when all its texts were indexed
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE indexed_sessions (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE, -- sessions.id of the catalog
    stamp TEXT NOT NULL,          -- sessions.stamp of the catalog, when it was indexed
    position BLOB                 -- where reading a long session continues: JSON
);

CREATE TABLE shards (
    id INTEGER PRIMARY KEY,       -- its index is the table words_<id>
    rows INTEGER NOT NULL,
    dead_rows INTEGER NOT NULL,   -- rows whose text was removed
    text_bytes INTEGER NOT NULL,
    next_row INTEGER NOT NULL     -- the number of its next row
);

CREATE TABLE texts (              -- the places of a text in sessions, also in forks that have a copy of it
    index_row INTEGER NOT NULL,   -- the shard, and 40 bits: the row's number in it
    session INTEGER NOT NULL,     -- indexed_sessions.id
    exchange INTEGER NOT NULL,    -- its number; 0 outside of all
    turn INTEGER NOT NULL,        -- its place among the turns; -1 for what a person typed
    kind INTEGER NOT NULL,        -- 0 input, 1 text, 2 thinking, 3 a tool's call and result
    at INTEGER NOT NULL,          -- milliseconds since 1970; 0: not known
    result_at INTEGER NOT NULL,   -- the same of a tool's result
    is_error INTEGER NOT NULL,
    hash INTEGER NOT NULL,        -- of the text
    PRIMARY KEY (index_row, session)
) WITHOUT ROWID;
CREATE INDEX texts_session ON texts (session, exchange);
""",
)
