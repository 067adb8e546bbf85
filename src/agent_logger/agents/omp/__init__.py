"""OhMyPi, an agent made from pi: https://github.com/can1357/oh-my-pi"""

import re

from agent_logger.agents.base import Agent, AgentLocation, RunSupport

AGENT = Agent(
    name="omp",
    aliases=("oh-my-pi",),
    location=AgentLocation(
        default=(".omp/agent",),
        globs=("sessions/*/*.jsonl",),
        keep=("sessions/**",),
        beside=("{folder}/{stem}/**",),
    ),
    main_file=re.compile(r"(?:^|/)\.omp/agent/sessions/[^/]+/[^/]+\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    is_verified=False,
    names_parents=True,
    reports_totals=True,
    names_sessions_on_wire=False,
    run=RunSupport(
        executable="omp",
        package="@oh-my-pi/pi-coding-agent",
        headless=("-p", "--print", "--mode"),
        resume_option="--session",
        resume=("--session",),
        go_on=("-c", "--continue", "-r", "--resume"),
        output="agent_logger.agents.pi.output",
    ),
)
