"""Gemini CLI: https://geminicli.com"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

PROJECT_FILE = ".project_root"  # the path of the project, in the folder above the chats

AGENT = Agent(
    name="gemini-cli",
    aliases=("gemini",),
    family="gemini",
    location=AgentLocation(
        default=(".gemini",),
        variable="GEMINI_CLI_HOME",
        below=".gemini",
        globs=("tmp/*/chats/session-*.jsonl", "tmp/*/chats/session-*.json"),
        keep=("tmp/*/chats/**", "tmp/*/logs.json", f"tmp/*/{PROJECT_FILE}"),
        beside=("{above}/" + PROJECT_FILE,),
    ),
    main_file=re.compile(r"(?:^|/)session-[^/]+\.jsonl?$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    response_ids="client",
    names_sessions_on_wire=False,
    grows_by_lines=False,
    has_id_inside=True,
    wire=WireIdentity(user_agents=("geminicli",), calls=f"{__name__}.wire", match_files_by="words"),
    run=RunSupport(
        executable="gemini",
        package="@google/gemini-cli",
        headless=("-p", "--prompt"),
        prompt_after=("-p", "--prompt"),
        resume_option="--resume",
        go_on=("-r", "--resume"),
        output=f"{__name__}.output",
    ),
    model_hosts=("cloudcode-pa.googleapis.com",),
    setup=ProxySetup(variable="GOOGLE_GEMINI_BASE_URL", settings_file=".env", child=f"{__name__}.setup"),
)
