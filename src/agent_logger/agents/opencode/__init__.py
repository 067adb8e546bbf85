"""opencode: https://opencode.ai"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ImportSupport, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="opencode",
    location=AgentLocation(
        default=(".local/share/opencode",),
        variable="XDG_DATA_HOME",
        below="opencode",
        file_variable="OPENCODE_DB",
        globs=("opencode.db", "opencode-*.db"),
        older=("storage/session/*/ses_*.json", "project/*/storage/session/info/ses_*.json"),
        is_database=True,
    ),
    main_file=re.compile(r"(?:^|/)(?:opencode[^/]*\.db|storage/session/[^/]+/ses_[^/]+\.json)$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    response_ids="client",
    # Newer versions do. The sum that a run prints is not compared with the calls of a session of that name.
    names_sessions_on_wire=False,
    names_parents=True,
    grows_by_lines=False,
    wire=WireIdentity(
        user_agents=("opencode/",),
        session_headers=("x-session-id", "x-session-affinity"),
        calls=f"{__name__}.wire",
    ),
    run=RunSupport(
        executable="opencode",
        package="opencode-ai",
        headless=("run",),
        resume_option="--session",
        resume=("-s", "--session"),
        go_on=("-c", "--continue"),
        flags=("--fork", "--share", "--print-logs", "--thinking"),
        lists=("-f", "--file"),
        output=f"{__name__}.output",
    ),
    imports=ImportSupport(command=("opencode", "import"), documents=f"{__name__}.import_document"),
    model_hosts=(
        "opencode.ai",
        # With a GitHub login. The others are those of the three kinds of plans.
        "api.githubcopilot.com",
        "api.individual.githubcopilot.com",
        "api.business.githubcopilot.com",
        "api.enterprise.githubcopilot.com",
    ),
    setup=ProxySetup(variable="OPENCODE_CONFIG_CONTENT", settings_file="opencode.json", child=f"{__name__}.setup"),
)
