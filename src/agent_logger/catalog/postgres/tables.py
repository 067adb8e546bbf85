"""The tables of the catalog in PostgreSQL, as its first migration makes them. It is never changed: what comes later is
another step (`migrations.py`).

Columns mean what they do in SQLite's tables (`sqlite/schema.py`). Texts are ordered by their bytes, as SQLite orders
them. Flags are numbers, so that the same statements count them.
"""

TABLES = """
CREATE FUNCTION json_items(list text) RETURNS SETOF text LANGUAGE sql IMMUTABLE STRICT ROWS 100 AS
$$ SELECT json_array_elements_text(replace(list, '\\u0000', U&'\\FDD0')::json) $$;
CREATE FUNCTION instr(whole text, part text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT AS
$$ SELECT strpos(whole COLLATE "C", part) $$;
CREATE FUNCTION folded(whole text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT lower(coalesce(whole, '') COLLATE "und-x-icu") COLLATE "C" $$;
CREATE FUNCTION later(one bigint, other bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS
$$ SELECT greatest(one, other) $$;

CREATE TABLE properties (
    name TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);
INSERT INTO properties VALUES ('catalog_id', replace(gen_random_uuid()::text, '-', ''));

CREATE TABLE stamp_cache (
    path TEXT COLLATE "C" PRIMARY KEY,
    stamp TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL
);

CREATE TABLE folder_hashes (
    path TEXT COLLATE "C" PRIMARY KEY,
    hash TEXT COLLATE "C" NOT NULL
);

CREATE TABLE sources (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key TEXT COLLATE "C" NOT NULL UNIQUE,
    path TEXT COLLATE "C" NOT NULL,
    folder TEXT COLLATE "C" GENERATED ALWAYS AS (rtrim(path, replace(path, '/', ''))) STORED,
    agent TEXT COLLATE "C",
    imported TEXT COLLATE "C",
    home TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    other_paths TEXT COLLATE "C",
    session TEXT COLLATE "C" NOT NULL,
    parent TEXT COLLATE "C",
    witnesses BIGINT NOT NULL,
    size BIGINT NOT NULL,
    modified DOUBLE PRECISION NOT NULL,
    stamp TEXT COLLATE "C" NOT NULL,
    read_error TEXT COLLATE "C",
    first_write BIGINT,
    responses_before_own_line BIGINT,
    in_flight_until DOUBLE PRECISION,
    damaged_lines BIGINT,
    damage_stamp TEXT COLLATE "C",
    closed_stamp TEXT COLLATE "C"
);
CREATE INDEX sources_session ON sources (session);
CREATE INDEX sources_name ON sources (name);
CREATE INDEX sources_folder ON sources (folder);
CREATE INDEX sources_parent ON sources (parent) WHERE parent IS NOT NULL;
CREATE INDEX sources_home ON sources (home, session);
CREATE INDEX sources_in_flight ON sources (in_flight_until) WHERE in_flight_until IS NOT NULL;
CREATE INDEX sources_uncounted ON sources (session) WHERE damage_stamp IS DISTINCT FROM stamp;
CREATE INDEX sources_open_logs ON sources (session)
    WHERE agent IS NULL AND key = path AND witnesses & 1 = 0 AND closed_stamp IS DISTINCT FROM stamp;

CREATE TABLE source_responses (
    source BIGINT PRIMARY KEY,
    position BYTEA,
    responses BYTEA NOT NULL,
    totals BYTEA
);
ALTER TABLE source_responses ALTER responses SET STORAGE EXTERNAL; -- compressed already

CREATE TABLE response_keys (
    key BIGINT NOT NULL,
    source BIGINT NOT NULL,
    PRIMARY KEY (key, source)
);
CREATE INDEX response_keys_source ON response_keys (source);

CREATE TABLE summaries (
    leaf TEXT COLLATE "C" NOT NULL,
    source BIGINT NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (leaf, source)
);
CREATE INDEX summaries_source ON summaries (source);

CREATE TABLE damage_counts (
    path TEXT COLLATE "C" PRIMARY KEY,
    source BIGINT NOT NULL,
    damaged_lines BIGINT NOT NULL,
    position BYTEA NOT NULL
);
CREATE INDEX damage_counts_source ON damage_counts (source);

CREATE TABLE sessions (
    id TEXT COLLATE "C" PRIMARY KEY,
    family TEXT COLLATE "C" NOT NULL,
    family_position BIGINT NOT NULL,
    parent TEXT COLLATE "C",
    agent TEXT COLLATE "C",
    models TEXT COLLATE "C" NOT NULL,
    side_models TEXT COLLATE "C" NOT NULL,
    responses BIGINT NOT NULL,
    inherited_turns BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    cache_write_1h_tokens BIGINT NOT NULL,
    nano_usd BIGINT,
    unpriced_responses BIGINT NOT NULL,
    unpriced_reason TEXT COLLATE "C",
    reported_cost_usd DOUBLE PRECISION,
    has_unlisted_calls BIGINT NOT NULL,
    context_tokens BIGINT,
    peak_context_tokens BIGINT,
    response_project TEXT COLLATE "C",
    first_response BIGINT,
    last_response BIGINT,
    last_active BIGINT NOT NULL,
    witnesses BIGINT NOT NULL,
    modified DOUBLE PRECISION NOT NULL,
    size BIGINT NOT NULL,
    stamp TEXT COLLATE "C" NOT NULL,
    details_stamp TEXT COLLATE "C",
    title TEXT COLLATE "C",
    project TEXT COLLATE "C",
    started BIGINT,
    ended BIGINT,
    exchanges BIGINT NOT NULL DEFAULT 0,
    inherited_exchanges BIGINT,
    turns BIGINT,
    tool_calls BIGINT NOT NULL DEFAULT 0,
    errors BIGINT NOT NULL DEFAULT 0,
    active_seconds DOUBLE PRECISION,
    reported_session_cost_usd DOUBLE PRECISION,
    in_flight BIGINT NOT NULL DEFAULT 0,
    ending TEXT COLLATE "C",
    is_over BIGINT NOT NULL DEFAULT 0,
    details_position BYTEA
);
CREATE INDEX sessions_last_active ON sessions (last_active DESC, id);
CREATE INDEX sessions_family ON sessions (family);
CREATE INDEX sessions_modified ON sessions (modified);
CREATE INDEX sessions_without_details ON sessions (last_active DESC, id) WHERE details_stamp IS DISTINCT FROM stamp;

CREATE TABLE response_tools (
    session TEXT COLLATE "C" NOT NULL,
    message_key BIGINT NOT NULL,
    calls TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (session, message_key)
);

CREATE TABLE ledger_places (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C",
    agent TEXT COLLATE "C" NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    home TEXT COLLATE "C" NOT NULL
);
CREATE INDEX ledger_places_session ON ledger_places (session);

CREATE TABLE model_tiers (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    vendor TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C",
    tier TEXT COLLATE "C"
);
-- of their bytes, because a name may be longer than an index takes
CREATE UNIQUE INDEX model_tiers_names ON model_tiers (md5(vendor), md5(model), md5(tier)) NULLS NOT DISTINCT;

CREATE TABLE ledger (
    rowid BIGINT GENERATED ALWAYS AS IDENTITY,
    place BIGINT NOT NULL,
    model_tier BIGINT NOT NULL,
    at BIGINT,
    message_id TEXT COLLATE "C",
    message_key BIGINT,           -- of the message id, as in response_tools
    input_tokens BIGINT,
    output_tokens BIGINT,
    cache_read_tokens BIGINT,
    cache_write_tokens BIGINT,
    cache_write_1h_tokens BIGINT,
    nano_usd BIGINT,
    unpriced_reason TEXT COLLATE "C",
    reported_cost_usd DOUBLE PRECISION,
    witnesses BIGINT NOT NULL,
    copies BIGINT NOT NULL,
    joined_by TEXT COLLATE "C",
    partial BIGINT NOT NULL
);
CREATE INDEX ledger_place ON ledger (place);
CREATE INDEX ledger_at ON ledger (at);

CREATE TABLE source_work (        -- sources that are to be read, each by one indexer
    key TEXT COLLATE "C" PRIMARY KEY,
    source TEXT COLLATE "C" NOT NULL,  -- as it was found: JSON
    modified DOUBLE PRECISION NOT NULL
);
CREATE INDEX source_work_modified ON source_work (modified DESC);

CREATE TABLE session_work (       -- a row for each session that has sources: locked while the session is derived
    session TEXT COLLATE "C" PRIMARY KEY,
    is_due BOOLEAN NOT NULL       -- whether its sources have changed since it was derived
);
CREATE INDEX session_work_due ON session_work (session) WHERE is_due;
"""

TEXTS = """
CREATE TABLE indexed_sessions (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session TEXT COLLATE "C" NOT NULL UNIQUE, -- sessions.id
    stamp TEXT COLLATE "C" NOT NULL,          -- sessions.stamp when it was indexed
    position BYTEA,                           -- where reading a long session continues: JSON
    shards BIGINT[] NOT NULL DEFAULT '{}'     -- that have texts of it
);

CREATE TABLE text_shards (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- its texts are in the table texts_<id>
    bytes BIGINT NOT NULL,                    -- of words that were added
    newest BIGINT NOT NULL                    -- none of its texts is newer
);
"""

# Sums of the ledger by quarters of an hour, in microseconds: a page adds up thousands of them instead of millions of
# rows. They are made anew with the rows of their session.
SUM_QUARTERS = """
INSERT INTO ledger_quarters
SELECT place, model_tier, witnesses, at / 900000000 * 900000000, count(nullif(copies, 0)), sum(partial),
    sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(cache_write_1h_tokens),
    sum(nano_usd), count(unpriced_reason), min(unpriced_reason), sum(reported_cost_usd), count(*) - count(input_tokens)
FROM ledger {where} GROUP BY 1, 2, 3, 4
"""
QUARTERS = f"""
CREATE TABLE ledger_quarters (
    place BIGINT NOT NULL,
    model_tier BIGINT NOT NULL,
    witnesses BIGINT NOT NULL,
    at BIGINT,                    -- when the quarter begins
    responses BIGINT NOT NULL,
    partial BIGINT,
    input_tokens NUMERIC,
    output_tokens NUMERIC,
    cache_read_tokens NUMERIC,
    cache_write_tokens NUMERIC,
    cache_write_1h_tokens NUMERIC,
    nano_usd NUMERIC,
    unpriced BIGINT NOT NULL,
    unpriced_reason TEXT COLLATE "C",
    reported_cost_usd DOUBLE PRECISION,
    unknown_usage BIGINT NOT NULL
);
{SUM_QUARTERS.format(where="")};
CREATE INDEX ledger_quarters_place ON ledger_quarters (place);
CREATE INDEX ledger_quarters_at ON ledger_quarters (at);
CREATE INDEX ledger_unpriced ON ledger (at) WHERE unpriced_reason IS NOT NULL;
"""

# All sources are read again for what is new.
SOURCES = """
ALTER TABLE sources ADD repeated_id TEXT COLLATE "C", ADD possible_agents TEXT COLLATE "C",
    ADD machine TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX sources_repeated_id ON sources (repeated_id) WHERE repeated_id IS NOT NULL;
CREATE INDEX sources_to_look_up ON sources (key) WHERE possible_agents IS NOT NULL;
CREATE INDEX sources_machine ON sources (machine, session);
UPDATE sources SET stamp = '';
DELETE FROM folder_hashes;
"""

# What other sessions have is known exactly: details of sessions that others may have something of are read again.
INHERITED = """
ALTER TABLE sessions RENAME inherited_turns TO inherited_hash;
UPDATE sessions SET details_stamp = NULL, details_position = NULL
WHERE id IN (SELECT session FROM sources GROUP BY session HAVING count(*) > 1)
    OR family IN (SELECT family FROM sessions GROUP BY family HAVING count(*) > 1);
"""

# When a session ended, as a filter by time has it (`queries.ENDED`): all sessions would be read otherwise.
ENDS = """
CREATE INDEX sessions_ended ON sessions ((
    coalesce(
        later(
            coalesce(ended, last_response),
            coalesce(CASE WHEN details_stamp IS DISTINCT FROM stamp THEN last_response END, ended)
        ),
        coalesce(started, first_response)
    )
));
"""

# Every page asks for the machines that imports are from. Letters of ASCII alone, as most names have, are folded in a
# fraction of the time.
NAMES = """
CREATE INDEX sources_imported ON sources (machine) WHERE imported IS NOT NULL;
CREATE OR REPLACE FUNCTION folded(whole text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN octet_length(whole) > length(whole) THEN lower(whole COLLATE "und-x-icu") COLLATE "C"
        ELSE lower(coalesce(whole, '') COLLATE "C") END
$$;
"""
