"""What redaction costs, beside the plain way: one `re` alternation of the same families, run over all of it.

    python benches/redact.py

Times are the best of several runs in processor time; `ratio` is how many times as long the plain way takes.
It is under 1 where the plain patterns, being looser, take the whole text for one key.
"""

import json
import random
import re
import time
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from agent_logger.model.redaction.redactor import FAMILIES, KnownPrefix, Redactor

MEGABYTE = 1_000_000
REDACTOR = Redactor(bytes(32), [b"a-credential-of-the-request-0123456789", b"and+another/one0123456789=="])
PLAIN = re.compile(
    b"|".join(
        [
            *(re.escape(start) + family.prefix + rb"[\w.-]{20,}" for family in FAMILIES for start in family.starts),
            rb"[Bb]earer\s+[\w.~+/=-]{16,}",
            rb"[a-z]{2,12}://[^\s/:@]{0,128}:[^\s/@]{1,256}@",
            rb"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END",
        ]
    )
)
HOSTILE = ["a", "sk-", "[", "-----BEGIN ", "eyJ", "://", "Bearer ", "A", "\\"]
PATIENCE_SECONDS = 5.0


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    best = float("inf")
    for _ in range(runs):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
        if best > PATIENCE_SECONDS:
            break
    return best


def messages(size: int, seed: int) -> list[dict[str, Any]]:
    """What an agent sends: prose, code, paths, ids, tool results that are JSON themselves."""
    rnd = random.Random(seed)
    words = ["".join(rnd.choices("etaoinshrdlucmfwgypbvk", k=rnd.randint(2, 9))) for _ in range(2_000)]
    made: list[dict[str, Any]] = []
    while size > 0:
        text = " ".join(rnd.choices(words, k=90)) + "\n    def task_id(self) -> str:  # https://example.com/a\n"
        use = {
            "type": "tool_use",
            "id": f"toolu_{rnd.getrandbits(90):x}",
            "input": {"path": "/home/me/ask.py"},
        }
        result = json.dumps({"stdout": text, "uuid": f"{rnd.getrandbits(128):032x}"})
        made.append({"role": "user", "content": [{"type": "text", "text": text}, use, result]})
        size -= len(json.dumps(made[-1]))
    return made


def body(history: list[dict[str, Any]]) -> bytes:
    return json.dumps({"model": "m", "messages": history, "tools": messages(20_000, seed=1)}).encode()


def redact_plainly(data: bytes) -> bytes:
    return PLAIN.sub(b"[redacted]", data)


def row(name: str, ours: float, plain: float, size: int) -> None:
    print(f"{name:<28}{ours * 1e3:>9.2f} ms{size / ours / 1e6:>8.0f} MB/s{plain * 1e3:>11.2f} ms{plain / ours:>8.1f}")


def compare(name: str, data: bytes) -> None:
    ours = seconds(lambda: REDACTOR.redact(data, "body"))
    row(name, ours, seconds(lambda: redact_plainly(data), runs=2), len(data))


def compare_news() -> None:
    history = messages(450_000, seed=2)
    earlier, text = body(history), body(history + messages(10_000, seed=3))
    head = len(list(takewhile(bool, (a == b for a, b in zip(earlier, text, strict=False)))))
    known = KnownPrefix(len(earlier), REDACTOR.search(earlier), head=head, tail=len(earlier) - head)
    ours = seconds(lambda: REDACTOR.search(text, known), runs=50)
    row(f"{len(text) // 1000} KB, 10 of them new", ours, seconds(lambda: redact_plainly(text)), len(text))


def main() -> None:
    print(f"{'':<28}{'ours':>12}{'':>13}{'plain re':>14}{'ratio':>8}")
    compare("clean agent JSON, 4 MB", body(messages(4 * MEGABYTE, seed=0)))
    compare_news()
    for text in HOSTILE:
        compare(f"1 MB of {text!r}", (text * MEGABYTE)[:MEGABYTE].encode())


if __name__ == "__main__":
    main()
