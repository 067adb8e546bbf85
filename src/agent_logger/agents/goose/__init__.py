"""Goose: https://github.com/aaif-goose/goose"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ImportSupport, ProxySetup, RunSupport, WireIdentity

SESSION_ID = re.compile(r"\d{8}_\d{1,6}")  # the day, and a number

AGENT = Agent(
    name="goose",
    location=AgentLocation(
        default=(".local/share/goose/sessions",),
        variable="GOOSE_PATH_ROOT",
        below="data/sessions",
        below_data_home="goose/sessions",
        globs=("sessions.db",),
        is_database=True,
    ),
    main_file=re.compile(r"(?:^|/)goose/(?:data/)?sessions/sessions\.db$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    grows_by_lines=False,
    sub_agent_ids=SESSION_ID,
    repeating_ids=SESSION_ID,
    wire=WireIdentity(
        # Goose sends no user agent. Titles and sub-agents have system prompts of their own.
        system_prompt="You are a general-purpose AI agent called goose",
        headers=("agent-session-id",),
        session_headers=("agent-session-id",),
        calls=f"{__name__}.wire",
    ),
    run=RunSupport(
        executable="goose",
        package="@aaif/goose",
        headless=("run",),
        prompt_after=("-t", "--text"),
        resume_option="session --resume --session-id",
        resume=("--session-id",),
        go_on=("-r", "--resume"),
        flags=("--no-session", "--no-profile", "--debug", "--stats", "-q", "--quiet", "-s", "--interactive", "--fork"),
        output=f"{__name__}.output",
    ),
    imports=ImportSupport(command=("goose", "session", "import"), documents=f"{__name__}.import_document"),
    setup=ProxySetup(
        hint="set OPENAI_HOST or ANTHROPIC_HOST, or use agent-logger run -- goose",
        reads_extra_certificates=False,
        child=f"{__name__}.setup",
    ),
)
