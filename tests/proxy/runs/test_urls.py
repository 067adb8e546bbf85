"""Where the base URLs of a run lead: to the place that somebody chose, by way of the proxy."""

import pytest

from agent_logger.proxy.relay.route import KNOWN_HOSTS
from agent_logger.proxy.runs.messages import new_token
from agent_logger.proxy.runs.urls import RunUrls, base_url_changes

PORT, OTHER, DEAD = 8080, 8090, 9991
TOKEN = "alr_" + "T" * 32
BASE = f"http://127.0.0.1:{PORT}/{TOKEN}"
ALLOWED = {PORT: (), OTHER: ("http://10.0.0.5:4000",)}


@pytest.fixture(autouse=True)
def nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_logger.proxy.base_urls.is_listening", lambda port: False)


# By base URL: where the run is sent, and the origins that it must be allowed to call.
RUNS = {
    "http://127.0.0.1:4000": ("127.0.0.1:4000", ["http://127.0.0.1:4000"]),
    "http://localhost:4000/v1/": ("localhost:4000/v1/", ["http://localhost:4000"]),
    "HTTP://[::1]:4000": ("[::1]:4000", ["http://[::1]:4000"]),
    "https://gateway.example.com/v1": ("gateway.example.com/v1", ["https://gateway.example.com"]),
    "https://api.anthropic.com": ("api.anthropic.com", []),
    "https://openrouter.ai/api": ("openrouter.ai/api", []),
    "https://api.anthropic.com:8443": ("api.anthropic.com:8443", ["https://api.anthropic.com:8443"]),
    f"http://127.0.0.1:{DEAD}/anthropic/api.anthropic.com": ("api.anthropic.com", []),
    f"http://127.0.0.1:{DEAD}/anthropic/127.0.0.1:4000/v1": ("127.0.0.1:4000/v1", ["http://127.0.0.1:4000"]),
    f"http://127.0.0.1:{OTHER}/anthropic/10.0.0.5:4000/v1": ("10.0.0.5:4000/v1", ["http://10.0.0.5:4000"]),
    f"http://127.0.0.1:{DEAD}/{TOKEN}/anthropic/api.anthropic.com": ("api.anthropic.com", []),
}


@pytest.mark.parametrize("url", RUNS)
def test_a_run_reaches_the_upstream_named_in_its_environment(url: str) -> None:
    urls = RunUrls(PORT, TOKEN, ALLOWED)
    place, origins = RUNS[url]
    changes = base_url_changes({"ANTHROPIC_BASE_URL": url}, urls)
    assert changes["ANTHROPIC_BASE_URL"] == f"{BASE}/anthropic/{place}"
    assert list(urls.origins) == origins


@pytest.mark.parametrize("url", ["not a URL", "http://user:password@127.0.0.1:4000", "https://h.example.com/../x"])
def test_a_base_url_that_cannot_be_followed_is_unchanged(url: str) -> None:
    changes = base_url_changes({"ANTHROPIC_BASE_URL": url}, RunUrls(PORT, TOKEN, ALLOWED))
    assert "ANTHROPIC_BASE_URL" not in changes and "OPENAI_BASE_URL" in changes


def test_a_run_inside_a_run_names_the_outer_one() -> None:
    outer, urls = new_token(), RunUrls(PORT, TOKEN, ALLOWED)
    inner = urls.through("anthropic", f"http://127.0.0.1:{PORT}/{outer}/anthropic/10.9.9.9:4000/v1")
    assert (inner, urls.within, list(urls.origins)) == (f"{BASE}/anthropic/10.9.9.9:4000/v1", outer, [])


def test_tool_search_is_kept_only_for_the_vendors_own_address() -> None:
    urls = RunUrls(PORT, TOKEN, ALLOWED)
    assert base_url_changes({}, urls)["ENABLE_TOOL_SEARCH"] == "true"
    assert "ENABLE_TOOL_SEARCH" not in base_url_changes({"ANTHROPIC_BASE_URL": "http://127.0.0.1:4000"}, urls)
    assert "ENABLE_TOOL_SEARCH" not in base_url_changes({"ENABLE_TOOL_SEARCH": "false"}, urls)


def test_existing_no_proxy_hosts_are_preserved_in_either_variable() -> None:
    urls = RunUrls(PORT, TOKEN, ALLOWED)
    changes = base_url_changes({"no_proxy": "corp.example.com"}, urls)
    assert changes["NO_PROXY"] == changes["no_proxy"] == "corp.example.com,127.0.0.1,localhost"
    assert "no_proxy" not in base_url_changes({"NO_PROXY": "a.b"}, urls)


def test_known_providers_need_no_permission() -> None:
    urls = RunUrls(PORT, TOKEN, ALLOWED)
    assert all(urls.through("openai", f"https://{host}/v1") for host in KNOWN_HOSTS)
    assert not urls.origins
