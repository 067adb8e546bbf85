"""Which base URLs are ours, which are somebody's choice, and where each leads in the end."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.proxy.base_urls import base_urls, shell_variables
from agent_logger.proxy.relay.route import KNOWN_HOSTS

PORT = 8080
DEAD, OTHER, FOREIGN = (
    9991,
    9992,
    9993,
)  # of a proxy that ended, of another one that runs, of somebody else's program
ALLOWED = ("http://127.0.0.1:4000", "https://llm.example.com", "http://[::1]:4000")


def wanted(name: str, value: str, **others: str) -> dict[str, str]:
    variables = shell_variables(
        {name: value, **others}, PORT, ALLOWED, [OTHER], is_listening=lambda port: port in (OTHER, FOREIGN)
    )
    return {it.name: it.with_proxy for it in variables}


THEIRS = [
    "http://127.0.0.1:4001",
    "http://127.0.0.1:4001/",
    "http://localhost:4000",  # another origin than the one that is allowed
    "http://[::1]:4001/v1",
    "http://127.0.0.1:8080",  # our port, and not our path
    "http://127.0.0.1:8080/v1",
    "http://127.0.0.1:4001/anthropic",  # as LiteLLM has it
    "http://127.0.0.1:4001/openai/v1",
    "http://127.0.0.1:4001/anthropic/v1/",
    f"http://127.0.0.1:{FOREIGN}/anthropic/gateway.example.com/v1",
    f"http://127.0.0.1:{OTHER}/anthropic/127.0.0.1:5000",  # through another proxy, which works
    "https://api.anthropic.com",
    "https://openrouter.ai/api/v1",
    "https://llm.example.com:8443",
    "http://user:password@127.0.0.1:4000",
    "http://127.0.0.1:4000/../../openai/api.openai.com",  # clients would resolve it
    "https://llm.example.com/%2e%2e/v1",
    "https://llm.example.com?api-version=1",
    "not a URL",
    "127.0.0.1:4000",
]


@pytest.mark.parametrize("url", THEIRS)
@pytest.mark.parametrize("name", ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"])
def test_a_foreign_base_url_is_unchanged(name: str, url: str) -> None:
    assert wanted(name, url)[name] == url


THROUGH = {
    "http://127.0.0.1:4000": "http://127.0.0.1:8080/openai/127.0.0.1:4000",
    "http://127.0.0.1:4000/": "http://127.0.0.1:8080/openai/127.0.0.1:4000/",
    "HTTP://127.0.0.1:4000/V1": "http://127.0.0.1:8080/openai/127.0.0.1:4000/V1",
    "https://LLM.example.com/v1": "http://127.0.0.1:8080/openai/llm.example.com/v1",
    "https://llm.example.com:443/v1": "http://127.0.0.1:8080/openai/llm.example.com/v1",
    "http://[::1]:4000/v1": "http://127.0.0.1:8080/openai/[::1]:4000/v1",
    f"http://127.0.0.1:{DEAD}/openai/127.0.0.1:4000/v1": "http://127.0.0.1:8080/openai/127.0.0.1:4000/v1",
}


@pytest.mark.parametrize("url", THROUGH)
def test_a_base_url_with_an_allowed_origin_is_routed_through_the_proxy(url: str) -> None:
    assert wanted("OPENAI_BASE_URL", url)["OPENAI_BASE_URL"] == THROUGH[url]


def test_without_the_proxy_an_allowed_origin_keeps_its_own_scheme() -> None:
    url = "http://127.0.0.1:8080/openai/10.0.0.5:4000/v1"
    variables = shell_variables({"OPENAI_BASE_URL": url}, PORT, ["http://10.0.0.5:4000"])
    found = {it.name: (it.with_proxy, it.without_proxy) for it in variables}
    assert found["OPENAI_BASE_URL"] == (url, "http://10.0.0.5:4000/v1")


OURS = {  # of proxies that ended, and where they lead now
    f"http://127.0.0.1:{DEAD}/anthropic/api.anthropic.com": "http://127.0.0.1:8080/anthropic/api.anthropic.com",
    f"http://127.0.0.1:{FOREIGN}/anthropic/api.anthropic.com": "http://127.0.0.1:8080/anthropic/api.anthropic.com",
    f"http://127.0.0.1:{DEAD}/anthropic/openrouter.ai/api": "http://127.0.0.1:8080/anthropic/openrouter.ai/api",
    "http://127.0.0.1:8080/anthropic/api.anthropic.com": "http://127.0.0.1:8080/anthropic/api.anthropic.com",
    f"http://127.0.0.1:{DEAD}/anthropic/127.0.0.1:5000/v1": "http://127.0.0.1:5000/v1",
    f"http://127.0.0.1:{DEAD}/anthropic/gateway.example.com": "https://gateway.example.com",
}


@pytest.mark.parametrize("url", OURS)
def test_a_base_url_of_a_stopped_proxy_keeps_its_upstream(url: str) -> None:
    assert wanted("ANTHROPIC_BASE_URL", url)["ANTHROPIC_BASE_URL"] == OURS[url]


def test_opencode_and_tool_search_settings_are_not_set_for_a_gateway() -> None:
    found = wanted("ANTHROPIC_BASE_URL", "http://127.0.0.1:4001")
    assert "OPENCODE_CONFIG_CONTENT" not in found
    assert "ENABLE_TOOL_SEARCH" not in found
    stale = base_urls(DEAD)["OPENCODE_CONFIG_CONTENT"]
    assert (
        wanted("ANTHROPIC_BASE_URL", "http://127.0.0.1:4001", OPENCODE_CONFIG_CONTENT=stale)["OPENCODE_CONFIG_CONTENT"]
        == ""
    )


def test_opencode_settings_of_an_earlier_proxy_are_replaced() -> None:
    found = wanted("OPENCODE_CONFIG_CONTENT", base_urls(DEAD)["OPENCODE_CONFIG_CONTENT"])
    assert found["OPENCODE_CONFIG_CONTENT"] == base_urls(PORT)["OPENCODE_CONFIG_CONTENT"]


def test_a_tool_search_setting_of_the_user_is_unchanged() -> None:
    assert "ENABLE_TOOL_SEARCH" not in wanted("ENABLE_TOOL_SEARCH", "false")


URLS = st.builds(
    "{}://{}{}".format,
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["127.0.0.1:4001", "localhost:4001", "[::1]:4001", "h.example.com", "127.0.0.1:9993"]),
    st.text("/v1openaithrpcgm.:-", max_size=40).map(lambda it: f"/{it}" if it else ""),
)


@given(URLS)
def test_a_gateway_url_with_any_path_is_unchanged(url: str) -> None:
    if not any(host in url for host in KNOWN_HOSTS):
        assert wanted("OPENAI_BASE_URL", url)["OPENAI_BASE_URL"] == url


@pytest.fixture(autouse=True)
def nothing_listens(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("agent_logger.proxy.base_urls.is_listening", lambda port: port == FOREIGN)
    yield
