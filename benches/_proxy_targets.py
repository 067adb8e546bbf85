"""What `proxy.py` puts between its clients and its upstream, and the log that one of them writes."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import _proxy_load
from _proxy_load import HOST, Answer, Load
from agent_logger.files.sealed import SealedFile

PYTHON = sys.executable
ROOT = Path(__file__).parents[1]
MITMPROXY = ROOT / ".components" / "mitmproxy"
LOAD = [PYTHON, _proxy_load.__file__]
RESPONSE = b'{"type":"response"'
STILL_SECONDS = 5.0  # a log that has not grown for so long has all it will get


# Processes


Process = subprocess.Popen[str]


def started(
    stack: contextlib.ExitStack,
    command: list[str],
    *,
    environment: Mapping[str, str] | None = None,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> Process:
    """A process that is ended with the stack, by its id, whatever happens."""
    inherited = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    environment = {**inherited, **(environment or {})}
    process = subprocess.Popen(command, text=True, env=environment, stdin=stdin, stdout=stdout, stderr=stderr)
    stack.callback(stop, process)
    return process


def stop(process: Process) -> None:
    family = descendants(process.pid)
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pid in family:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    children: list[str] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):  # a child is listed with the thread that started it
        with contextlib.suppress(OSError):  # that thread has ended
            children += path.read_text().split()
    return [child for name in children for child in [int(name), *descendants(int(name))]]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_bytes(pids: list[int]) -> int:
    texts = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
    return sum(int(found[1]) * 1024 for text in texts if (found := re.search(r"VmRSS:\s+(\d+)", text)))


def free_port() -> int:
    with socket.create_server((HOST, 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def wait_for(port: int, process: Process, seconds: float = 15) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
            return True
        time.sleep(0.05)
    return False


# Targets


@dataclass
class Target:
    name: str
    port: int
    prefix: str = ""  # of every path
    pids: dict[str, int] = field(default_factory=dict)  # what to charge, by part

    def url(self, path: str) -> str:
        return f"http://{HOST}:{self.port}{self.prefix}{path}"

    def client(self, role: str, load: Load) -> Answer:
        load.port, load.path = self.port, self.prefix + load.path
        command = [*LOAD, role, json.dumps(vars(load))]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
        answer = Answer(**json.loads(done.stdout))
        answer.finished_ns = {int(number): ns for number, ns in answer.finished_ns.items()}
        return answer


def start_upstream(stack: contextlib.ExitStack) -> Target:
    process = started(stack, [*LOAD, "upstream"], stdout=subprocess.PIPE)
    assert process.stdout
    return Target("direct", int(process.stdout.readline()), pids={"upstream": process.pid})


def start_bare(stack: contextlib.ExitStack, folder: Path, upstream: Target) -> Target:
    command = [*LOAD, "relay", str(upstream.port), str(folder / "frames")]
    process = started(stack, command, stdout=subprocess.PIPE)
    assert process.stdout
    return Target("bare relay", int(process.stdout.readline()), pids={"bare relay": process.pid})


NGINX = """
daemon off; user root; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log crit;
events {{ worker_connections 16000; }}
http {{
    access_log off; keepalive_requests 100000000; client_max_body_size 0;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    upstream up {{ server {host}:{upstream}; keepalive 64; keepalive_requests 100000000; }}
    server {{
        listen {host}:{port} backlog=4096;
        location / {{
            proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 600s;
        }}
    }}
}}
"""


def start_nginx(stack: contextlib.ExitStack, folder: Path, upstream: Target) -> Target | None:
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if not program:
        return skipped("nginx", "not here, and apt-get could not install it")
    (folder / "nginx").mkdir()
    port = free_port()
    text = NGINX.format(folder=folder / "nginx", host=HOST, port=port, upstream=upstream.port)
    (folder / "nginx.conf").write_text(text if os.getuid() == 0 else text.replace("user root;", ""))
    process = started(stack, [program, "-e", "stderr", "-c", str(folder / "nginx.conf")])
    if not wait_for(port, process):
        return skipped("nginx", "it did not start")
    return Target("nginx", port, pids={"nginx": descendants(process.pid)[0]})


def start_mitmdump(stack: contextlib.ExitStack, folder: Path, upstream: Target) -> Target | None:
    program = MITMPROXY / "bin" / "mitmdump"
    if not program.exists() and (reason := install_mitmproxy()):
        return skipped("mitmdump", reason)
    if not runs(str(program), "--version"):  # it names the Python of a folder that was moved
        return skipped("mitmdump", f"{program} does not run; remove {MITMPROXY}, and it is installed again")
    port = free_port()
    command = [program, "-q", "--set", f"confdir={folder / 'mitmproxy'}", "--listen-host", HOST, "-p", port]
    command += ["--mode", f"reverse:http://{HOST}:{upstream.port}", "-w", folder / "flows"]
    process = started(stack, [str(word) for word in command])
    if not wait_for(port, process, 30):
        return skipped("mitmdump", "it did not start")
    return Target("mitmdump, writing flows", port, pids={"mitmdump": process.pid})


def install_mitmproxy() -> str:
    """Into an environment of its own, with the newest Python there is. Answers why not."""
    print(f"mitmproxy: installing into {MITMPROXY.relative_to(ROOT)}", file=sys.stderr)
    usable = [name for name in ("python3.14", "python3.13", "python3.12") if runs(name, "-c", "")]
    try:
        subprocess.run([[*usable, PYTHON][0], "-m", "venv", str(MITMPROXY)], check=True, capture_output=True)
        pip = [
            str(MITMPROXY / "bin" / "pip"),
            "--disable-pip-version-check",
            "--quiet",
            "install",
            "mitmproxy",
        ]
        subprocess.run(pip, check=True, capture_output=True, timeout=120)
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(MITMPROXY, ignore_errors=True)
        return f"pip could not install it: {error}"
    return ""


def runs(*command: str) -> bool:
    """Whether a program can be started. Not all that is called Python and found on the path is more than a signpost to
    one."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    return False


def start_ours(stack: contextlib.ExitStack, log_dir: Path, allow: str, home: Path | None = None) -> tuple[int, int]:
    """The proxy as its users start it: its port and its process id."""
    home = home or log_dir.with_name(f"{log_dir.name}-home")
    command = [str(Path(PYTHON).with_name("agent-logger")), "proxy", "--port", "0", "--log-dir", str(log_dir)]
    process = started(
        stack,
        [*command, "--allow-upstream", allow],
        environment={"AGENT_LOGGER_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr
    said = []
    for line in process.stderr:
        said.append(line.strip())
        if found := re.search(rf"http://{re.escape(HOST)}:(\d+)", line):
            threading.Thread(target=process.stderr.read, daemon=True).start()  # lest it fill up
            return int(found[1]), process.pid
    raise RuntimeError(f"agent-logger proxy did not start: {' '.join(said)[-300:]}")


def our_target(stack: contextlib.ExitStack, log_dir: Path, upstream: Target) -> Target | None:
    try:
        port, pid = start_ours(stack, log_dir, f"http://{HOST}:{upstream.port}")
    except RuntimeError as error:
        return skipped("ours", str(error))
    target = Target("ours", port, f"/anthropic/{HOST}:{upstream.port}", {"relay": pid})
    until = time.monotonic() + 5
    while "recorder" not in target.pids and time.monotonic() < until:
        time.sleep(0.1)
        family = [pid, *descendants(pid)]
        for one in family:
            if "recorder" in Path(f"/proc/{one}/cmdline").read_text():
                target.pids["recorder"] = one
    return target


def skipped(name: str, reason: str) -> Target | None:
    print(f"{name}: skipped, {reason}", file=sys.stderr)
    return None


# The log, read as it grows


class Log:
    """Counts the calls in a log folder while it is written, and notes when marked ones appear.

    Looks at the files alone: what the proxy says of itself is not asked. It takes a quarter of a core at most, until
    somebody waits for it.
    """

    def __init__(self, folder: Path, *, marks: bool = False) -> None:
        self.folder, self._marks = folder, marks
        self._hurry = False
        self.seen_ns: dict[int, int] = {}
        self._files: dict[str, tuple[int, int]] = {}  # offset read to, responses before it
        self._looks = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow)

    @property
    def calls(self) -> int:
        return sum(count for _, count in list(self._files.values()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            self.look()
            self._looks += 1
            self._ended.wait(0.01 if self._hurry else max(0.01, 3 * (time.monotonic() - began)))

    def look(self) -> None:
        for path in self._paths():
            with contextlib.suppress(FileNotFoundError):  # sealed meanwhile
                if path.suffix == ".zst":
                    self._read_sealed(path)
                else:
                    self._read(path)

    def _paths(self) -> Iterator[Path]:
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from (Path(folder, name) for name in names if name.endswith((".jsonl", ".jsonl.zst")))

    def _read(self, path: Path) -> None:
        offset, count = self._files.get(str(path), (0, 0))
        if path.stat().st_size <= offset:
            return
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
        end = data.rfind(b"\n") + 1
        if self._marks:
            self._note(data, end)
        self._files[str(path)] = offset + end, count + responses_in(data, end)

    def _note(self, data: bytes, end: int) -> None:
        now = time.monotonic_ns()
        at = data.find(b"bench-done-", 0, end)
        while at >= 0:
            stop = data.index(b"-", at + 11)
            self.seen_ns.setdefault(int(data[at + 11 : stop]), now)
            at = data.find(b"bench-done-", stop, end)

    def _read_sealed(self, path: Path) -> None:
        name = str(path.with_suffix(""))
        offset, count = self._files.get(name, (0, 0))
        if offset == -1 or Path(name).exists():
            return
        with SealedFile(path) as sealed:
            text = sealed.read(offset, sealed.length - offset)  # mostly nothing: the plain part was read to its end
        if self._marks:
            self._note(text, len(text))
        self._files[name] = -1, count + responses_in(text, len(text))

    def wait(self, calls: int, most_seconds: float) -> float:
        """Seconds until it held so many; or until it had the last, if it lacks some and stands still."""
        began = grown = time.monotonic()
        held, looks, self._hurry = self.calls, self._looks, True
        while held < calls and time.monotonic() < began + most_seconds:
            if time.monotonic() > grown + STILL_SECONDS and self._looks > looks + 1:  # one look since, from its start
                break
            time.sleep(0.01)
            if self.calls > held:
                held, looks, grown = self.calls, self._looks, time.monotonic()
        self._hurry = False
        return grown - began

    def lags_ms(self, answer: Answer) -> list[float]:
        """From the client having its answer to the log having it, of every call."""
        missing = time.monotonic_ns()
        lags = [self.seen_ns.get(number, missing) - ns for number, ns in answer.finished_ns.items()]
        return sorted(max(0, lag) / 1e6 for lag in lags) or [float("nan")]


def responses_in(lines: bytes, end: int) -> int:
    """Count the lines that begin as a response does. Newlines are found many times as fast as these beginnings."""
    count = at = 0
    while at < end:
        count += lines.startswith(RESPONSE, at)
        at = (lines.find(b"\n", at) + 1) or end
    return count


def calls_in(folder: Path) -> int:
    """Count the calls in a log folder that nobody writes to any more."""
    log = Log(folder)
    log.look()
    return log.calls
