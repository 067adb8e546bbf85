"""Kimi Code: https://moonshotai.github.io/kimi-code/"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity

AGENT = Agent(
    name="kimi-code",
    aliases=("kimi",),
    location=AgentLocation(
        default=(".kimi-code",),
        variable="KIMI_CODE_HOME",
        globs=("sessions/*/*/agents/main/wire.jsonl",),
        keep=("sessions/*/*/agents/*/wire.jsonl", "sessions/*/*/state.json", "session_index.jsonl"),
        beside=("{above}/*/wire.jsonl",),
        shared=("session_index.jsonl",),
    ),
    main_file=re.compile(r"(?:^|/)agents/main/wire\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    names_parents=True,
    wire=WireIdentity(
        user_agents=("kimi-code-cli/",),
        cache_key_is_session=True,
        calls=f"{__name__}.wire",
        compaction="You are about to run out of context. Create a handoff summary",
        matches_agents_by_prompt=True,
    ),
    run=RunSupport(
        executable="kimi",
        package="@moonshot-ai/kimi-code",
        headless=("-p", "--prompt"),
        prompt_after=("-p", "--prompt"),
        resume_option="--session",
        resume=("-S", "-r", "--session", "--resume"),
        go_on=("-c", "--continue"),
        flags=("-y", "--yolo", "--auto", "--plan"),
        output=f"{__name__}.output",
    ),
    model_hosts=("api.kimi.com", "api.moonshot.ai", "api.moonshot.cn"),
    setup=ProxySetup(
        settings_file="config.toml",
        child=f"{__name__}.setup",
        hint="set base_url in ~/.kimi-code/config.toml (see agent-logger proxy --help)",
    ),
)
