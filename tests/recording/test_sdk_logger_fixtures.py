"""Every recorded stream of a real client gives the log that its manifest and its counters ask for."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent_logger.logs.log_records import read_log
from agent_logger.logs.reader import read_session
from agent_logger.model.records import ExchangeRecord, ExchangeStats, Record, SessionEnd, SessionStart
from agent_logger.recording.sdk_logger import SessionLogger
from tests.recording.sdk_fixtures import CLI, DATA, SDK, lines, objects, truth

ROOT = DATA.parents[1]


@dataclass
class Log:
    start: SessionStart
    exchanges: list[ExchangeRecord]
    end: SessionEnd

    @property
    def stats(self) -> list[ExchangeStats]:
        return [it.stats for it in self.exchanges if it.stats]

    @property
    def billed(self) -> tuple[int, ...] | None:
        it = self.end.billed_tokens
        return (it.input, it.output, it.cache_creation, it.cache_read) if it else None


def logs(folder: Path, *, unnamed: int | None = None) -> dict[str, Log]:
    """By session. The totals are the last ones, for a resumed session has several. Runs that never said which session
    they are of have logs of their own."""
    found = {}
    assert unnamed is None or len(list(folder.glob("*_unnamed-*.jsonl"))) == unnamed
    for path in folder.glob("*.jsonl"):
        records = [item.value for item in read_log(folder, path.stem)]
        assert all(isinstance(it, Record) for it in records)
        [start] = [it for it in records if isinstance(it, SessionStart)]
        exchanges = [it for it in records if isinstance(it, ExchangeRecord)]
        ends = [it for it in records if isinstance(it, SessionEnd)]
        assert [it.exchange for it in exchanges] == list(range(1, len(exchanges) + 1))
        assert ("unnamed" if start.session_id is None else f"_{start.session_id[:8]}.jsonl") in path.name
        if start.session_id or unnamed is None:
            found[start.session_id or ""] = Log(start, exchanges, ends[-1])
    return found


@dataclass(frozen=True)
class Told:
    """What an exchange must say: cost, API time; tools; how it failed."""

    cost: list[float | None]
    api_ms: list[int | None]
    tools: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[str | None, int | None] | None] = field(default_factory=list)


def failures(log: Log) -> list[tuple[str | None, int | None] | None]:
    return [(it.terminal_reason, it.api_error_status) if it.is_error else None for it in log.stats]


POEM = {"Write": 1, "Read": 1, "Bash": 2}
AGENTS = {"Agent": 2, "Bash": 1, "Read": 1}

SDK_STREAMS = [
    pytest.param("api_error_529", "error", {"f329a505": Told([0], [0], {}, [("api_error", 529)])}, id="529"),
    pytest.param(
        "client_clear",
        "client_clear",
        {"6bb2278c": Told([0.00114], [59]), "68463448": Told([0, 0.00228], [0, 14])},
        id="clear",
    ),
    pytest.param("client_subagents", "subagent", {"416b4d36": Told([0.024242], [240], AGENTS)}, id="subagents"),
    pytest.param(
        "client_three_exchanges",
        "client",
        {"d0e6f988": Told([0.00114, 0.00228, 0.00342], [27, 20, 12])},
        id="three",
    ),
    pytest.param("hooks", "hooks", {"8fa960b0": Told([0.07516], [149], POEM)}, id="hooks"),
    pytest.param(
        "interrupt",
        "interrupt",
        {"0604b3f6": Told([0.00114, 0.001228], [98, 11], {"Write": 1}, [("aborted_streaming", None), None])},
        id="interrupt",
    ),
    pytest.param(
        "max_turns",
        "maxturns",
        {"a65e502c": Told([0.00114], [61], {"Bash": 1}, [("max_turns", None)])},
        id="max turns",
    ),
    pytest.param("query_tools", "query", {"6ceabe29": Told([0.07516], [147], POEM)}, id="tools"),
    pytest.param("session_store", "store", {"d26759e6": Told([0.024242], [314], AGENTS)}, id="store"),
]


def check(found: dict[str, Log], told: dict[str, Told], true: dict[str, tuple[int, int, int, int]]) -> None:
    assert {it[:8] for it in found} == set(told)
    for session, log in found.items():
        want = told[session[:8]]
        assert [it.cost_usd for it in log.stats] == pytest.approx(want.cost)
        assert [it.duration_api_ms for it in log.stats] == want.api_ms
        assert log.end.tools_used == want.tools
        assert failures(log) == (want.failures or [None] * len(log.stats))
        assert log.end.total_exchanges == len(log.exchanges)
        if session in true:
            assert log.billed == true[session]


@pytest.mark.parametrize(("scenario", "stream", "told"), SDK_STREAMS)
def test_recorded_sdk_streams_give_the_expected_logs(
    scenario: str, stream: str, told: dict[str, Told], tmp_path: Path
) -> None:
    inputs = 0
    with SessionLogger(tmp_path) as logger:
        for number, message in objects(SDK / scenario / f"{stream}.jsonl"):
            if number > inputs:
                inputs = number
                logger.log_user_input(f"input {number}")
            logger.log(message)
    found = logs(tmp_path)
    assert logger.lost == 0
    check(found, told, truth(SDK / scenario))
    asked = [it.user_input for log in found.values() for it in log.exchanges if it.user_input]
    assert sorted(asked) == [f"input {number + 1}" for number in range(inputs)]
    outputs = {it.id: it.usage.output_tokens for it in map(read_session, tmp_path.glob("*.jsonl"))}
    assert outputs | {it: true[1] for it, true in truth(SDK / scenario).items()} == outputs


@pytest.mark.needs("jsonschema")
def test_every_written_line_matches_the_json_schema(tmp_path: Path) -> None:
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    schema = validator(json.loads((ROOT / "src/agent_logger/schemas/exchange-log.json").read_text()))
    for scenario in SDK_STREAMS:
        with SessionLogger(tmp_path) as logger:
            logger.log_user_input("go")
            for _, message in objects(SDK / str(scenario.values[0]) / f"{scenario.values[1]}.jsonl"):
                logger.log(message)
    written = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert len(written) > 30
    for line in written:
        schema.validate(line)
    assert not schema.is_valid({**written[0], "ts": None})


def test_the_example_log_of_the_specification_is_read_and_resumed(tmp_path: Path) -> None:
    example = DATA / "specification" / "20251107_084532_1f320356.jsonl"
    session = read_session(Path(shutil.copy(example, tmp_path)))
    [exchange] = session.exchanges
    assert exchange.user_input == "help me write a poem and name the file as poem.md"
    assert [it.name for it in session.tool_calls] == ["Write"]
    with SessionLogger(tmp_path, resumed_from=session.id) as logger:
        logger.log_user_input("more")
        logger.log({"type": "system", "subtype": "init", "session_id": session.id})
        logger.log({"type": "result", "session_id": session.id, "total_cost_usd": 1, "duration_ms": 99})
    assert logger.path == tmp_path / example.name
    [log] = logs(tmp_path).values()
    assert [it.exchange for it in log.exchanges] == [1, 2]
    assert (log.end.total_exchanges, log.end.total_duration_ms) == (2, 6901 + 99)


def test_every_recorded_sdk_stream_is_tested() -> None:
    assert {it.values[0] for it in SDK_STREAMS} == {it.name for it in SDK.iterdir()}


def one(cost: float, api_ms: int, *, tools: dict[str, int] | None = None, failed: Any = None) -> Told:
    return Told([cost], [api_ms], tools or {}, [failed])


NOT_TOLD: dict[str, str] = {
    "2.1.325/disconnect_midstream": "the client also counts the attempt that was cut",
    "2.1.325/kill9_resume": "a killed process reports nothing",
    "2.1.4/resume_chain": "warm-ups have sessions of their own on the wire",
}
RESUMED = {"04_fork": "656a4701-791f-445e-ba7c-a7a76bed4e5f"}
FORKED = {**RESUMED, "07_fork_sessionid": "656a4701-791f-445e-ba7c-a7a76bed4e5f"}

RUNS = [
    ("1.0.3/resume_chain", {
        "3839c1c7": one(0.001005, 24), "0b4c9fa3": one(0.00201, 21),
        "ef5752db": one(0.003015, 27), "8d170135": one(0.00402, 38),
    }),
    ("2.1.197/resume_chain", {"9401cd92": Told([0.001675, 0.00335], [29, 27]), "d73350fb": one(0.005025, 29)}),
    ("2.1.197/tools_stream", {"976090e5": one(0.1028725, 85, tools=POEM)}),
    ("2.1.325/api_error_400", {"5e42ad65": one(0, 0, failed=("api_error", 400))}),
    ("2.1.325/api_error_529", {"4c2b206c": one(0, 0, failed=("api_error", 529))}),
    ("2.1.325/compact_and_slash", {
        "e948d616": Told([0.00114, 0.00228, 0.00798, 0.00114, 0], [57, 39, 0, 171, 0]),
    }),
    ("2.1.325/disconnect_midstream", {"ac3df660": one(0.002, 809)}),
    ("2.1.325/hello_json", {"fb328fef": one(0.002444, 25)}),
    ("2.1.325/hello_json_verbose", {"6ab479e0": one(0.002444, 44)}),
    ("2.1.325/kill9_resume", {"347cadca": Told([0.001228], [31], {"Write": 1})}),
    ("2.1.325/limits", {
        "a8bbb6a8": one(0.00228, 115, tools={"Bash": 2}, failed=("max_turns", None)),
        "c3596477": one(0.00114, 45, failed=("max_turns", None)),
        "cc5b7bff": one(0.00456, 227, tools={"Bash": 4}, failed=("budget_exhausted", None)),
    }),
    ("2.1.325/multi_input_queued", {"afbbe982": Told([0.00114, 0.00228], [54, 19])}),
    ("2.1.325/multi_input_replay", {"9b4580ad": Told([0.00114, 0.00228, 0.00342], [29, 26, 13])}),
    ("2.1.325/nested_subagents", {"2762b52b": one(0.006018, 385, tools={"Agent": 2})}),
    ("2.1.325/permission_denied", {"95de2bd3": one(0.002324, 139, tools={"Bash": 1})}),
    ("2.1.325/rate_limit_event", {
        "58cf6a32": one(0.00057, 22), "7e051c4a": one(0.00114, 19), "ff42c732": one(0.00114, 22),
    }),
    ("2.1.325/resume_chain", {
        "656a4701": Told([0.00114, 0.00228, 0.00342], [24, 24, 20]),
        "5b8b8aff": one(0.00456, 50), "11111111": one(0.00114, 26), "99999999": one(0.00228, 21),
        "00000000": one(0, 0, failed=(None, None)),
    }),
    ("2.1.325/retry_then_ok", {"d55acaae": one(0.00114, 1928)}),
    ("2.1.325/sigint", {"64972e61": one(0.00114, 61, tools={"Write": 1}, failed=("aborted_streaming", None))}),
    ("2.1.325/sse_error_event", {"75d499c1": one(0.00124, 193)}),
    ("2.1.325/subagents", {"8dba5ee3": one(0.024242, 388, tools=AGENTS)}),
    ("2.1.325/tool_results_file", {"14977fe4": one(0.095768, 74, tools={"Bash": 1})}),
    ("2.1.325/tools_partial", {"ae592c3c": one(0.07516, 328, tools=POEM)}),
    ("2.1.325/tools_stream", {"85da3532": one(0.07516, 147, tools=POEM)}),
    ("2.1.4/resume_chain", {"4b9b9e76": Told([0.001005, 0.00871, 0.00871, 0.00871], [61, 377, 497, 360])}),
    ("2.1.4/tools_stream", {"abb3f353": one(0.0641005, 448, tools=POEM)}),
]  # fmt: skip


@pytest.mark.parametrize(("run", "told"), RUNS, ids=[it[0] for it in RUNS])
def test_recorded_run_outputs_give_the_expected_logs(run: str, told: dict[str, Told], tmp_path: Path) -> None:
    """Each process is logged by a logger of its own, which says what was resumed."""
    for path in sorted((CLI / run).glob("*.stdout")):
        with SessionLogger(tmp_path, resumed_from=FORKED.get(path.stem)) as logger:
            for line in lines(path):
                logger.log(line)
        assert logger.lost == 0
    found = logs(tmp_path)
    check(found, told, {} if run in NOT_TOLD else truth(CLI / run))


def test_every_recorded_run_is_tested() -> None:
    there = {f"{it.parent.name}/{it.name}" for it in CLI.glob("*/*") if list(it.glob("*.stdout"))}
    aside = {
        "2.1.325/odd_cwds",  # twelve times the same
        "2.1.325/forks_go_on",  # as `resume_chain`; what its forks cost is told in tests/catalog
    }
    assert there - aside == {it[0] for it in RUNS}


def logged(path: Path, folder: Path, before: Callable[[SessionLogger], None] = lambda _: None) -> list[Log]:
    with SessionLogger(folder) as logger:
        before(logger)
        for line in lines(path):
            logger.log(line)
    return list(logs(folder).values())


def test_queued_inputs_form_one_exchange(tmp_path: Path) -> None:
    def three_inputs(logger: SessionLogger) -> None:
        for text in ("one", "two", "three"):
            logger.log_user_input(text)

    [log] = logged(CLI / "2.1.325/multi_input_queued/multi.stdout", tmp_path, three_inputs)
    assert [it.user_input for it in log.exchanges] == ["one", "two\nthree"]
    assert [it.user_inputs for it in log.exchanges] == [None, ["two", "three"]]


def test_inputs_replayed_by_the_client_are_logged(tmp_path: Path) -> None:
    [log] = logged(CLI / "2.1.325/multi_input_replay/replay.stdout", tmp_path)
    assert [it.user_input for it in log.exchanges] == ["Remember BANANA", "What was it?", "Again?"]


def test_messages_have_the_final_usage_of_the_stream(tmp_path: Path) -> None:
    scenario = CLI / "2.1.325/tools_partial"
    [log] = logged(scenario / "partial.stdout", tmp_path)
    usage = {it.message_id: json.loads(bytes(it.usage)) for it in log.exchanges[0].messages if it.usage}
    assert sum(it["output_tokens"] for it in usage.values()) == truth(scenario)[log.start.session_id or ""][1]
    assert not any(it.type == "stream_event" for it in log.exchanges[0].messages)
    [path] = tmp_path.glob("*.jsonl")
    assert all(turn.is_final for turn in read_session(path).turns)


def test_a_fork_of_an_unknown_parent_has_no_cost(tmp_path: Path) -> None:
    with SessionLogger(tmp_path, resumed_from="somebody-else") as logger:
        for line in lines(CLI / "2.1.325/resume_chain/04_fork.stdout"):
            logger.log(line)
    [log] = logs(tmp_path).values()
    [stats] = log.stats
    assert (stats.cost_usd, stats.inherited, stats.reported_total_cost_usd) == (None, True, 0.0114)
    assert (log.start.continues, log.end.total_cost_usd, log.billed) == (
        "somebody-else",
        None,
        (40, 80, 400, 4000),
    )
