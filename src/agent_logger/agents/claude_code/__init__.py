"""Claude Code: https://code.claude.com"""

import re

from agent_logger.agents.base import Agent, AgentLocation, ProxySetup, RunSupport, WireIdentity
from agent_logger.model.ids import UUID_PATTERN

AGENT = Agent(
    name="claude-code",
    aliases=("claude",),
    is_limited_by_block=True,
    family="anthropic",
    location=AgentLocation(
        default=(".claude", ".config/claude"),
        variable="CLAUDE_CONFIG_DIR",
        several=True,
        globs=("projects/*/*.jsonl",),
        keep=("projects/**", "sessions/*.jsonl", "file-history/**", "history.jsonl"),
        beside=("{folder}/{stem}/**", "file-history/{stem}/**"),
        shared=("{folder}/memory/**",),
    ),
    main_file=re.compile(rf"(?:^|/){UUID_PATTERN}\.jsonl$"),
    files=f"{__name__}.files",
    reader=f"{__name__}.transcript.session",
    responses=f"{__name__}.transcript.responses",
    reads_on=True,
    prompt_history="history.jsonl",
    prompt_reader=f"{__name__}.prompt_history",
    processes=f"{__name__}.processes",
    naming=f"{__name__}.naming",
    cleanup=f"{__name__}.context",
    context=True,
    wire=WireIdentity(
        user_agents=("claude-cli/", "claude-code/"),
        session_headers=("x-claude-code-session-id",),
        agent_header="x-claude-code-agent-id",
        calls=f"{__name__}.wire",
        compaction="CRITICAL: Respond with TEXT ONLY",
        matches_agents_by_prompt=True,
        match_files_by="response_ids",  # older versions name no session
    ),
    run=RunSupport(
        executable="claude",
        package="@anthropic-ai/claude-code",
        headless=("-p", "--print"),
        prompt_after=("-p", "--print"),
        resume_option="--resume",
        resume=("-r", "--resume"),
        go_on=("-c", "--continue"),
        flags=("--verbose", "--fork-session", "--include-partial-messages", "--dangerously-skip-permissions"),
        lists=(
            *("--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools", "--tools"),
            *("--add-dir", "--mcp-config", "--betas"),
        ),
    ),
    model_hosts=("api.anthropic.com",),
    setup=ProxySetup(variable="ANTHROPIC_BASE_URL", settings_file="settings.json", child=f"{__name__}.setup"),
)
