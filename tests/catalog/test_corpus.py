"""A folder of sessions whose truth is known, and what another program makes of it."""

import json
import os
import random
import subprocess
from datetime import UTC
from itertools import islice
from pathlib import Path

import pytest

from _corpus import FIRST_DAY, Corpus, Session, fill, write
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.catalog.ledger.totals import total, totals
from agent_logger.model.prices import price
from agent_logger.model.session import Usage
from tests.clients import find_ccusage

SEEDS = [1, 2, 3]


def rows_of(sessions: list[Session]) -> list[LedgerRow]:
    ledger = Ledger()
    for session in sessions:
        ledger.add(session.responses)
    return list(ledger.rows())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ledger_matches_the_corpus_for_any_order_of_files(seed: int) -> None:
    sessions = list(islice(Corpus(seed).sessions(), 60))
    truth = {it.message_id: it for session in sessions for it in session.responses}
    told = sum(len(session.responses) for session in sessions)
    random.Random(seed).shuffle(sessions)
    rows = rows_of(sessions)
    assert len(rows) == len(truth) < told == sum(row.copies for row in rows)
    assert total(rows).usage == sum((it.usage for it in truth.values() if it.usage), Usage())
    assert total(rows).cost.nano_usd == sum(
        price(it.usage, it.model, it.at, it.tier).nano_usd or 0 for it in truth.values() if it.usage
    )
    assert total(rows).unpriced == 0
    assert {row.at for row in rows} == {it.at for it in truth.values()}


@pytest.mark.needs("ccusage")
@pytest.mark.parametrize("seed", SEEDS)
def test_tokens_and_costs_match_ccusage(seed: int, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the token, and within a thousandth of the cost, per day and model, both from the files."""
    folder = tmp_path / "claude"
    sessions = fill(folder, 3, seed)
    theirs = ccusage(folder)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    with Catalog.open(home) as catalog:
        rows = list(catalog.ledger())
    assert total(rows).usage == total(rows_of(sessions)).usage  # what was written
    ours = {
        (day, model): it
        for day in totals(rows, "day", UTC)
        for model, it in totals([row for row in rows if f"{row.at:%Y-%m-%d}" == day], "model").items()
    }
    assert {key: it.usage.context_tokens + it.usage.output_tokens for key, it in ours.items()} == {
        key: sum(tokens) for key, (tokens, _) in theirs.items()
    }
    for key, it in ours.items():
        usage, (tokens, dollars) = it.usage, theirs[key]
        assert (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
        ) == tokens
        assert it.cost.usd == pytest.approx(dollars, rel=1e-3), key


SMALL = Usage(input_tokens=1000, output_tokens=1000, cache_read_tokens=10_000, cache_write_tokens=5000)
LARGE = Usage(input_tokens=10, output_tokens=1000, cache_read_tokens=300_000, cache_write_tokens=5000)

# Where we differ in January 2026: the model, the tokens, our dollars, theirs, and why.
DIFFERENCES = [
    # They bill what is beyond 200,000 tokens of each kind at the higher rate; the vendor, the whole request at it.
    ("claude-sonnet-4-5-20250929", LARGE, 0.24006, 0.15378),
    ("claude-sonnet-4-20250514", LARGE, 0.24006, 0.15378),
    # They know today's price, which has no such rate since March 2026; we that of the day.
    ("claude-opus-4-6", LARGE, 0.4001, 0.2063),
    # They bill cache writes of every vendor as Anthropic does, at 1.25 times the input; OpenAI lists no price for them.
    ("gpt-5", SMALL, 0.01875, 0.0203125),
    # Newer than their price list: they say 0.
    ("claude-opus-5-5", SMALL, 0.051, 0.0),
    # Not in our source: we say that we do not know.
    ("claude-mythos-5", SMALL, None, 0.1325),
]


@pytest.mark.needs("ccusage")
def test_every_difference_to_ccusage_has_a_reason(tmp_path: Path) -> None:
    corpus = Corpus()
    for model, usage, _, _ in DIFFERENCES:
        write(corpus.single(model, usage), tmp_path)
    theirs = {model: dollars for (_, model), (_, dollars) in ccusage(tmp_path).items()}
    for model, usage, our_dollars, their_dollars in DIFFERENCES:
        assert price(usage, model, FIRST_DAY).usd == (our_dollars and pytest.approx(our_dollars)), model
        assert theirs[model] == pytest.approx(their_dollars), model


def ccusage(folder: Path) -> dict[tuple[str | None, str | None], tuple[tuple[int, ...], float]]:
    command = [str(find_ccusage()), "daily", "--json", "--offline", "--timezone", "UTC"]
    told = subprocess.run(
        command,
        env={**os.environ, "CLAUDE_CONFIG_DIR": str(folder)},
        check=True,
        capture_output=True,
        text=True,
    )
    kinds = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens")
    return {
        (day["period"], it["modelName"]): (tuple(it[kind] for kind in kinds), it["cost"])
        for day in json.loads(told.stdout)["daily"]
        for it in day["modelBreakdowns"]
    }
