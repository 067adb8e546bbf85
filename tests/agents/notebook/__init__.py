"""An agent that was made up: what a new agent needs, and nothing else."""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="notebook",
    location=AgentLocation(
        default=(".notebook",), variable="NOTEBOOK_HOME", globs=("talks/*.jsonl",), keep=("talks/**",)
    ),
    main_file=re.compile(r"/talks/[^/]+\.jsonl$"),
    reader=f"{__name__}.session",
    wire=WireIdentity(user_agents=("notebook/",), session_headers=("x-notebook-talk",)),
    run=RunSupport(
        executable="notebook",
        package="notebook",
        headless=("-p",),
        resume_option="--talk",
        resume=("--talk",),
    ),
    setup=ProxySetup(variable="ANTHROPIC_BASE_URL"),
)
