"""Continue's command line: https://docs.continue.dev/guides/cli"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="continue-cli",
    aliases=("continue", "cn", "continue-cn"),
    location=AgentLocation(
        default=(".continue",),
        variable="CONTINUE_GLOBAL_DIR",
        globs=("sessions/*.json",),
        keep=("sessions/*.json",),
        shared=("{folder}/sessions.json",),
    ),
    main_file=re.compile(r"(?:^|/)\.continue/sessions/(?!sessions\.json$)[^/]+\.json$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    response_ids="client",
    names_sessions_on_wire=False,
    grows_by_lines=False,
    reports_totals=True,
    wire=WireIdentity(
        system_prompt="You are an agent in the Continue CLI.",
        calls=f"{__name__}.wire",
        compaction="Please provide a concise summary of our conversation so far",
        match_files_by="words",
    ),
    run=RunSupport(
        executable="cn",
        package="@continuedev/cli",
        headless=("-p", "--print"),
        prompt_after=("-p", "--print"),
        resume_option="",
        go_on=("--resume", "--fork"),
        flags=("--auto", "--readonly", "--verbose", "--silent", "--beta-status-tool", "--beta-subagent-tool"),
        output=f"{__name__}.output",
        example='cn -p "SOME PROMPT" --format json',
    ),
    setup=ProxySetup(
        settings_file="config.yaml",
        hint="set apiBase of a model in ~/.continue/config.yaml (see agent-logger proxy --help)",
    ),
)
