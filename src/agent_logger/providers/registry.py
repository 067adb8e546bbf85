"""Which endpoints give an answer of a model, and the dialect of each."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from agent_logger.providers.answer import Answer, AnswerReader, Assembler
from agent_logger.providers.anthropic import AnthropicMessages
from agent_logger.providers.embeddings import Embeddings
from agent_logger.providers.gemini import GenerateContent
from agent_logger.providers.ollama import Ollama
from agent_logger.providers.openai_chat import ChatCompletions
from agent_logger.providers.openai_responses import Responses
from agent_logger.providers.request_body import Api, RequestBody, read_logged


@dataclass(frozen=True, slots=True)
class Dialect:
    """The form of the requests and the answers of one kind of endpoint."""

    name: str
    assembler: Callable[[], Assembler]
    api: Api | None  # whose messages its requests have; none in those for embeddings

    def request(self, body: bytes, path: str = "") -> RequestBody | None:
        """Read a request, whose encodings are undone already. `None` if it cannot be read."""
        return read_logged(body, self.api, path)

    def messages(self, request: RequestBody) -> Sequence[msgspec.Raw]:
        """Return the messages of a request in order: messages, input items or contents."""
        return request.units(self.api) if self.api else ()

    def reader(self, *, messages: bool = False) -> AnswerReader:
        """A reader for one answer. `messages`: it is fed the messages of a WebSocket, each whole."""
        return AnswerReader(self.assembler(), messages=messages)

    def read(self, body: bytes) -> Answer:
        """Read an answer that is in memory as a whole, streamed or not."""
        reader = self.reader()
        reader.feed(body)
        return reader.finish()


ANTHROPIC = Dialect("messages", AnthropicMessages, "messages")
CHAT = Dialect("chat", ChatCompletions, "chat")
RESPONSES = Dialect("responses", Responses, "responses")
GEMINI = Dialect("gemini", GenerateContent, "gemini")
COMPLETIONS = Dialect("completions", ChatCompletions, "chat")  # continues a text
OLLAMA = Dialect("ollama", Ollama, "chat")
EMBEDDINGS = Dialect("embeddings", Embeddings, None)

_ANY = ""
# By the path, for gateways offer several dialects; the provider decides where a path does not.
_ENDPOINTS = tuple(
    (provider, re.compile(path + r"$"), dialect)
    for provider, path, dialect in (
        (_ANY, r"/v1/messages", ANTHROPIC),
        (_ANY, r"/chat/completions", CHAT),
        (_ANY, r"/completions", COMPLETIONS),
        (_ANY, r"/responses(?:/compact)?", RESPONSES),
        (_ANY, r":(?:generateContent|streamGenerateContent)", GEMINI),
        (_ANY, r"/api/(?:chat|generate)", OLLAMA),
        (_ANY, r"/embeddings", EMBEDDINGS),
        (_ANY, r"/model/[^/]+/invoke(?:-with-response-stream)?", ANTHROPIC),  # Bedrock
        ("anthropic", r"(?<!/count-tokens):(?:rawPredict|streamRawPredict)", ANTHROPIC),  # Vertex AI
    )
)


@lru_cache(256)  # agents ask for the same few paths all the time
def dialect_of(provider: str, path: str) -> Dialect | None:
    """The dialect of this endpoint; `None` if it gives no answer of a model. `path` may have a query."""
    path = path.partition("?")[0]
    return next(
        (dialect for vendor, at, dialect in _ENDPOINTS if vendor in (_ANY, provider) and at.search(path)),
        None,
    )
