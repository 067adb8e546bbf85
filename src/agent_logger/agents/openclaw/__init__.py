"""OpenClaw, an agent made from pi: https://openclaw.ai"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="openclaw",
    location=AgentLocation(
        default=(".openclaw",),
        variable="OPENCLAW_STATE_DIR",
        globs=("agents/*/agent/openclaw-agent.sqlite",),
        older=("agents/*/sessions/*.jsonl",),
        is_database=True,
    ),
    main_file=re.compile(r"(?:^|/)openclaw-agent\.sqlite$|(?:^|/)\.openclaw/agents/[^/]+/sessions/[^/]+\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    names_parents=True,
    reports_totals=True,
    grows_by_lines=False,
    names_sessions_on_wire=False,
    wire=WireIdentity(
        # Its calls have the user agent of OpenAI's or Anthropic's SDK.
        system_prompt="You are a personal assistant running inside OpenClaw",
        match_files_by="response_ids",
    ),
    run=RunSupport(
        executable="openclaw",
        package="openclaw",
        headless=("--message", "-m", "--message-file"),
        prompt_after=("--message", "-m"),
        resume_option="agent --local --session-id",
        resume=("--session-id",),
        flags=("--local", "--json", "--deliver"),
        output=f"{__name__}.output",
        example="openclaw agent --local --message PROMPT",
    ),
    setup=ProxySetup(
        settings_file="openclaw.json",
        hint="set a baseUrl in ~/.openclaw/openclaw.json (see agent-logger proxy --help)",
    ),
)
