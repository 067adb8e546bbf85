"""Codex: https://developers.openai.com/codex"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="codex",
    family="openai",
    location=AgentLocation(
        default=(".codex",),
        variable="CODEX_HOME",
        globs=("sessions/*/*/*/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl"),
        keep=("sessions/**", "archived_sessions/**", "history.jsonl"),
    ),
    main_file=re.compile(r"(?:^|/)rollout-[^/]+\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    names_parents=True,
    lists_every_call=True,
    prompt_history="history.jsonl",
    prompt_reader=f"{__name__}.prompt_history",
    wire=WireIdentity(
        user_agents=("codex",),
        session_headers=("session-id", "session_id", "thread-id"),  # the second: before 0.100
        agent_header="thread-id",
        calls=f"{__name__}.wire",
        compaction="You are performing a CONTEXT CHECKPOINT COMPACTION",
        compaction_item="compaction_trigger",
    ),
    run=RunSupport(
        executable="codex",
        package="@openai/codex",
        headless=("exec", "e"),
        resume_option="resume",
        resume=("resume",),
        go_on=("--last",),
        flags=(
            *("--json", "--skip-git-repo-check", "--full-auto", "--oss", "--ephemeral", "--yolo"),
            "--dangerously-bypass-approvals-and-sandbox",
        ),
        lists=("-i", "--image"),
        output=f"{__name__}.output",
        example='codex exec --json "PROMPT"',  # in a terminal it has its URL in a file
    ),
    setup=ProxySetup(
        variable="OPENAI_BASE_URL",
        must_match=True,
        settings_file="config.toml",
        hint="a provider in ~/.codex/config.toml (docs/proxy.md), or agent-logger run -- codex",
    ),
)
