"""A heavy day of the proxy: how fast it is written, how small and how fast it is sealed.

    ./dev bench day            a tenth of a day: 1,000 calls of 480 KB on average
    ./dev bench day --calls 10000

Agents send their whole history with every request, so a session's calls grow. Beside our sealing (which also
reads back, compares and syncs) the same bytes go through gzip and through one zstd stream, in the same run.
"""

import gzip
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from _figures import Figures, arguments_parser
from agent_logger.files.sealed import zstd
from agent_logger.journal.journal import Journal
from agent_logger.journal.seal import seal_due
from agent_logger.journal.sync import UPKEEP
from agent_logger.model.records import Chunk, Request, Response, Timing, WireStart

CALLS_PER_SESSION = 60
MEAN_BYTES = 480_000
MB = 1e6


def words(chance: random.Random) -> list[str]:
    letters = "etaoinshrdlucmfw"
    return ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(4000)]


def session(chance: random.Random, vocabulary: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Bodies of a session's requests, growing from a fifteenth of the mean to almost twice it; and the answers."""
    step = 2 * MEAN_BYTES // (CALLS_PER_SESSION + 1)
    messages: list[dict[str, object]] = []
    for _ in range(CALLS_PER_SESSION):
        text = " ".join(chance.choices(vocabulary, k=step // 8))
        messages.append({"role": "user", "content": [{"type": "tool_result", "content": text}]})
        answer = " ".join(chance.choices(vocabulary, k=120))
        yield json.dumps({"model": "claude-sonnet-4-5", "messages": messages}), answer.split(" ")
        messages.append({"role": "assistant", "content": answer})


def write_day(folder: Path, calls: int) -> int:
    chance = random.Random(7)
    vocabulary = words(chance)
    size = 0
    for number in range(calls // CALLS_PER_SESSION):
        journal = Journal(folder, f"20261115-0845{number:02}-a7f3", "wire")
        journal.append(WireStart(ts="t", provider="anthropic", upstream="api.anthropic.com"))
        for seq, (body, answer) in enumerate(session(chance, vocabulary), 1):
            journal.append(request(seq, body))
            journal.append(response(seq, answer))
            size += len(body)
        journal.close()
        assert journal.lost == 0
    UPKEEP.finish()  # the sync that follows every write within a second is not the sealing's
    return size


def request(seq: int, body: str) -> Request:
    return Request(
        ts="2026-11-15T08:45:32.123Z",
        seq=seq,
        method="POST",
        path="/v1/messages?beta=true",
        headers={"Host": "api.anthropic.com", "Content-Type": "application/json"},
        body=body,
        fingerprint=f"v1:{seq:064x}",
        bytes=len(body),
    )


def response(seq: int, answer: list[str]) -> Response:
    return Response(
        ts="2026-11-15T08:45:35.456Z",
        seq=seq,
        status=200,
        headers={"content-type": "text/event-stream"},
        timing=Timing(ttfb_ms=812.5, total_ms=3210.25),
        chunks=[
            Chunk(
                ts="2026-11-15T08:45:33.000Z",
                delta_ms=21.5,
                raw=f'event: delta\ndata: {{"text":"{word}"}}\n\n',
            )
            for word in answer
        ],
        complete=True,
    )


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def gzipped(files: list[Path]) -> int:
    return sum(len(gzip.compress(path.read_bytes(), 6)) for path in files)


def one_stream(files: list[Path]) -> int:
    return sum(len(zstd.compress(path.read_bytes(), 3)) for path in files)


def main() -> int:
    parser = arguments_parser(__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--folder", help="where to write; a temporary folder otherwise")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="agent-logger-day-", dir=arguments.folder))
    try:
        return run(folder, arguments.calls).finish(write=arguments.write)
    finally:
        shutil.rmtree(folder)


def run(folder: Path, calls: int) -> Figures:
    seconds = timed(lambda: write_day(folder, calls))
    files = sorted(folder.glob("*.jsonl"))
    plain = sum(path.stat().st_size for path in files)
    print(f"{calls:,} calls, {plain / MB:,.0f} MB in {len(files)} parts, made and written in {seconds:.1f} s")
    print(f"{'':24}{'MB/s':>8}{'size':>12}{'of plain':>10}")
    sample = files[: max(1, len(files) // 4)]
    sample_bytes = sum(path.stat().st_size for path in sample)
    for name, pack in (("gzip -6 (a quarter)", gzipped), ("zstd -3, one stream", one_stream)):
        sizes: list[int] = []
        seconds = timed(lambda pack=pack, sizes=sizes: sizes.append(pack(sample)))  # type: ignore[misc]
        report(name, sample_bytes, sizes[0], seconds)
    seconds = timed(lambda: list(seal_due(folder, 0)))
    sealed = sum(path.stat().st_size for path in folder.glob("*.zst"))
    report("sealed, read back, synced", plain, sealed, seconds)
    figures = Figures("day")
    figures.add("a day of 10,000 calls of 480 KB, sealed", sealed / calls * 10_000 / MB, "MB", at_most=150)
    figures.add("of its plain size", sealed / plain * 100, "%", at_most=2.5)
    figures.add("sealing, read back and synced", plain / seconds / MB, "MB/s", at_least=200)
    return figures


def report(name: str, plain: int, packed: int, seconds: float) -> None:
    print(f"{name:24}{plain / seconds / MB:8.0f}{packed:12,}{'1/' + str(round(plain / packed)):>10}")


if __name__ == "__main__":
    sys.exit(main())
