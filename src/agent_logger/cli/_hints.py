"""The right word for what people type instead: other tools call the same things differently."""

from collections.abc import Collection

# What people type, by what they mean.
COMMAND_WORDS = {
    "ls": ("list", "sessions", "session", "history", "recent", "conversations", "log", "logs"),
    "show": ("print", "read", "cat", "info", "inspect", "transcript", "conversation"),
    "show last": ("last", "latest"),
    "search": ("grep", "query", "rg"),
    "usage": (
        "stats",
        "cost",
        "costs",
        "spend",
        "spending",
        "tokens",
        "billing",
        "price",
        "report",
        "money",
    ),
    "usage day": ("daily", "day"),
    "usage week": ("weekly", "week"),
    "usage month": ("monthly", "month"),
    "usage block": ("block", "blocks"),
    "usage model": ("model", "models"),
    "usage project": ("project", "projects"),
    "usage --since today": ("today",),
    "view": ("open", "ui", "web", "page", "browser", "dashboard", "gui", "serve"),
    "tail": ("follow", "watch", "live"),
    "tag": ("label", "labels", "tags", "pin", "note", "star", "mark"),
    "rm": ("delete", "remove", "del"),
    "prune": ("clean", "cleanup", "gc"),
    "run": ("record", "exec"),
    "start": ("up",),
    "status": ("ps",),
    "doctor": ("check", "health", "diagnose"),
    "archive": ("backup", "save", "restore"),
    "hook --install": ("install", "hooks"),
    "config": ("settings", "set", "get"),
    "du": ("size", "disk"),
    "tree": ("forks", "agents", "subagents"),
    "demo": ("example", "try"),
}
OPTION_WORDS = {
    "--since today": ("--today", "--day"),
    "--since yesterday": ("--yesterday",),
    "--since 'this week'": ("--week", "--this-week"),
    "--since 'this month'": ("--month", "--this-month"),
    "--since 7d": ("--days", "--last", "--recent"),
    "--since": ("--from", "--after", "--start", "--date", "--start-date"),
    "--until": ("--to", "--before", "--end", "--end-date"),
    "--sort": ("--order", "--order-by", "--sort-by", "--sorted"),
    "--by": ("--group", "--group-by", "--per"),
    "--limit": ("--count", "--max", "--number", "--head", "--top"),
    "--label": ("--tag", "--labels", "--tags"),
    "--pinned": ("--pins", "--pin"),
    "--project": ("--repo", "--folder", "--dir", "--cwd"),
    "--json": ("--format", "--output", "--output-format"),
    "--all": ("--everything", "--no-limit"),
    "--pin": ("--star",),
    "--remove": ("--delete", "--untag", "--rm"),
}
_COMMANDS = {word: command for command, words in COMMAND_WORDS.items() for word in words}


def command_hint(word: str, commands: Collection[str]) -> str:
    """The text `; did you mean ls?`, or nothing."""
    from difflib import get_close_matches

    from agent_logger.agents.registry import AGENTS, canonical_name

    agents = {agent.name: agent.run.executable for agent in AGENTS if agent.run}
    if executable := agents.get(canonical_name(word)):
        return f"; did you mean run -- {executable}?"
    meant = _COMMANDS.get(word.lower())
    near = [meant] if meant else get_close_matches(word.lower(), commands, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def option_hint(option: str, options: Collection[str]) -> str:
    """The text `; use --since today`, if the command has that option; else nothing."""
    meant = (right for right, words in OPTION_WORDS.items() if option.lower() in words)
    return next((f"; use {right}" for right in meant if right.split()[0] in options), "")


def argument_hint(word: str, options: Collection[str]) -> str:
    """The text `; use --since today`, for a word that a command takes only with an option; else nothing."""
    from datetime import datetime

    from agent_logger.agents.registry import AGENTS, canonical_name
    from agent_logger.model.times import read_span

    quoted = repr(word) if " " in word else word
    if "--limit" in options and word.isdecimal():
        return f"; use --limit {word}"
    if "--agent" in options and canonical_name(word) in {agent.name for agent in AGENTS}:
        return f"; use --agent {word}"
    if "--since" in options and read_span(word, datetime.now().astimezone()):
        return f"; use --since {quoted}"
    return f"; use --project {quoted}" if "--project" in options else ""
