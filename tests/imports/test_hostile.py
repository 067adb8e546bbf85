"""Bundles that anybody may have made: refused as a whole, or harmless to the sessions of this machine."""

import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_logger.catalog.catalog import Catalog
from agent_logger.errors import SourceError
from agent_logger.imports import bundles as limits
from agent_logger.imports.run import run_import
from tests.imports.bundles import (
    HEAD,
    ID,
    TRANSCRIPT,
    Make,
    entry,
    head,
    line,
    pack,
    tar,
    whole,
    with_checksum,
    write,
    zeros,
)

LOGS = f"{ID}/logs/logs-00000000"


def named(name: str) -> Make:
    return lambda: pack(tar(whole(entry(name, b"x"))))


def of_kind(kind: bytes, **fields: Any) -> Make:
    return lambda: pack(tar(whole(entry(f"{LOGS}/a.jsonl", type=kind, **fields))))


def long_number() -> bytes:
    block = bytearray(entry(HEAD, head())[0].tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = b"\x80" + bytes(10) + b"\x01"
    return pack(with_checksum(block))


def extension(text: bytes, kind: bytes = b"x") -> Make:
    return lambda: pack(tar([entry("x", text, type=kind), *whole()]))


REFUSED = [
    pytest.param(of_kind(tarfile.SYMTYPE, linkname="/etc/passwd"), id="symbolic link"),
    pytest.param(of_kind(tarfile.LNKTYPE, linkname=HEAD), id="hard link"),
    pytest.param(of_kind(tarfile.CHRTYPE, devmajor=1, devminor=3), id="character device"),
    pytest.param(of_kind(tarfile.BLKTYPE), id="block device"),
    pytest.param(of_kind(tarfile.FIFOTYPE), id="FIFO"),
    pytest.param(of_kind(tarfile.DIRTYPE), id="folder"),
    pytest.param(of_kind(tarfile.GNUTYPE_SPARSE), id="sparse file"),
    pytest.param(of_kind(tarfile.GNUTYPE_LONGNAME), id="GNU long name"),
    pytest.param(of_kind(tarfile.CONTTYPE), id="contiguous file"),
    pytest.param(named(f"{ID}/logs/../../../../facts.jsonl"), id="name with .."),
    pytest.param(named("/etc/cron.d/x"), id="absolute name"),
    pytest.param(named(f"{ID}/logs/./a.jsonl"), id="name with ."),
    pytest.param(named(f"{ID}/logs//a.jsonl"), id="name with an empty part"),
    pytest.param(named(f"{LOGS}/a\x1b[2J.jsonl"), id="name with a control character"),
    pytest.param(named(f"{LOGS}/a\\b.jsonl"), id="name with a backslash"),
    pytest.param(named(f"{LOGS}/a\u202eb.jsonl"), id="name that turns a line around"),
    pytest.param(named(f"{LOGS}/a.jsonl.zst"), id="sealed file"),
    pytest.param(named(f"{LOGS}/a.jsonl~1"), id="older generation"),
    pytest.param(named("/".join([ID, *"logs" * 10])), id="name of many parts"),
    pytest.param(named("facts.jsonl"), id="planted facts"),
    pytest.param(named("origin.json"), id="planted origin"),
    pytest.param(named(f"{ID}/key"), id="planted key"),
    pytest.param(named(f"{ID}/archive/claude-code/x/.folder"), id="planted archive"),
    pytest.param(named(f"{ID}/agents/nobody/x/a.jsonl"), id="unknown agent"),
    pytest.param(named(f"{ID}/agents/opencode/x/opencode.db"), id="database"),
    pytest.param(named(f"{ID}/hooks/20261115/evil.sh"), id="hook that is none"),
    pytest.param(named("other/logs/x/a.jsonl"), id="file without a head"),
    pytest.param(named(".making-1/session.json"), id="hidden folder"),
    pytest.param(lambda: pack(tar(whole(entry(TRANSCRIPT, line(2))))), id="equal names"),
    pytest.param(lambda: pack(tar(whole(entry(TRANSCRIPT.replace("-p/", "-P/"), line(2))))), id="names equal by case"),
    pytest.param(lambda: pack(tar(whole(entry(f"{TRANSCRIPT}/x", b"x")))), id="file as a folder"),
    pytest.param(lambda: pack(tar([entry(HEAD, head("../x"))])), id="head of another session"),
    pytest.param(lambda: pack(tar([entry(HEAD, head(v=2))])), id="newer version"),
    pytest.param(lambda: pack(tar([entry(HEAD, b"{" * 1000)])), id="head that is no JSON"),
    pytest.param(lambda: pack(tar([entry(HEAD, bytes(70_000))])), id="long head"),
    pytest.param(lambda: pack(tar([entry(TRANSCRIPT, line(1))])), id="no head"),
    pytest.param(lambda: pack(tar([])), id="nothing"),
    pytest.param(long_number, id="size beyond the form"),
    pytest.param(extension(b"15 size=999999\n"), id="extension that is no name"),
    pytest.param(extension(b"19 path=../../evil\n"), id="extension that leads elsewhere"),
    pytest.param(extension(b"9 path=" + b"a" * 10_000), id="long extension"),
    pytest.param(extension(b"19 path=../../evil\n", b"g"), id="global extension"),
    pytest.param(lambda: pack(tar(whole()))[:-20], id="cut"),
    pytest.param(lambda: pack(tar(whole())[:-700]), id="cut inside a file"),
    pytest.param(lambda: pack(tar(whole()) + bytes(1024) + tar([entry("evil", b"x")])), id="bytes behind the end"),
    pytest.param(lambda: pack(tar(whole())) + b"PK\x03\x04", id="another archive behind the end"),
    pytest.param(lambda: b"\x28\xb5\x2f\xfd" + os.urandom(200), id="noise"),
    pytest.param(lambda: b"PK\x03\x04", id="another kind of archive"),
]


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder, except those of the catalog, which is derived."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if not path.name.startswith("catalog") and path.relative_to(folder).parts[-2:] != ("archive", "imported")
    }


@pytest.fixture
def local(home: Path) -> Path:
    """A home of ours, and a session of this machine."""
    folder = home / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / f"{ID}.jsonl").write_bytes(line(1) + line(2))
    (home / ".agent-logger" / "archive").mkdir(parents=True)
    return home


@pytest.mark.parametrize("make", REFUSED)
def test_a_hostile_bundle_is_refused_as_a_whole(make: Make, local: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "x.tar.zst", make())
    before = snapshot(tmp_path)
    with pytest.raises(SourceError, match=r"x\.tar\.zst: (refused|not a bundle|a bundle without)"):
        run_import(local / ".agent-logger", file)
    after = snapshot(tmp_path)
    assert after == before


def test_a_bundle_with_too_many_files_is_refused(local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_FILES", 100)
    data = pack(tar(whole(*(entry(f"{LOGS}/{number}.jsonl") for number in range(99)))))
    with pytest.raises(SourceError, match="more than 100 files"):
        run_import(local / ".agent-logger", write(tmp_path / "x.tar.zst", data))


def test_a_million_entries_are_refused_early(local: Path, tmp_path: Path) -> None:
    block = entry(f"{LOGS}/a.jsonl")[0].tobuf(tarfile.USTAR_FORMAT)
    file = write(tmp_path / "x.tar.zst", pack(tar(whole())) + pack(block * 1_000) * 1_000)
    with pytest.raises(SourceError, match="two files have this name"):
        run_import(local / ".agent-logger", file)


def bombs() -> Iterator[tuple[str, bytes, str]]:
    size = 256 << 20
    inside = tar(whole()) + entry(f"{LOGS}/a.jsonl", size=size)[0].tobuf(tarfile.USTAR_FORMAT)
    yield "a file of zeros", pack(inside) + zeros(size), "packed more than 200 times"
    yield "zeros behind the end", pack(tar(whole())) + zeros(size), "packed more than 200 times"


@pytest.mark.parametrize(("data", "reason"), [pytest.param(*bomb, id=name) for name, *bomb in bombs()])
def test_a_bomb_is_refused(data: bytes, reason: str, local: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=reason):
        run_import(local / ".agent-logger", write(tmp_path / "x.tar.zst", data))
    assert list((local / ".agent-logger" / "archive" / "imported").iterdir()) == []


# ---------------------------------------------------------------- what is in the layout, and lies


LONGEST = 255  # bytes that a file system takes for a name


@pytest.mark.parametrize("length", range(LONGEST - 10, LONGEST + 1))
@pytest.mark.parametrize("suffix", [".jsonl", ".p2.jsonl", ".jsonl.live", ".bodies/x"])
def test_a_log_with_a_long_name_breaks_nothing(suffix: str, length: int, local: Path, tmp_path: Path) -> None:
    end, slash, inside = suffix.partition("/")
    name = end.rjust(length, "a") + slash + inside
    extension = f" path={LOGS}/{name}\n"
    record = f"{len(extension) + 3}{extension}".encode()
    long = [entry("x", record, type=b"x"), entry("x", PART % (b"a", b"b", ID.encode()))]
    run_import(local / ".agent-logger", write(tmp_path / "x.tar.zst", pack(tar(whole(*long)))))
    with Catalog.open() as catalog:
        summaries = catalog.sessions()
        read = [catalog.read(summary.id) for summary in summaries]
    assert ID in [session.id for session in read if session]


def test_a_path_that_is_too_long_is_the_fault_of_the_bundle(local: Path, tmp_path: Path) -> None:
    extension = f" path={'/'.join([LOGS, *['a' * 250] * 20])}\n"
    record = f"{len(extension) + 4}{extension}".encode()
    data = pack(tar(whole(entry("x", record, type=b"x"), entry("x", b"x"))))
    with pytest.raises(SourceError, match=r"refused.*: a path is longer than this system takes"):
        run_import(local / ".agent-logger", write(tmp_path / "x.tar.zst", data))


OTHER = "0f000000-1111-4111-8111-111111111111"
PART = b'{"type":"session_start","v":1,"log":"%b","part":"%b","machine":"m","mac":"v1:0","session":"%b"}\n'
LIES = {
    "the session of this machine, with more tokens": (ID, line(1, usage={"input_tokens": 9_000_000})),
    "the session of this machine, with more answers": (ID, line(1) + line(2) + line(3)),
    "another session with the answers of this one": (OTHER, line(1, OTHER) + line(2, OTHER) + line(4, OTHER)),
    "another session with the same ids and other numbers": (
        OTHER,
        line(1, OTHER, usage={"input_tokens": 9_000_000, "output_tokens": 1}),
    ),
    "a copy that claims to be older": (OTHER, line(1, OTHER).replace(b"2026-11-15", b"2020-01-01")),
    "the session of this machine, with damaged lines": (ID, line(1) + b"{\n" + line(2) + b"garbage\n"),
    "a session that claims to be this one's parent": (
        OTHER,
        line(1, OTHER).replace(b'"uuid"', b'"forkedFrom": {"sessionId": "%b"}, "uuid"' % ID.encode()),
    ),
    "a log with this session's id": (OTHER, PART % (b"a", b"b", ID.encode())),
}


@pytest.mark.parametrize(("session", "content"), LIES.values(), ids=list(LIES))
def test_a_bundle_that_lies_changes_no_number_of_this_machine(
    session: str, content: bytes, local: Path, tmp_path: Path
) -> None:
    with Catalog.open() as catalog:
        before = numbers(catalog)
        transcript = TRANSCRIPT.replace(ID, session)
        log = f"{session}/logs/logs-00000000/{ID}.jsonl"
        entries = [
            entry(f"{session}/session.json", head(session)),
            entry(transcript, content),
            entry(log, PART % (b"a", b"b", ID.encode())),
        ]
        run_import(local / ".agent-logger", write(tmp_path / "x.tar.zst", pack(tar(entries))))
        assert numbers(catalog) == before
        ids = [row.message_id for row in catalog.ledger()]
        assert len(ids) == len(set(ids))
    shutil.rmtree(local / ".claude")
    with Catalog.open() as catalog:
        assert catalog.sessions(), "the test has to see what was imported"


def numbers(catalog: Catalog) -> object:
    catalog.refresh()
    rows = [row for row in catalog.ledger() if row.session == ID]
    return catalog.summary(ID), catalog.read(ID), rows, catalog.usage("session").get(ID)
