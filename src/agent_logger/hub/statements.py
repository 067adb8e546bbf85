"""The hub's own tables, and every SQL statement on them, in the SQL that SQLite and PostgreSQL share.

Parameters are `?`. Times are whole seconds since 1970, `hash` is the SHA-256 of a token: no token is stored. What one
database alone understands is in `database.py`.
"""

TABLES = (
    """
    CREATE TABLE IF NOT EXISTS people (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        role TEXT NOT NULL,
        created BIGINT NOT NULL,
        revoked BIGINT
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS devices (
        id TEXT PRIMARY KEY,
        person TEXT NOT NULL REFERENCES people (id),
        machine TEXT NOT NULL,
        created BIGINT NOT NULL,
        used BIGINT NOT NULL,
        revoked BIGINT
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS tokens (
        hash TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        person TEXT NOT NULL REFERENCES people (id),
        device TEXT REFERENCES devices (id),
        created BIGINT NOT NULL,
        expires BIGINT,
        revoked BIGINT
    )
    """,
    "CREATE INDEX IF NOT EXISTS tokens_by_person ON tokens (person)",
    """
    CREATE TABLE IF NOT EXISTS audit (
        id TEXT PRIMARY KEY,
        time BIGINT NOT NULL,
        event TEXT NOT NULL,
        person TEXT,
        owner TEXT,
        session TEXT,
        peer TEXT,
        detail TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS audit_by_owner ON audit (owner, time)",
    "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)

_PERSON = "people.id, people.name, people.role, people.created, people.revoked"
_DEVICE = "devices.id, devices.machine, devices.created, devices.used, devices.revoked"

ADD_PERSON = "INSERT INTO people (id, name, role, created) VALUES (?, ?, ?, ?)"
COUNT_PEOPLE = "SELECT count(*) FROM people"
PERSON_BY_NAME = f"SELECT {_PERSON} FROM people WHERE name = ?"
PERSON_BY_ID = f"SELECT {_PERSON} FROM people WHERE id = ?"
ALL_PEOPLE = f"SELECT {_PERSON} FROM people ORDER BY name"
SET_ROLE = "UPDATE people SET role = ?, revoked = NULL WHERE id = ?"
REVOKE_PERSON = "UPDATE people SET revoked = ? WHERE id = ? AND revoked IS NULL"

ADD_DEVICE = "INSERT INTO devices (id, person, machine, created, used) VALUES (?, ?, ?, ?, ?)"
ALL_DEVICES = f"SELECT {_DEVICE}, {_PERSON} FROM devices JOIN people ON people.id = devices.person ORDER BY devices.id"
REVOKE_DEVICE = "UPDATE devices SET revoked = ? WHERE id = ? AND revoked IS NULL"
REVOKE_DEVICES_OF_PERSON = "UPDATE devices SET revoked = ? WHERE person = ? AND revoked IS NULL"
DEVICE_USED = "UPDATE devices SET used = ? WHERE id = ? AND used < ?"

ADD_TOKEN = "INSERT INTO tokens (hash, kind, person, device, created, expires) VALUES (?, ?, ?, ?, ?, ?)"
# Of an invite or a link: one caller alone gets a row changed.
USE_TOKEN = "UPDATE tokens SET revoked = ? WHERE hash = ? AND kind = ? AND revoked IS NULL AND expires > ?"
REVOKE_TOKEN = "UPDATE tokens SET revoked = ? WHERE hash = ? AND revoked IS NULL"
REVOKE_TOKENS_OF_PERSON = "UPDATE tokens SET revoked = ? WHERE person = ? AND revoked IS NULL"
REVOKE_TOKENS_OF_KIND = "UPDATE tokens SET revoked = ? WHERE person = ? AND kind = ? AND revoked IS NULL"
REVOKE_TOKENS_OF_DEVICE = "UPDATE tokens SET revoked = ? WHERE device = ? AND revoked IS NULL"
COUNT_TOKENS = """
    SELECT person, kind, count(*) FROM tokens
    WHERE revoked IS NULL AND (expires IS NULL OR expires > ?) GROUP BY person, kind
"""
PERSON_OF_USED_TOKEN = f"SELECT {_PERSON} FROM tokens JOIN people ON people.id = tokens.person WHERE tokens.hash = ?"
PERSON_OF_TOKEN = f"""
    SELECT {_PERSON} FROM tokens JOIN people ON people.id = tokens.person
    WHERE tokens.hash = ? AND tokens.kind = ? AND tokens.revoked IS NULL AND people.revoked IS NULL
    AND (tokens.expires IS NULL OR tokens.expires > ?)
"""
DEVICE_OF_TOKEN = f"""
    SELECT {_DEVICE}, {_PERSON}
    FROM tokens JOIN devices ON devices.id = tokens.device JOIN people ON people.id = devices.person
    WHERE tokens.hash = ? AND tokens.kind = 'device' AND tokens.revoked IS NULL
    AND devices.revoked IS NULL AND people.revoked IS NULL
"""

ADD_EVENT = "INSERT INTO audit (id, time, event, person, owner, session, peer, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_EVENT = "time, event, person, owner, session, peer, detail"
EVENTS = f"SELECT {_EVENT} FROM audit ORDER BY id DESC LIMIT ?"
READS_OF_OWNER = f"SELECT {_EVENT} FROM audit WHERE owner = ? AND event = 'read' ORDER BY id DESC LIMIT ?"

# The person who pushed a session first. The table is that of what devices push.
CLAIMANT = "SELECT person FROM claims WHERE session = ? ORDER BY number LIMIT 1"
DEVICES_OF_PERSON = "SELECT id FROM devices WHERE person = ?"

SET_SETTING = "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
SETTING = "SELECT value FROM settings WHERE name = ?"
