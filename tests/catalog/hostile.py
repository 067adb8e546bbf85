"""What a person, or a program, might type where words are asked for: in the languages of databases."""

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
_TEXT = [
    "",
    " ",
    "\t\n",
    "\0",
    "a\0b",
    '"\0',
    "\x1b[31m",
    "\ud800",
    "a\udfffb",
    "\u202e",
    "\ufeff",
    "é",
    "ΣΑΣ",
    "日本語",
    "🙂",
    "a" * 100_000,
    " ".join("word" + str(number) for number in range(5_000)),
    '"' * 5_000,
    "(" * 5_000,
    "*" * 5_000,
    "a AND " * 5_000,
    "NEAR(" * 2_000,
    "tool:a " * 2_000,
    "-" * 5_000,
    "__proto__",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "<script>alert(1)</script>",
    "%00",
    "%s%s%s%n",
    "../../../../etc/passwd",
    "| rm -rf /",
    "$(reboot)",
    "a\r\nb",
    "\u2028",
]
_MORE = """
a;b|a--b|a/*b*/c|'a'||'b'|char(97)|CAST(1 AS TEXT)|SELECT 1|DELETE FROM texts|UPDATE texts SET kind=9
VACUUM INTO '/tmp/y'
EXPLAIN a|a LIKE '%'|a GLOB '*'|a IN (1)|a BETWEEN 1 AND 2|CASE WHEN 1 THEN 2 END|a COLLATE NOCASE|a ISNULL
EXISTS(SELECT 1)
json_each('[1]')|json('{')|$.a|@@version|WAITFOR DELAY '0:0:5'|SLEEP(5)|pg_sleep(5)|EXEC xp_cmdshell|a%27b
BENCHMARK(1,1)
""".replace("||", "!!")
TYPED = [
    *(it for text in (_SQL, _FTS, _MORE) for line in text.strip().split("\n") for it in line.split("|")),
    *_TEXT,
]
