"""Every recorded output of a real client, four versions of it, gives the result and the log that are true."""

from pathlib import Path

import pytest

from agent_logger import Failure, RunResult
from tests.recording.played import Step, player, steps
from tests.recording.run import run
from tests.recording.sdk_fixtures import CLI, truth
from tests.recording.test_sdk_logger_fixtures import NOT_TOLD, RUNS, Told, check, logs

FAILURES = {
    "2.1.325/api_error_400": {"stream": Failure.API_ERROR},
    "2.1.325/api_error_529": {"stream": Failure.API_ERROR},
    "2.1.325/kill9_resume": {"01_killed": Failure.NO_RESULT},
    "2.1.325/limits": {
        "budget": Failure.BUDGET,
        "json": Failure.MAX_TURNS,
        "stream": Failure.MAX_TURNS,
    },
    "2.1.325/resume_chain": {
        "06_sessionid_again": Failure.NO_RESULT,
        "08_resume_missing": Failure.SESSION_NOT_FOUND,
        "09_resume_missing_stream": Failure.SESSION_NOT_FOUND,
    },
    "2.1.325/sigint": {"01_sigint": Failure.INTERRUPTED},
}


def played(step: Step, folder: Path) -> RunResult:
    executable = player(folder / f"claude-{step.label}", step.out, step.err, step.code)
    return run("go", executable=executable, sessions_dir=folder / "s", include_events=True, **step.options)


@pytest.mark.parametrize(("scenario", "told"), RUNS, ids=[it[0] for it in RUNS])
def test_recorded_client_outputs_give_the_expected_results_and_logs(
    scenario: str, told: dict[str, Told], tmp_path: Path
) -> None:
    results = {it.label: played(it, tmp_path) for it in steps(CLI / scenario)}
    failed = {label: it.failure for label, it in results.items() if it.failure}
    assert failed == FAILURES.get(scenario, {})
    found = logs(tmp_path / "s", unnamed=len([it for it in results.values() if not it.metadata.session_id]))
    check(found, told, {} if scenario in NOT_TOLD else truth(CLI / scenario))
    ids = {it.metadata.session_id for it in results.values()} - {None}
    assert {str(it)[:8] for it in ids} == set(told)
    costs = sorted(cost for it in told.values() for cost in it.cost if cost is not None)
    several = scenario in ("2.1.325/multi_input_queued", "2.1.325/multi_input_replay")
    of_runs = sorted(it.metadata.cost for it in results.values() if it.metadata.cost is not None)
    assert of_runs == pytest.approx([sum(costs)] if several else costs)
    for step in steps(CLI / scenario):
        result = results[step.label]
        assert result.stdout == (step.out.read_text() if step.out.exists() else "")
        exited = (result.metadata.exit_status, result.metadata.signal)
        assert exited == ((None, -step.code) if step.code < 0 else (step.code, None))
