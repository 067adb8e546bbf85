"""Mistral Vibe: https://docs.mistral.ai/mistral-vibe/introduction"""

import re

from agent_logger.agents.base import PYTHON_INSTALLER, Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="mistral-vibe",
    aliases=("vibe",),
    location=AgentLocation(
        default=(".vibe",),
        variable="VIBE_HOME",
        globs=("logs/session/unified/*/CURRENT", "logs/session/*/messages.jsonl"),  # the second: version 2
        keep=(
            "logs/session/unified/*/**",
            "logs/session/*/messages.jsonl",
            "logs/session/*/meta.json",
            "logs/session/*/agents/**",
        ),
        beside=("{folder}/**",),
    ),
    main_file=re.compile(r"(?:^|/)session/(?:unified/[^/]+/CURRENT|[^/]+/messages\.jsonl)$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    names_parents=True,
    reports_totals=True,
    counts_per="session",
    response_ids="client",
    grows_by_lines=False,
    wire=WireIdentity(
        user_agents=("mistral-vibe/",),  # of version 2; that of version 3 is httpx'
        system_prompt="You help users get complex tasks done. Act directly and proactively.",
        session_headers=("x-affinity",),
        calls="agent_logger.agents.goose.wire",  # titles are asked for without tools
        compaction="CRITICAL: Respond with text only. Do NOT call any tools.",
    ),
    run=RunSupport(
        executable="vibe",
        package="mistral-vibe",
        installer=PYTHON_INSTALLER,
        headless=("-p", "--prompt", "--prompt-file"),
        prompt_after=("-p", "--prompt"),
        resume_option="--resume",
        resume=("--resume",),
        go_on=("-c", "--continue"),
        flags=("--auto-approve", "--yolo", "--smart-approve", "--trust", "--legacy-harness", "--experimental-harness"),
        output=f"{__name__}.output",
        example='vibe -p "PROMPT" --output streaming',
    ),
    setup=ProxySetup(
        settings_file="config.toml",
        reads_extra_certificates=False,
        hint="set api_base of a provider in ~/.vibe/config.toml (see agent-logger proxy --help)",
    ),
)
