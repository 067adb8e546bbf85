"""Prime Agent, an agent made from pi: https://github.com/PrimeIntellect-ai/prime-agent"""

import re

from agent_logger.agents.base import Agent, AgentLocation

AGENT = Agent(
    name="prime-agent",
    location=AgentLocation(
        default=(".prime/agent",),
        variable="PRIME_AGENT_CODING_AGENT_DIR",
        main_files_variable="PRIME_AGENT_SESSION_DIR",
        globs=("sessions/*.jsonl", "sessions/*/*.jsonl", "*.jsonl"),  # the second: of older versions
        keep=("sessions/**", "*-*-*-*-*.jsonl"),
    ),
    main_file=re.compile(r"(?:^|/)\.prime/agent/sessions/(?:[^/]+/)?[^/]+\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    is_verified=False,
    names_parents=True,
    reports_totals=True,
    names_sessions_on_wire=False,
)
