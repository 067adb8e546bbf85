"""What sends an agent through the proxy: the variables it reads its base URL from, and what undoes their effects."""

import json
from collections.abc import Mapping

LOOPBACK = "127.0.0.1,localhost"  # for NO_PROXY: what is on this machine is asked without a proxy

# By variable: provider, host and path behind it.
BASE_URLS: Mapping[str, str] = {
    "ANTHROPIC_BASE_URL": "anthropic/api.anthropic.com",
    "OPENAI_BASE_URL": "openai/api.openai.com/v1",
    "GOOGLE_GEMINI_BASE_URL": "gemini/generativelanguage.googleapis.com",
}
# Claude Code turns tool search off for a base URL that is not Anthropic's, unless it is told to keep it.
BESIDE: Mapping[str, str] = {"ENABLE_TOOL_SEARCH": "true"}


def base_urls(port: int) -> dict[str, str]:
    """By variable. opencode wants its path with the version, and reads this before the others' variable."""
    urls = {name: f"http://127.0.0.1:{port}/{path}" for name, path in BASE_URLS.items()}
    provider = {"anthropic": {"options": {"baseURL": f"{urls['ANTHROPIC_BASE_URL']}/v1"}}}
    return {**urls, "OPENCODE_CONFIG_CONTENT": json.dumps({"provider": provider}, separators=(",", ":"))}
