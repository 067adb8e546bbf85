"""Make characters visible that could control a terminal or deceive a reader."""

import re

# C0, DEL and C1; bidi marks, embeddings, isolates; line and paragraph separators; lone
# surrogates; invisible operators and annotations, zero-width space, byte order mark, and the
# tags and selectors of plane 14, which can carry a hidden text. The joiners U+200C and U+200D
# stay: Persian, Hindi and family emoji are written with them.
CONTROLS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
CONTROLS_IN_LINES = re.compile(CONTROLS.pattern.replace(r"\x00-\x1f", r"\x00-\x08\x0b-\x1f"))


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return `text` with control characters as visible text: `\x1b`, `\u202e`, `\n`.

    With `lines`, newlines and tabs stay. Everything else is unchanged, backslashes too: this is for reading, not for
    reading back.
    """
    return (CONTROLS_IN_LINES if lines else CONTROLS).sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def printable_json(text: str) -> str:
    r"""Return JSON that means the same, with control characters as `\u202e`; newlines and tabs stay."""
    return CONTROLS_IN_LINES.sub(_json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
