"""Kilo: https://kilo.ai. Its CLI continues opencode's code, and keeps the same tables in a database of its own."""

import re

from agent_logger.agents.base import Agent, AgentLocation, ImportSupport, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="kilo",
    location=AgentLocation(
        default=(".local/share/kilo",),
        variable="XDG_DATA_HOME",
        below="kilo",
        file_variable="KILO_DB",
        globs=("kilo.db", "kilo-*.db"),
        is_database=True,
    ),
    main_file=re.compile(r"(?:^|/)kilo[^/]*\.db$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    response_ids="client",
    names_parents=True,
    grows_by_lines=False,
    wire=WireIdentity(
        user_agents=("kilo-code/",),
        # The calls of a sub-agent name the session that started it, too.
        session_headers=("x-parent-session-id", "x-session-id", "x-session-affinity"),
        agent_header="x-session-id",
        calls="agent_logger.agents.opencode.wire",
    ),
    run=RunSupport(
        executable="kilo",
        package="@kilocode/cli",
        headless=("run",),
        resume_option="--session",
        resume=("-s", "--session"),
        go_on=("-c", "--continue"),
        flags=("--auto", "--fork", "--cloud-fork", "--share", "--print-logs", "--pure", "--thinking"),
        lists=("-f", "--file"),
        output="agent_logger.agents.opencode.output",
    ),
    imports=ImportSupport(command=("kilo", "import"), documents="agent_logger.agents.opencode.import_document"),
    model_hosts=("api.kilo.ai",),
    setup=ProxySetup(
        settings_file="kilo.json",
        hint="set a baseURL in ~/.config/kilo/kilo.json (see agent-logger proxy --help)",
        child=f"{__name__}.setup",
    ),
)
