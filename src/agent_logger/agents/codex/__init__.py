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
        cache_key_is_session=True,
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
        example='codex exec --json "PROMPT"',  # in a terminal, Codex has its URL in a file
    ),
    model_hosts=("chatgpt.com",),
    setup=ProxySetup(
        variable="OPENAI_BASE_URL",
        must_match=True,
        reads_extra_certificates=False,
        settings_file="config.toml",
        child=f"{__name__}.setup",
        hint="add a provider to ~/.codex/config.toml (see agent-logger proxy --help), or use agent-logger run -- codex",
    ),
)
