"""The variables of the forward door."""

from hypothesis import given
from hypothesis import strategies as st

from agent_logger.proxy.forward.variables import (
    BUNDLES,
    EXTRA_CERTIFICATES,
    NODE_PROXY,
    PROXY_VARIABLES,
    ForwardAccess,
    forward_variables,
    without_proxy,
)

TOKEN = "alr_" + "a" * 32
ACCESS = ForwardAccess(8080, TOKEN, "/home/user/ca/extra.pem", "/home/user/ca/bundle.pem")
URL = f"http://agent-logger:{TOKEN}@127.0.0.1:8080"


def test_https_goes_through_the_proxy_with_user_and_password() -> None:
    variables = forward_variables({}, ACCESS)
    assert [variables[name] for name in PROXY_VARIABLES] == [URL, URL]


def test_plain_http_stays_direct() -> None:
    variables = forward_variables({"HTTP_PROXY": "http://proxy.example.com:3128"}, ACCESS)
    assert not {"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} & set(variables)


def test_every_variable_for_certificates_names_the_bundle_and_node_gets_ours_besides_its_own() -> None:
    variables = forward_variables({}, ACCESS)
    assert {variables[name] for name in BUNDLES} == {ACCESS.bundle}
    assert variables[EXTRA_CERTIFICATES] == ACCESS.certificates


def test_without_a_bundle_no_program_loses_its_own_certificates() -> None:
    variables = forward_variables({}, ACCESS._replace(bundle=None))
    assert variables[EXTRA_CERTIFICATES] == ACCESS.certificates
    assert not set(BUNDLES) & set(variables)


def test_the_variable_of_node_is_set_only_where_that_is_asked_for() -> None:
    assert NODE_PROXY not in forward_variables({}, ACCESS)
    assert forward_variables({}, ACCESS, node_proxy=True)[NODE_PROXY] == "1"


def test_this_machine_is_added_to_the_hosts_that_are_reached_directly() -> None:
    assert without_proxy({}) == "localhost,127.0.0.1,::1"
    assert without_proxy({"NO_PROXY": "127.0.0.1, .corp.example"}) == "127.0.0.1,.corp.example,localhost,::1"
    variables = forward_variables({"NO_PROXY": "a.example"}, ACCESS)
    assert variables["NO_PROXY"] == variables["no_proxy"] == "a.example,localhost,127.0.0.1,::1"


def test_the_lower_case_variable_wins_as_it_does_for_curl() -> None:
    assert without_proxy({"NO_PROXY": "a.example", "no_proxy": "b.example"}).startswith("b.example,")


def test_recorded_hosts_are_not_reached_directly() -> None:
    recorded = ("api.anthropic.com", "*.example.com")
    for item in ("*", "anthropic.com", ".anthropic.com", "*.anthropic.com", "api.anthropic.com:443", "llm.example.com"):
        assert without_proxy({"NO_PROXY": f"{item},git.corp.test"}, recorded) == "git.corp.test,localhost,127.0.0.1,::1"
    assert without_proxy({"NO_PROXY": "pic.com"}, recorded).startswith("pic.com,")


@given(st.lists(st.text("abc.*:1 ", max_size=12), max_size=5), st.lists(st.sampled_from(["a.b", "*.c.b"]), max_size=2))
def test_an_item_is_kept_as_written_or_left_out(items: list[str], recorded: list[str]) -> None:
    written = {part for item in items for part in item.split()}
    names = without_proxy({"NO_PROXY": ",".join(items)}, recorded).split(",")
    assert set(names) <= written | {"localhost", "127.0.0.1", "::1"}
    assert {"localhost", "127.0.0.1", "::1"} <= set(names)
