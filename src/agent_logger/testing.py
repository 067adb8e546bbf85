"""Test suites for authors of a storage or an adapter; they need no test runner."""

from agent_logger.transcripts.testing import run_adapter_conformance as run_adapter_conformance
from agent_logger.transcripts.testing import run_storage_conformance as run_storage_conformance
