"""A store with the protocol of S3, for the tests of one process: SeaweedFS on free ports of loopback, with its data in
a temporary folder. It takes seconds to start, so the tests share one, and each gets a prefix with nothing below it."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.clients import ROOT
from tests.ports import free_port

BUCKET = "agent-logger"
KEY_ID = "FAKEKEYID0000000"
KEY = "fake/secret/key/of/the/tests"
MOST_SECONDS = 60  # until it answers
# The protocol of S3 is one of its doors; each other part needs two ports, the second for its own traffic.
PARTS = ("master", "volume", "filer", "s3")
OPTIONS = (
    *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-s3.port.iceberg=0", "-s3.port.lance=0"),
    *("-master.telemetry=false", "-master.raftHashicorp"),  # the latter restarts in 3 s, the default in 20
    "-s3.autoCreateBucket=false",  # as everywhere else
    *("-volume.preStopSeconds=0", "-volume.max=100", "-master.volumeSizeLimitMB=64"),
)


def find_weed() -> Path | None:
    """Return the program of SeaweedFS."""
    inside = ROOT / ".venv/bin/weed"
    program = inside if inside.exists() else shutil.which("weed")
    return Path(program) if program else None


class SeaweedServer:
    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._ports = {part: (free_port(), free_port()) for part in PARTS}
        self._numbers = itertools.count()
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "data").mkdir()

    @property
    def port(self) -> int:
        return self._ports["s3"][0]

    def new_location(self) -> str:
        """Return the URL of a prefix with nothing below it."""
        return f"s3://{BUCKET}/{next(self._numbers)}"

    def variables(self, port: int | None = None) -> dict[str, str]:
        """Return the environment of a client."""
        return {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
        }

    def start(self) -> None:
        ports = [
            option
            for part, (port, own) in self._ports.items()
            for option in (f"-{part}.port={port}", f"-{part}.port.grpc={own}")
        ]
        sockets = [f"-{part}.localSocket={self._folder / part}.sock" for part in ("filer", "s3")]
        command = [str(self._program), "-logtostderr=true", "server", f"-dir={self._folder}/data"]
        environment = {
            "HOME": str(self._folder),
            "PATH": os.defpath,
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": KEY,
        }
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *OPTIONS, *ports, *sockets],
                env=environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._wait_until_ready(self._process)

    def kill(self) -> None:
        """End it at once, by SIGKILL."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for part, (_, own) in self._ports.items():  # which it puts nowhere else
            with suppress(FileNotFoundError):
                os.unlink(f"/tmp/seaweedfs-{part}-grpc-{own}.sock")

    def suspend(self) -> None:
        """Let it answer nothing more, until `resume`."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + MOST_SECONDS
        while not self._has_bucket():
            log = (self._folder / "log").read_text()
            assert process.poll() is None, log
            assert time.monotonic() < until, log
            time.sleep(0.05)

    def _has_bucket(self) -> bool:
        """Create the bucket, which is a folder of the filer, if that runs already, and store something."""
        bucket = f"http://127.0.0.1:{self._ports['filer'][0]}/buckets/{BUCKET}/"
        try:
            for url, data in ((bucket, b""), (f"{bucket}.ready", b"yes")):
                urllib.request.urlopen(urllib.request.Request(url, data, method="PUT"), timeout=10).close()
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=10).close()
        except OSError:
            return False
        return True


@contextmanager
def running_store() -> Iterator[SeaweedServer]:
    program = find_weed()
    assert program, 'mark the test with pytest.mark.needs("seaweedfs")'
    folder = Path(tempfile.mkdtemp(prefix="seaweedfs-"))
    server = SeaweedServer(program, folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)
