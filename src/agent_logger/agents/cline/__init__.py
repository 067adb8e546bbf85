"""Cline CLI: https://cline.bot"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="cline",
    location=AgentLocation(
        default=(".cline/data",),
        variable="CLINE_DATA_DIR",
        globs=("sessions/*/*.messages.json",),
        keep=("sessions/**",),
        beside=("{folder}/**",),
    ),
    main_file=re.compile(r"(?:^|/)sessions/(?P<id>[^/]+)/(?P=id)(?:\.messages)?\.json$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    response_ids="client",
    names_sessions_on_wire=False,
    grows_by_lines=False,
    wire=WireIdentity(
        # That of a session; its sub-agents have others.
        system_prompt="You are Cline, an AI coding agent.",
        sdk_clients=("ai-sdk",),
        match_files_by="words",
    ),
    run=RunSupport(
        executable="cline",
        package="cline",
        headless=("--json", "--zen", "-z"),
        resume_option="--id",
        resume=("--id",),
        flags=("-p", "--plan", "-v", "--verbose", "-i", "--tui", "--worktree", "--acp"),
        output=f"{__name__}.output",
        example='cline --json "SOME PROMPT"',
    ),
    setup=ProxySetup(
        variable="CLINE_API_BASE_URL",
        settings_file="settings/providers.json",
        child=f"{__name__}.setup",
        hint="set the base URL of any provider but Cline's own with cline auth -b (see agent-logger proxy --help)",
    ),
)
