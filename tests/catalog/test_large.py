"""An archive of a hundred thousand files: bounded memory, and no work when nothing has changed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.memory import PEAK_KB

FILES = 100_000
MOST_MEMORY = 300 << 20

ASK = f"""{PEAK_KB}
import sys, time
from pathlib import Path
from agent_logger import Catalog
with Catalog.open(Path(sys.argv[1])) as catalog:
    done = catalog.refresh()
    assert catalog.index()
    start = time.process_time()
    again = catalog.refresh()
    assert (again.changed, again.files_opened) == (0, 0)
    seconds = time.process_time() - start
    found = len(catalog.search("zebra", limit=10))
    print(done.sources, catalog.total().responses, found, peak_kb(), seconds)
"""


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_files_take_little_memory(home: Path) -> None:
    for number in range(FILES):
        name = ID.format(number)
        lines = [user(number, "count the zebra", name), assistant(number, "word " * 40, name)]
        claude_file(home, name, lines, f"-p{number % 100}")
    run = [sys.executable, "-c", ASK, str(home / ".agent-logger")]
    told = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
    sources, responses, found, kilobytes = map(int, told[:4])
    print(f"{kilobytes >> 10} MB; nothing changed: {told[4]} s of processor time")
    assert (sources, responses, found) == (FILES, FILES, 10)
    assert kilobytes << 10 < MOST_MEMORY
