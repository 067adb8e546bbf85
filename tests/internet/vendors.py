"""The hosts of the model vendors: the scripted API, and the few pages that agents ask for about a login."""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import msgspec

from agent_logger.demo.dialect import DemoEvent, Json, Reader
from agent_logger.demo.http import DemoRequest, Reply
from agent_logger.demo.script import ScriptTurn
from tests.fakeapi import FakeAPI
from tests.fakeapi.gemini import GenerateContent

ACCOUNT = "acc-1"
NEVER = 4_102_444_800  # seconds: the year 2100


def unsigned_token(claims: Mapping[str, Any]) -> str:
    """A JSON web token that nobody signed."""
    parts = ({"alg": "none", "typ": "JWT"}, {"exp": NEVER, **claims})
    return ".".join([*(_base64url(json.dumps(part).encode()) for part in parts), _base64url(b"none")])


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def chatgpt_login() -> dict[str, Any]:
    """What Codex keeps in `auth.json` after a login with ChatGPT."""
    claims = {
        "email": "user@example.com",
        "https://api.openai.com/auth": {
            "chatgpt_account_id": ACCOUNT,
            "chatgpt_user_id": "user-1",
            "chatgpt_plan_type": "plus",
        },
    }
    token = unsigned_token(claims)
    tokens = {"id_token": token, "access_token": token, "refresh_token": "rt_fake", "account_id": ACCOUNT}
    return {
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": None,
        "tokens": tokens,
        "last_refresh": "2099-01-01T00:00:00.000000Z",
    }


_TIER = {"id": "standard-tier", "name": "Gemini Code Assist", "isDefault": True}


def _copilot_model(endpoints: Sequence[str]) -> Json:
    """A model that Copilot offers at these endpoints, of which it prefers the first."""
    is_claude = "/v1/messages" in endpoints
    name = "claude-sonnet-4.5" if is_claude else "gpt-5.4"
    return {
        "id": name,
        "name": name,
        "object": "model",
        "vendor": "Anthropic" if is_claude else "Azure OpenAI",
        "version": name,
        "preview": False,
        "model_picker_enabled": True,
        "policy": {"state": "enabled"},
        "supported_endpoints": endpoints,
        "capabilities": {
            "type": "chat",
            "family": name,
            "object": "model_capabilities",
            "tokenizer": "o200k_base",
            "limits": {"max_context_window_tokens": 200000, "max_output_tokens": 16000, "max_prompt_tokens": 180000},
            "supports": {"streaming": True, "tool_calls": True, "parallel_tool_calls": True},
        },
    }


class _CodeAssistBody(msgspec.Struct):
    model: str
    request: msgspec.Raw


class CodeAssist(GenerateContent):
    """Google's API behind a Google login: the same requests and answers, each inside an object."""

    def __init__(self, request: DemoRequest) -> None:
        body = msgspec.json.decode(request.body, type=_CodeAssistBody)
        method = request.path.rpartition(":")[2]
        super().__init__(replace(request, body=bytes(body.request), target=f"/models/{body.model}:{method}"))

    def whole(self, turn: ScriptTurn) -> Json:
        return {"response": super().whole(turn)}

    def stream(self, turn: ScriptTurn) -> Iterator[DemoEvent]:
        for event in super().stream(turn):
            yield DemoEvent(event.name, b'{"response":%b}' % event.data)


class VendorHosts(FakeAPI):
    """The scripted API, with pages for logins. `others`: the requests that neither answers."""

    scripted: ClassVar[Mapping[str, Reader]] = {
        "/v1internal:(generateContent|streamGenerateContent)": CodeAssist,
        **FakeAPI.scripted,
    }
    pages: ClassVar[Mapping[str, Any]] = {
        # Codex with a ChatGPT login
        "/backend-api/codex/models": {"models": []},
        "/backend-api/wham/accounts/check": {
            "accounts": [
                {
                    "id": ACCOUNT,
                    "workspace_backend_origin": "https://chatgpt.com",
                    "account_routing_override": "NO_CONSTRAINT",
                }
            ]
        },
        # Gemini CLI with a Google login
        "/v1internal:loadCodeAssist": {
            "currentTier": _TIER,
            "allowedTiers": [_TIER],
            "cloudaicompanionProject": "fake-project",
        },
        "/v1internal:retrieveUserQuota": {"buckets": []},
        "/v1internal:listExperiments": {"experimentIds": [], "flags": []},
        "/oauth2/v2/userinfo": {"email": "user@example.com", "id": "1"},
        "/tokeninfo": {
            "email": "user@example.com",
            "expires_in": 3600,
            "scope": "https://www.googleapis.com/auth/cloud-platform",
        },
        # Copilot CLI with a GitHub login
        "/copilot_internal/user": {
            "login": "user",
            "access_type_sku": "copilot_pro",
            "copilot_plan": "individual",
            "chat_enabled": True,
            "endpoints": {
                "api": "https://api.individual.githubcopilot.com",
                "telemetry": "https://telemetry.individual.githubcopilot.com",
            },
        },
    }

    def __init__(
        self, *arguments: Any, copilot_endpoints: Sequence[str] = ("/chat/completions",), **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.others: list[DemoRequest] = []
        self._copilot_model = _copilot_model(copilot_endpoints)

    async def answer(self, request: DemoRequest, reply: Reply) -> None:
        page = next((page for end, page in self.pages.items() if request.path.endswith(end)), None)
        host = request.header("host")
        if page is not None:
            await self.send_json(reply, 200, page)
        elif host == "api.github.com" and request.path == "/user":
            await self.send_json(reply, 200, {"login": "user", "id": 1})
        elif "githubcopilot" in host and request.path == "/models":
            await self.send_json(reply, 200, {"data": [self._copilot_model], "object": "list"})
        else:
            if request.method != "HEAD" and not self._is_scripted(request):
                self.others.append(request)
            await super().answer(request, reply)

    def _is_scripted(self, request: DemoRequest) -> bool:
        return any(re.search(f"(?:{pattern})$", request.path) for pattern in (*self.scripted, *self.counted))
