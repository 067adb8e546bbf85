"""pi: https://pi.dev"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity
from agent_logger.model.ids import UUID_PATTERN

AGENT = Agent(
    name="pi",
    location=AgentLocation(
        default=(".pi/agent",),
        variable="PI_CODING_AGENT_DIR",
        main_files_variable="PI_CODING_AGENT_SESSION_DIR",
        globs=("sessions/*/*.jsonl", "*.jsonl"),
        keep=("sessions/**", "????-??-??T*_*.jsonl"),
    ),
    main_file=re.compile(rf"(?:^|/)\d{{4}}-[^/]*_{UUID_PATTERN}\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    names_parents=True,
    reports_totals=True,
    names_sessions_on_wire=False,  # over the responses API alone
    wire=WireIdentity(
        user_agents=("pi (", "pi/"),
        system_prompt="You are an expert coding assistant operating inside pi, a coding agent harness",
        session_headers=("session_id",),
        cache_key_is_session=True,
        match_files_by="response_ids",
    ),
    run=RunSupport(
        executable="pi",
        package="@earendil-works/pi-coding-agent",
        headless=("-p", "--print", "--mode"),
        resume_option="--session",
        resume=("--session",),
        go_on=("-c", "--continue", "-r", "--resume"),
        flags=("--no-session", "--no-tools", "--offline", "--verbose"),
        output=f"{__name__}.output",
    ),
    setup=ProxySetup(
        settings_file="models.json",
        hint="set a baseUrl in ~/.pi/agent/models.json (see agent-logger proxy --help)",
    ),
)
