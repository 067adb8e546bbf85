"""Droid: https://docs.factory.ai/cli"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity
from agent_logger.model.ids import UUID_PATTERN

AGENT = Agent(
    name="droid",
    aliases=("factory",),
    location=AgentLocation(
        default=(".factory",),
        variable="FACTORY_HOME_OVERRIDE",
        below=".factory",
        globs=("sessions/*/*.jsonl", "sessions/*.jsonl"),  # the second: older versions
        keep=("sessions/**",),
        beside=("{folder}/{stem}.settings.json", "{folder}/{stem}.settings.json.bak"),
    ),
    main_file=re.compile(rf"(?:^|/)sessions/(?:[^/]+/)?{UUID_PATTERN}\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    names_parents=True,
    reports_totals=True,
    counts_per="session",
    names_sessions_on_wire=False,  # to Factory's own models alone
    wire=WireIdentity(
        user_agents=("factory-cli/",),
        system_prompt="You are Droid, an AI software engineering agent built by Factory.",
        session_headers=("x-session-id",),
        calls=f"{__name__}.wire",
        match_files_by="words",
        compaction="Please summarize the following conversation:",
    ),
    run=RunSupport(
        executable="droid",
        package="@factory/cli",
        headless=("exec",),
        resume_option="--resume",
        resume=("-r", "--resume", "-s", "--session-id"),
        go_on=("--last",),
        flags=("--use-spec", "--skip-permissions-unsafe", "--disable-builtin-skills", "--mission", "--list-tools"),
        output=f"{__name__}.output",
        prints_session_totals=True,
        example='droid exec -o json "SOME PROMPT"',
    ),
    model_hosts=("api.factory.ai", "api.eu.factory.ai"),
    setup=ProxySetup(
        settings_file="config.json",
        hint="set base_url of a custom model in ~/.factory/config.json (see agent-logger proxy --help)",
    ),
)
