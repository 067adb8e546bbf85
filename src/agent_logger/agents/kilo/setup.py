"""How Kilo is sent through the proxy: as opencode is, by variables and files with its own name."""

from agent_logger.agents.opencode.setup import ConfigSetup

SETUP = ConfigSetup("kilo", "KILO")
