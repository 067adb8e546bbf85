"""The catalog beside ccusage and agentsview, over the same folder of Claude Code's, in one run.

    ./dev bench catalog [MEGABYTES] [--sessions COUNT]

Seconds of processor time, so that a busy machine does not decide; a ratio is to the peer: under 1 is less than its.
The first index is also timed by the clock, on all cores and on one: that is right on a quiet machine only.
"The least" is what no index can do without: every line decoded once, every word of its message put into FTS5.
ccusage is installed by `./dev setup`; agentsview is looked for in the path (`pip install agentsview`), and left
out if it is not there. `COUNT` small sessions (10,000) are what `ls` and `search` are measured with.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from _corpus import fill
from _figures import Figures, arguments_parser

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.clients import find_ccusage

OURS = [sys.executable, "-m", "agent_logger"]
RUNS = 3
INDEX = "from pathlib import Path; from agent_logger import Catalog; Catalog.open(Path({!r})).index()"
LEAST = """
import msgspec, sqlite3, sys; from pathlib import Path
class Line(msgspec.Struct): message: object = None
def texts(it):
    if isinstance(it, str): yield it
    elif isinstance(it, dict): yield from (text for inner in it.values() for text in texts(inner))
    elif isinstance(it, list): yield from (text for inner in it for text in texts(inner))
def rows():
    decode = msgspec.json.Decoder(Line).decode
    for path in Path({!r}).rglob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            try: message = decode(line).message
            except msgspec.MsgspecError: continue
            content = message.get("content") if isinstance(message, dict) else message
            yield (" ".join(texts(content)),)
database = sqlite3.connect({!r}, isolation_level=None)
database.execute("PRAGMA journal_mode = WAL"); database.execute("PRAGMA synchronous = NORMAL")
database.execute("CREATE VIRTUAL TABLE words USING fts5 (text, content = '')")
database.execute("INSERT INTO words (words, rank) VALUES ('hashsize', 16777216)"); database.execute("BEGIN")
database.executemany("INSERT INTO words (text) VALUES (?)", rows()); database.execute("COMMIT")
"""


def seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def by_the_clock(command: Sequence[str], environment: dict[str, str], kept: Path, cores: set[int]) -> float:
    shutil.rmtree(kept, ignore_errors=True)
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        start = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return time.perf_counter() - start
    finally:
        os.sched_setaffinity(0, all_cores)


def best(command: Sequence[str], environment: dict[str, str], runs: int = RUNS) -> float:
    return min(seconds(command, environment) for _ in range(runs))


def show(what: str, ours: float, peer: float | None = None, name: str = "", note: str = "") -> None:
    ratio = f"{ours / peer:6.2f} of {name} ({peer:.2f} s)" if peer else ""
    print(f"{what:42} {ours:7.3f} s  {ratio} {note}", flush=True)


def size(path: Path) -> int:
    return sum(it.stat().st_size for it in path.rglob("*") if it.is_file())


def large(folder: Path, megabytes: int, figures: Figures) -> None:
    home = folder / "large"
    fill(home / ".claude", megabytes)
    kept, data = home / ".agent-logger", size(home / ".claude")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
    print(f"{data / 1e6:.0f} MB in {sum(1 for _ in home.rglob('*.jsonl'))} files")
    ccusage, colds = find_ccusage(), []
    peer = best([str(ccusage), "daily", "--json", "--offline"], environment) if ccusage else None
    for _ in range(RUNS):
        shutil.rmtree(kept, ignore_errors=True)
        colds.append(seconds([*OURS, "usage", "--json"], environment))
    cold, warm = min(colds), best([*OURS, "usage", "--json"], environment)
    show("usage, nothing there yet", cold, peer, "ccusage")
    show("usage, with the catalog", warm, peer, "ccusage")
    if peer:
        figures.add("first `usage`, of ccusage's", cold / peer, "x", at_most=1.3)
        figures.add("later `usage`, of ccusage's", warm / peer, "x", at_most=0.2)
    shutil.rmtree(kept)
    make_index = [sys.executable, "-c", INDEX.format(str(kept))]
    cores = os.sched_getaffinity(0)
    single = by_the_clock(make_index, environment, kept, {min(cores)})
    clock = by_the_clock(make_index, environment, kept, cores)
    shutil.rmtree(kept)
    first = seconds(make_index, environment)
    viewer = shutil.which("agentsview")
    theirs = seconds([viewer, "sync"], {**environment, "AGENTSVIEW_NO_DAEMON": "1"}) if viewer else None
    show("first index, search included", first, theirs, "agentsview")
    show(f"the same by the clock, {len(cores)} cores", clock, single, "one core", f"{data / 1e6 / clock:.0f} MB/s")
    figures.add("first index, search included", data / 1e6 / clock, "MB/s", at_least=40)
    figures.add("size of the catalog, of the data's", size(kept) / data, "x", at_most=0.45)
    least = seconds([sys.executable, "-c", LEAST.format(str(home), str(folder / "least.db"))], environment)
    show("the same beside the least that it takes", first, least, f"{data / 1e6 / least:.0f} MB/s")
    show("ls, nothing changed", best([*OURS, "ls"], environment))
    show("search, nothing changed", best([*OURS, "search", "the"], environment))


def many(folder: Path, count: int, figures: Figures) -> None:
    home = folder / "many"
    made = fill(folder / "made", 0.1)[0]
    source = next((folder / "made").rglob(f"{made.id}.jsonl")).read_text()
    for number in range(count):
        name = f"{number:08x}{made.id[8:]}"
        path = home / ".claude" / "projects" / f"-p{number % 60}" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = source.replace(made.id, name).replace("msg_01", f"msg_01{number:08x}").split("\n")[:3]
        path.write_text("\n".join(lines) + "\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
    seconds([sys.executable, "-c", INDEX.format(str(home / ".agent-logger"))], environment)
    took = best([*OURS, "ls"], environment, 7)
    figures.add(f"`ls` of {count:,} sessions, the process", took * 1000, "ms", at_most=150)
    show("--help, for comparison", best([*OURS, "--help"], environment, 7))
    code = f"""
import time; from pathlib import Path; from agent_logger import Catalog
catalog = Catalog({str(home / ".agent-logger")!r} and Path({str(home / ".agent-logger")!r}), float("inf"))
catalog.search({made.lines[0]["message"]["content"].split()[0]!r}); start = time.process_time()
catalog.search({" ".join(made.lines[0]["message"]["content"].split()[:2])!r}); print(time.process_time() - start)
"""
    told = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    figures.add(f"a search in {count:,} sessions, that alone", float(told.stdout) * 1000, "ms", at_most=50)


if __name__ == "__main__":
    parser = arguments_parser(__doc__)
    parser.add_argument("megabytes", type=int, nargs="?", default=300)
    parser.add_argument("--sessions", type=int, default=10_000)
    asked = parser.parse_args()
    figures = Figures("catalog")
    with tempfile.TemporaryDirectory() as made_in:
        large(Path(made_in), asked.megabytes, figures)
        many(Path(made_in), asked.sessions, figures)
    sys.exit(figures.finish(write=asked.write))
