"""The names of recorded hosts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.agents.registry import AGENTS
from agent_logger.proxy.forward.hosts import (
    SIGN_IN_HOSTS,
    HostNameError,
    RecordedHosts,
    are_permitted,
    default_hosts,
    reduced,
)
from agent_logger.proxy.relay.route import KNOWN_HOSTS

NAMES = [
    pytest.param("LLM.Example.com", "llm.example.com", id="upper case"),
    pytest.param("llm.example.com.", "llm.example.com", id="a final dot"),
    pytest.param("bücher.example", "xn--bcher-kva.example", id="IDN"),
    pytest.param("*.Bücher.example", "*.xn--bcher-kva.example", id="IDN with a wildcard"),
    pytest.param("例え。テスト", "xn--r8jz45g.xn--zckzah", id="IDN with an ideographic full stop"),
    pytest.param("xn--bcher-kva.example", "xn--bcher-kva.example", id="A-labels"),
    pytest.param("*.example.com", "*.example.com", id="a wildcard"),
    pytest.param("my_host.example.com", "my_host.example.com", id="an underscore"),
    pytest.param("1.2.3.example", "1.2.3.example", id="labels of digits"),
]

REFUSED = [
    *("10.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:443", "::1", "fe80::1%eth0", "2130706433", "0x7f.1", "1.2.3.0x4"),
    *("https://llm.example.com", "llm.example.com:8443", "llm.example.com/v1", "ada@llm.example.com", "a b.example"),
    *("*", "*.com", "com", "localhost", "*.*.example.com", "a.*.example.com", "*a.example.com", "**.example.com"),
    *("", ".", "..", "a..example.com", ".example.com", "-a.example.com", "a-.example.com", "a" * 64 + ".example"),
    *("*.", "faß.example", "a\0.example.com", "a.example.com\n.b", "\u212aelvin.", ".".join(["a" * 60] * 5)),
]


@pytest.mark.parametrize(("text", "name"), NAMES)
def test_a_name_has_one_form(text: str, name: str) -> None:
    assert RecordedHosts.parse([text]).names == (name,)


@pytest.mark.parametrize("text", REFUSED)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(HostNameError):
        RecordedHosts.parse([text])


@pytest.mark.parametrize("text", ["10.0.0.1", "[::1]:443", "2130706433", "10.0.0.1:443"])
def test_the_refusal_of_an_address_names_the_setting_for_addresses(text: str) -> None:
    with pytest.raises(HostNameError, match="--allow-upstream"):
        RecordedHosts.parse([text])


@given(st.text(max_size=80))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    try:
        [name] = RecordedHosts.parse([text]).names
    except HostNameError:
        return
    assert RecordedHosts.parse([name]).names == (name,)
    assert name.isascii() and name == name.lower()


def test_a_name_covers_its_host_alone() -> None:
    hosts = RecordedHosts.parse(["llm.example.com"])
    covered = ("llm.example.com", "LLM.example.COM", "llm.example.com.")
    others = ("a.llm.example.com", "example.com", "xllm.example.com", "", ".", "llm.example.com..", "10.0.0.1")
    assert [host for host in (*covered, *others) if hosts.covers(host)] == list(covered)


def test_a_wildcard_covers_hosts_below_a_name_at_any_depth() -> None:
    hosts = RecordedHosts.parse(["*.example.com"])
    covered = ("a.example.com", "b.a.example.com", "A.Example.com.")
    others = ("example.com", ".example.com", "a..example.com", "*.example.com", "badexample.com", "a b.example.com")
    assert [host for host in (*covered, *others) if hosts.covers(host)] == list(covered)


def test_the_default_hosts_are_the_known_providers_and_the_back_ends_of_agents() -> None:
    hosts = set(default_hosts())
    assert hosts == {*KNOWN_HOSTS, *(host for agent in AGENTS for host in agent.model_hosts)}
    assert hosts >= {"chatgpt.com", "api.githubcopilot.com", "cloudcode-pa.googleapis.com"}
    assert RecordedHosts.configured([]).names == tuple(sorted(hosts))


def test_no_host_for_signing_in_is_recorded_by_default() -> None:
    hosts = RecordedHosts.configured([])
    assert [host for host in SIGN_IN_HOSTS if hosts.covers(host)] == []
    assert {"console.anthropic.com", "auth.openai.com", "accounts.google.com", "github.com"} <= SIGN_IN_HOSTS


def test_a_host_for_signing_in_is_recorded_only_if_it_is_named() -> None:
    assert not RecordedHosts.configured(["*.openai.com"]).covers("auth.openai.com")
    assert RecordedHosts.configured(["*.openai.com"]).covers("eu.api.openai.com")
    assert RecordedHosts.configured(["auth.openai.com"]).covers("auth.openai.com")


def test_a_subtree_is_permitted_once() -> None:
    names = ["a.example.com", "*.example.com", "example.com", "b.example.org", "*.b.example.org", "a.b.example.net"]
    assert RecordedHosts.parse(names).subtrees == ("a.b.example.net", "b.example.org", "example.com")


LABELS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4).map(".".join)


@given(st.lists(LABELS, max_size=6), LABELS)
def test_reduced_subtrees_permit_the_same_names(subtrees: list[str], name: str) -> None:
    below = any(name == subtree or name.endswith(f".{subtree}") for subtree in subtrees)
    assert are_permitted([name], subtrees) is are_permitted([name], reduced(subtrees)) is below


@given(st.lists(LABELS.map(lambda name: f"{name}.example"), min_size=1), LABELS)
def test_every_covered_host_is_permitted(names: list[str], host: str) -> None:
    hosts = RecordedHosts.parse([*names, *(f"*.{name}" for name in names[:2])])
    if hosts.covers(f"{host}.example"):
        assert are_permitted([f"{host}.example"], hosts.subtrees)
