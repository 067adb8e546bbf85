"""mini-swe-agent: https://mini-swe-agent.com"""

from agent_logger.agents.base import PYTHON_INSTALLER, Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="mini-swe-agent",
    aliases=("mini",),
    location=AgentLocation(is_named_by_user=True, globs=("*.json", "*/*.json", "*/*/*.json")),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    names_sessions_on_wire=False,
    grows_by_lines=False,
    lists_every_call=True,
    wire=WireIdentity(
        system_prompt="You are a helpful assistant that can interact",
        match_files_by="response_ids",
    ),
    run=RunSupport(
        executable="mini",
        package="mini-swe-agent --with mcp",
        installer=PYTHON_INSTALLER,
        headless=("--exit-immediately",),
        prompt_after=("-t", "--task"),
        resume_option="",
        flags=("-y", "--yolo", "--exit-immediately"),
        example='mini -y --exit-immediately -t "SOME TASK" -o run.traj.json',
    ),
    setup=ProxySetup(variable="OPENAI_BASE_URL", reads_extra_certificates=False, child=f"{__name__}.setup"),
)
