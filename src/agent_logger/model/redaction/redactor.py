r"""The one door every secret passes before disk or screen.

Two steps. The credentials a request carries are known exactly and are removed wherever they appear. Then come
patterns for the known families of keys. Nothing is decoded first: a text may be JSON, JSON in JSON,
percent-encoded or cut off, and the patterns allow for all of these at once.

Speed: every pattern begins with a literal, and one automaton looks for all of them in one go (Aho-Corasick, at
several GB/s); the rest of a pattern is tried only at a hit. One `re` of all families is many times slower, for
they have no common beginning. What only a hit needs is compiled and imported at the first: an agent waits for the
hook that goes through here, and most texts have none.

Linear time: a pattern that reads on without bound cannot begin twice in the same run of characters (its left
edge forbids it, or the first match takes the whole run); the others read a bounded number of bytes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property, lru_cache
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from agent_logger.model.redaction.credential_names import is_credential_name

if TYPE_CHECKING:
    from agent_logger.model.records import Redaction

Headers = Iterable[tuple[bytes, bytes]]
T = TypeVar("T")

_REDACTED = b"[redacted]"
_TAIL = 4  # characters shown at the end of a key
_HIDDEN = 20  # characters at least; of a shorter key, prefix and tail would give away too much
_KEY_BYTES = 32


class Family(NamedTuple):
    """The keys of one vendor: `starts`, literals of one length, and `prefix` are shown, `secret` is not."""

    rule: str
    starts: tuple[bytes, ...]
    prefix: bytes
    secret: bytes
    before: bytes = rb"[A-Za-z0-9]"  # must not stand before it: `task-` ends in a prefix too


_ANYTHING = b""  # the prefix is long enough to tell a key wherever it stands
# CSS classes begin with `sk-` too: what has dashes in it needs a digit and a capital to be a key. (That it does not
# follow itself only saves the search in a text full of `sk-`.)
_NO_CLASS = rb"(?<!sk-sk-)(?=[A-Za-z_-]{0,24}+\d)(?=[a-z\d_-]{0,24}+[A-Z])"

_SK = (b"sk-",)

# Neighbours with the same starts are tried together, and the first that fits gives the rule.
FAMILIES = (
    Family("anthropic", _SK, rb"ant-", rb"[\w-]{20,}", _ANYTHING),
    Family("openai", _SK, rb"(?:proj|svcacct|admin)-", rb"[\w-]{20,}", _ANYTHING),
    Family("openrouter", _SK, rb"or-v1-", rb"[A-Za-z0-9]{20,}", _ANYTHING),
    Family("sk", _SK, rb"", rb"(?:[A-Za-z0-9]{20}|%b[\w-]{20})[\w-]*" % _NO_CLASS),
    Family("stripe", (b"sk_live_", b"rk_live_"), rb"", rb"[A-Za-z0-9]{16,}", _ANYTHING),
    Family("github", tuple(b"gh%c_" % kind for kind in b"pousr"), rb"", rb"\w{36,}", _ANYTHING),
    Family("github_pat", (b"github_pat_",), rb"", rb"\w{40,}", _ANYTHING),
    Family("gitlab", (b"glpat-",), rb"", rb"[\w-]{20,}(?:\.[\w-]{2,20}){0,2}", _ANYTHING),
    Family("groq", (b"gsk_",), rb"", rb"[A-Za-z0-9]{30,}"),
    Family("google", (b"AIza",), rb"", rb"[\w-]{35,}"),
    Family("aws", (b"AKIA", b"ASIA"), rb"", rb"[A-Z0-9]{16,}"),
    Family("google_oauth", (b"ya29.",), rb"", rb"(?:c\.)?[\w-]{20,}"),
    Family(
        "slack",
        tuple(b"xox%c-" % kind for kind in b"abcdeprs"),
        rb"",
        rb"(?:[\w-]|%(?:2[BFbf]|3[Dd])|(?!)){20,}+",
    ),
    Family("xai", (b"xai-",), rb"", rb"[A-Za-z0-9]{30,}"),
    Family("huggingface", (b"hf_",), rb"", rb"[A-Za-z0-9]{30,}"),
    Family("npm", (b"npm_",), rb"", rb"[A-Za-z0-9]{36,}"),
    # The token of a run that goes through the proxy; and user and token, as clients send them to a proxy.
    Family("agent_logger", (b"alr_",), rb"", rb"[A-Za-z0-9]{32,}"),
    Family("agent_logger_basic", (b"YWdlbnQtbG9n",), rb"", rb"Z2VyOmFscl[A-Za-z0-9+/]{40,}", _ANYTHING),
    # Sixteen characters without a dash: a page named `pypi-...` has words there.
    Family("pypi", (b"pypi-",), rb"", rb"(?=\w{16})[\w-]{40,}"),
    # Signed tokens have three parts, encrypted ones five, the second of which may be empty.
    Family("jwt", (b"eyJ",), rb"", rb"[\w-]{10,}\.[\w-]*\.[\w-]{10,}(?:\.[\w-]+){0,2}", rb"[\w.-]"),
)


def _any_of(literals: Iterable[bytes]) -> bytes:
    return b"(?:%b)" % b"|".join(map(re.escape, literals))


# Our own tokens are no guess: they are removed without `patterns`, too.
_OURS = ("agent_logger", "agent_logger_basic")

_compiled = cache(re.compile)
_VENDOR = b"|".join(_any_of(family.starts) + family.prefix for family in FAMILIES)

# A letter before a key may be the end of an escape (`\nsk-`, `\u001bsk-`, `\x00sk-`, `%3Dsk-`) or of a terminal's
# colour (`[31msk-`); a dash may begin a line of a diff. Each of these has a character that no key has, so none of them
# is found inside a key.
_NO_LETTERS = (
    rb"(?:\\[bfnrt]|\[[mK]|\n-)",
    rb"(?:%[0-9A-Fa-f]{2}|[\[;]\d[mK]|\\n-)",
    rb"(?:\\x[0-9A-Fa-f]{2}|[\[;]\d\d[mK])",
    rb"\\u[0-9A-Fa-f]{4}",
)


class Shape(NamedTuple):
    """What begins with one of these literals. The secret is the whole match (`group` 0) or the part named by the
    rule (1)."""

    starts: tuple[bytes, ...]
    pattern: bytes
    group: int


def _shape(starts: tuple[bytes, ...], families: Iterable[Family]) -> Shape:
    ways = (b"%b%b(?P<%b>%b)" % (f.prefix, _edge(f), f.rule.encode(), f.secret) for f in families)
    return Shape(starts, b"%b(?:%b)" % (_any_of(starts), b"|".join(ways)), 0)


def _edge(family: Family) -> bytes:
    if family.before == _ANYTHING:
        return b""
    start = _any_of(family.starts) + family.prefix
    ends = (b"(?<=%b%b)" % (end, start) for end in _NO_LETTERS)
    return b"(?>(?<!%b%b)|%b)" % (family.before, start, b"|".join(ends))


# The characters of base64 beyond letters and digits, percent-encoded or escaped in JSON.
_ESCAPED = rb"%(?:2[BFbf]|3[Dd])|\\{1,4}(?:/|u00(?:2[BFbf]|3[Dd]))"
# Below 40 characters a digit is asked for: "bearer authentication/authorization" is prose.
_BEARER = (
    rb"(?:[ \t+]{1,4}|%%20|\\{1,8}t)(?=[A-Za-z._~+/=-]{0,40}+\d|[\w.~+/=-]{40})"
    rb"(?P<bearer>(?:[\w~+/=-]|%b|\.(?=[\w~+/=-])|(?!)){16,}+)" % _ESCAPED
)
# `$PASSWORD`, `{password}`, `<password>`, `***`, `%s` are places for a password, not one.
_PASSWORD = rb"""[^\s/?#@:"'`<>\\]{0,128}:(?![$<{*]|%[s(])(?P<url_password>[^\s/?#"'`<>\\]{1,256})@"""
_ENCODED_PASSWORD = (
    rb"%2[Ff]%2[Ff][\w.~-]{0,128}%3[Aa]"
    rb"(?P<url_password>(?:[\w.~!*'()-]{1,256}+|%(?!40|2[Ff])[0-9A-Fa-f]{2}|(?!)){1,256}+)%40"
)
# Lines may be indented, or numbered as agents' tools print them, or joined by blanks in a variable.
_PEM_WORDS = {
    b"B64": rb"(?:[\w+/=]|%b)" % _ESCAPED,
    b"BLANK": rb"(?:[ ]|%20|\+)",
    b"LINE": rb"(?>(?:[\r\n]|\\{1,8}[rn]|%0[ADad]){1,4}[ \t]{0,12}(?:\d{1,6}ARROW)?-?)",
    b"ARROW": rb"(?:\t|\xe2\x86\x92|\\{1,8}(?:t|u2192))",
}
_PEM = rb"""-----BEGIN BLANK (?:(?!PRIVATE)[A-Z0-9]{1,12}+ BLANK|(?!)){0,3}+ PRIVATE BLANK KEY (?:BLANK BLOCK)? -----
    (?:LINE [A-Z][A-Za-z-]{2,20}(?::|%3[Aa])(?:[^\\\r\n"%]|%(?!0[ADad])){1,100}){0,5}  # Proc-Type, Version
    (?:LINE{1,2}|BLANK)? (?=[\w+/=%\\]{20}) (?=B64{20})
    (?P<private_key> B64 (?:(?:LINE|BLANK(?=B64{40}|B64{1,76}BLANK?-----END))? B64|(?!)){19,12000}+)"""
for _word, _meaning in _PEM_WORDS.items():
    _PEM = _PEM.replace(_word, _meaning)

_SHAPES = (
    *(_shape(starts, families) for starts, families in groupby(FAMILIES, key=attrgetter("starts"))),
    Shape((b"earer",), rb"earer(?<=[Bb]earer)" + _BEARER, 1),
    Shape((b"EARER",), rb"EARER(?<=BEARER)" + _BEARER, 1),
    Shape((b"://",), rb"://" + _PASSWORD, 1),
    Shape((b":\\/", b":\\\\"), rb":\\{1,4}/\\{1,4}/" + _PASSWORD, 1),  # JSON may write `/` as `\/`
    Shape((b"%3A", b"%3a"), rb"%3[Aa]" + _ENCODED_PASSWORD, 1),
)
_REACH = 16  # bytes by which these may reach over a blank, as "Bearer" does
_PRIVATE_KEY_REACH = 1 << 16
# The number of a private key. It is not among the shapes, because it reaches further and begins before its literal.
_PRIVATE_KEY = len(_SHAPES)

_STARTS = [(start, number) for number, shape in enumerate(_SHAPES) for start in shape.starts]
_STARTS.append((b"BEGIN", _PRIVATE_KEY))  # without the dashes: texts are full of them
_LONGEST_START = max(len(start) for start, _ in _STARTS)
_LITERALS = [start for start, _ in _STARTS]


def _hides_another(literal: bytes) -> bool:
    """Whether one of them can begin inside it, or where it does."""
    tails = [literal[at:] for at in range(1, len(literal))]
    begins = any(
        known_literal.startswith(tail) or tail.startswith(known_literal)
        for known_literal in _LITERALS
        for tail in tails
    )
    return begins or any(other != literal and other.startswith(literal) for other in _LITERALS)


# The first that stands somewhere is found ten times as fast as all that do.
_find_starts = BytesAhoCorasick(_LITERALS, matchkind=MatchKind.LeftmostFirst).find_matches_as_indexes
_find_all = BytesAhoCorasick(_LITERALS).find_matches_as_indexes
_HIDING = {number for number, literal in enumerate(_LITERALS) if _hides_another(literal)}
_AT_ONCE, _DENSE = 64 << 10, 2000  # bytes that are looked at at once, and hits in them
_TRY_BYTES = 2000  # the bytes in which a pattern is searched for at one place

_CREDENTIAL = "credential"
_SCHEMED = {b"authorization", b"proxy-authorization"}
_SCHEMES = rb"(?i:bearer|basic|digest|token|negotiate|ntlm|oauth|dpop|api-?key|key|aws4-hmac-sha256)"
_SCHEME = rb"[ \t]*%b[ \t]+" % _SCHEMES
_SCHEME_ALONE = rb"[ \t]*%b[ \t]*" % _SCHEMES
# Credentials that are of no use in another request.
_ONE_TIME = rb"[ \t]*(?i:digest|negotiate|ntlm|aws4-hmac-sha256)[ \t]"
_QUERY = rb"[?&#]([^=&#]{1,256})=([^&#]+)"
# A parameter behind a semicolon, or in a URL that is itself a parameter's value.
_INNER_QUERY = rb"(?:[;?]|%3[BbFf]|%26)([^=;?%]{1,256})(?:=|%3[Dd])"
_PROTOCOLS = b"sec-websocket-protocol"  # browsers can set no other header of a WebSocket: some send a key in it
_URL_HEADERS = (b"location", b"referer", b"-url", b"-uri")  # how the names of these headers end
_SHORTEST_IN_PROTOCOL = 16  # characters of a key
_LONGEST_PROTOCOL = 64  # characters of the name before it
_LIST_WORD = rb'[^\s,"]+'
_MOST_WORDS = 16  # words of a list: a head may have nothing else
_NAMED_ANYWHERE = rb"([A-Za-z][\w-]{0,63})[ \t]*[:=][ \t]*([^\r\n\x00]+)"
_BASIC = rb"[ \t]*(?i:basic)[ \t]+([A-Za-z0-9+/_-]+=*)[ \t]*"
_NO_PASSWORDS = (b"", b"x", b"x-oauth-basic", b"api_token")  # with one of these passwords, the user's name is the key
_CR, _BLANK = ord("\r"), ord(" ")
# The rest of a line, with the lines that are folded under it.
_REST_OF_LINE = rb"(?:[^\r\n]++|\r(?!\n)|\r?\n[ \t]|(?!))*+"


def credential_lines(head: bytes) -> list[tuple[int, int]]:
    """Where the header lines that hold credentials begin and end, in any head after its first line.

    They are found by their names: an automaton that looks for words in all of the head lets other threads run, and a
    relay that waits for its own turn is late for the next call.
    """
    if b"\n " in head or b"\n\t" in head:
        return _folded_credential_lines(head)
    names = {line.partition(b":")[0] for line in head.split(b"\n")[1:]} - _harmless_names
    return sorted(place for name in names for place in _lines_named(head, name)) if names else []


# Names that have occurred: nearly all heads have these, and one or two more.
_harmless_names: set[bytes] = set()
_MOST_NAMES, _LONGEST_NAME = 4096, 64


def _may_hold_credential(name: bytes) -> bool:
    """Whether the value of a header is a credential, or may have one in it."""
    return is_credential_name(name) or _holds_others(name.strip(b" \t").lower())


def _holds_others(name: bytes) -> bool:
    return name == _PROTOCOLS or name.endswith(_URL_HEADERS)


def _lines_named(head: bytes, name: bytes) -> Iterator[tuple[int, int]]:
    if not _may_hold_credential(name):
        if len(_harmless_names) >= _MOST_NAMES:
            _harmless_names.clear()
        if len(name) <= _LONGEST_NAME:
            _harmless_names.add(name)
        return
    at = head.find(b"\n%b:" % name)
    while at >= 0:
        end = head.find(b"\n", at + 1)
        end = end if end >= 0 else len(head)
        yield at + 1, end - (head[end - 1] == _CR)
        at = head.find(b"\n%b:" % name, end)


def _folded_credential_lines(head: bytes) -> list[tuple[int, int]]:
    lines: list[tuple[int, int]] = []
    at = head.find(b"\n") + 1
    while at and at < len(head):
        rest = _compiled(_REST_OF_LINE).match(head, at)
        end = rest.end() if rest else len(head)
        name, colon, _ = head[at:end].partition(b":")
        if colon and _may_hold_credential(name):
            lines.append((at, end))
        at = head.find(b"\n", end) + 1
    return lines


class Span(NamedTuple):
    start: int
    end: int
    rule: str

    @property
    def offset(self) -> int:
        return self.start

    @property
    def length(self) -> int:
        return self.end - self.start


class Redacted(NamedTuple, Generic[T]):
    """What may be kept, and what was taken out of it, in order."""

    data: T
    redactions: "tuple[Redaction, ...]" = ()


class Search(NamedTuple):
    """What is to be removed from a text, in order, and facts for the search in a text that begins alike.

    `keys`: the matches of all patterns, which may overlap. `absent`: credentials that the text does not have, by their
    anchors.
    """

    spans: Sequence[Span] = ()
    keys: Sequence[Span] = ()
    absent: frozenset[bytes] = frozenset()


class KnownPrefix(NamedTuple):
    """What an earlier search says about a text: agents send their whole history with every request.

    Its first `head` and last `tail` bytes are those of an earlier text of `length` bytes.
    """

    length: int
    search: Search
    head: int = 0
    tail: int = 0


def credentials_of(headers: Headers, target: bytes = b"") -> tuple[bytes, ...]:
    """The secrets in the head of a request or response, without schemes, as sent and percent-decoded."""
    values: list[bytes] = []
    for name, value in headers:
        for span in _header_spans(name, value):
            secret = value[span.start : span.end]
            values += [secret, *_words_of(secret), *_basic_password(value)]
    values += [target[s.start : s.end] for s in _target_spans(target)]
    if not values:
        return ()
    from urllib.parse import unquote_to_bytes

    return tuple(dict.fromkeys(form for value in values for form in (value, unquote_to_bytes(value))))


def credentials_in_any_form(text: bytes) -> tuple[bytes, ...]:
    """The secrets behind names of credentials in what may be no head at all: its lines may end in CR, or never."""
    pairs = [(match[1], match[2]) for match in _compiled(_NAMED_ANYWHERE).finditer(text)]
    firsts = [(name, re.split(rb"[&;]", value)[0]) for name, value in pairs]
    return credentials_of([*pairs, *firsts])


def _words_of(secret: bytes) -> list[bytes]:
    """The words of a value that has several: a list, or a value with a scheme we do not know. Each may be echoed alone;
    but a word of letters only may be part of a phrase, and stand everywhere."""
    if not (b" " in secret or b"," in secret or b"\t" in secret):
        return []
    words = (match[0] for match in islice(re.finditer(_LIST_WORD, secret), _MOST_WORDS))
    return [word for word in words if word != secret and (len(word) >= _GLUED or re.search(rb"[0-9]", word))]


def _basic_password(value: bytes) -> list[bytes]:
    """The text that `Basic` encodes, as a program that decodes it may show it."""
    match = _compiled(_BASIC).fullmatch(value)
    if not match:
        return []
    import base64
    import binascii

    try:
        decoded = base64.b64decode(match[1] + b"==", altchars=b"-_" if re.search(rb"[_-]", match[1]) else None)
    except binascii.Error:
        return []
    user, _, password = decoded.partition(b":")
    return [user if password.lower() in _NO_PASSWORDS else password]


def _header_spans(name: bytes, value: bytes) -> list[Span]:
    is_credential = is_credential_name(name)
    name = name.strip(b" \t").lower()
    if not is_credential:
        return _spans_beside_others(name, value) if _holds_others(name) else []
    if name.endswith(b"set-cookie"):
        return _cookie(value, 0, len(value.partition(b";")[0]))  # attributes follow
    if name.endswith(b"cookie"):
        return [span for part in re.finditer(rb"[^;]+", value) for span in _cookie(value, *part.span())]
    if name in _SCHEMED and _compiled(_SCHEME_ALONE).fullmatch(value):
        return []
    scheme = _compiled(_SCHEME).match(value)
    return _trimmed(value, scheme.end() if scheme else 0, len(value))


def _spans_beside_others(name: bytes, value: bytes) -> list[Span]:
    """The credentials in a header that is not one itself: in the query of a URL, or the name of a protocol."""
    if name != _PROTOCOLS:
        return _target_spans(value)
    spans: list[Span] = []
    for item in islice(re.finditer(rb"[^,\s]+", value), _MOST_WORDS):
        dots = re.finditer(rb"\.", item[0][:_LONGEST_PROTOCOL])
        ends = (dot.end() for dot in dots if is_credential_name(item[0][: dot.start()]))
        start = item.start() + next(ends, len(item[0]))
        if item.end() - start >= _SHORTEST_IN_PROTOCOL:
            spans.append(Span(start, item.end(), _CREDENTIAL))
    return spans


def is_lasting(name: bytes, value: bytes) -> bool:
    """Whether the credential in a header may be sent with other requests, too. Cookies may; but servers set others all
    the time."""
    name = name.lower()
    return not (b"cookie" in name or b"sig" in name or _compiled(_ONE_TIME).match(value))


def _cookie(value: bytes, start: int, end: int) -> list[Span]:
    return _trimmed(value, value.find(b"=", start, end) + 1 or start, end)


def _trimmed(value: bytes, start: int, end: int) -> list[Span]:
    text = value[start:end]
    start, end = end - len(text.lstrip(b' \t"')), start + len(text.rstrip(b' \t"'))
    return [Span(start, end, _CREDENTIAL)] if start < end else []


def _target_spans(target: bytes) -> list[Span]:
    return [span for pair in _compiled(_QUERY).finditer(target) for span in _parameter_spans(pair)]


def _parameter_spans(pair: re.Match[bytes]) -> list[Span]:
    if _is_parameter_of_credential(pair[1]):
        return [Span(*pair.span(2), _CREDENTIAL)]
    inner = _compiled(_INNER_QUERY).finditer(pair[2])
    start = next((match.end() for match in inner if _is_parameter_of_credential(match[1])), len(pair[2]))
    return [Span(pair.start(2) + start, pair.end(2), _CREDENTIAL)] if start < len(pair[2]) else []


def _is_parameter_of_credential(name: bytes) -> bool:
    if b"%" in name:
        from urllib.parse import unquote_to_bytes

        name = unquote_to_bytes(name)
    return is_credential_name(name)


_TELLING = 64  # characters from the start of a credential that tell it, even where it is cut off
_SHORTEST = 6  # characters of a value that is looked for
# The length of a key without what may be escaped at its start or left out at its end.
_SHORTEST_CORE = 4
_GLUED = 16  # characters from which on a value is found inside a longer run of letters and digits, too
_NOT_AFTER_LETTERS = b"(?>(?<![A-Za-z0-9])|%b)" % b"|".join(b"(?<=%b)" % end for end in _NO_LETTERS)
_NOT_BEFORE_LETTERS = rb"(?![A-Za-z0-9])"
_NUMBER = rb"\d[\d.eE+-]*"
# Words that are in every body. One of them may be somebody's password; that must not make the body unreadable.
_WORDS_OF_APIS = frozenset(b"assistant content default developer message messages object system".split())


# An agent waits for redaction, and a text may consist of nothing but keys. So many keys of each kind are taken out one
# by one; with each further key, the rest of its string is taken out, too.
_MOST_ALIKE = 2000
_MOST_STRINGS = 1000  # after so many strings, the whole rest of the text is taken out
_TOO_MANY = "too_many"


def _bounded(spans: Iterable[Span], data: bytes, pattern: re.Pattern[bytes]) -> Iterator[Span]:
    """Yield the spans that are matches of this pattern, in order, but only as many as take a moment."""
    last = 0
    for count, span in enumerate(spans):
        if count == _MOST_ALIKE:
            yield from _rests(data, pattern, last)
            return
        yield span
        last = span.end


def _rests(data: bytes, pattern: re.Pattern[bytes], at: int) -> Iterator[Span]:
    """Yield, from each match on, the rest of the JSON string that it is in."""
    for count in range(_MOST_STRINGS + 1):
        match = pattern.search(data, max(at - _LONGEST_START, 0))
        if match is None:
            return
        at = _string_end(data, match.end()) if count < _MOST_STRINGS else len(data)
        yield Span(match.start(), at, _TOO_MANY)


def _string_end(data: bytes, at: int) -> int:
    """Where the JSON string around this offset ends: before a quote that is not escaped."""
    for _ in range(_MOST_STRINGS):
        quote = data.find(b'"', at)
        if quote < 0:
            return len(data)
        before = data[max(at, quote - 256) : quote]
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            return quote
        at = quote + 1
    rest = _compiled(rb'(?:[^"\\]++|\\.|(?!))*+', re.DOTALL).match(data, at)  # quotes are all it is made of
    return rest.end() if rest else at


class Credential:
    """A value to be found in any text, however JSON or a URL spells it. `searchable` says which values can be."""

    def __init__(self, value: bytes) -> None:
        self.value = value
        # Letters, digits and these are never escaped: the longest run of them is quick to look for.
        self.anchor = max(re.findall(rb"[\w.-]+", value[:_TELLING]), key=len)
        self._is_number = _compiled(_NUMBER).fullmatch(value) is not None

    @cached_property
    def _pieces(self) -> list[re.Pattern[bytes]]:
        value = self.value.rstrip(b"=")
        spelled = [_spellings(byte) for byte in value]
        spelled += [_spellings(byte) + b"?" for byte in self.value[len(value) :]]  # padding is often left out
        if is_word(self.value):
            spelled = [_NOT_AFTER_LETTERS, *spelled, _NOT_BEFORE_LETTERS]
        return [re.compile(b"".join(spelled[at : at + _TELLING])) for at in range(0, len(spelled), _TELLING)]

    def find(self, data: bytes) -> Iterator[Span]:
        if self.anchor not in data:
            # Nearly every text ends here. Compiling the pattern takes longer than this check.
            return
        yield from _bounded(self._spans(data), data, self._pieces[0])

    def _spans(self, data: bytes) -> Iterator[Span]:
        at = 0
        while match := self._pieces[0].search(data, at):
            start, at = match.start(), self._follow(data, match.end())
            if self._is_number:
                start, at = _whole_number(data, start, at)
            yield Span(start, at, _CREDENTIAL)

    def _follow(self, data: bytes, end: int) -> int:
        # Piece by piece: a text that repeats all but the end of a long value must not cost its square.
        for piece in self._pieces[1:]:
            match = piece.match(data, end)
            if not match:
                break
            end = match.end()
        return end


def prepare() -> None:
    """Compile what heads and credentials need, for a caller that must not wait for it at the first call."""
    credential_lines(b"\nx-api-key: x")
    for value in credentials_of([(b"Authorization", b"Bearer abcdef")], b"/?key=abcdef"):
        any(stands_alone(b"a" + part, 1, len(part)) for part in searchable(value))


class AnyOf:
    """A search for several literals in a text: an automaton is many times as fast as one `in` after the other, but
    takes a fifth of a millisecond to build, which is worth it only for a search that is made often."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._literals = literals
        self._looked_through = 0  # bytes
        self._find: Callable[[bytes], list[tuple[int, int, int]]] | None = None

    def may_be_in(self, data: bytes) -> bool:
        if self._find:
            return bool(self._find(data))
        self._looked_through += len(data) + _ASKED_BYTES
        if self._looked_through * len(self._literals) > _WORTH_BYTES:
            self._find = BytesAhoCorasick(self._literals).find_matches_as_indexes
        return any(literal in data for literal in self._literals)


_WORTH_BYTES = 1 << 20
_ASKED_BYTES = 1 << 12  # the cost of asking, as the number of bytes that could be searched meanwhile


def is_word(value: bytes) -> bool:
    """Whether a value is found only where no letter or digit stands beside it."""
    return len(value) < _GLUED


_LETTER_BEFORE = rb"(?<=[A-Za-z0-9])(?!%b)" % _NOT_AFTER_LETTERS


def stands_alone(data: bytes, start: int, end: int) -> bool:
    """Whether no letter or digit stands beside the span, as far as `data` goes."""
    return not (data[end : end + 1].isalnum() or _compiled(_LETTER_BEFORE).match(data, start))


_NUMBER_THEN = rb"-?\d[\d.eE+-]*+(?=[ \t\r\n]*[,\]}])"
_LONGEST_NUMBER = 400  # characters, or blanks beside it


def _whole_number(data: bytes, start: int, end: int) -> tuple[int, int]:
    """The JSON number that these bytes are a part of, if they are: half of a number would be no number."""
    before = data[max(start - _LONGEST_NUMBER, 0) : start]
    first = start - len(before) + len(before.rstrip(b"0123456789.eE+-"))
    last = _number_end(data, first)
    return (first, last) if last >= end else (start, end)


def _number_end(data: bytes, start: int) -> int:
    """Where a number that is a value in JSON ends; -1: there is none."""
    before = data[max(start - _LONGEST_NUMBER, 0) : start].rstrip(b" \t\r\n")
    match = _compiled(_NUMBER_THEN).match(data, start) if before.endswith((b":", b",", b"[")) else None
    return match.end() if match else -1


def _spellings(byte: int) -> bytes:
    char = re.escape(bytes([byte]))
    if byte not in _MAY_BE_ESCAPED:
        return char
    in_form = rb"|\+" if byte == _BLANK else b""
    return rb"(?:%b|\\{1,8}(?:%b|u00(?i:%02x))|%%(?:25)?(?i:%02x)%b)" % (char, char, byte, byte, in_form)


_MAY_BE_ESCAPED = bytes(byte for byte in range(128) if not chr(byte).isalnum() and byte not in b"_.-")


def searchable(value: bytes) -> Iterator[bytes]:
    """Yield the parts of a credential that can be removed from any text without harm to it.

    No part has a quote or backslash, with which a match could reach over the end of a JSON string, nor half a
    character, nor begins with a character that may be escaped. A part shorter than 6 characters would be found
    everywhere.
    """
    for part in re.split(rb'["\\\x00-\x1f\x7f-\xff]+', value):
        core = part.lstrip(_MAY_BE_ESCAPED)
        stripped = core.rstrip(b"=")
        if len(part) < _SHORTEST or len(stripped) < _SHORTEST_CORE or not re.search(rb"[A-Za-z0-9]", stripped):
            continue
        if core in _REDACTED or _is_shown(core) or stripped in _WORDS_OF_APIS:
            continue
        yield core


class Redactor:
    """Removes `credentials` and our own tokens, and with `patterns` whatever looks like a key of a known family.

    It leaves its own output alone, and JSON stays JSON. `key` is the install's: equal secrets have equal HMACs, which
    only its holder can compute. Offsets count bytes, also in text.
    """

    def __init__(self, key: bytes, credentials: Iterable[bytes] = (), *, patterns: bool = True) -> None:
        if len(key) != _KEY_BYTES:
            raise ValueError(f"the install key has {_KEY_BYTES} bytes, not {len(key)}")
        self._key = key
        self._patterns = patterns
        self._parts = dict.fromkeys(part for value in credentials for part in searchable(value))
        self._credentials = [Credential(part) for part in self._parts]
        self._anchors = frozenset(credential.anchor for credential in self._credentials)
        self._longest_anchor = max(map(len, self._anchors), default=0)
        self._any_of_them = AnyOf([credential.anchor for credential in self._credentials])

    def knows(self, value: bytes) -> bool:
        """Whether this very value is removed wherever it occurs."""
        return value in self._parts

    def redact(self, data: bytes, place: str) -> Redacted[bytes]:
        return self._rewrite(data, place, self._spans(data))

    def search(self, data: bytes, prefix: KnownPrefix | None = None) -> Search:
        """Find what `redact` removes. With `prefix` the result is the same, but the time depends on what is new only,
        unless the text has one of the credentials."""
        present = self._present(data, prefix)
        keys = _keys_in(data, prefix)
        return Search(_merged(data, self._all_spans(data, present, keys)), keys, self._anchors - present)

    def listed(self, data: bytes, place: str, spans: Sequence[Span]) -> "tuple[Redaction, ...]":
        """List what `search` found, for a record."""
        return self._listed(data, place, spans)

    def finds(self, data: bytes) -> bool:
        """Whether anything is to be removed."""
        spans = self._spans(data)
        return bool(spans) and bool(_merged(data, spans))

    def redact_text(self, text: str, place: str) -> Redacted[str]:
        data = text.encode("utf-8", "surrogatepass")
        redacted = self.redact(data, place)
        if redacted.data is data:
            return Redacted(text)
        return Redacted(redacted.data.decode("utf-8", "surrogatepass"), redacted.redactions)

    def redact_chunks(
        self, chunks: Sequence[bytes], place: str, in_pieces: Iterable[Sequence[tuple[int, int]]] = ()
    ) -> Redacted[list[bytes]]:
        """Redact the chunks of one stream, as many as came. The visible rest of a secret stays in the chunk where the
        secret began.

        Offsets are those in the stream. `in_pieces`: texts that stand in the stream in pieces, each given as the places
        of its pieces.
        """
        stream = b"".join(chunks)
        spans = self._spans(stream)
        for places in in_pieces:
            spans += self._spans_in_pieces(stream, places)
        spans = _merged(stream, spans)
        return Redacted(_replaced(chunks, stream, spans), self._listed(stream, place, spans))

    def redact_headers(self, headers: Headers, place: str) -> Redacted[list[tuple[bytes, bytes]]]:
        """Redact headers. Values that are credentials are removed whatever their length; schemes and the names of
        cookies stay. A name may be a key too, where somebody forgot the name before it.

        The place of a redaction is `<place>.<name in lower case>`, its offset that in the value.
        """
        headers_redacted: list[tuple[bytes, bytes]] = []
        redactions: list[Redaction] = []
        for name, value in headers:
            named = self.redact(name, f"{place} (name)")
            spans = [*_header_spans(name, value), *self._spans(value)]
            redacted = self._rewrite(value, f"{place}.{named.data.decode('latin-1').lower()}", spans)
            headers_redacted.append((named.data, redacted.data))
            redactions += [*named.redactions, *redacted.redactions]
        return Redacted(headers_redacted, tuple(redactions))

    def redact_target(self, target: bytes, place: str) -> Redacted[bytes]:
        """Redact a request's path and query, or its URL."""
        return self._rewrite(target, place, [*_target_spans(target), *self._spans(target)])

    def _present(self, data: bytes, prefix: KnownPrefix | None) -> frozenset[bytes]:
        """The anchors that are in the text. One that the earlier text did not have is looked for in what is new."""
        absent = self._anchors & prefix.search.absent if prefix else frozenset()
        if not absent:
            is_clean = not self._anchors or not self._any_of_them.may_be_in(data)
            return frozenset() if is_clean else frozenset(anchor for anchor in self._anchors if anchor in data)
        assert prefix
        low, high = sorted((min(prefix.head, len(data)), max(len(data) - prefix.tail, 0)))
        news = data[max(low - self._longest_anchor, 0) : high + self._longest_anchor]
        present = {anchor for anchor in self._anchors - absent if anchor in data}
        if self._any_of_them.may_be_in(news):
            present |= {anchor for anchor in absent if anchor in news}
        return frozenset(present)

    def _spans(self, data: bytes) -> list[Span]:
        return self._all_spans(data, self._present(data, None), _keys_in(data, None))

    def _all_spans(self, data: bytes, present: frozenset[bytes], keys: Sequence[Span]) -> list[Span]:
        spans: list[Span] = []
        # Credentials are looked for everywhere: they may be newer than what is known, and the characters beside a short
        # one say whether it is one.
        for credential in self._credentials:
            if credential.anchor in present:
                spans += credential.find(data)
        return spans + [span for span in keys if self._patterns or span.rule in _OURS]

    def _spans_in_pieces(self, stream: bytes, places: Sequence[tuple[int, int]]) -> Iterator[Span]:
        """Yield the span that a secret takes in each piece."""
        text = b"".join(stream[start:end] for start, end in places)
        for span in _merged(text, self._spans(text)):
            at = 0
            for start, end in places:
                low, high = max(span.start, at), min(span.end, at + end - start)
                if low < high:
                    yield Span(start + low - at, start + high - at, span.rule)
                at += end - start

    def _rewrite(self, data: bytes, place: str, spans: list[Span]) -> Redacted[bytes]:
        if not spans:
            return Redacted(data)
        spans = _merged(data, spans)
        return Redacted(_replaced([data], data, spans)[0], self._listed(data, place, spans))

    def _listed(self, data: bytes, place: str, spans: Sequence[Span]) -> "tuple[Redaction, ...]":
        from agent_logger.model.records import Redaction

        hmacs = {secret: self._hmac(secret) for secret in {data[s.start : s.end] for s in spans}}
        return tuple(
            Redaction(place=place, offset=start, length=end - start, rule=rule, hmac=hmacs[data[start:end]])
            for start, end, rule in spans
        )

    def _hmac(self, secret: bytes) -> str:
        import hmac

        return "v1:" + hmac.digest(self._key, secret, "sha256").hex()[:16]


@cache
def _for_screens() -> Redactor:
    return Redactor(bytes(_KEY_BYTES))  # the HMACs are thrown away, so any key will do


_observer: "ContextVar[Callable[[Redaction], None] | None]" = ContextVar("observer", default=None)


@contextmanager
def observed_redactions(observer: "Callable[[Redaction], None]") -> Iterator[None]:
    """Call `observer` with each secret that `hidden`, `hidden_header` and `hidden_bytes` remove meanwhile."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def _observe(redacted: Redacted[T]) -> T:
    observer = _observer.get() if redacted.redactions else None
    if observer:
        for redaction in redacted.redactions:
            observer(redaction)
    return redacted.data


def hidden(text: str) -> str:
    """The text without what looks like a key: for whatever an agent's files say, before it is cut or folded.

    A key that is broken over two lines matches no pattern, but a reader can still put it together.
    """
    return _observe(_for_screens().redact_text(text, ""))


def hidden_header(name: str, value: str) -> str:
    """The value of a header without credentials: older logs hold those of gateways as they came."""
    header = name.encode("utf-8", "surrogatepass"), value.encode("utf-8", "surrogatepass")
    ((_, visible),) = _observe(_for_screens().redact_headers([header], ""))
    return visible.decode("utf-8", "surrogatepass")


def hidden_bytes(data: bytes, credentials: Iterable[bytes] = ()) -> bytes:
    """The same for JSON, which stays JSON; these credentials are removed too."""
    credentials = tuple(credentials)
    redactor = Redactor(bytes(_KEY_BYTES), credentials) if credentials else _for_screens()
    return _observe(redactor.redact(data, ""))


def _keys_in(data: bytes, prefix: KnownPrefix | None) -> list[Span]:
    """Find the matches of all patterns."""
    if prefix and all(span.rule != _TOO_MANY for span in prefix.search.keys):  # or their ends depend on what follows
        low, high = _news(data, prefix)
        # A private key that was found twice is one.
        keys = list(dict.fromkeys([*_carried(data, prefix, low, high), *_pattern_spans(data, low, high)]))
        if len(keys) < _MOST_ALIKE:
            return keys
    return _pattern_spans(data, 0, len(data))


def _pattern_spans(data: bytes, low: int, high: int) -> list[Span]:
    """Find the matches of patterns that begin in this part, and private keys that begin a good deal before it or soon
    after it."""
    limit = min(high + _REACH, len(data))
    hits = _hits(data, max(low - _REACH, 0), limit)
    # It may begin before `low`, or behind `high`.
    may_be_private_key = hits.pop(_PRIVATE_KEY, None) is not None or low > 0 or high < len(data)
    spans: list[Span] = []
    for number in sorted(hits) if hits else ():
        _, pattern, group = _SHAPES[number]
        expression = _compiled(pattern)
        matches = _matches(expression, data, hits[number], limit)
        spans += _bounded((Span(*match.span(group), str(match.lastgroup)) for match in matches), data, expression)
    first = -1
    if may_be_private_key:
        first = data.find(b"-----BEGIN", max(low - _PRIVATE_KEY_REACH, 0), min(high + _HEAD_BYTES, len(data)))
    if first >= 0:
        first = _before_base64(data, first, high + _PRIVATE_KEY_REACH)
    if first >= 0:
        expression = _compiled(_PEM, re.VERBOSE)
        matches = expression.finditer(data, first, high + _PRIVATE_KEY_REACH)
        spans += _bounded((Span(*match.span(1), str(match.lastgroup)) for match in matches), data, expression)
    return spans


# Characters of base64, also if it is escaped.
_IN_BASE64 = bytes([*range(48, 58), *range(65, 91), *range(97, 123)]) + b"_+/=%\\"
_ALL_ALIKE = bytes.maketrans(_IN_BASE64, b"A" * len(_IN_BASE64))
_HEAD_BYTES = 2048  # bytes that may stand before the first line of a private key


def _before_base64(data: bytes, start: int, end: int) -> int:
    """Where a private key may begin, judged by its first line; -1 if nowhere. For texts of nothing but heads."""
    line = data[start:end].translate(_ALL_ALIKE).find(b"A" * 20)
    return max(start, start + line - _HEAD_BYTES) if line >= 0 else -1


class _Hits(NamedTuple):
    """The places where a shape may begin."""

    places: list[int]
    all: bool  # false: the first one only


def _matches(pattern: re.Pattern[bytes], data: bytes, hits: _Hits, end: int) -> Iterator[re.Match[bytes]]:
    """Yield the matches of a pattern. If two keys touch, the first match reads on into the start of the next, so the
    search resumes from before that start."""
    first, at = hits.places[0], 0
    if hits.all and len(hits.places) * _TRY_BYTES < end - first:
        for place in hits.places:
            if place >= at and (match := pattern.match(data, place, end)):
                yield match
                at = max(match.end() - _LONGEST_START, match.start() + 1)
        return
    at = first
    while match := pattern.search(data, at, end):
        yield match
        at = max(match.end() - _LONGEST_START, match.start() + 1)


def _hits(data: bytes, low: int, high: int) -> dict[int, _Hits]:
    """The places where keys may begin, by shape."""
    places: dict[int, list[int]] = {}
    for base in range(low, high, _AT_ONCE):
        text = data[base : min(base + _AT_ONCE + _LONGEST_START, high)]
        hits = _find_starts(text)
        for start, at, _ in hits:
            places.setdefault(_STARTS[start][1], []).append(base + at)
        if len(hits) > _DENSE:  # a text of nothing but such literals: to list them all takes longer than to look
            return _first_hits(data, base, high, places)
        for at in [at for start, at, _ in hits if start in _HIDING]:
            for hidden, beyond, _ in _find_all(text[at : at + 2 * _LONGEST_START], overlapping=True):
                places.setdefault(_STARTS[hidden][1], []).append(base + at + beyond)
    return {number: _Hits(sorted(offsets), all=True) for number, offsets in places.items()}


def _first_hits(data: bytes, low: int, high: int, known_places: dict[int, list[int]]) -> dict[int, _Hits]:
    """The first place where each shape may begin. Shapes that were found already are not searched for again."""
    # A shape that begins within another was passed over.
    first = {number: min(low, *places) for number, places in known_places.items()}
    base = low
    while base < high and (rest := [number for number in range(_PRIVATE_KEY + 1) if number not in first]):
        starts, find = _starts_of(tuple(rest))
        text = data[base : min(base + _AT_ONCE + _LONGEST_START, high)]
        for start, at, _ in find(text, overlapping=True):
            first.setdefault(starts[start][1], base + at)
        base += _AT_ONCE
    return {number: _Hits([at], all=False) for number, at in first.items()}


@lru_cache(64)
def _starts_of(
    shapes: tuple[int, ...],
) -> tuple[list[tuple[bytes, int]], Callable[..., list[tuple[int, int, int]]]]:
    starts = [start for start in _STARTS if start[1] in shapes]
    return starts, BytesAhoCorasick([start for start, _ in starts]).find_matches_as_indexes


_DELIMITERS = (b'"', b" ", b"\n")  # no key has one of these in it, but for what a reach is there for


def _news(data: bytes, prefix: KnownPrefix) -> tuple[int, int]:
    """The part of `data` to be scanned: from the last delimiter before what is new to one well after it."""
    # Head and tail overlap where one of two like pieces was taken out; the seam may then be anywhere in it.
    head, tail = sorted((min(prefix.head, len(data)), max(len(data) - prefix.tail, 0)))
    low, high = 0, len(data)
    for delimiter in _DELIMITERS:  # each is looked for up to the nearest other one: a text may not have it at all
        low = max(low, data.rfind(delimiter, low, head))
        nearest = data.find(delimiter, tail + 16, high)  # past the blanks after "Bearer"
        high = nearest if nearest >= 0 else high
    return low, high


def _carried(data: bytes, prefix: KnownPrefix, low: int, high: int) -> Iterator[Span]:
    """What was found before and is not searched for again. Private keys are searched for in more of the text, because
    what stands before and behind one says whether it is one, and where it ends."""
    shift = len(data) - prefix.length
    for start, end, rule in prefix.search.keys:
        is_private_key = rule == "private_key"
        if end <= prefix.head and start < (low - _PRIVATE_KEY_REACH + _HEAD_BYTES if is_private_key else low):
            yield Span(start, end, rule)
        if start >= prefix.length - prefix.tail and start + shift >= high + (_HEAD_BYTES if is_private_key else 0):
            yield Span(start + shift, end + shift, rule)


def _merged(data: bytes, spans: Iterable[Span]) -> list[Span]:
    """Merge spans: the result is in order, and no two overlap. Of spans that overlap, the first to begin gives the
    rule, then the first found."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        start = _past_escape(data, span.start)
        if merged and start < merged[-1].end:
            last = merged[-1]
            rule = _TOO_MANY if span.rule == _TOO_MANY else last.rule
            if span.end > last.end or rule != last.rule:
                merged[-1] = Span(last.start, max(last.end, span.end), rule)
        elif start < span.end and not _is_shown(data[start : span.end]):
            merged.append(Span(start, span.end, span.rule))
    return merged


_ESCAPE = re.compile(rb'\\(?:u[0-9A-Fa-f]{4}|["\\/bfnrt])')


def _past_escape(data: bytes, start: int) -> int:
    r"""Return `start`, or the end of the escape it lies in: of `\npm_...` only `pm_...` may be removed."""
    backslash = data.rfind(b"\\", max(0, start - 5), start)
    escape = _ESCAPE.match(data, backslash) if backslash >= 0 else None
    return max(start, escape.end()) if escape else start


def _masked_text(secret: bytes) -> bytes:
    vendor, tail = _compiled(_VENDOR).match(secret), secret[-_TAIL:]
    if vendor is None or len(secret) - vendor.end() - _TAIL < _HIDDEN or not re.fullmatch(rb"[\w-]+", tail):
        return _REDACTED
    return vendor[0] + b"..." + tail


def _shown_at(data: bytes, span: Span) -> bytes:
    if span.rule == _TOO_MANY:
        return _REDACTED
    secret = data[span.start : span.end]
    if secret[:2].strip(b"-")[:1].isdigit() and _number_end(data, span.start) == span.end:
        return b"0"  # the text must stay JSON
    return _masked_text(secret)


def _is_shown(text: bytes) -> bool:
    before, dots, tail = text.rpartition(b"...")
    return text == _REDACTED or bool(dots and len(tail) == _TAIL and _compiled(_VENDOR).fullmatch(before))


def redacted_part(data: bytes, spans: Iterable[Span], start: int, end: int) -> bytes:
    """Return a part of a text without these spans, which are all in the part."""
    pieces, at = [], start
    for span in spans:
        pieces += [data[at : span.start], _shown_at(data, span)]
        at = span.end
    return b"".join([*pieces, data[at:end]]) if pieces else data[start:end]


def _replaced(chunks: Iterable[bytes], stream: bytes, spans: Sequence[Span]) -> list[bytes]:
    replaced: list[bytes] = []
    base = turn = 0
    for chunk in chunks:
        pieces, at, end = [], base, base + len(chunk)
        while turn < len(spans) and spans[turn].start < end:
            span = spans[turn]
            if span.start >= base:
                pieces += [stream[at : span.start], _shown_at(stream, span)]
            at = min(span.end, end)
            if span.end > end:
                break  # the next chunk has the rest of it
            turn += 1
        replaced.append(b"".join(pieces) + stream[at:end] if pieces or at > base else chunk)
        base = end
    return replaced
