"""Damaged lines are counted as `verify` counts them, however the file came to be what it is."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.journal.journal import Journal
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.damage import DamageCount, count_damage
from agent_logger.logs.verify import verify_file
from tests.hostile import LINES
from tests.journal.logs import exchange, resume

OURS = [
    b'{"type":"session_start","v":1,"log":"l","session_id":"s","ts":"t","model":"m","cwd":"/","tools_available":[],'
    b'"permission_mode":null}',
    b'{"type":"resume","v":1,"session_id":"s","ts":"t"}',
    b'{"type":"recovered","v":1,"ts":"t","torn_bytes":7}',
    b'{"type":"gap","v":1,"ts":"t","lost":3,"since":"t","seconds":1.0,"reason":"full"}',
    b'{"type":"resume","v":1,"session_id":7,"ts":"t"}',
    b'{"type":"large","v":1,"file":"log.bodies/gone","bytes":7}',
    b'{"type":"session_header","v":1,"id":5}',
]
FOREIGN = [
    b'{"type":"user","message":{"role":"user","content":"hello"}}',
    *(line for line in LINES.values() if len(line) < 10_000),
]
lines = st.lists(st.sampled_from([*OURS, *FOREIGN]) | st.binary(max_size=12).map(lambda it: it.replace(b"\n", b"")))


@settings(max_examples=300)
@given(portions=st.lists(lines, min_size=1, max_size=4), torn=st.binary(max_size=5))
def test_damage_count_matches_verify_for_any_sequence_of_appends(
    tmp_path_factory: pytest.TempPathFactory, portions: list[list[bytes]], torn: bytes
) -> None:
    path = tmp_path_factory.mktemp("damage") / "log.jsonl"
    before: DamageCount | None = None
    for portion in portions:
        with path.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in portion))
        before = count_damage(path, before)
        assert before.places == len(verify_file(path).damage)
    with path.open("ab") as file:
        file.write(torn.replace(b"\n", b""))
    assert count_damage(path, before).places == len(verify_file(path).damage)


def test_only_appended_bytes_are_read_on_a_recount(tmp_path: Path) -> None:
    from agent_logger.files import foreign

    path = tmp_path / "a.jsonl"
    path.write_bytes(FOREIGN[0] + b"\n" + b"x\n" * 3 + (FOREIGN[0] + b"\n") * 10_000)
    first = count_damage(path)
    with path.open("ab") as file:
        file.write(b"y\n")
    before = foreign.work.bytes
    assert count_damage(path, first).places == 4
    assert foreign.work.bytes - before == 2


def test_a_replaced_file_is_counted_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x\nx\n")
    first = count_damage(path)
    path.unlink()
    path.write_bytes(FOREIGN[0] + b"\nx\n" * 2)
    os.utime(path, ns=(1, 1))
    assert (first.places, count_damage(path, first).places) == (2, len(verify_file(path).damage))


def test_an_intact_log_has_no_damage(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "log", "exchange")
    for number in range(50):
        assert journal.append(resume(f"r{number}"))
        assert journal.append(exchange(f"e{number}", "one", "two", number=number))
    journal.close()
    UPKEEP.finish()
    assert count_damage(tmp_path / "log.jsonl").places == 0
