"""The suite notices when a safeguard is taken out: each line below, changed so, turns a named test red."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import agent_logger

ROOT = Path(__file__).parent.parent
KILL = "tests/journal/test_kill.py"
FAULTS = "tests/journal/test_faults.py"
POWER = "tests/journal/test_power_cut.py"
CERTIFICATES = "tests/proxy/forward/test_certificates.py"


class Mutant(NamedTuple):
    name: str
    file: str  # in src
    old: str  # is there exactly once, or this test fails: then the row has to follow the code
    new: str
    test: str


MUTANTS = [
    Mutant(
        "no sync",
        "agent_logger/platform.py",
        "        os.fdatasync(fd)\n",
        "        pass\n",
        f"{POWER}::test_a_power_cut_that_preserves_file_names_loses_no_synced_record[_dropped]",
    ),
    Mutant(
        "no newline first",
        "agent_logger/files/append.py",
        "self._newline_first = torn > 0",
        "self._newline_first = False",
        f"{KILL}::test_a_torn_last_line_does_not_damage_later_records[within its head]",
    ),
    Mutant(
        "no recovery of live files",
        "agent_logger/journal/log_writer.py",
        "            self._recover(part)\n",
        "            pass\n",
        f"{KILL}::test_an_interrupted_exchange_is_recovered_once_with_every_acknowledged_message",
    ),
    Mutant(
        "no going on after a short write",
        "agent_logger/platform.py",
        "            view = view[os.write(self.fd, view) :]",
        "            os.write(self.fd, view)\n            return",
        f"{FAULTS}::test_short_writes_are_truncated_and_counted",
    ),
    Mutant(
        "no taking back of half a line",
        "agent_logger/files/append.py",
        "os.ftruncate(self._held.fd, self.size)",
        "pass",
        f"{FAULTS}::test_short_writes_are_truncated_and_counted",
    ),
    Mutant(
        "no new part after a failed sync",
        "agent_logger/journal/log_writer.py",
        'self._skipped = SkippedParts(self.part.file.number, "sync_failed")',
        "pass",
        f"{FAULTS}::test_a_failed_sync_starts_a_new_part_and_leaves_the_old_part_unchanged",
    ),
    Mutant(
        "no modes but the umask's",
        "agent_logger/platform.py",
        "os.fchmod(held.fd, FILE_MODE)",
        "pass",
        f"{FAULTS}::test_files_and_folders_are_private_under_any_umask[511]",
    ),
    Mutant(
        "no credentials by exact value",
        "agent_logger/model/redaction/redactor.py",
        "for credential in self._credentials:",
        "for credential in ():",
        "tests/model/redaction/test_redactor.py::test_a_short_credential_is_removed_as_a_separate_word",
    ),
    Mutant(
        "no check of the Host",
        "agent_logger/proxy/relay/admission.py",
        "if hosts[0].lower() not in self._hosts:",
        "if False:",
        "tests/proxy/relay/test_admission.py::test_another_host_header_gets_status_421_on_every_route",
    ),
    Mutant(
        "no check of the address",
        "agent_logger/proxy/relay/route.py",
        "if route.any_address or is_public(address)]",
        "]",
        "tests/proxy/relay/test_route.py::test_a_known_name_that_resolves_to_a_private_address_is_not_connected_to",
    ),
    Mutant(
        "no excluded addresses",
        "agent_logger/proxy/forward/issuing.py",
        "[x509.DNSName(name) for name in subtrees], _ADDRESSES)",
        "[x509.DNSName(name) for name in subtrees], None)",
        f"{CERTIFICATES}::test_the_certificate_has_what_strict_verifiers_ask_for",
    ),
    Mutant(
        "no distrust of a key that others could read",
        "agent_logger/proxy/forward/ca_files.py",
        "if is_secret and mode & 0o077:",
        "if False:",
        f"{CERTIFICATES}::test_a_key_that_others_could_read_is_replaced",
    ),
    Mutant(
        "no refusal of other hosts",
        "agent_logger/proxy/forward/certificates.py",
        "if not are_permitted((host,), certificate.subtrees):",
        "if False:",
        f"{CERTIFICATES}::test_no_certificate_is_issued_for_another_host",
    ),
]


def _run(source: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests against a copy of `src`."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    env = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    source = tmp_path / "src"
    shutil.copytree(Path(agent_logger.__file__).parent, source / "agent_logger")
    return source


@pytest.mark.needs("strace")
@pytest.mark.parametrize("mutant", [pytest.param(mutant, id=mutant.name) for mutant in MUTANTS])
def test_the_test_suite_detects_each_mutant(mutant: Mutant, copy: Path) -> None:
    path = copy / mutant.file
    text = path.read_text()
    assert text.count(mutant.old) == 1
    path.write_text(text.replace(mutant.old, mutant.new))
    ran = _run(copy, mutant.test)
    assert ran.returncode == 1, ran.stdout + ran.stderr  # 1: tests failed; more: they could not be run
    assert " failed" in ran.stdout


@pytest.mark.needs("strace")
def test_the_same_tests_pass_on_an_unchanged_copy(copy: Path) -> None:
    where = "import agent_logger; print(agent_logger.__file__)"
    env = {**os.environ, "PYTHONPATH": str(copy)}
    found = subprocess.run([sys.executable, "-c", where], env=env, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(copy))
    ran = _run(copy, *sorted({mutant.test for mutant in MUTANTS}))
    assert ran.returncode == 0, ran.stdout + ran.stderr
