"""Kilo's database: opencode's tables. Others beside them (`event`) say everything again."""

from agent_logger.agents.databases.sessions import SessionDatabases
from agent_logger.agents.opencode.database import OpencodeTables

DATABASE = OpencodeTables("kilo")
DATABASES = SessionDatabases(__name__)
