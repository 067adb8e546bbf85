"""Record fixtures of the real clients that are installed: `python -m tests.refresh_fixtures --help`.

The client is run as `tests/real_clients` runs it, directly against the scripted API, which notes what it is asked.
What is written is made alike over machines: paths, ports, devices; and long texts of the client are cut.
"""

import hashlib
import importlib.metadata
import json
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tests.clients import Sandbox
from tests.fakeapi import Call
from tests.fakeapi.encodings import UNPACKERS
from tests.fakeapi.turns import SCENARIOS as SCRIPTS
from tests.real_clients.running import CLIENTS, Ran, run_directly
from tests.real_clients.scenarios import DATA, SCENARIOS, Scenario

LONGEST, LONGEST_PRINTED, KEPT = (
    700,
    4000,
    160,
)  # characters: of a text, of one on stdout, and what stays of it
HOME_FILES = (
    ".claude/projects/**/*",
    ".codex/sessions/**/*",
    ".gemini/tmp/**/chats/*",
    ".gemini/projects.json",
)
COUNTS = re.compile(r"(^|_)tokens$|TokenCount$")
PACKAGES = {
    "anthropic-python": "anthropic",
    "openai-python": "openai",
    "claude-agent-sdk": "claude-agent-sdk",
}


@click.command()
@click.argument("client", type=click.Choice(sorted({it.fixture.split("/")[0] for it in SCENARIOS})))
@click.argument("scenarios", nargs=-1)
@click.option("--to", default=DATA, type=click.Path(path_type=Path), help="Instead of tests/data.")
@click.option("--script", help="A new scenario: what the API answers, one of tests/fakeapi/scenarios.")
@click.option("--run", "runs", multiple=True, help="A new scenario: the client's arguments. Once per start.")
@click.option("--note", default="", help="A new scenario: what it shows.")
def main(client: str, scenarios: Sequence[str], to: Path, script: str | None, runs: Sequence[str], note: str) -> None:
    """Record fixtures of CLIENT, as it is installed, into tests/data/CLIENT/VERSION/SCENARIO.

    The commands are those of the newest fixture of the same name, with the new run's session ids. Without
    SCENARIOS: all that tests/real_clients runs. A fixture that is there already is replaced.

    A new scenario has a --script and a --run for each start of the client; {01} in it is the session of the
    first start. What was recorded is to be looked at before it is believed: kinds above all.

    \b
    Examples:
      python -m tests.refresh_fixtures claude-cli
      python -m tests.refresh_fixtures claude-cli hello_json subagents --to /tmp/fixtures
      python -m tests.refresh_fixtures codex cut --script disconnect --run 'exec --json "Hello"'
    """
    known: dict[str, Scenario] = {}
    for it in SCENARIOS:
        if it.fixture.startswith(f"{client}/"):
            known.setdefault(it.fixture.rpartition("/")[2], it)
    for name in scenarios or known:
        scenario = known.get(name) or Scenario(client=client, fixture=_newest(client, name))
        with tempfile.TemporaryDirectory(prefix="refresh-") as folder:
            if script:
                scenario = _new_scenario(client, Path(folder) / "new", script, runs, note)
            click.echo(record(scenario, client, name, to, Path(folder) / "run"))


def record(scenario: Scenario, client: str, name: str, to: Path, root: Path) -> Path:
    """Run it, and write what there is to keep. The fixture's folder."""
    ran = run_directly(scenario, root)
    version = _version(scenario.client)
    folder = to / client / version / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    scrub = Scrub(ran)
    shutil.copy(scenario.script, folder / "scenario.json")
    lines = [scrub.line(number, call, ran.calls) for number, call in enumerate(ran.calls, 1)]
    (folder / "wire.jsonl").write_text("".join(json.dumps(it, ensure_ascii=False) + "\n" for it in lines))
    for label, finished in ran.finished.items():
        for ending, text in (("stdout", finished.stdout), ("stderr", finished.stderr)):
            if text:
                (folder / f"{label}.{ending}").write_text(scrub.lines(text, LONGEST_PRINTED))
    for path, relative in _left_behind(ran.sandbox):
        target = folder / "home" / scrub.text(relative)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(scrub.lines(path.read_text(), LONGEST))
    manifest = _manifest(f"{client}-{version}", name, ran, lines)
    manifest["note"] = scenario.manifest["note"]
    manifest["files"] = sorted(str(it.relative_to(folder)) for it in folder.rglob("*") if it.is_file())
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    return folder


def _newest(client: str, name: str) -> str:
    found = sorted(DATA.glob(f"{client}/*/{name}"), key=lambda it: [int(n) for n in it.parent.name.split(".")])
    return str(found[-1].relative_to(DATA)) if found else ""


def _new_scenario(client: str, folder: Path, script: str, runs: Sequence[str], note: str) -> Scenario:
    """As if there were a fixture of it already."""
    folder.mkdir()
    shutil.copy(SCRIPTS / f"{script}.json", folder / "scenario.json")
    commands = [
        {"label": f"{number:02}", "args": shlex.split(arguments), "exit_code": 0, "stdout": ""}
        for number, arguments in enumerate(runs, 1)
    ]
    (folder / "manifest.json").write_text(json.dumps({"note": note, "commands": commands}))
    return Scenario(client=client, fixture=str(folder))


def _version(client: str) -> str:
    if client in PACKAGES:
        return importlib.metadata.version(PACKAGES[client])
    told = subprocess.run([*CLIENTS[client].command(), "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"\d+(\.\d+)+", told.stdout)
    assert found, told.stdout
    return found[0]


def _left_behind(sandbox: Sandbox | None) -> Iterator[tuple[Path, str]]:
    assert sandbox
    for pattern in HOME_FILES:
        for path in sorted(sandbox.home.glob(pattern)):
            if path.is_file():
                yield path, str(path.relative_to(sandbox.home))


# ---------------------------------------------------------------- what is true


def _manifest(client: str, name: str, ran: Ran, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    requests = [_request(line) for line in lines]
    truth: dict[str, dict[str, dict[str, int]]] = {}
    for it in requests:
        if it["complete"] and it["usage"]:
            counts = truth.setdefault(it["session_id"] or "(none)", {}).setdefault(it["kind"], {"responses": 0})
            counts["responses"] += 1
            for count, number in it["usage"].items():
                counts[count] = counts.get(count, 0) + number
    return {
        "client": client,
        "scenario": name,
        "note": "",
        "commands": [
            {
                "label": label,
                "args": ran.commands[label],
                "exit_code": finished.exit_code,
                "stdout": f"{label}.stdout",
            }
            for label, finished in ran.finished.items()
        ],
        "requests": requests,
        "files": [],
        "truth_usage_of_complete_responses": truth,
    }


def _request(line: Mapping[str, Any]) -> dict[str, Any]:
    headers = {name.lower(): value for name, value in line["headers"]}
    body = line["body"] if isinstance(line["body"], dict) else {}
    told = line["response"]
    return {
        "seq": line["seq"],
        "method": line["method"],
        "path": line["path"],
        "kind": _kind(line, headers, body),
        "session_id": next((headers[name] for name in SESSION_HEADERS if name in headers), None),
        "agent_id": headers.get("x-claude-code-agent-id"),
        "model": body.get("model"),
        "stream": bool(body.get("stream")),
        "status": told["status"],
        "complete": told["complete"],
        "usage": _usage(told["body"]),
    }


COMPACTION = re.compile("CRITICAL: Respond with TEXT ONLY|performing a CONTEXT CHECKPOINT COMPACTION")
SESSION_HEADERS = ("x-claude-code-session-id", "session-id", "x-session-id")


def _kind(line: Mapping[str, Any], headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """By the rules that were found for these clients, not by those of the product."""
    path = line["path"].partition("?")[0]
    if line["method"] == "HEAD":
        return "probe"
    if line["method"] == "GET":
        return "models" if path.endswith("/models") else "other"
    if path.endswith(("count_tokens", ":countTokens")):
        return "count_tokens"
    if "x-claude-code-agent-id" in headers:
        return "subagent"
    if COMPACTION.search(json.dumps((body.get("messages") or body.get("input") or [""])[-1])):
        return "compact"
    names_session = any(name in headers for name in SESSION_HEADERS)
    is_router = body.get("generationConfig", {}).get("responseMimeType") == "application/json"
    items = body.get("input")
    among_items = isinstance(items, list) and any(it.get("type") == "additional_tools" for it in items)
    has_tools = bool(body.get("tools")) or among_items
    return "side" if is_router or (names_session and not has_tools) else "main"


def _usage(body: Any) -> dict[str, int] | None:
    """The last word of an answer on what it took."""
    found: dict[str, int] = {}
    texts = re.findall(r"^data: (\{.*)$", body, re.MULTILINE) if isinstance(body, str) else []
    for event in [json.loads(text) for text in texts] if isinstance(body, str) else [body]:
        holder = event.get("message") or event.get("response") or event
        usage = holder.get("usage") or holder.get("usageMetadata") or {}
        found |= {name: it for name, it in usage.items() if COUNTS.search(name) and isinstance(it, int)}
    return found or None


# ---------------------------------------------------------------- scrubbing


class Scrub:
    def __init__(self, ran: Ran) -> None:
        assert ran.sandbox
        home, project = str(ran.sandbox.home), str(ran.sandbox.project)
        self._words = [
            (project, "/home/user/project"),
            (home, "/home/user"),
            (_encoded(project), "-home-user-project"),
            (_encoded(home), "-home-user"),
            (ran.url.removeprefix("http://"), "127.0.0.1:8000"),
        ]

    def text(self, text: str) -> str:
        for word, other in self._words:
            text = text.replace(word, other)
        text = re.sub(r"\b[0-9a-f]{64}\b", "0" * 60 + "dead", text)  # the device
        text = re.sub(
            r'("?installation_id\\*": ?\\*")[0-9a-f-]{36}', r"\g<1>00000000-0000-4000-8000-00000000dead", text
        )
        return re.sub(r"/cc-socks/\d+", "/cc-socks/1", text)

    def value(self, value: Any, longest: int) -> Any:
        match value:
            case dict():
                return {self.text(key): self.value(it, longest) for key, it in value.items()}
            case list():
                return [self.value(it, longest) for it in value]
            case str():
                return _cut(self.text(value), longest)
        return value

    def lines(self, text: str, longest: int) -> str:
        """JSON line by line; what is not JSON stays as it is."""
        done = []
        for line in text.split("\n"):
            try:
                done.append(
                    json.dumps(self.value(json.loads(line), longest), ensure_ascii=False, separators=(",", ":"))
                )
            except ValueError:
                done.append(self.text(line))
        return "\n".join(done)

    def line(self, number: int, call: Call, calls: Sequence[Call]) -> dict[str, Any]:
        connections = list(dict.fromkeys(it.connection for it in calls))
        headers = [[name, _cut(self.text(value), LONGEST)] for name, value in call.headers]
        body = UNPACKERS[dict(call.headers).get("content-encoding", "")](call.body)
        sent = (
            UNPACKERS[dict(call.answer_headers).get("content-encoding", "")](bytes(call.sent))
            if call.complete
            else bytes(call.sent)
        )
        return {
            "seq": number,
            "ts": datetime.fromtimestamp(call.began, UTC).isoformat(timespec="microseconds"),
            "conn": connections.index(call.connection) + 1,
            "http": "1.1",
            "method": call.method,
            "path": call.path,
            "headers": headers,
            "body": self.value(_without_schemas(_parsed(body)), LONGEST),
            "lane": call.lane,
            "turn": call.turn,
            "original_body_bytes": len(body),
            "original_body_sha256": hashlib.sha256(body).hexdigest(),
            "response": {
                "status": call.status,
                "headers": [list(it) for it in call.answer_headers],
                "body": _parsed(self.text(sent.decode()).encode()),
                "complete": call.complete,
                "ms": round(call.seconds * 1000),
            },
        }


def _encoded(path: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", path)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode()


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[:KEPT]}...[elided {len(text) - KEPT} chars sha256:{digest}]"


def _without_schemas(body: Any) -> Any:
    """The tools by their names."""
    if isinstance(body, dict) and isinstance(tools := body.get("tools"), list):
        return {**body, "tools": [_named(tool) for tool in tools]}
    return body


def _named(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    short = {"description": "[elided]", "input_schema": {"type": "object"}, "parameters": {"type": "object"}}
    return {name: short.get(name, _named(it) if name == "function" else it) for name, it in tool.items()}


if __name__ == "__main__":
    main()
