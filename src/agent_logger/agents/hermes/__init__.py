"""Hermes: https://github.com/NousResearch/hermes-agent"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="hermes",
    aliases=("hermes-agent",),
    location=AgentLocation(
        default=(".hermes",),
        variable="HERMES_HOME",
        globs=("state.db", "profiles/*/state.db"),
        is_database=True,
    ),
    main_file=re.compile(r"(?:^|/)\.hermes/(?:profiles/[^/]+/)?state\.db$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    names_parents=True,
    reports_totals=True,
    counts_per="session",
    grows_by_lines=False,
    response_ids="client",
    names_sessions_on_wire=False,
    session_ids=re.compile(r"\d{8}_\d{6}_[0-9a-f]{6,8}"),
    wire=WireIdentity(
        # Its calls have the user agent of OpenAI's or Anthropic's SDK.
        system_prompt="You are Hermes Agent, an intelligent AI assistant created by Nous Research",
        calls="agent_logger.agents.goose.wire",  # titles and summaries are asked for without tools
        match_files_by="words",
    ),
    run=RunSupport(
        executable="hermes",
        package="hermes-agent",
        headless=("-z", "--oneshot", "-q", "--query"),
        prompt_after=("-z", "--oneshot", "-q", "--query"),
        resume_option="chat --resume",
        resume=("-r", "--resume"),
        go_on=("-c", "--continue"),
        flags=(
            "-Q",
            "--quiet",
            "--yolo",
            "-v",
            "--verbose",
            "-w",
            "--worktree",
            "--checkpoints",
            "--safe-mode",
            "--cli",
        ),
        example="hermes -z PROMPT",
    ),
    setup=ProxySetup(
        settings_file="config.yaml",
        child=f"{__name__}.setup",
        hint="set model.base_url in ~/.hermes/config.yaml (see agent-logger proxy --help)",
    ),
)
