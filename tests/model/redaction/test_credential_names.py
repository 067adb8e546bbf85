"""Names of headers, parameters, options and variables: what they hold is hidden, or stays readable."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.model.redaction.credential_names import WORDS, is_credential_name

_HIDDEN = """
    Authorization Proxy-Authorization x-api-key api-key apikey X-ApiKey x-goog-api-key X-Amz-Security-Token
    Cookie Set-Cookie X-Portkey-Api-Key X-Portkey-Virtual-Key Ocp-Apim-Subscription-Key CF-Access-Client-Secret
    Cf-Access-Jwt-Assertion cf-aig-authorization Helicone-Auth X-Auth-Token X-Access-Token X-Refresh-Token
    x-litellm-api-key X-Functions-Key X-GitHub-Token Private-Token Job-Token X-Vault-Token
    X-Shopify-Access-Token X-Hub-Signature-256 X-Signature X-CSRF-Token X-Session-Token X-Client-Secret
    X-Password X-Passwd X-Pass X-Credential X-Goog-IAM-Authorization-Token X-Tokens X-Auth-Tokens
    x-ms-token-aad-access-token X-Personal-Access-Tokens X-Author-Token authorization-key OPENAI_API_KEY
    AWS_SECRET_ACCESS_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN PGPASSWORD MYSQL_PWD DB_PASS GITHUB_TOKEN
    apiKey clientSecret model_providers.x.api_key key api_key access_token token sig id_token
    commonkey x-addonkey keyword-secret x-keywordsecret authorkey x-admintokens tokenizerkey
    COSMOS_PRIMARY_KEY PAGERDUTY_ROUTING_KEY X-Access-Control-Token
"""
_READABLE = """
    Host Content-Type User-Agent X-Request-Id request-id x-oai-request-id Keep-Alive Idempotency-Key
    x-idempotency-key Sec-WebSocket-Key Sec-WebSocket-Accept Sec-WebSocket-Protocol WWW-Authenticate
    Proxy-Authenticate anthropic-ratelimit-tokens-limit anthropic-ratelimit-input-tokens-remaining
    anthropic-priority-output-tokens-reset x-ratelimit-limit-tokens X-RateLimit-Remaining-Tokens
    x-ratelimit-reset-tokens llm_provider-x-ratelimit-remaining-tokens Access-Control-Allow-Headers
    Access-Control-Allow-Credentials Surrogate-Key X-Cache-Key Author X-Authority Authority x-litellm-key-spend
    x-passthrough X-Keyboard keywords monkey max_tokens maxTokens pageToken next_page_token
    CLAUDE_CODE_MAX_OUTPUT_TOKENS MAX_THINKING_TOKENS TOKENIZERS_PARALLELISM GIT_AUTHOR_EMAIL SSH_AUTH_SOCK PWD
    OLDPWD AWS_SHARED_CREDENTIALS_FILE auth-type --token-limit Design authors keybindings
    Access-Control-Request-Headers Access-Control-Max-Age tokenizer tokenization
"""
HIDDEN, READABLE = _HIDDEN.split(), _READABLE.split()


@pytest.mark.parametrize("spell", [str, str.lower, str.upper], ids=["as written", "lower", "upper"])
@pytest.mark.parametrize("name", HIDDEN)
def test_credential_names_are_recognized_in_any_case(name: str, spell: Callable[[str], str]) -> None:
    assert is_credential_name(spell(name).encode())


@pytest.mark.parametrize("name", READABLE)
def test_other_names_are_not_credential_names(name: str) -> None:
    assert not is_credential_name(name.encode())
    assert not is_credential_name(name.lower().encode())


@given(
    st.sampled_from(["x-api-key", "authorization", "x-auth-token", "apikey", "set-cookie"]),
    st.integers(0, 1 << 15),
)
def test_credential_names_are_recognized_in_mixed_case(name: str, capitals: int) -> None:
    spelled = "".join(it.upper() if capitals >> at & 1 else it for at, it in enumerate(name))
    assert is_credential_name(spelled.encode())


@given(st.text("abcdefgikmnoprstuwyzACKTS-_. ", max_size=40))
def test_every_credential_name_contains_a_prefilter_word(name: str) -> None:
    if is_credential_name(name.encode()):
        assert any(word in name.lower().encode() for word in WORDS)
