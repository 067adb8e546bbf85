"""Suites for those who write a storage or an adapter of their own. They need no test runner: what does not hold raises
`AssertionError` with a line that says so."""

from agent_logger.transcripts.testing.adapter import run_adapter_conformance
from agent_logger.transcripts.testing.storage import run_storage_conformance

__all__ = ["run_adapter_conformance", "run_storage_conformance"]
