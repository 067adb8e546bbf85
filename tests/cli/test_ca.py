"""`agent-logger ca`."""

import json
import os
import subprocess
import time
from pathlib import Path

import msgspec
import pytest
from tests.commands import run_command

from agent_logger.proxy.forward.ca_report import CaReport
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts, default_hosts


@pytest.fixture
def ca_folder(home: Path) -> Path:
    return home / ".agent-logger" / "ca"


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_command(list(arguments), os.environ)


def report(*arguments: str) -> CaReport:
    done = run("ca", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=CaReport)


def test_the_certificate_is_made_and_shown(ca_folder: Path) -> None:
    done = run("ca")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert str(ca_folder / "ca.pem") in done.stdout and str(ca_folder / "ca-key.pem") in done.stdout
    assert all(f"\n  {host}\n" in done.stdout for host in default_hosts())
    again = run("ca")
    assert again.stdout == done.stdout


def test_the_fingerprint_and_dates_are_those_of_the_file(ca_folder: Path) -> None:
    current = report().current
    shown = subprocess.run(
        ["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", current.certificate],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip().endswith(f"={current.fingerprint}")
    assert current.valid_from < time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) < current.expires


def test_a_host_of_the_settings_is_added_to_the_certificate_with_the_same_key(ca_folder: Path) -> None:
    before = report()
    key = (ca_folder / "ca-key.pem").read_bytes()
    after = report("--record-hosts", "llm.example.com", "--record-hosts", "*.bücher.example")
    assert set(after.hosts) == {*before.hosts, "llm.example.com", "*.xn--bcher-kva.example"}
    assert set(after.current.permits) == {*before.current.permits, "llm.example.com", "xn--bcher-kva.example"}
    assert after.current.name == before.current.name
    assert (ca_folder / "ca-key.pem").read_bytes() == key


def test_hosts_that_are_no_longer_recorded_are_named_until_a_renewal() -> None:
    report("--record-hosts", "llm.example.com")
    assert "--renew removes them:\n  llm.example.com\n" in run("ca").stdout
    run("ca", "--renew")
    assert "llm.example.com" not in run("ca").stdout


def test_a_renewal_makes_a_new_key_and_names_the_old_one() -> None:
    before = report()
    after = report("--renew")
    assert after.previous is not None and after.previous_until is not None
    assert after.previous.fingerprint == before.current.fingerprint != after.current.fingerprint
    text = run("ca").stdout
    assert f"{before.current.name}, replaced; its key signs until {after.previous_until}" in text


def test_a_running_proxy_serves_a_host_that_the_command_added(ca_folder: Path) -> None:
    running = Authority(ca_folder.parent, RecordedHosts.parse(["api.example.com", "llm.example.com"]))
    running.certificates()
    report("--record-hosts", "api.example.org")
    assert running.opens("llm.example.com")
    assert running.certificates() == ((ca_folder / "ca.pem").read_bytes(),)


def test_an_address_is_refused_with_the_setting_for_addresses() -> None:
    done = run("ca", "--record-hosts", "10.0.0.1")
    assert done.returncode == 2
    assert "--allow-upstream" in done.stderr and done.stderr.count("\n") == 1


def test_a_damaged_key_is_named_and_made_again(ca_folder: Path) -> None:
    run("ca")
    (ca_folder / "ca-key.pem").write_bytes(b"damaged")
    done = run("ca")
    assert done.returncode == 0
    assert done.stderr == f"agent-logger: {ca_folder / 'ca-key.pem'} is damaged; a new key was made\n"
    assert run("ca").stderr == ""


def test_a_folder_that_cannot_be_made_is_one_line(ca_folder: Path) -> None:
    ca_folder.parent.mkdir(mode=0o700)
    ca_folder.write_text("a file")
    done = run("ca")
    assert done.returncode == 1
    assert str(ca_folder) in done.stderr and done.stderr.count("\n") == 1


def test_the_key_is_never_archived_exported_or_shown(home: Path, ca_folder: Path, tmp_path: Path) -> None:
    report()
    secret = (ca_folder / "ca-key.pem").read_text().splitlines()[1]
    chats = home / ".claude" / "projects" / "-work"
    chats.mkdir(parents=True)
    (chats / "stolen.jsonl").symlink_to(ca_folder / "ca-key.pem")
    (chats / "folder").symlink_to(ca_folder)
    (home / ".codex").mkdir()
    (home / ".codex" / "sessions").symlink_to(ca_folder)
    session = "7b320356-a178-418e-a692-69ce6e1e657c"
    key = (ca_folder / "ca-key.pem").read_text()
    lines = [
        {"type": "user", "sessionId": session, "uuid": "u1", "message": {"role": "user", "content": f"look: {key}"}},
    ]
    (chats / f"{session}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    printed = [
        run(*arguments)
        for arguments in (
            ["archive"],
            ["ls"],
            ["du"],
            ["verify", str(home / ".agent-logger")],
            ["show", session],
            ["export", session, "--to", "json"],
            ["export", session, "--to", "html"],
            ["ca", "--json"],
            ["config"],
            ["doctor"],
        )
    ]
    assert "look: " in "".join(done.stdout for done in printed)
    assert not any(secret in done.stdout + done.stderr for done in printed)
    copied = [path for path in (home / ".agent-logger").rglob("*") if path.is_file() and path.parent != ca_folder]
    # The archive holds the agent's own file word for word.
    assert {path.name for path in copied if secret.encode() in path.read_bytes()} <= {f"{session}.jsonl"}
    assert not any(path.name in ("ca-key.pem", "stolen.jsonl") for path in copied)
