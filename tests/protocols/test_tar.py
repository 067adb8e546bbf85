"""Archives of regular files: read back as they were written, by us and by others; anything else is an error."""

import io
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.protocols.tar import TarError, header, members, padding

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=300).filter(
    lambda name: not name.endswith("/")
)
FILES = st.lists(st.tuples(NAMES, st.binary(max_size=2000)), max_size=5)


def archive(files: list[tuple[str, bytes]]) -> bytes:
    return b"".join(header(name, len(data), 1_800_000_000) + data + padding(len(data)) for name, data in files)


def read(data: bytes) -> list[tuple[str, bytes]]:
    return [(member.name, b"".join(member.chunks)) for member in members(io.BytesIO(data).read)]


@given(FILES)
def test_files_are_read_as_they_were_written(files: list[tuple[str, bytes]]) -> None:
    data = archive(files)
    assert read(data) == files
    assert read(data + bytes(1024)) == files
    assert data == archive(files)


@given(FILES.filter(bool))
def test_other_programs_read_the_same_files(files: list[tuple[str, bytes]]) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive(files))) as other:
        assert [(entry.name, entry.size, entry.mtime) for entry in other] == [
            (name, len(data), 1_800_000_000) for name, data in files
        ]


@given(FILES.filter(bool), st.data())
def test_a_cut_archive_is_an_error_or_has_fewer_files(files: list[tuple[str, bytes]], data: st.DataObject) -> None:
    whole = archive(files)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with suppress(TarError):
        assert read(cut) == files[: len(read(cut))]


@given(st.binary(max_size=3000), FILES.filter(bool), st.data())
def test_any_bytes_are_an_archive_or_an_error(
    noise: bytes, files: list[tuple[str, bytes]], data: st.DataObject
) -> None:
    whole = archive(files)
    at = data.draw(st.integers(0, len(whole)))
    for damaged in (noise, whole[:at] + noise + whole[at:]):
        with suppress(TarError):
            read(damaged)


def test_a_member_must_be_read_before_the_next() -> None:
    with pytest.raises(ValueError, match="not read to its end"):
        list(members(io.BytesIO(archive([("a", b"x"), ("b", b"y")])).read))
