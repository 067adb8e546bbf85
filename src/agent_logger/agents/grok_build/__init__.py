"""Grok Build: https://docs.x.ai/build/overview"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity
from agent_logger.model.ids import UUID_PATTERN

AGENT = Agent(
    name="grok-build",
    aliases=("grok",),
    location=AgentLocation(
        default=(".grok",),
        variable="GROK_HOME",
        globs=("sessions/*/*/updates.jsonl",),
        keep=("sessions/*/*/**", "sessions/*/prompt_history.jsonl"),
        beside=("{folder}/**",),
        shared=("{above}/prompt_history.jsonl",),
    ),
    main_file=re.compile(rf"(?:^|/){UUID_PATTERN}/updates\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    names_parents=True,
    reports_totals=True,
    counts_per="exchange",
    response_ids="client",
    wire=WireIdentity(
        user_agents=("grok-shell/",),
        session_headers=("x-grok-session-id",),
        agents_have_sessions=True,
        calls=f"{__name__}.wire",
        compaction="Your task is to produce a faithful, concise summary of the conversation so far",
    ),
    run=RunSupport(
        executable="grok",
        package="@xai-official/grok",
        headless=("-p", "--single", "--prompt-file", "--prompt-json"),
        prompt_after=("-p", "--single"),
        resume_option="--resume",
        resume=("-r", "--resume"),
        go_on=("-c", "--continue"),
        flags=("--always-approve", "--fork-session", "--no-plan", "--no-subagents", "--include-partial-messages"),
        output=f"{__name__}.output",
    ),
    model_hosts=("cli-chat-proxy.grok.com",),
    setup=ProxySetup(
        settings_file="config.toml",
        child=f"{__name__}.setup",
        reads_extra_certificates=False,
        hint="set base_url in ~/.grok/config.toml (see agent-logger proxy --help)",
    ),
)
