"""The cost of a response, by rates from a dated snapshot in the package. No network, no clock.

`prices.json` is written by `tools/refresh_prices.py`. Rates are whole picodollars per token, so that a sum is exact;
it is rounded once, to a nanodollar a response.

A name is looked up as it is, then without what vendors, gateways and clients put around it: `anthropic/` in front,
`-20250929` or `[1m]` behind. Nothing else is taken off: what is left has to be a name of the snapshot, whole, or the
price is unknown.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache, lru_cache

import msgspec
from msgspec.structs import force_setattr

from agent_logger.model.session import Cost, Turn, Usage

STANDARD = "standard"
NO_MODEL = "no model"
UNKNOWN_MODEL = "unknown model"
NO_PRICE_FOR_TIER = "no price for tier"
NO_USAGE = "no usage"

# The words of vendors for what costs the usual price.
STANDARD_WORDS = frozenset({"", "auto", "default", "on_demand", "standard"})


Tokens = tuple[int, int, int, int, int]  # input, output, cache read, cache write, and how much of that for an hour


class _Band(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Picodollars per token, for requests with more than `over` tokens to read."""

    over: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cache_write_1h: int


class Period(msgspec.Struct, frozen=True, array_like=True):
    since: str  # a day in UTC, or nothing: from the beginning
    hours: str  # UTC, `16:30-00:30`; empty: all day
    bands: tuple[_Band, ...]

    def holds(self, at: datetime) -> bool:
        if f"{at:%Y-%m-%d}" < self.since:
            return False
        if not self.hours:
            return True
        (start, _, end), now = self.hours.partition("-"), f"{at:%H:%M}"
        return start <= now < end if start <= end else now >= start or now < end


class _Snapshot(msgspec.Struct, frozen=True):
    date: str
    source: str
    makers: tuple[str, ...]
    names: dict[str, dict[str, int]]  # the number of a price list, by vendor and name
    models: list[dict[str, tuple[Period, ...]]]  # periods by tier; the last one that holds counts


@cache
def _snapshot() -> _Snapshot:
    import pkgutil  # writers import this module, and few of them need a price

    return msgspec.json.decode(pkgutil.get_data(__name__, "prices.json") or b"", type=_Snapshot)


def price_date() -> str:
    """The day of the snapshot."""
    return _snapshot().date


def price(usage: Usage, model: str | None, at: datetime | None = None, tier: str | None = None) -> Cost:
    """Return the cost of a response by the list price of its day. `at` without a zone is UTC; without `at`, the
    snapshot's day counts. `tier` is the vendor's word: `batch`, `flex`, `priority`.

    An unknown cost is `nano_usd=None`, with a reason. Fees for searches, audio and images are not included, nor are
    your own discounts.
    """
    return cost_of(nano_usd(usage.counts, model, at, tier))


def cost_of(nano: int | str) -> Cost:
    """Build a cost from what `nano_usd` returns."""
    return Cost(nano_usd=None, reason=nano) if isinstance(nano, str) else Cost(nano_usd=nano, price_date=price_date())


def priced(turn: Turn) -> Turn:
    """Set the cost of a turn, and return the turn. Every turn of every reader passes here. A turn that was not billed
    stays as it is.

    The turn is changed in place, because it is new and nobody else has it yet; a copy would make reading a turn a tenth
    slower.
    """
    if not turn.is_billed:
        return turn
    cost = Cost(nano_usd=None, reason=NO_USAGE)
    if turn.usage is not None:
        at = turn.started or turn.ended
        cost = cost_of(nano_usd(turn.usage.counts, turn.model, at, turn.service_tier, is_sum=turn.is_sum))
    force_setattr(turn, "cost", cost)
    return turn


def nano_usd(
    tokens: Tokens, model: str | None, at: datetime | None, tier: str | None, *, is_sum: bool = False
) -> int | str:
    """Return nanodollars, or the reason why they are unknown. `price` without its types, for callers with a million
    responses.
    `is_sum`: the tokens are those of several requests, so their sum says nothing about the size of any of them."""
    listed = _listed(model, tier)
    bands = listed if isinstance(listed, str) or isinstance(listed[0], _Band) else _bands(listed, at)
    if isinstance(bands, str):
        return bands
    given, output, read, write, hour = tokens
    rates = bands[0]
    if len(bands) > 1 and not is_sum:
        context = given + read + write
        for band in bands:
            if context > band.over:
                rates = band
    pico = (
        given * rates.input
        + output * rates.output
        + read * rates.cache_read
        + (write - hour) * rates.cache_write
        + hour * rates.cache_write_1h
    )
    return (pico + 500) // 1000


def _bands(periods: tuple[Period, ...], at: datetime | None) -> tuple[_Band, ...] | str:
    if at is None:
        at = datetime.fromisoformat(price_date())
        periods = tuple(period for period in periods if not period.hours) or periods
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return next((period.bands for period in reversed(periods) if period.holds(at)), NO_PRICE_FOR_TIER)


@lru_cache(maxsize=4096)
def _listed(model: str | None, tier: str | None) -> tuple[_Band, ...] | tuple[Period, ...] | str:
    """The rates of a model, by period if they ever changed; or why there are none."""
    if not model:
        return NO_MODEL
    listing = _find(model)
    if listing is None:
        return UNKNOWN_MODEL
    vendor, name = listing
    snapshot = _snapshot()
    by_tier = snapshot.models[snapshot.names[vendor][name]]
    word = (tier or "").lower()
    periods = by_tier.get(STANDARD if word in STANDARD_WORDS else word)
    if periods is None:
        return NO_PRICE_FOR_TIER
    return periods if len(periods) > 1 or periods[0].since else periods[0].bands


# ---------------------------------------------------------------- names

# Vendors by the prefix of a model's name. A prefix that is not here is the vendor's name.
VENDORS = {
    "gemini": "google",
    "vertex_ai": "google",
    "google-vertex": "google",
    "bedrock": "aws",
    "amazon-bedrock": "aws",
    "azure": "openai",
    "xai": "x-ai",
    "moonshot": "moonshotai",
    "z-ai": "zai",
    "mistralai": "mistral",
}
PATHS = ("models/", "publishers/google/models/", "publishers/anthropic/models/", "openrouter/")

# Bedrock: `us.anthropic.claude-…-v1:0`. A region is a price of its own, `global.` another.
BEDROCK = re.compile(
    r"(?:(?P<region>global|us|us-gov|eu|apac|au|ca|jp|sa)\.)?(?P<name>[a-z0-9]+\..+?)(?:-v\d+)?(?::\d+)?"
)

# Suffixes that do not make a name another model: a date, `latest`, a preview's day, a client's context size.
TAIL = re.compile(
    r"(?:[-@]20\d{6}|[-@]20\d\d-\d\d-\d\d|-(?:preview-)?\d\d-\d\d|-(?:preview-)?\d\d-20\d\d|[-@]latest|@default"
    r"|-preview|-00\d|\[1m\])$"
)


@lru_cache(maxsize=4096)
def canonical(model: str) -> str | None:
    """The canonical name of a model, for all its spellings: `anthropic/claude-sonnet-4-5`. `None` if it has no
    price."""
    listing = _find(model)
    return f"{listing[0]}/{listing[1].replace('.', '-')}" if listing else None


def _find(model: str) -> tuple[str, str] | None:
    names = _snapshot().names
    for vendors, name in _readings(model.strip().lower()):
        for short in _shorter(name):
            vendor = next((candidate for candidate in vendors if short in names.get(candidate, ())), None)
            if vendor:
                return vendor, short
    return None


def _readings(name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the vendors that a name may belong to, and the name in their list. If the name says a vendor, only that
    one."""
    for path in PATHS:
        name = name.removeprefix(path)
    yield _snapshot().makers, name
    vendor, slash, rest = name.partition("/")
    if bedrock := BEDROCK.fullmatch(rest.rpartition("/")[2] if slash else name):
        region = "global." if bedrock["region"] == "global" else ""
        yield ("aws",), region + bedrock["name"]
    if slash:
        yield (VENDORS.get(vendor, vendor),), rest


def _shorter(name: str) -> Iterator[str]:
    """Yield the name, then the name without its tails, one after the other."""
    yield name
    while (short := TAIL.sub("", name)) != name:
        yield short
        name = short
