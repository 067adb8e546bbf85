"""Test suites for authors of a storage or an adapter; they need no test runner."""

from agent_logger.transcripts.testing import run_adapter_conformance, run_storage_conformance

__all__ = ["run_adapter_conformance", "run_storage_conformance"]
