"""The results of tools in known forms: how a command ended, numbered lines, matches, paths."""

import re
from itertools import takewhile

import msgspec

from agent_logger.views.pieces import Code, FileList, Matches, MatchLine, OutputPiece, Piece, Terminal

# Claude Code's, which it writes only of a command that failed; Codex's; Gemini CLI's.
_SHELLS = (
    re.compile(r"(?:Error: )?Exit code (?P<exit>-?\d+)(?:\n(?P<output>.*))?\Z", re.DOTALL),
    re.compile(
        r"(?:Command: .*?\n)?(?:Chunk ID: .*\n)?Wall time: .*\nProcess (?:exited with code (?P<exit>-?\d+)|.*)\n"
        r"(?:Original token count: .*\n)?Output:\n(?P<output>(?s:.*))\Z"
    ),
    re.compile(
        r"(?:Command: .*\nDirectory: .*\n)?Output: (?P<output>(?s:.*?))\n(?:Error: .*\n)?Exit Code: (?P<exit>-?\d+)"
    ),
)


def terminal(command: str, result: str | None, *, is_error: bool = False) -> Terminal:
    if result is None:
        return Terminal(command)
    if terminal_output := _codex_json(result):
        return Terminal(command, *terminal_output)
    for form in _SHELLS if is_error else _SHELLS[1:]:
        if match := form.match(result):
            code = match["exit"]
            return Terminal(command, match["output"] or "", int(code) if code else None)
    return Terminal(command, result)


class _Metadata(msgspec.Struct):
    exit_code: int | None = None


class _ShellOutput(msgspec.Struct):
    output: str
    metadata: _Metadata


def _codex_json(result: str) -> tuple[str, int | None] | None:
    """The output and exit code from the JSON that older versions of Codex answer with."""
    if not result.startswith('{"'):
        return None
    try:
        output = msgspec.json.decode(result, type=_ShellOutput)
    except (ValueError, RecursionError):
        return None
    return output.output, output.metadata.exit_code


_NUMBERED = re.compile(r" {0,8}(\d{1,9})(?:\t|→|\| )(.*)")


def file_pieces(result: str, language: str | None) -> tuple[Piece, ...]:
    """The pieces of a file that a tool printed with a number before each line; the text as it is, if it has no
    numbers."""
    lines = result.rstrip("\n").split("\n")
    matches = list(takewhile(bool, map(_NUMBERED.fullmatch, lines)))
    numbered = [match for match in matches if match]
    if not numbered:
        return (Code(result, language),) if result else ()
    code = Code("\n".join(match[2] for match in numbered), language, int(numbered[0][1]))
    rest = "\n".join(lines[len(numbered) :]).strip("\n")  # a reminder that the client adds after the file
    return (code, OutputPiece(rest)) if rest else (code,)


_MATCH = re.compile(r"((?:[A-Za-z]:)?[^:\0]{1,4096}):(\d{1,9}):(.*)")


def match_pieces(result: str) -> tuple[Piece, ...]:
    """The pieces of `path:12:text` lines, as grep and similar tools print them; or of paths alone."""
    lines = [line for line in result.split("\n") if line]
    matches = [line for line in map(_MATCH.fullmatch, lines) if line]
    if matches and len(matches) == len(lines):
        return (Matches(tuple(MatchLine(match[1], int(match[2]), match[3]) for match in matches)),)
    if lines and re.fullmatch(r"Found \d+ files?.*", lines[0]):
        return path_pieces("\n".join(lines[1:]))
    return (OutputPiece(result),) if result else ()


def path_pieces(result: str) -> tuple[Piece, ...]:
    """The pieces of a list with one path per line; what a client adds to the list stays text."""
    lines = [line for line in result.split("\n") if line]
    paths = tuple(line for line in lines if not _REMARK.match(line))
    remarks = "\n".join(line for line in lines if _REMARK.match(line))
    return (*((FileList(paths),) if paths else ()), *((OutputPiece(remarks),) if remarks else ()))


_REMARK = re.compile(r"\(|No (?:files|matches)|Found \d+ ")
