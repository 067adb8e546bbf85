"""Write the price snapshot of the package from the Python package `genai-prices`.

    python tools/refresh_prices.py --version 0.2.1 --date 2026-10-30

`--date` is the day that version was released: the package itself does not tell. It is installed into an environment of
its own, in a temporary folder, for neither agent-logger nor its tests need it.

What is kept, and why, is said beside the tables below. Rates are decimal there and whole picodollars per token here
(microdollars per million tokens); one that is not whole stops the script, so that nothing is rounded unseen.
"""

import argparse
import datetime as dt
import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

SNAPSHOT = Path(__file__).resolve().parents[1] / "src/agent_logger/model/prices.json"

# Who makes models. A name without a vendor in front is looked for here, in this order. Z.ai stands for its Chinese twin
# too, whose prices are in another currency.
MAKERS = [
    "anthropic",
    "openai",
    "google",
    "x-ai",
    "deepseek",
    "mistral",
    "moonshotai",
    "zai",
    "minimax",
    "cohere",
]
# Who serves models of others under names of their own. OpenRouter and its like are left out: what they bill depends on
# where they send a call.
HOSTS = ["aws", "groq"]

# Names that people run at home: a bare one says nothing about who was paid.
LOCAL = {
    "deepseek-r1",
    "deepseek-v3.2",
    "kimi-k2",
    "mistral-7b",
    "mistral-large",
    "mistral-nemo",
    "mistral-small",
    "mixtral-8x7b",
}
LOCAL |= {"devstral-small", "gemma-3", "gemma-3n", "gemma-2-27b-it", "gemma-4-26b-a4b-it", "gemma-4-31b-it"}

# What the source lacks: beyond 200,000 tokens (since August 2025) Sonnet 4 costs what Sonnet 4.5 does.
AS_ANOTHER = {("anthropic", "claude-sonnet-4-0"): "claude-sonnet-4-5"}

KEYS = ["input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok"]
# What else is billed for some models, beside text, and is not in our usage.
BESIDE = {"web_searches_kcount", "storage_searches_kcount"}
BESIDE |= {f"{kind}_{medium}_mtok" for kind in ("input", "output") for medium in ("audio", "image", "video")}
BESIDE |= {"cache_audio_read_mtok", "cache_image_read_mtok", "audio_hours", "input_audio_hours"}

TIERS = {
    "batch": ("processing", "batch"),
    **{it: ("service_tier", it) for it in ("flex", "priority", "fast")},
}
PICO_PER_MTOK = 1_000_000  # picodollars per token in a dollar per million tokens


def pico(price: Decimal) -> int:
    rate = price * PICO_PER_MTOK
    if rate != rate.to_integral_value():
        raise SystemExit(f"{price} dollars a million tokens is no whole number of picodollars a token")
    return int(rate)


def at_band(price: Any, over: int) -> Decimal | None:
    """The price of requests with more than `over` tokens to read."""
    if price is None or isinstance(price, Decimal):
        return price
    reached = [tier.price for tier in price.tiers if tier.start <= over]
    return reached[-1] if reached else price.base


def band(prices: dict[str, Any], over: int) -> list[int]:
    """With no price of their own, tokens from the cache or into it are billed as input, and 1-hour writes as writes."""
    given = [at_band(prices.get(key), over) for key in KEYS]
    entry, output, read, write, write_1h = given
    entry, output = entry or Decimal(0), output or Decimal(0)
    write = entry if write is None else write
    filled = [entry, output, entry if read is None else read, write, write if write_1h is None else write_1h]
    return [over, *map(pico, filled)]


def bands(prices: dict[str, Any]) -> list[list[int]]:
    tiered = [prices[key].tiers for key in KEYS if hasattr(prices.get(key), "tiers")]
    starts = sorted({0, *(tier.start for tiers in tiered for tier in tiers)})
    return [band(prices, over) for over in starts]


def is_text(prices: dict[str, Any]) -> bool:
    """Whether tokens in and out say what a response costs. No prices at all means free."""
    given = {key for key, value in prices.items() if value is not None}
    return given <= {*KEYS, *BESIDE} and (not given or {"input_mtok", "output_mtok"} <= given)


def period(constraint: Any, prices: dict[str, Any]) -> list[Any]:
    """From which day (in UTC), within which hours, at which rates."""
    if hasattr(constraint, "start_date"):
        return [constraint.start_date.isoformat(), "", bands(prices)]
    if hasattr(constraint, "start_time"):
        return ["", f"{constraint.start_time:%H:%M}-{constraint.end_time:%H:%M}", bands(prices)]
    return ["", "", bands(prices)]


def standard(model: Any) -> list[tuple[Any, dict[str, Any]]]:
    listed = model.prices if isinstance(model.prices, list) else None
    if listed is None:
        return [(None, vars(model.prices))]
    return [(it.constraint, vars(it.prices)) for it in listed]


def tiers(model: Any) -> dict[str, list[Any]] | None:
    """The model's prices by tier; the last period that holds is the one."""
    usual = standard(model)
    if not all(is_text(prices) for _, prices in usual):
        return None
    told = {"standard": [period(constraint, prices) for constraint, prices in usual]}
    for tier, (key, value) in TIERS.items():
        variants = [it for it in model.price_variants or () if it.when == {key: value}]
        if variants:
            told[tier] = [variant_period(usual, it) for it in variants]
    return told


def variant_period(usual: list[tuple[Any, dict[str, Any]]], variant: Any) -> list[Any]:
    """A tier's price is dated by when it was noted down. It is taken to be as old as the usual price beside it."""
    noted = getattr(variant.constraint, "start_date", dt.date.min)
    dated = [(getattr(constraint, "start_date", dt.date.min), prices) for constraint, prices in usual]
    since, beside = max((it for it in dated if it[0] <= noted), key=lambda it: it[0])
    own = {key: value for key, value in vars(variant.prices).items() if value is not None}
    return ["" if since == dt.date.min else since.isoformat(), "", bands({**beside, **own})]


def names(match: Any) -> Iterator[str]:
    """The names in a model's rules. Beginnings and middles count as whole names: with more behind it, it is another."""
    for field in ("equals", "starts_with", "contains", "ends_with"):
        if hasattr(match, field):
            yield getattr(match, field).lower().rstrip("-@:")
    for clause in [*getattr(match, "or_", ()), *getattr(match, "and_", ())]:
        yield from names(clause)


def bedrock_names(model: Any) -> Iterator[str]:
    """`global.…` has a price of its own; all that names a region, or none, has the regional one."""
    yield re.sub(r"(-v\d+)?(:\d+)?$", "", model.id.lower().removeprefix("regional."))


def snapshot(version: str, date: str) -> dict[str, Any]:
    from genai_prices.data import providers  # type: ignore[import-not-found]

    by_id = {provider.id: provider for provider in providers}
    models: list[dict[str, list[Any]]] = []
    places: dict[str, int] = {}
    found: dict[str, dict[str, int]] = {}
    for maker in [*MAKERS, *HOSTS]:
        named = found.setdefault(maker, {})
        by_name = {model.id: model for model in by_id[maker].models}
        for model in by_name.values():
            told = tiers(by_name[AS_ANOTHER.get((maker, model.id), model.id)])
            listed = bedrock_names(model) if maker == "aws" else names(model.match)
            new = [name for name in listed if name not in LOCAL and name not in named]
            if told is None or not new:
                continue
            if (text := json.dumps(told)) not in places:
                places[text] = len(models)
                models.append(told)
            named.update(dict.fromkeys(new, places[text]))
    return {
        "date": date,
        "source": f"genai-prices {version}",
        "makers": MAKERS,
        "names": found,
        "models": models,
    }


def write(version: str, date: str, to: Path) -> None:
    told = snapshot(version, date)
    lines = [f'"{key}":{json.dumps(told[key])}' for key in ("date", "source", "makers")]
    by_maker = [
        f'"{it}":{json.dumps(told["names"][it], separators=(",", ":"), sort_keys=True)}' for it in told["names"]
    ]
    prices = [json.dumps(it, separators=(",", ":")) for it in told["models"]]
    lines.append('"names":{\n' + ",\n".join(by_maker) + "}")
    lines.append('"models":[\n' + ",\n".join(prices) + "]")
    to.write_text("{" + ",\n".join(lines) + "}\n")
    print(f"{to}: {len(prices)} price lists for {sum(map(len, told['names'].values()))} names")


def install_and_run(version: str, arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = f"{folder}/bin/python"
        package = f"genai-prices=={version}"
        subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", package], check=True)
        return subprocess.run([python, __file__, *arguments, "--installed"], check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True, help="of genai-prices")
    parser.add_argument("--date", required=True, type=dt.date.fromisoformat, help="the day it was released")
    parser.add_argument("--to", type=Path, default=SNAPSHOT)
    parser.add_argument("--installed", action="store_true", help="genai-prices is here already")
    options = parser.parse_args()
    if not options.installed:
        return install_and_run(options.version, sys.argv[1:])
    write(options.version, options.date.isoformat(), options.to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
