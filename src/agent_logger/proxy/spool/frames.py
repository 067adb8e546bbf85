"""The frames that the relay sends to the recorder, in the order things happened.

An entry of the spool is `length, checksum, body`: two little-endian 32-bit numbers, the CRC-32 of the body, and the
body, which is msgpack: frames of one call, one after the other, that came from one read or from a few. A segment of the
spool is an entry with a `SpoolSegment` frame, which has no number, and then all others; they are counted from its
`first`, so an entry is identified by relay and number, even after a crash of all processes.

Bodies are payload: without chunk sizes, as encoded as they came. Credentials never stand in a frame. The relay puts
NULs in their place and lists them in `masked`; the values travel over a pipe, in memory, as `CredentialFrame`s, for the
recorder to put back before it takes HMACs and redacts. Where it cannot (both crashed) the places are known all the
same.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Literal

import msgspec

HEAD = struct.Struct("<II")  # length of the body, its CRC-32
LONGEST_ENTRY = 16 << 20
REMEMBERED = 4096  # credentials of a relay; servers may set another cookie with each answer


class Mask(msgspec.Struct, array_like=True, frozen=True):
    """Where a credential stood in a frame's bytes, and which: an index into the relay's list of them."""

    offset: int
    length: int
    credential: int


class CredentialFrame(msgspec.Struct, array_like=True, frozen=True):
    """The value that `Mask.credential` stands for, sent over the pipe only. The last ones are sent again to a new
    recorder.

    Indexes count up. A credential that is still in use after a few thousand others gets another one.
    """

    relay: str
    index: int
    value: bytes
    lasting: bool = False  # looked for in later calls, too, whichever relay has them


class Frame(msgspec.Struct, array_like=True, frozen=True):
    """A frame of a call. `call` counts the relay's calls; `ns` is monotonic."""

    call: int
    ns: int


class SpoolSegment(Frame, array_like=True, frozen=True, tag=0):
    """The first frame of a segment. `wall_ns` is what the clock said at `ns`, to convert times."""

    relay: str
    pid: int
    first: int
    wall_ns: int


class RequestHeadFrame(Frame, array_like=True, frozen=True, tag=1):
    """A call begins: its head is complete. `head` is as the client sent it, request line included."""

    id: str  # UUIDv7
    connection: int  # counts the relay's client connections
    provider: str
    upstream: str  # host, or host:port where it is not 443
    path: bytes  # the target as the upstream gets it
    head: bytes
    masked: tuple[Mask, ...] = ()  # masks in `head`; the path has the same credentials, masked but not listed
    websocket: bool = False  # the client asks for an upgrade
    sought: tuple[int, ...] = ()  # credentials of earlier calls, which are masked in this one, too
    run: str = ""  # the id of the registered run that it belongs to
    door: Literal["base-url", "forward"] = "base-url"


class RequestData(Frame, array_like=True, frozen=True, tag=2):
    data: bytes
    masked: tuple[Mask, ...] = ()


class RequestEnd(Frame, array_like=True, frozen=True, tag=3):
    trailers: bytes = b""
    masked: tuple[Mask, ...] = ()


class ResponseHead(Frame, array_like=True, frozen=True, tag=4):
    """Status line and headers. Interim ones (1xx) come before the final one, each as such a frame."""

    head: bytes
    masked: tuple[Mask, ...] = ()


class ResponseData(Frame, array_like=True, frozen=True, tag=5):
    """A piece of a response's body. `ends_chunk`: this ends an HTTP chunk, or, where the body is not chunked, the bytes
    of one read."""

    data: bytes
    ends_chunk: bool = True
    masked: tuple[Mask, ...] = ()


class TunnelData(Frame, array_like=True, frozen=True, tag=6):
    """Bytes of an upgraded connection, frames and masking of WebSocket included."""

    data: bytes
    from_client: bool
    masked: tuple[Mask, ...] = ()


class CallEnd(Frame, array_like=True, frozen=True, tag=7):
    """The last frame of a call. `reason` is `None` if request and response are whole, else a word of docs/proxy.md."""

    reason: str | None = None
    trailers: bytes = b""
    masked: tuple[Mask, ...] = ()


class Refusal(Frame, array_like=True, frozen=True, tag=8):
    """A request that we answered ourselves: the only frame of its call."""

    id: str
    connection: int
    status: int
    reason: str  # a sentence for people: why it was refused
    head: bytes  # the beginning of the request, as far as it was read
    masked: tuple[Mask, ...] = ()
    head_bytes: int = 0  # how many bytes of the head arrived


class RefusalsFrame(Frame, array_like=True, frozen=True, tag=10):
    """Requests that we answered ourselves and that no other frame reports: how many, by status."""

    since_ns: int
    counts: tuple[tuple[int, int], ...]


class Dropped(Frame, array_like=True, frozen=True, tag=9):
    """Frames that did not fit, of this call (0: of all): the disk was too slow, or full.

    `let_go`: they were recorded, but the call grew larger than the spool may keep for it. A recorder that reads this
    reads the spool again, after a crash, and finds that what was recorded of them is gone.
    """

    frames: int
    bytes: int
    let_go: bool = False


AnyFrame = (
    SpoolSegment
    | RequestHeadFrame
    | RequestData
    | RequestEnd
    | ResponseHead
    | ResponseData
    | TunnelData
    | CallEnd
    | Refusal
    | RefusalsFrame
    | Dropped
)

DataFrame = RequestData | ResponseData | TunnelData
DATA = (RequestData, ResponseData, TunnelData)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[AnyFrame, ...]).decode

Entry = tuple[AnyFrame, ...]  # never empty, and all of one call


# Of msgpack: an array of up to 15, data of up to 4 GB, empty data.
_ARRAY, _BIN_32_MARK, _BIN_32, _NO_DATA = 0x90, 0xC6, struct.Struct(">BI"), _encode(b"")

Packed = tuple[bytes, ...]  # an entry, as buffers for `writev`

# Data of more bytes is not copied into the body of its entry: it is a buffer of its own. (Shorter data has another
# head in msgpack.)
_LARGE_BYTES = 0xFFFF
_FEW_FRAMES = 4  # more frames share the bytes of a few reads, so none of them is large


def pack(*frames: AnyFrame) -> Packed:
    """Return an entry as it is written."""
    buffers = _body(frames)
    checksum = 0
    for buffer in buffers:
        checksum = zlib.crc32(buffer, checksum)
    return HEAD.pack(sum(map(len, buffers)), checksum), *buffers


def _body(frames: Entry) -> list[bytes]:
    if len(frames) > _FEW_FRAMES or not any(map(_is_large, frames)):
        return [_encode(frames)]
    buffers = [bytes((_ARRAY | len(frames),))]
    for frame in frames:
        if isinstance(frame, DATA) and _is_large(frame):
            before, after = _around_data(frame)
            buffers[-1] += before + _BIN_32.pack(_BIN_32_MARK, len(frame.data))
            buffers += [frame.data, after]
        else:
            buffers[-1] += _encode(frame)
    return buffers


def _is_large(frame: AnyFrame) -> bool:
    return isinstance(frame, DATA) and len(frame.data) > _LARGE_BYTES


def _around_data(frame: DataFrame) -> tuple[bytes, bytes]:
    """What stands before and after the data of a frame, which is its third field."""
    encoded = _encode(msgspec.structs.replace(frame, data=b""))
    at = len(_encode((type(frame).__struct_config__.tag, frame.call, frame.ns)))
    return encoded[:at], encoded[at + len(_NO_DATA) :]


def unpack(data: bytes, offset: int = 0) -> Iterator[tuple[Entry, int]]:
    """Yield the entries of a segment from `offset`, each with the offset behind it.

    Stops before the first one that is not whole: it is being written, or a crash cut it.
    """
    start, view = offset + HEAD.size, memoryview(data)
    while start <= len(data):
        length, checksum = HEAD.unpack_from(data, start - HEAD.size)
        end = start + length
        body = view[start:end]
        if not 0 < length <= LONGEST_ENTRY or len(body) < length or zlib.crc32(body) != checksum:
            return
        entry = _decode(body)
        if not entry:
            return
        yield entry, end
        start = end + HEAD.size
