"""GitHub Copilot CLI: https://docs.github.com/copilot/concepts/agents/about-copilot-cli"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity
from agent_logger.model.ids import UUID_PATTERN

AGENT = Agent(
    name="copilot-cli",
    aliases=("copilot",),
    location=AgentLocation(
        default=(".copilot",),
        variable="COPILOT_HOME",
        globs=("session-state/*/events.jsonl", "session-state/*.jsonl"),  # the second: before 0.0.370
        keep=(
            "session-state/*.jsonl",
            *(
                f"session-state/*/{name}"
                for name in ("events.jsonl", "workspace.yaml", "plan.md", "checkpoints/**", "files/**")
            ),
        ),
        beside=tuple(f"{{folder}}/{name}" for name in ("workspace.yaml", "plan.md", "checkpoints/**", "files/**")),
    ),
    main_file=re.compile(rf"(?:^|/){UUID_PATTERN}/events\.jsonl$|(?:^|/)session-state/{UUID_PATTERN}\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    reports_totals=True,
    names_parents=True,
    names_sessions_on_wire=False,
    wire=WireIdentity(
        user_agents=("copilot/",),
        headers=("x-interaction-type", "x-initiator"),
        session_headers=("x-client-session-id",),  # with a GitHub login; nothing names it with a key of the user's own
        agent_header="x-agent-task-id",
        parent_header="x-parent-agent-id",
        system_prompt="You are the GitHub Copilot CLI",
        compaction="Please create a detailed summary of the conversation so far. The history is being compacted",
        match_files_by="response_ids",
    ),
    run=RunSupport(
        executable="copilot",
        package="@github/copilot",
        headless=("-p", "--prompt"),
        prompt_after=("-p", "--prompt"),
        resume_option="--resume",
        resume=("--resume", "-r", "--session-id"),
        go_on=("--continue",),
        flags=("-s", "--silent", "--allow-all-tools", "--allow-all", "--allow-all-paths", "--yolo", "--no-color"),
        output=f"{__name__}.output",
    ),
    model_hosts=(
        "api.githubcopilot.com",
        "api.individual.githubcopilot.com",
        "api.business.githubcopilot.com",
        "api.enterprise.githubcopilot.com",
    ),
    setup=ProxySetup(
        variable="COPILOT_PROVIDER_BASE_URL",
        hint="set COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL, or use agent-logger run -- copilot",
        child=f"{__name__}.setup",
    ),
)
