"""People of the hub, their devices, and the tokens of both.

Each token is 256 random bits, stored as its SHA-256 and looked up by it: how long a lookup takes says nothing about the
tokens that exist. What a token was made for is the only thing that it is good for.

    invite    one use, a day: `join` exchanges it for a device token
    device    a machine pushes with it, and sees what it sent itself
    reader    programs read with it what the person may see
    link      one use, a day: the browser exchanges it for a page token
    page      the cookie of the page, thirty days
"""

import hashlib
import hmac
import re
import secrets
import unicodedata
from enum import StrEnum
from typing import Any, NamedTuple

from agent_logger.clock import CLOCK, Clock
from agent_logger.errors import AgentLoggerError
from agent_logger.hub import statements as sql
from agent_logger.hub.database import HubDatabase
from agent_logger.hub.throttle import Throttle

DAY_SECONDS = 86_400
LIFETIMES = {"invite": DAY_SECONDS, "link": DAY_SECONDS, "page": 30 * DAY_SECONDS}
TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
NAME = re.compile(r"\w[\w.@+ '-]{0,63}")
MACHINE = re.compile(r"[^\x00-\x1f\x7f/\\]{1,64}")
USED_SECONDS = 60  # how precisely it is noted when a device was last used


class Role(StrEnum):
    MEMBER = "member"
    LEAD = "lead"
    ADMIN = "admin"


class Person(NamedTuple):
    id: str
    name: str
    role: Role
    created: int
    revoked: int | None = None


class Device(NamedTuple):
    id: str
    person: Person
    machine: str
    created: int
    used: int
    revoked: int | None = None


class PageReader(NamedTuple):
    """A person who is signed in to the page."""

    person: Person
    csrf_token: str


class AuditEvent(NamedTuple):
    """A row of the audit: who did, or was refused, what. `person` acted; `owner` is whose session it was about."""

    time: int
    event: str
    person: str | None
    owner: str | None
    session: str | None
    peer: str | None
    detail: str


class UnknownPersonError(AgentLoggerError):
    """The name is nobody's."""


class PersonNameError(AgentLoggerError):
    """A name that no person can have."""


class ThrottledError(Exception):
    """A peer presented too many wrong tokens. Nothing was looked up."""


class People:
    def __init__(self, database: HubDatabase, clock: Clock = CLOCK) -> None:
        self.database, self._clock = database, clock
        self._throttle = Throttle(clock.monotonic)
        self._missing_tokens = Throttle(clock.monotonic)

    # ------------------------------------------------------------ people

    def invite(self, name: str, role: Role | None = None) -> str:
        """Return an invite for a person, who is added if the name is new: as admin if nobody else is there. `role`
        changes the role of a person who exists. Somebody who was revoked may come back, with new tokens."""
        with self.database.transaction():
            person = self.find(name)
            if person is None:
                is_first = self.database.rows(sql.COUNT_PEOPLE)[0][0] == 0
                added = Person(secrets.token_hex(8), checked_name(name), role or Role.MEMBER, self._now())
                person = added._replace(role=Role.ADMIN) if is_first else added
                self.database.execute(sql.ADD_PERSON, (person.id, person.name, person.role, person.created))
            elif (role and role != person.role) or person.revoked:
                self.database.execute(sql.SET_ROLE, (role or person.role, person.id))
            self._add_event("invite", owner=person.name, detail=role or person.role)
            return self._add_token("invite", person.id)

    def reader_token(self, name: str) -> str:
        """Return a new token with which programs read what the person may see. Raises `UnknownPersonError`."""
        return self._token_for("reader", name)

    def link_token(self, name: str) -> str:
        """Return a token that signs the person in to the page, once. Raises `UnknownPersonError`."""
        return self._token_for("link", name)

    def people(self) -> list[Person]:
        return [_person(row) for row in self.database.rows(sql.ALL_PEOPLE)]

    def devices(self) -> list[Device]:
        return [_device(row) for row in self.database.rows(sql.ALL_DEVICES)]

    def find(self, name: str) -> Person | None:
        row = self.database.row(sql.PERSON_BY_NAME, (normalized(name),))
        return _person(row) if row else None

    def person(self, name: str) -> Person:
        """Raises `UnknownPersonError`."""
        person = self.find(name)
        if person is None:
            raise UnknownPersonError(f"nobody is called {name!r} here; 'agent-logger hub people' lists everybody")
        return person

    def token_counts(self) -> dict[tuple[str, str], int]:
        """How many valid tokens there are, by the id of the person and kind."""
        rows = self.database.rows(sql.COUNT_TOKENS, (self._now(),))
        return {(person, kind): count for person, kind, count in rows}

    def device_ids(self, person: Person) -> list[str]:
        """Return the ids of all devices that the person ever had, revoked ones too: what these sent stays theirs."""
        return [device for (device,) in self.database.rows(sql.DEVICES_OF_PERSON, (person.id,))]

    def is_first(self, session: str, person: Person) -> bool:
        """Whether the person was the first to push the session, which makes it theirs."""
        return self.database.row(sql.CLAIMANT, (session,)) == (person.id,)

    def revoke_person(self, name: str) -> Person:
        """Revoke a person with all tokens and devices. Raises `UnknownPersonError`."""
        with self.database.transaction():
            person, now = self.person(name), self._now()
            for statement in (sql.REVOKE_PERSON, sql.REVOKE_DEVICES_OF_PERSON, sql.REVOKE_TOKENS_OF_PERSON):
                self.database.execute(statement, (now, person.id))
            self._add_event("revoke", owner=person.name, detail="person")
        return person

    def revoke_device(self, device: Device) -> None:
        with self.database.transaction():
            self.database.execute(sql.REVOKE_DEVICE, (self._now(), device.id))
            self.database.execute(sql.REVOKE_TOKENS_OF_DEVICE, (self._now(), device.id))
            self._add_event("revoke", owner=device.person.name, detail=f"device {device.machine}")

    def revoke_tokens(self, name: str) -> None:
        """Revoke what the person reads with, and what was not used yet; devices go on pushing. Raises
        `UnknownPersonError`."""
        with self.database.transaction():
            person = self.person(name)
            for kind in ("invite", "reader", "link", "page"):
                self.database.execute(sql.REVOKE_TOKENS_OF_KIND, (self._now(), person.id, kind))
            self._add_event("revoke", owner=person.name, detail="tokens")

    def note_deletion(self, owner: str, session: str) -> None:
        """Record that an admin has deleted what a person had pushed of a session."""
        self._add_event("delete", owner=owner, session=session)

    # ------------------------------------------------------------ tokens

    def exchange_invite(self, invite: str, machine: str, peer: str = "") -> str | None:
        """Return the device token of a new device, in exchange for an invite; None if it is not valid, was used, or
        the machine's name is none. Raises `ThrottledError`."""
        if not MACHINE.fullmatch(machine):
            return None
        with self.database.transaction():
            person = self._redeem(invite, "invite", peer)
            if person:
                device, now = secrets.token_hex(8), self._now()
                self.database.execute(sql.ADD_DEVICE, (device, person.id, machine, now, now))
                self._add_event("join", person=person.name, peer=peer, detail=machine)
                return self._add_token("device", person.id, device)
        self.refuse("invite", peer)
        return None

    def device_of(self, token: str, peer: str = "") -> Device | None:
        """The device that a token belongs to. Raises `ThrottledError`."""
        row = self._lookup(sql.DEVICE_OF_TOKEN, token, (), peer)
        if row is None:
            self.refuse("device token", peer)
            return None
        device, now = _device(row), self._now()
        if device.used < now - USED_SECONDS:
            self.database.execute(sql.DEVICE_USED, (now, device.id, now - USED_SECONDS))
        return device

    def reader_of(self, token: str, peer: str = "") -> Person | None:
        """The person whose reader token this is. Raises `ThrottledError`."""
        return self._person_of(token, "reader", peer)

    def redeem_link(self, token: str, peer: str = "") -> str | None:
        """Return the token of the page's cookie in exchange for that of a link; None if it is not valid, or was used.
        Raises `ThrottledError`."""
        with self.database.transaction():
            person = self._redeem(token, "link", peer)
            if person:
                self._add_event("sign-in", person=person.name, peer=peer)
                return self._add_token("page", person.id)
        self.refuse("link", peer)
        return None

    def page_reader_of(self, cookie: str, peer: str = "") -> PageReader | None:
        """Return the person who is signed in with this cookie. Raises `ThrottledError`."""
        person = self._person_of(cookie, "page", peer)
        return PageReader(person, csrf_token_of(cookie)) if person else None

    def sign_out(self, cookie: str) -> None:
        self.database.execute(sql.REVOKE_TOKEN, (self._now(), hash_of(cookie)))

    # ------------------------------------------------------------ audit

    def note_read(self, person: Person, owner: str, session: str, detail: str, peer: str = "") -> None:
        """Note that a person read contents of somebody else's session."""
        self._add_event("read", person.name, owner, session, peer, detail)

    def refuse(self, detail: str, peer: str = "") -> None:
        """Note a refusal, and count it against the peer. What is refused once the peer is throttled is not noted."""
        if self._throttle.admits(peer):
            self._throttle.note_failure(peer)
            self._add_event("refused", peer=peer, detail=detail)

    def note_missing_token(self, peer: str) -> None:
        """Note that a peer presented no token; some times a minute. This does not count against the peer."""
        if self._missing_tokens.admits(peer):
            self._missing_tokens.note_failure(peer)
            self._add_event("refused", peer=peer, detail="no token")

    def note_refusal(self, person: Person, detail: str, peer: str = "") -> None:
        """Note that a person was refused something that their role does not allow."""
        self._add_event("refused", person.name, peer=peer, detail=detail)

    def events(self, most: int = 100) -> list[AuditEvent]:
        """The newest events first."""
        return [AuditEvent(*row) for row in self.database.rows(sql.EVENTS, (most,))]

    def reads_of(self, owner: str, most: int = 100) -> list[AuditEvent]:
        """Return the reads of contents of this person's sessions, the newest first."""
        return [AuditEvent(*row) for row in self.database.rows(sql.READS_OF_OWNER, (owner, most))]

    # ------------------------------------------------------------ settings

    @property
    def url(self) -> str | None:
        """The address under which people reach the hub, as the last invite gave it."""
        row = self.database.row(sql.SETTING, ("url",))
        return row[0] if row else None

    def set_url(self, url: str) -> None:
        self.database.execute(sql.SET_SETTING, ("url", url))

    # ------------------------------------------------------------ inside

    def _now(self) -> int:
        return int(self._clock.wall())

    def _token_for(self, kind: str, name: str) -> str:
        with self.database.transaction():
            person = self.person(name)
            if person.revoked:
                raise UnknownPersonError(f"{person.name} was revoked; 'agent-logger hub invite' brings them back")
            self._add_event("token", owner=person.name, detail=kind)
            return self._add_token(kind, person.id)

    def _add_token(self, kind: str, person: str, device: str | None = None) -> str:
        token, now = secrets.token_urlsafe(32), self._now()
        expires = now + LIFETIMES[kind] if kind in LIFETIMES else None
        self.database.execute(sql.ADD_TOKEN, (hash_of(token), kind, person, device, now, expires))
        return token

    def _redeem(self, token: str, kind: str, peer: str) -> Person | None:
        if not self._throttle.admits(peer):
            raise ThrottledError
        now = self._now()
        if not self.database.execute(sql.USE_TOKEN, (now, hash_of(token), kind, now)):
            return None
        row = self.database.row(sql.PERSON_OF_USED_TOKEN, (hash_of(token),))
        return _person(row) if row and row[-1] is None else None

    def _person_of(self, token: str, kind: str, peer: str) -> Person | None:
        row = self._lookup(sql.PERSON_OF_TOKEN, token, (kind, self._now()), peer)
        if row is None:
            self.refuse(f"{kind} token", peer)
        return _person(row) if row else None

    def _lookup(self, statement: str, token: str, more: tuple[object, ...], peer: str) -> tuple[Any, ...] | None:
        token_hash = hash_of(token)
        if not self._throttle.admits(peer, token_hash):
            raise ThrottledError
        row = self.database.row(statement, (token_hash, *more)) if TOKEN.fullmatch(token) else None
        if row:
            self._throttle.note_success(token_hash)
        return row

    def _add_event(
        self,
        event: str,
        person: str | None = None,
        owner: str | None = None,
        session: str | None = None,
        peer: str | None = None,
        detail: str = "",
    ) -> None:
        values = (self._clock.uuid7(), self._now(), event, person, owner, session, peer or None, detail)
        self.database.execute(sql.ADD_EVENT, values)


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def csrf_token_of(cookie: str) -> str:
    """The token that a form of this session must carry: made from the cookie, which no other site can read."""
    return hmac.digest(cookie.encode(), b"agent-logger hub csrf", "sha256").hex()


def normalized(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip())


def checked_name(name: str) -> str:
    """Return the name as it is stored. Raises `PersonNameError`."""
    normal = normalized(name)
    if not NAME.fullmatch(normal):
        raise PersonNameError(f"{name!r} cannot be a person's name: use up to 64 letters, digits, spaces and .@+'-")
    return normal


def _person(row: tuple[Any, ...]) -> Person:
    person, name, role, created, revoked = row
    return Person(person, name, Role(role), created, revoked)


def _device(row: tuple[Any, ...]) -> Device:
    device, machine, created, used, revoked = row[:5]
    return Device(device, _person(row[5:]), machine, created, used, revoked)
