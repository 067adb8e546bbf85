"""What a sender and a hub say to each other: `docs/hub-protocol.md`."""

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Literal, NoReturn

import msgspec

VERSION = 1
VERSION_HEADER = "Agent-Logger-Protocol"
HASH_HEADER = "Content-SHA256"
MODIFIED_HEADER = "Modified"

MOST_RANGE_BYTES = 4 << 20
MOST_HEAD_BYTES = 64 << 10
MOST_OBJECT_BYTES = 16 << 30
MOST_OBJECTS = 1_000_000
MOST_PARTS = 16
MOST_PART_BYTES = 255
MOST_SESSION_BYTES = 512
MOST_NUMBER = 1 << 53  # of a revision, a generation, an offset

Level = Literal["none", "numbers", "titles", "contents"]
LEVELS: tuple[Level, ...] = ("none", "numbers", "titles", "contents")
Form = Literal["lines", "whole", "document"]
ErrorCode = Literal[
    "version",
    "malformed",
    "bad_hash",
    "unauthorized",
    "unknown_object",
    "stale_revision",
    "stale_generation",
    "conflict",
    "gap",
    "withdrawn",
    "too_large",
    "busy",
]
STATUS: dict[ErrorCode, int] = {
    "version": 400,
    "malformed": 400,
    "bad_hash": 400,
    "unauthorized": 401,
    "unknown_object": 404,
    "stale_revision": 409,
    "stale_generation": 409,
    "conflict": 409,
    "gap": 409,
    "withdrawn": 410,
    "too_large": 413,
    "busy": 503,
}

# Folders of a home that an object of the level `contents` may be in.
TOP_FOLDERS = ("logs", "sessions", "projects", "hooks", "archive")
_OBJECT = re.compile(r"[0-9a-f]{32}")
_HASH = re.compile(r"[0-9a-f]{64}")
_AGENT = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a session is shared."""

    level: Level
    revision: int


class ObjectHead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The head of a generation of an object."""

    session: str
    level: Level
    revision: int
    form: Form
    rules: str = ""
    place: tuple[str, ...] = ()
    origin: str = ""
    length: int | None = None  # none: it grows
    sha256: str | None = None


class DeviceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a hub says of a device."""

    device: str
    person: str
    machine: str
    version: str  # the hub's
    revision: int = 0  # the highest of its statements
    generation: int = 0  # the highest of its objects
    levels: dict[str, Statement] = {}  # the latest statement about each session


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    invite: str
    machine: str


class DeviceGrant(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an invite."""

    token: str
    device: str
    person: str
    machine: str


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True):
    session: str


class Withdrawn(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a session."""

    session: str
    objects: int = 0  # that were deleted
    others: tuple[str, ...] = ()  # people whose copies stay


class Offset(msgspec.Struct, frozen=True, kw_only=True):
    """Where an object continues."""

    generation: int
    offset: int


class HubRefusal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a hub refused a request."""

    error: ErrorCode
    message: str = ""
    revision: int | None = None
    level: Level | None = None
    generation: int | None = None
    offset: int | None = None
    versions: tuple[int, ...] = ()


class HubRefusalError(Exception):
    """A request was refused."""

    def __init__(self, refusal: HubRefusal) -> None:
        super().__init__(refusal.message or refusal.error)
        self.refusal = refusal


def refuse(error: ErrorCode, message: str) -> NoReturn:
    raise HubRefusalError(HubRefusal(error=error, message=message))


def object_id(key: bytes, names: Sequence[str]) -> str:
    """Return the id of what these names are, which says nothing to anybody without the key."""
    text = "\0".join(("push", *names)).encode("utf-8", "surrogatepass")
    return hmac.digest(key, text, hashlib.sha256).hex()[:32]


def project_name(key: bytes, project: str) -> str:
    """Return the name of a project that the owner gave no name."""
    text = f"project\0{project}".encode("utf-8", "surrogatepass")
    return f"project-{hmac.digest(key, text, hashlib.sha256).hex()[:8]}"


# ---------------------------------------------------------------- what is taken


def check_session(session: str) -> None:
    """Raise `HubRefusalError` for what is no id of a session."""
    if not 0 < len(session.encode("utf-8", "replace")) <= MOST_SESSION_BYTES or not session.isprintable():
        refuse("malformed", "the id of the session is empty, too long, or cannot be printed")


def check_number(number: int) -> None:
    if not 0 <= number < MOST_NUMBER:
        refuse("malformed", "a number is out of range")


def check_object(name: str) -> None:
    if not _OBJECT.fullmatch(name):
        refuse("malformed", "the id of an object is 32 hex digits")


def check_hash(text: str | None) -> None:
    if text is None or not _HASH.fullmatch(text):
        refuse("malformed", "a hash is 64 hex digits")


def check_head(head: ObjectHead) -> None:
    """Raise `HubRefusalError` for a head that does not fit together."""
    check_session(head.session)
    check_number(head.revision)
    if (head.form == "document") != (head.level in ("numbers", "titles")):
        refuse("malformed", f"an object of the level {head.level} does not have the form {head.form}")
    if head.form == "lines":
        if head.length is not None or head.sha256 is not None:
            refuse("malformed", "an object that grows has no length and no hash")
    else:
        check_hash(head.sha256)
        if head.length is None or not head.length >= 0:
            refuse("malformed", "an object that does not grow has a length")
        if head.length > MOST_OBJECT_BYTES:
            refuse("too_large", "the object is too large")
    if head.form == "document":
        if head.place or head.origin:
            refuse("malformed", "a document has no place")
    else:
        check_place(head.place, head.origin)


def check_place(place: Sequence[str], origin: str) -> None:
    """Raise `HubRefusalError` for a place that is not inside a home's folders of recordings."""
    if not 2 <= len(place) <= MOST_PARTS or place[0] not in TOP_FOLDERS or not all(map(_is_name, place)):
        refuse("malformed", "the place is not one of a recording in a home")
    if place[0] != "archive" and any(name.startswith(".") for name in place):
        refuse("malformed", "the place is one that a home has for itself")
    if place[0] == "archive" and (len(place) < 4 or not _AGENT.fullmatch(place[1]) or place[1] == "imported"):
        refuse("malformed", "the place is not one of a file in an archive")
    if (place[0] == "archive") != bool(origin) or not origin.isprintable() or len(origin) > 4096:
        refuse("malformed", "the folder that the file is from does not fit to its place")


def _is_name(name: str) -> bool:
    """Whether it is the name of a file that stands for nothing else, here and in an archive."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return False
    return (
        0 < size <= MOST_PART_BYTES
        and name.isprintable()
        and not set(name) & set("/\\~")
        and name not in (".", "..", ".folder")
        and not name.endswith((".zst", ".live"))
    )
