"""A session's `workspace.yaml`: the fields of its top level, without a parser for all of YAML."""

import re

_FIELD = re.compile(r"^(?P<key>[a-z_]+):(?:[ \t]+(?P<value>.*))?$")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\n[ \t]*|.)", re.DOTALL)
_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
NOTHING = frozenset({"", "~", "null"})


def field_of(text: str, name: str) -> str | None:
    """Return a field that is text; None if it is not there, empty, or not understood."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        match = _FIELD.match(line.rstrip("\r"))
        if match and match["key"] == name:
            return _value((match["value"] or "").strip(" \t"), _continuation(lines[at + 1 :]))
    return None


def _continuation(lines: list[str]) -> list[str]:
    """Return the lines that belong to the field before them: the indented ones, and blank ones among them."""
    end = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith((" ", "\t"))), len(lines))
    return [line.strip(" \t\r") for line in lines[:end]]


def _value(first: str, further: list[str]) -> str | None:
    if first[:1] in ("|", ">"):
        text = ("\n" if first[0] == "|" else " ").join(further).strip()
        return text or None
    whole = _folded([first, *further])
    if whole.startswith('"'):
        return _unescaped(whole[1:].rpartition('"')[0]) or None
    if whole.startswith("'"):
        return whole[1:].rpartition("'")[0].replace("''", "'") or None
    plain = whole.partition(" #")[0].strip()
    return None if plain in NOTHING else plain


def _folded(lines: list[str]) -> str:
    """Join the lines of a value: a newline is a blank, and an empty line a newline."""
    text = lines[0]
    for line in lines[1:]:
        if text.endswith("\\"):
            text = text[:-1] + line
        else:
            text += (line and ("" if text.endswith("\n") else " ") + line) or "\n"
    return text.strip()


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "xuU" and len(escape) > 1:
        code = int(escape[1:], 16)
        return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    return _ESCAPES.get(escape, "" if escape[0] == "\n" else escape)
