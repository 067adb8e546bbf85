"""Masks replace what the documentation promises, the same way every time, in texts, JSON in JSON, URLs and streams."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.exports.masks.machine import git_authors, this_machine
from agent_logger.exports.masks.mask import KINDS, Machine, Pseudonyms, SessionMask
from agent_logger.exports.masks.records import masked_stream, readable_record
from agent_logger.model import records
from agent_logger.model.records import Chunk, Response, Timing

KEY = bytes(range(32))
MACHINE = Machine(
    ("/srv/work/rocket engine", "/root", "/srv/people/ann", r"D:\Work\Rocket Engine"),
    ("ann", "Ann Lee", "box-17", "Zed O'Neil", "José Müller", "李小龙"),
)


def mask(*kinds: str) -> SessionMask:
    return SessionMask(frozenset(kinds or KINDS), Pseudonyms(KEY), MACHINE)


WSL = r"\\wsl.localhost\Ubuntu\home\dora\rocket"
WITH_BACKSLASHES = r"C:\Users\Dora\Documents\rocket.txt"
PATHS = [
    "/home/bob/shop/secret-plan.py",
    "/Users/Carol/Library/Application Support/Rocket/x.db",
    WITH_BACKSLASHES,
    r"C:\\Users\\Dora\\Documents\\rocket.txt",
    "c:/Users/Dora/rocket",
    "/srv/work/rocket engine/nozzle.c",
    r"/srv/work/rocket\ engine/nozzle.c",
    "file:///srv/work/rocket%20engine/nozzle.c",
    "/root/.ssh/rocket",
    "~/rocket/engine.c",
    "~dora/rocket",
    "%2Fhome%2Fbob%2Frocket",
    r"\/home\/bob\/rocket",
    "-home-bob-rocket",
    "-srv-work-rocket-engine",
    # Spelled for JSON, URLs and HTML.
    "%252Fhome%252Fbob%252Frocket",
    r"\u002fhome\u002fbob\u002Frocket",
    "&#x2F;home&#x2F;bob&#47;rocket",
    "file:///c%3A/Users/dora/rocket",
    "file:///C%3A%5CUsers%5Cdora%5Crocket",
    "C%3A%2FUsers%2Fdora%2Frocket",
    "/mnt/c/Users/dora/rocket",
    WSL,
    "//wsl$/Ubuntu/home/dora/rocket",
    # The working folder of a session on Windows.
    r"D:\Work\Rocket Engine\nozzle.c",
    r"D:\\Work\\Rocket Engine\\secret plan\\nozzle.c",
    "d:/work/rocket engine/nozzle.c",
    "D--Work-Rocket-Engine",
    # Names with characters that end a path elsewhere.
    "/home/bob/[id]/secret.tsx",
    "/home/bob/[...rocket].tsx",
    "/home/bob/(rocket)/secret.tsx",
    "/home/bob/bob's/rocket",
    "/home/bob/a&b/rocket",
    "/home/bob/a=b/rocket",
    "/home/bob/a#b/rocket",
    "/home/bob/a,b/rocket",
    "/home/bob/$x/rocket",
    "/home/bob/${x}/rocket",
    "/home/bob//rocket",
    "/home//bob/rocket",
]
SECRET_WORDS = ("bob", "carol", "dora", "rocket", "engine", "nozzle", "secret", "library", "documents", "ssh", "srv")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("around", ["{}", "see {} now", '"{}"', r"a\n{}\nb", "({}):", "cd {}; ls"])
def test_a_path_below_a_home_or_the_working_folder_is_replaced(path: str, around: str) -> None:
    if re.search(r"(?<!\\)\\[A-Za-z]", path) and "\\u" not in path and "\\n" in around:
        pytest.skip("a backslash and n are a line end, or a folder whose name begins with n")
    masked = mask("paths").text(around.format(path))
    assert [word for word in SECRET_WORDS if word in masked.lower()] == []
    before, _, after = around.partition("{}")
    assert masked.startswith(before) and masked.endswith(after)


@pytest.mark.parametrize(
    "text", ["/usr/bin/python3", "/tmp/x", "/home", "1/2", "src/home.py", "~", "a ~ b", "-home", "http://x.org/a"]
)
def test_other_paths_stay(text: str) -> None:
    assert mask().text(text) == text


def test_pseudonyms_are_stable_and_keep_the_shape_of_paths() -> None:
    first = mask().text("/home/bob/shop/a.py and /home/bob/shop/b.py")
    one, _, two = first.partition(" and ")
    assert one.rsplit("/", 1)[0] == two.rsplit("/", 1)[0]
    assert one.endswith(".py") and one != two
    assert mask().text("/home/bob/shop/a.py") == one
    assert SessionMask(frozenset(KINDS), Pseudonyms(bytes(32)), MACHINE).text("/home/bob/shop/a.py") != one


@pytest.mark.parametrize(
    "text",
    [
        *("ann", "Ann", "ANN said", "hello, ann!", r"a\nann", "%20ann", "ann_laptop", "x-ann-y", "(ann)", "Ann Lee"),
        *("Ann  Lee", r"Ann\nLee", "box-17", "BOX-17.example.org", "Zed O'Neil"),
        *("Ann_Lee", "ann.lee", "Ann+Lee", "Ann%20Lee", "Ann%2520Lee", r"Ann\u0020Lee", "Ann&nbsp;Lee", "box%2D17"),
        *(r"Zed O\'Neil", r"Zed O\u0027Neil", "Zed O&#39;Neil", "Zed%20O%27Neil"),
    ],
)
def test_a_name_is_replaced_where_no_letter_stands_beside_it(text: str) -> None:
    masked = mask("names").text(text).lower()
    assert not {"ann", "lee", "box-17", "neil"} & set(masked.replace("_", " ").replace("-", " - ").split())
    assert "name-" in masked


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        (
            "José Müller",
            ["JOSÉ MÜLLER", "Jose\u0301 Mu\u0308ller", r"Jos\u00e9 M\u00FCller", "Jos%C3%A9%20M%c3%bcller"],
        ),
        ("李小龙", [r"\u674e\u5c0f\u9f99", "%E6%9D%8E%E5%B0%8F%E9%BE%99", "&#26446;&#x5c0f;&#40857;"]),
        ("Ann Lee", ["Ann%20Lee", r"ann\u0020lee", "ANN\nLEE", "ann.lee"]),
    ],
)
def test_a_name_has_one_pseudonym_however_it_is_spelled(name: str, spelled: list[str]) -> None:
    assert {mask("names").text(text) for text in spelled} == {mask("names").text(name)}


@pytest.mark.parametrize(
    "text",
    [
        "ann%40corp.example",
        r"ann\u0040corp.example",
        "ann&#64;corp.example",
        "jösé@corp.müller.example",
        "a@corp.example.移动",
    ],
)
def test_an_address_is_replaced_however_it_is_spelled(text: str) -> None:
    assert "corp" not in mask("emails").text(text)


@pytest.mark.parametrize("text", ["annual", "planned", "Hannah", "box-171", "leeway"])
def test_a_longer_word_is_no_name(text: str) -> None:
    assert mask("names").text(text) == text


def test_e_mail_addresses_are_replaced() -> None:
    masked = mask("emails").text("write to ann.lee+x@mail.example.org, or a@b.io.")
    assert "example" not in masked and "b.io" not in masked
    assert masked.count("@masked.invalid") == 2


def test_only_the_chosen_kinds_are_replaced() -> None:
    text = "ann wrote a@b.org in /home/bob/x"
    assert mask("paths").text(text).startswith("ann wrote a@b.org in /home/p-")
    assert "/home/bob/x" in mask("names", "emails").text(text)


@given(st.text(alphabet="ab/\\~:CUsers@.- \n%2Fhome", max_size=60))
def test_a_masked_text_has_nothing_left_to_mask(text: str) -> None:
    masked = mask().text(text)
    assert mask().text(masked) == masked


def test_a_masked_line_stays_json_and_keeps_all_other_bytes() -> None:
    line = b'{"type":"user", "n":1.10, "big":123456789012345678901234567890, "t":"in /home/bob\\n\\u0061nn",'
    line += b' "nested":"{\\"p\\":\\"/home/bob/x\\"}"}'
    masked = mask().line(line)
    assert b'"n":1.10, "big":123456789012345678901234567890' in masked
    read = json.loads(masked)
    assert read["type"] == "user"
    assert "ann" not in read["t"] and "bob" not in json.loads(read["nested"])["p"]


def test_a_word_of_the_formats_stays_where_it_stands_alone() -> None:
    named = SessionMask(frozenset(KINDS), Pseudonyms(KEY), Machine((), ("user",)))
    assert named.line(b'{"role":"user","text":"the user said"}').startswith(b'{"role":"user","text":"the name-')


def test_a_text_that_streams_in_pieces_is_masked_as_a_whole() -> None:
    pieces = ["in /ho", "me/b", "ob/x, by a", "nn"]
    events = [
        f'data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{piece}"}}}}\n\n'
        for piece in pieces
    ]
    stream = "".join(events)
    chunks = [Chunk(delta_ms=1.0, raw=stream[at : at + 50]) for at in range(0, len(stream), 50)]
    response = Response(
        ts="2026-11-15T07:12:57.766Z",
        seq=1,
        status=200,
        headers={},
        timing=Timing(ttfb_ms=1.0, total_ms=2.0),
        chunks=chunks,
    )
    masked = records.decode(masked_stream(records.encode(response), mask()), "wire")
    assert isinstance(masked, Response) and masked.chunks
    whole = "".join(chunk.raw or "" for chunk in masked.chunks)
    texts = "".join(json.loads(event[6:])["delta"]["text"] for event in whole.split("\n\n") if event)
    assert texts == mask().text("".join(pieces))
    assert "bob" not in texts and "ann" not in texts.split()


def test_a_compressed_body_is_decoded_or_left_out() -> None:
    import base64
    import gzip

    packed = base64.b64encode(gzip.compress(b"in /home/bob")).decode()
    timing = Timing(ttfb_ms=1.0, total_ms=2.0)
    response = Response(
        ts="",
        seq=1,
        status=200,
        headers={"Content-Encoding": "gzip"},
        timing=timing,
        body=packed,
        body_encoding="base64",
    )
    decoded = readable_record(response)
    assert isinstance(decoded, Response) and (decoded.body, decoded.body_encoding) == ("in /home/bob", None)
    unreadable = readable_record(
        response.__class__(
            ts="",
            seq=1,
            status=200,
            headers={},
            timing=timing,
            body=base64.b64encode(b"\xff\xfe").decode(),
            body_encoding="base64",
        )
    )
    assert isinstance(unreadable, Response) and unreadable.body == ""


def test_the_authors_of_a_repository_are_its_names(tmp_path: Path) -> None:
    identity = ["-c", "user.name=Grace Hopper", "-c", "user.email=g@navy.example"]
    for arguments in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)
    assert git_authors(str(tmp_path)) == ["Grace Hopper"]
    assert git_authors(str(tmp_path / "none")) == []


def test_this_machine_has_a_login_and_the_words_of_the_settings() -> None:
    machine = this_machine(["Acme"])
    assert "Acme" in machine.names and len(machine.names) > 1
    assert all(home.startswith("/") and len(home) > 1 for home in machine.homes)


@pytest.mark.parametrize("folder", ["/" + "a" * 300, "/a\0b", "relative", "/" + "b/" * 3000])
def test_a_folder_that_cannot_exist_has_no_authors(folder: str) -> None:
    assert git_authors(folder) == []
