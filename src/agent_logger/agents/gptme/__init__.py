"""gptme: https://gptme.org"""

import re

from agent_logger.agents.base import PYTHON_INSTALLER, Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="gptme",
    location=AgentLocation(
        default=(".local/share/gptme/logs", "Library/Application Support/gptme/logs"),
        variable="GPTME_LOGS_HOME",
        below_data_home="gptme/logs",
        globs=("*/conversation.jsonl",),
        keep=(
            *("*/conversation.jsonl", "*/events.jsonl", "*/lossless.jsonl", "*/config.toml", "*/subagent-meta.json"),
            *("*/branches/*.jsonl", "*/views/*.jsonl", "*/files/*"),
        ),
        beside=("{folder}/*.jsonl", "{folder}/config.toml", "{folder}/*/*.jsonl", "{folder}/files/*"),
    ),
    main_file=re.compile(r"(?:^|/)gptme/logs/[^/]+/conversation\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    response_ids="client",
    names_sessions_on_wire=False,
    wire=WireIdentity(system_prompt="You are gptme", calls=f"{__name__}.wire", match_files_by="words"),
    run=RunSupport(
        executable="gptme",
        package="gptme",
        installer=PYTHON_INSTALLER,
        headless=("-n", "--non-interactive"),
        resume_option="--resume --name",
        resume=("--name",),
        go_on=("-r", "--resume"),
        flags=("-y", "--no-confirm", "--stream", "--no-stream", "--show-hidden", "-v", "--verbose", "--multi-tool"),
        output=f"{__name__}.output",
        example='gptme -n --output-format json "SOME PROMPT"',
    ),
    setup=ProxySetup(variable="OPENAI_BASE_URL", reads_extra_certificates=False, child=f"{__name__}.setup"),
)
