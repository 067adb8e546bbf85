"""Post one request to OpenAI's API with httpx, as a script of an agent does: `httpx_post.py KEY BODY`."""

import sys

import httpx

headers = {"Authorization": f"Bearer {sys.argv[1]}", "Content-Type": "application/json"}
answer = httpx.post("https://api.openai.com/v1/chat/completions", content=sys.argv[2], headers=headers, timeout=60)
print(answer.json()["choices"][0]["message"]["content"])
