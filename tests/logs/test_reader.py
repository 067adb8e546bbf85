"""Bodies that go to files of their own, damage, and `verify`."""

import os
from base64 import b64encode
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.errors import SourceError, StoreError
from agent_logger.files.append import append_shared
from agent_logger.files.line_files import entries, read_at
from agent_logger.files.parts import PartFile, part_of
from agent_logger.home.layout import install_key, prepare_log_folder, safe_name
from agent_logger.journal.bodies import LINE_BYTES, SPILL_BYTES, decode
from agent_logger.journal.journal import Journal
from agent_logger.journal.seal import seal
from agent_logger.logs.reader import read_session
from agent_logger.logs.verify import log_files, summary, verify_file
from agent_logger.model.records import (
    Chunk,
    ExchangeRecord,
    Kind,
    Part,
    Record,
    Request,
    Response,
    Timing,
    Unknown,
    encode,
)
from agent_logger.protocols.jsonl import Damage, JsonEntry, Torn
from tests.journal.logs import exchange
from tests.journal.world import NAME, note, records_in, start

# ---------------------------------------------------------------- large bodies


def request(body: str, encoding: None = None) -> Request:
    return Request(
        ts="t",
        seq=1,
        method="POST",
        path="/v1/messages",
        headers={},
        body=body,
        body_encoding=encoding,
        fingerprint=None,
        call="01a3",
    )


def response(**body: object) -> Response:
    return msgspec.structs.replace(
        Response(ts="t", seq=1, status=200, headers={}, timing=Timing(ttfb_ms=1, total_ms=2), call="01a3"),
        **body,
    )


BIG = "é" * SPILL_BYTES
LARGE: list[tuple[Kind, Record]] = [
    ("wire", request(BIG)),
    ("wire", response(body=BIG)),
    ("wire", response(body=b64encode(b"\xff" * SPILL_BYTES).decode(), body_encoding="base64")),
    ("wire", response(chunks=[Chunk(ts="t", delta_ms=1.5, raw="ab" * 200_000) for _ in range(30)])),
    ("exchange", exchange("x", *["line\n" * 1_000_000] * 3)),
    ("exchange", note("s" * (LINE_BYTES + 1))),
]


@pytest.mark.parametrize(("kind", "record"), LARGE, ids=lambda it: it if isinstance(it, str) else type(it).__name__)
def test_a_large_record_round_trips_without_long_lines(tmp_path: Path, kind: Kind, record: Record) -> None:
    log = Journal(tmp_path, NAME, kind)
    log.append(record)
    log.append(record)
    longest = max(len(line) for line in (tmp_path / f"{NAME}.jsonl").read_bytes().split(b"\n"))
    assert longest <= LINE_BYTES
    bodies = list((tmp_path / f"{NAME}.bodies").iterdir())
    assert len(bodies) == 2
    assert {path.stat().st_mode & 0o777 for path in bodies} == {0o600}
    for found in records_in(tmp_path):
        assert isinstance(found, Record)
        if isinstance(found, Part):
            continue  # before a first record that stands in a file as a whole
        assert msgspec.structs.replace(found, log=None, part=None, machine=None, writer=None) == record


def test_a_large_body_is_stored_byte_for_byte_in_its_own_file(tmp_path: Path) -> None:
    Journal(tmp_path, NAME, "wire").append(request(BIG))
    assert (tmp_path / f"{NAME}.bodies" / "01a3").read_bytes() == BIG.encode()


def test_a_large_exchange_stores_its_messages_in_a_file_named_by_its_number(tmp_path: Path) -> None:
    Journal(tmp_path, NAME, "exchange").append(exchange("x", "a" * SPILL_BYTES, number=7))
    [line] = (tmp_path / f"{NAME}.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(line)["messages_file"] == f"{NAME}.bodies/7.jsonl"


ELSEWHERE = ["/etc/passwd", "../x.bodies/y", "a.bodies/../../etc/passwd", "x", "a.bodies/", "a.bodies/..", ""]


@pytest.mark.parametrize("file", ELSEWHERE)
def test_a_messages_file_outside_the_bodies_folder_is_rejected(tmp_path: Path, file: str) -> None:
    hostile = msgspec.structs.replace(exchange("x"), messages_file=file)
    with pytest.raises(SourceError, match="not one of its bodies"):
        decode(encode(hostile), "exchange", tmp_path)


def test_a_missing_body_is_damage(tmp_path: Path) -> None:
    Journal(tmp_path, NAME, "wire").append(request(BIG))
    (tmp_path / f"{NAME}.bodies" / "01a3").unlink()
    [bad] = verify_file(tmp_path / f"{NAME}.jsonl").damage
    assert "No such file" in bad.reason


# ---------------------------------------------------------------- plain and sealed alike


def sealed_log(folder: Path, lines: int) -> tuple[bytes, Path]:
    log = Journal(folder, NAME, "exchange")
    log.append(start())
    for number in range(lines):
        log.append(note(f"{number}" * 50))
    log.close()
    plain = (folder / f"{NAME}.jsonl").read_bytes()
    assert seal(PartFile(folder, NAME))
    return plain, folder / f"{NAME}.jsonl.zst"


def test_a_sealed_part_keeps_the_same_bytes_and_offsets(tmp_path: Path) -> None:
    plain, sealed = sealed_log(tmp_path, 100)
    assert not (tmp_path / f"{NAME}.jsonl").exists()
    for entry in entries(sealed):
        assert isinstance(entry, JsonEntry)
        assert read_at(sealed, entry.offset, len(entry.raw)) == entry.raw
        assert plain[entry.offset :].startswith(entry.raw)


def test_a_sealed_part_can_be_unpacked_by_any_zstd(tmp_path: Path) -> None:
    from agent_logger.files.sealed import zstd

    plain, sealed = sealed_log(tmp_path, 10)
    with zstd.open(sealed) as file:
        assert file.read() == plain


@settings(max_examples=30)
@given(st.data())
def test_any_byte_range_of_a_sealed_part_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("log")
    plain, sealed = sealed_log(folder, data.draw(st.integers(1, 20)))
    offset = data.draw(st.integers(0, len(plain)))
    length = data.draw(st.integers(0, len(plain)))
    assert read_at(sealed, offset, length) == plain[offset : offset + length]


def test_a_truncated_sealed_part_is_read_up_to_the_cut(tmp_path: Path) -> None:
    _, sealed = sealed_log(tmp_path, 10)
    sealed.write_bytes(sealed.read_bytes()[:-12])
    report = verify_file(sealed)
    assert report.records == 11
    assert [bad.reason for bad in report.damage] == ["the end of the sealed file is missing"]


def test_an_invalid_sealed_file_is_reported_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    for content in (b"", b"rubbish" * 100, b"\x28\xb5\x2f\xfd" + b"\xff" * 50):
        path.write_bytes(content)
        assert verify_file(path).damage


# ---------------------------------------------------------------- verify


def test_a_torn_last_line_is_reported_but_is_not_damage(tmp_path: Path) -> None:
    path = tmp_path / "theirs.jsonl"
    path.write_bytes(b'{"type":"user"}\n{"type":"assis')
    report = verify_file(path)
    assert (report.records, report.torn_bytes, report.damage) == (1, 14, [])


def test_damage_reports_line_offset_length_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "theirs.jsonl"
    path.write_bytes(b'{"a":1}\n\0\0\0\n{"b":2}\n[3]\n')
    report = verify_file(path)
    assert report.records == 2
    assert [(bad.line, bad.offset, bad.length, bad.reason) for bad in report.damage] == [
        (2, 8, 3, "NUL bytes"),
        (4, 20, 3, "JSON, but not an object"),
    ]


def test_a_record_with_invalid_fields_is_damage(tmp_path: Path) -> None:
    log = Journal(tmp_path, NAME, "exchange")
    log.append(start())
    log.append(Unknown(b'{"type":"exchange","v":1,"exchange":"one"}'))
    [bad] = verify_file(tmp_path / f"{NAME}.jsonl").damage
    assert bad.line == 2
    assert "exchange" in bad.reason or "session_id" in bad.reason


def test_a_line_over_64_mb_is_reported_and_reading_continues(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    with path.open("wb") as file:
        file.write(b'{"a":1}\n{"b":"')
        for _ in range(65):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n{"c":3}\n')
    report = verify_file(path)
    assert report.records == 2
    assert [bad.reason for bad in report.damage] == [f"a line of {(65 << 20) + 8:,} bytes"]


def test_verify_reports_paths_that_are_not_regular_files(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.jsonl"
    os.mkfifo(fifo)
    assert [bad.reason for bad in verify_file(fifo).damage] == ["not a regular file"]
    assert [bad.reason for bad in verify_file(tmp_path / "gone.jsonl").damage] == [
        "cannot be read: No such file or directory"
    ]


def test_log_files_searches_folders_and_ignores_symlinks(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("x.jsonl", "a/y.jsonl", "a/y.p2.jsonl.zst", "a/y.jsonl.live", "a/notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "x.jsonl")
    os.mkfifo(tmp_path / "fifo.jsonl")
    found = [str(path.relative_to(tmp_path)) for path in log_files(tmp_path)]
    assert found == ["x.jsonl", "a/y.jsonl", "a/y.jsonl.live", "a/y.p2.jsonl.zst"]


def test_the_summary_adds_up_all_reports(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"a":1}\n{"b"')
    (tmp_path / "b.jsonl").write_bytes(b"rubbish\n{}\n")
    report = summary([verify_file(path) for path in log_files(tmp_path)])
    assert (report.records, report.torn, report.damage, report.bytes) == (2, 1, 1, 23)


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=40).map(lambda it: it.replace(b"\n", b"")), max_size=8))
def test_any_file_is_read_without_error_and_every_line_is_reported(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("v") / "f.jsonl"
    path.write_bytes(b"\n".join(lines))
    seen = {item.line for item in entries(path)}
    solid = {number for number, line in enumerate(lines, 1) if line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r")}
    assert solid <= seen
    assert all(isinstance(item, JsonEntry | Damage | Torn) for item in entries(path))


# ---------------------------------------------------------------- small files that many share


def test_append_shared_terminates_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "home" / "facts.jsonl"
    append_shared(path, b'{"a":1}')
    with path.open("ab") as file:
        file.write(b'{"torn')
    append_shared(path, b'{"b":2}')
    assert path.read_bytes() == b'{"a":1}\n{"torn\n{"b":2}\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_concurrent_processes_can_append_to_a_shared_file(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    children = []
    for name in range(8):
        child = os.fork()
        if child == 0:
            for number in range(50):
                append_shared(path, b'{"n":"%d-%d"}' % (name, number))
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    found = [entry.value["n"] for entry in entries(path) if isinstance(entry, JsonEntry)]
    assert sorted(found) == sorted(f"{name}-{number}" for name in range(8) for number in range(50))


# ---------------------------------------------------------------- names, folders, the key

HARMLESS = ["1f320356-a178-418e-a692-69ce6e1e657c", "a", "A.b_c-1", "x" * 64]
HARMFUL = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "a\\b",
    "a\0",
    ".hidden",
    "-rf",
    "x" * 65,
    "é",
    "a b",
    "log.p2",
    "a\n",
]


@pytest.mark.parametrize("outside", HARMLESS)
def test_a_safe_id_is_used_as_the_file_name(outside: str) -> None:
    assert safe_name(outside) == outside


@pytest.mark.parametrize("outside", HARMFUL)
def test_an_unsafe_id_is_replaced_by_a_hash(outside: str) -> None:
    assert safe_name(outside) != outside
    assert safe_name(safe_name(outside)) == safe_name(outside)


@given(st.text())
def test_a_safe_name_is_a_single_path_component(outside: str) -> None:
    part = part_of(Path("/logs") / f"{safe_name(outside)}.jsonl")
    assert part == PartFile(Path("/logs"), safe_name(outside))


def test_an_unusable_log_folder_raises_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"^cannot write to .*/file/logs: .*; choose another folder$"):
        prepare_log_folder(tmp_path / "file" / "logs")
    prepare_log_folder(tmp_path / "logs")
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [".gitignore"]


def test_concurrent_processes_create_one_install_key(tmp_path: Path) -> None:
    home = tmp_path / "home"
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            install_key(home)
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    key = install_key(home)
    assert (len(key), install_key(home)) == (32, key)
    assert [path.name for path in home.iterdir()] == ["key"]
    assert (home / "key").stat().st_mode & 0o777 == 0o600


def test_an_install_key_of_the_wrong_size_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(StoreError, match="5 bytes"):
        install_key(tmp_path)


def test_exchanges_of_two_writers_with_the_same_number_get_separate_body_files(tmp_path: Path) -> None:
    one, two = (Journal(tmp_path, NAME, "exchange") for _ in range(2))
    one.append(exchange("x", "a" * SPILL_BYTES))
    two.append(exchange("y", "b" * SPILL_BYTES))
    texts = [it.messages[0].text for it in records_in(tmp_path) if isinstance(it, ExchangeRecord)]
    assert sorted(text[0] for text in texts if text) == ["a", "b"]


DATA = Path(__file__).parents[1] / "data"
FOREIGN = [
    ("claude-cli/2.1.325/tools_stream", "projects/*/*.jsonl", "claude-code"),
    ("codex/0.166.0/exec_resume", "sessions/*/*/*/rollout-*.jsonl", "codex"),
    ("gemini-cli", "session-*.jsonl", "gemini-cli"),
]


@pytest.mark.parametrize(("folder", "pattern", "agent"), FOREIGN)
def test_read_session_recognizes_session_files_of_other_agents(folder: str, pattern: str, agent: str) -> None:
    path = sorted((DATA / folder).rglob(pattern))[0]
    read = read_session(path)
    assert (read.agent, bool(read.turns), read.usage.output_tokens > 0) == (agent, True, True)


def test_read_session_rejects_a_file_that_is_not_a_session(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(SourceError, match="not a session"):
        read_session(path)
