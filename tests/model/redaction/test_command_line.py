"""The words of a command line: what they name as a credential is hidden, and known by its value."""

import json

import pytest

from agent_logger.model.redaction.command_line import argument_credentials, hidden_arguments
from agent_logger.model.redaction.environment import environment_credentials

SECRET = "jD4bQ9xW2kV7"
HIDING = {
    "behind an option": (["--api-key", "{}"], ["--api-key", "[redacted]"]),
    "behind a short option": (["-token", "{}"], ["-token", "[redacted]"]),
    "in an option": (["--token={}"], ["--token=[redacted]"]),
    "in an option with blanks": (["--password={} and more"], ["--password=[redacted]"]),
    "in a header": (["-H", "X-Api-Key: {}"], ["-H", "X-Api-Key: [redacted]"]),
    "in a header beside its option": (["-HX-Api-Key: {}"], ["-HX-Api-Key: [redacted]"]),
    "in a long header": (["--header=X-Auth-Token: {}"], ["--header=X-Auth-Token: [redacted]"]),
    "after a scheme": (
        ["--header", "Authorization: Bearer {}"],
        ["--header", "Authorization: Bearer [redacted]"],
    ),
    "in a cookie": (["-H", "Cookie: a=b1; id={}"], ["-H", "Cookie: a=[redacted]; id=[redacted]"]),
    "in a variable": (["env", "OPENAI_API_KEY={}", "agent"], ["env", "OPENAI_API_KEY=[redacted]", "agent"]),
    "in a setting": (["-c", 'providers.x.api_key="{}"'], ["-c", 'providers.x.api_key="[redacted]"']),
    "in a bare setting": (["-c", "key={}"], ["-c", "key=[redacted]"]),
    "in a table": (["-c", 'x={{h={{"X-Api-Key"="{}"}}}}'], ["-c", 'x={h={"X-Api-Key"="[redacted]"}}']),
    "in a script": (["sh", "-c", "GH_TOKEN={} gh pr list"], ["sh", "-c", "GH_TOKEN=[redacted] gh pr list"]),
    "as an option in a script": (["sh", "-c", "x --key '{}' -v"], ["sh", "-c", "x --key '[redacted]' -v"]),
    "as a header in a script": (
        ["sh", "-c", "curl -H 'X-Api-Key: {}' h"],
        ["sh", "-c", "curl -H 'X-Api-Key: [redacted]' h"],
    ),
    "in a URL": (["https://h/?api_key={}&x=1"], ["https://h/?api_key=[redacted]&x=1"]),
    "of a user": (["-u", "me:{}"], ["-u", "me:[redacted]"]),
    "of a user beside the option": (["-ume:{}"], ["-ume:[redacted]"]),
    "of a user in the option": (["--user=me:{}"], ["--user=me:[redacted]"]),
    "of a user in a script": (["sh", "-c", "curl -u me:{} h"], ["sh", "-c", "curl -u me:[redacted] h"]),
    "of a user in a URL": (["https://me:{}@h/x"], ["https://me:[redacted]@h/x"]),
    "with a scheme in a table": (
        ["-c", 'h={{Authorization="Bearer {}"}}'],
        ["-c", 'h={Authorization="[redacted]"}'],
    ),
    "in quotes": (["--api-key='{}'"], ["--api-key=[redacted]"]),
    "behind a colon": (["--api-key:{}"], ["--api-key:[redacted]"]),
    "behind two names": (["--set", "auth:token={}"], ["--set", "auth:[redacted]"]),
    "before another word": (["ssh", "h", "TOKEN={} x"], ["ssh", "h", "TOKEN=[redacted]"]),
    "as a cookie": (["--cookie", "id={}; a=b"], ["--cookie", "[redacted]"]),
    "in an encoded URL": (["/?to=%2F%3Fapi_key%3D{}"], ["/?to=%2F%3Fapi_key%3D[redacted]"]),
    "in JSON in a string": (['{{\\"api_key\\": \\"{}\\"}}'], ['{\\"api_key\\": \\"[redacted]\\"}']),
    "in a literal of Python": (["{{'api_key': '{}'}}"], ["{'api_key': '[redacted]'}"]),
    "in a list in JSON": (['{{"api_key":["{}"]}}'], ['{"api_key":["[redacted]"]}']),
    "deeper in JSON": (['{{"auth":{{"value":"{}"}}}}'], ['{"auth":{"value":"[redacted]"}}']),
    "in JSON": (
        ["--settings", '{{"env":{{"ANTHROPIC_API_KEY":"{}"}},"max_tokens":5}}'],
        ["--settings", '{"env":{"ANTHROPIC_API_KEY":"[redacted]"},"max_tokens":5}'],
    ),
}


@pytest.mark.parametrize("place", HIDING)
def test_a_credential_in_the_command_line_is_hidden_and_collected(place: str) -> None:
    words, shown = HIDING[place]
    given = ["agent", *(word.format(SECRET) for word in words)]
    assert hidden_arguments(given) == ["agent", *shown]
    assert SECRET.encode() in argument_credentials(given)


LONG = "jD4bQ9xW2kV7nP5cT8"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--token", "-" + LONG], ["--token", "[redacted]"]),
        (
            ["configure", "set", "aws_secret_access_key", LONG],
            ["configure", "set", "aws_secret_access_key", "[redacted]"],
        ),
        (["set", "//registry/:_authToken", LONG], ["set", "//registry/:_authToken", "[redacted]"]),
        (["--header", "Authorization", LONG], ["--header", "Authorization", "[redacted]"]),
        (["clone", f"https://{LONG}@h/x"], ["clone", "https://[redacted]@h/x"]),
        (['{"pin_token": 48151623}'], ['{"pin_token": [redacted]}']),
    ],
)
def test_a_secret_looking_value_next_to_a_credential_name_is_hidden(words: list[str], shown: list[str]) -> None:
    assert hidden_arguments(words) == shown
    assert len(argument_credentials(words)) == 1


READABLE = [
    ["claude", "-p", "Fix the auth: look at how keys are handled, and the token limit"],
    ["agent", "--max-tokens", "40000000", "--tokenizer", "cl100k_base", "--author", "Somebody"],
    ["agent", "--no-auth", "deploy", "--auth-type", "oauth-device", "--token-limit=40000000"],
    ["agent", "--password", "--verbose", "prompt"],
    ["agent", "--key", ""],
    ["claude", "--settings", '{"max_tokens":50000000,"keybindings":"vim-mode-2"}'],
    ["python", "-c", "print(monkey == 'donkey-12345')"],
    ["gh", "auth", "login", "--hostname", "example.com"],
    ["agent", "keys", "list-everything-2", "-url:value-12345"],
    ["agent", "https://example.com:8443/a@b", "git@example.com:me/x.git", "http://${USER}:${PASSWORD}@h"],
    ["docker", "run", "-v", "/a:/b", "--user-agent=a:b"],
]


@pytest.mark.parametrize("words", READABLE, ids=range(len(READABLE)))
def test_arguments_without_credential_names_stay_readable(words: list[str]) -> None:
    assert hidden_arguments(words) == words
    assert argument_credentials(words) == []


def test_a_prompt_after_an_auth_option_is_not_collected_as_a_credential() -> None:
    assert argument_credentials(["agent", "--auth", "Fix the login page"]) == []


def test_environment_credentials_exclude_paths_counts_and_folders() -> None:
    account = json.dumps(
        {"type": "service_account", "id": "a1B2c3D4e5F6g7H8i9", "uri": "https://accounts.example.com/a"}
    )
    environment = {
        "OPENAI_API_KEY": SECRET,
        "DB_PASSWORD": "correct horse",
        "GOOGLE_CREDENTIALS": account,
        "SSH_AUTH_SOCK": "/run/agent.sock",
        "KEY_STORE": "/usr/bin",
        "MAX_THINKING_TOKENS": "31999000",
        "PWD": "/home/somebody",
        "PATH": "/usr/bin:/bin",
    }
    assert environment_credentials(environment) == [SECRET.encode(), b"correct horse", b"a1B2c3D4e5F6g7H8i9"]
