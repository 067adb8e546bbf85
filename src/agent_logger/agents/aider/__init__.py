"""aider: https://aider.chat"""

from agent_logger.agents.base import PYTHON_INSTALLER, Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

HISTORY = ".aider.chat.history.md"

AGENT = Agent(
    name="aider",
    location=AgentLocation(
        is_named_by_user=True,
        globs=(HISTORY, f"*/{HISTORY}", f"*/*/{HISTORY}"),
        beside=("{folder}/.aider.input.history",),
    ),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    response_ids="client",
    names_sessions_on_wire=False,
    grows_by_lines=False,
    reports_totals=True,
    counts_per=None,
    wire=WireIdentity(
        system_prompt="Act as an expert software developer.",
        calls=f"{__name__}.wire",
        match_files_by="words",
    ),
    run=RunSupport(
        executable="aider",
        package="aider-chat",
        installer=PYTHON_INSTALLER,
        headless=("-m", "--message", "--msg", "-f", "--message-file", "--commit", "--lint", "--test"),
        prompt_after=("-m", "--message", "--msg"),
        resume_option="",
        go_on=("--restore-chat-history",),
        flags=("--yes-always", "--no-stream", "--no-auto-commits", "--no-git", "--architect", "--dry-run"),
        example='aider --yes-always --message "SOME PROMPT"',
    ),
    setup=ProxySetup(variable="OPENAI_BASE_URL", reads_extra_certificates=False, child=f"{__name__}.setup"),
)
