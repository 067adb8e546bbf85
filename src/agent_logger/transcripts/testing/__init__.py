"""Suites for people who write a storage or an adapter of their own. They need no test runner: a check that fails raises
`AssertionError` with a line that says what is wrong."""

from agent_logger.transcripts.testing.adapter import run_adapter_conformance
from agent_logger.transcripts.testing.storage import run_storage_conformance

__all__ = ["run_adapter_conformance", "run_storage_conformance"]
