"""A process that takes what is in homes into a database; any number of them may run at once, over the same homes."""

import sys
from pathlib import Path

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.postgres.engine import PostgresEngine
from agent_logger.home.homes import homes_of


def index(url: str, own: Path, others: list[str]) -> None:
    homes = homes_of(own, others)
    with Catalog(homes, engine=PostgresEngine(url, homes)) as catalog:
        catalog.refresh()
        catalog.index()


if __name__ == "__main__":
    index(
        sys.stdin.readline().strip(), Path(sys.argv[1]), sys.argv[2:]
    )  # arguments are seen by all users, passwords too
