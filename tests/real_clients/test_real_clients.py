"""Real clients do the same through the proxy as without it, and the logs say what they did.

Each scenario is run twice in the same folder: directly against the scripted API, and through `agent-logger proxy`. What
the two runs may not share is in docs/proxy.md; what is true of the calls is in the fixture's manifest.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.spooling import every_byte_under

from . import alike, logged
from .running import CLIENTS, KEYS, Ran, run_directly, run_recorded, verify
from .scenarios import FORKS_GO_ON, SCENARIOS, Forked, Scenario


def _parameters() -> Iterator[Any]:
    for scenario in SCENARIOS:
        if scenario is FORKS_GO_ON:
            continue  # test_forks.py has it, with more to ask of the same two runs
        marks = [pytest.mark.needs(*CLIENTS[scenario.client].needs)]
        yield pytest.param(scenario, id=scenario.id, marks=[*marks, *([pytest.mark.long] if scenario.long else [])])


@pytest.mark.parametrize("scenario", list(_parameters()))
def test_a_real_client_behaves_the_same_through_the_proxy(scenario: Scenario, tmp_path: Path) -> None:
    root = tmp_path / "run"
    direct = run_directly(scenario, root)
    recorded, log_dir = run_recorded(scenario, root, tmp_path / "proxy")
    assert_same(scenario, direct, recorded, log_dir)


def assert_same(scenario: Scenario, direct: Ran, recorded: Ran, log_dir: Path) -> None:
    """The client did the same in both runs, and what it did is in the logs."""
    for step in scenario.steps():
        mine, theirs = recorded.finished[step.label], direct.finished[step.label]
        assert theirs.exit_code == step.exit_code, theirs.stdout + theirs.stderr
        assert mine.exit_code == theirs.exit_code
        for ours, plain in ((mine.stdout, theirs.stdout), (mine.stderr, theirs.stderr)):
            _assert_alike(alike.said(ours), alike.said(plain))
    asked, asked_directly = (alike.requests(it.calls, parallel=scenario.parallel) for it in (recorded, direct))
    _assert_alike(asked, asked_directly)

    verified = verify(log_dir)
    assert verified.returncode == 0, verified.stdout
    for path, data in every_byte_under(log_dir):
        assert not any(key.encode() in data for key in KEYS), path
    logs = logged.read_logs(log_dir)
    _check_calls(scenario, logs, recorded.sessions, len(recorded.calls))
    _check_links(scenario, [log for log in logs if log.start])


def _assert_alike(ours: Any, theirs: Any) -> None:
    found = "\n".join(alike.differences(ours, theirs))
    assert not found


def _check_calls(scenario: Scenario, logs: list[logged.Log], printed: list[str], calls: int) -> None:
    """Kinds, sessions, threads, outcomes and usage are those of the manifest."""
    assert sum(len(log.requests) for log in logs) == calls
    found = logged.of_logs(logs)
    expected = logged.of_manifest(scenario.manifest, websocket=scenario.client == "codex-websocket")
    named = {log.client_id for log in logs if log.client_id}
    if named:
        assert named <= set(printed)
    if scenario.beside:
        (session,) = named
        assert len(found.pop((session, "side"))) == scenario.beside
    _assert_alike(logged.shape(found), logged.shape(expected))
    assert logged.totals(found) == logged.totals(expected)
    if scenario.logs:
        assert tuple(len(log.requests) for log in logs) == scenario.logs


def _check_links(scenario: Scenario, logs: list[logged.Log]) -> None:
    """Forks, retries and rewrites are where the commands made them."""
    places = {log.name: place for place, log in enumerate(logs)}
    forks = [Forked(places[log.name], places[log.fork.parent_session], log.fork.from_seq) for log in logs if log.fork]
    assert tuple(forks) == scenario.forks
    retries = [(request.seq, request.retry_of) for request in logs[0].requests if request.retry_of]
    assert tuple(retries) == scenario.retries
    assert tuple((it.seq, it.reason) for it in logs[0].rewrites) == scenario.rewrites
