"""Diffs between two texts, and diffs read from the patches that models write."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from agent_logger.views.pieces import Diff, DiffLine, Sign

AROUND = 3  # lines that did not change, shown on both sides of a change
# `difflib` compares every line with every one like it, which a text of equal lines makes cubic. Beyond this, all old
# lines are shown as removed and all new ones as added, which is true as well.
MOST_COMPARED = 250_000


def diff_of(path: str | None, edits: Iterable[tuple[str, str]]) -> Diff:
    """The diff of one file. Each edit is an old text and the new text that replaces it."""
    hunks = [list(_hunk(_lines(old), _lines(new))) for old, new in edits]
    parted = [[DiffLine("@", ""), *hunk] if number else hunk for number, hunk in enumerate(hunks)]
    return Diff(path, tuple(line for hunk in parted for line in hunk))


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _hunk(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    before = max(0, _common_lines(old, new) - AROUND)
    old, new = old[before:], new[before:]
    after = max(0, _common_lines(old[::-1], new[::-1]) - AROUND)
    old, new = old[: len(old) - after], new[: len(new) - after]
    if len(old) * len(new) > MOST_COMPARED:
        yield from _diff_lines("-", old)
        yield from _diff_lines("+", new)
        return
    groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(AROUND)
    for number, group in enumerate(groups):
        if number:
            yield DiffLine("@", "")
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from _diff_lines(" ", old[old_start:old_end])
            else:
                yield from _diff_lines("-", old[old_start:old_end])
                yield from _diff_lines("+", new[new_start:new_end])


def _common_lines(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _diff_lines(sign: Sign, lines: Iterable[str]) -> Iterator[DiffLine]:
    return (DiffLine(sign, line) for line in lines)


# ---------------------------------------------------------------- patches

BEGIN = "*** Begin Patch"
_END = "\n*** End Patch"
_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.*)\n?", re.MULTILINE)
_MOVE = re.compile(r"^\*\*\* Move to: (.*)", re.MULTILINE)
_NOTES = {"Add": "added", "Update": "", "Delete": "deleted"}
_SIGNS: dict[str, Sign] = {"+": "+", "-": "-"}


def patch_diffs(text: str) -> list[Diff]:
    """The diffs of an `apply_patch`, one per file, wherever in `text` the patch is; empty if there is no patch."""
    patch = text.partition(BEGIN)[2].partition(_END)[0]
    heads = list(_FILE.finditer(patch))
    ends = [*(head.start() for head in heads[1:]), len(patch)]
    return [_file_diff(head, patch[head.end() : end]) for head, end in zip(heads, ends, strict=False)]


def _file_diff(head: re.Match[str], body: str) -> Diff:
    move = _MOVE.search(body)
    note = f"moved to {move[1].strip()}" if move else _NOTES[head[1]]
    lines = (_patch_line(line) for line in _lines(body) if not line.startswith("*** "))
    return Diff(head[2].strip(), tuple(lines), note)


def _patch_line(line: str) -> DiffLine:
    if line.startswith("@@"):
        return DiffLine("@", line[2:].strip())
    return DiffLine(_SIGNS.get(line[:1], " "), line[1:])
