"""Qwen Code: https://qwenlm.github.io/qwen-code-docs"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity
from agent_logger.model.ids import UUID_PATTERN

AGENT = Agent(
    name="qwen-code",
    aliases=("qwen",),
    location=AgentLocation(
        default=(".qwen",),
        globs=("projects/*/chats/*.jsonl",),
        keep=("projects/*/chats/**",),
    ),
    main_file=re.compile(rf"(?:^|/){UUID_PATTERN}\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.session",
    is_verified=False,
    names_sessions_on_wire=False,
    grows_by_lines=False,
    wire=WireIdentity(user_agents=("qwencode/",), calls=f"{__name__}.wire", match_files_by="words"),
    run=RunSupport(
        executable="qwen",
        package="@qwen-code/qwen-code",
        headless=("-p", "--prompt"),
        prompt_after=("-p", "--prompt"),
        resume_option="--resume",
        resume=("-r", "--resume"),
        go_on=("-c", "--continue"),
        output=f"{__name__}.output",
    ),
    model_hosts=(
        "portal.qwen.ai",
        "dashscope.aliyuncs.com",
        "*.dashscope.aliyuncs.com",
        "dashscope-intl.aliyuncs.com",
    ),
    setup=ProxySetup(variable="OPENAI_BASE_URL", settings_file=".env", child=f"{__name__}.setup"),
)
