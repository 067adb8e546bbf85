"""OpenHands CLI: https://docs.openhands.dev/openhands/usage/cli/quick-start"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="openhands",
    aliases=("openhands-cli",),
    location=AgentLocation(
        default=(".openhands",),
        variable="OPENHANDS_PERSISTENCE_DIR",
        main_files_variable="OPENHANDS_CONVERSATIONS_DIR",
        globs=("conversations/*/base_state.json", "*/base_state.json"),
        keep=("conversations/*/**",),
        beside=("{folder}/**",),
    ),
    main_file=re.compile(r"(?:^|/)[0-9a-f]{32}/base_state\.json$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    grows_by_lines=False,
    wire=WireIdentity(
        system_prompt="You are OpenHands agent,",
        sdk_clients=("openai-python", "litellm"),
        cache_key_is_session=True,
        has_dashes_on_wire=True,
        matches_agents_by_prompt=True,
        match_files_by="response_ids",
    ),
    run=RunSupport(
        executable="openhands",
        package="openhands",
        installer="uv tool install",
        headless=("--headless",),
        prompt_after=("-t", "--task"),
        resume_option="--resume",
        resume=("--resume",),
        go_on=("--last",),
        flags=("--json", "--always-approve", "--yolo", "--llm-approve", "--override-with-envs"),
        output=f"{__name__}.output",
        example='openhands --headless --json -t "PROMPT"',
    ),
    model_hosts=("llm-proxy.app.all-hands.dev",),
    setup=ProxySetup(
        settings_file="agent_settings.json",
        child=f"{__name__}.setup",
        reads_extra_certificates=False,
        hint="set LLM_BASE_URL and use --override-with-envs (see agent-logger proxy --help)",
    ),
)
