"""Post one request to OpenAI's API with requests, as a script of an agent does: `requests_post.py KEY BODY`."""

import sys

import requests

headers = {"Authorization": f"Bearer {sys.argv[1]}", "Content-Type": "application/json"}
answer = requests.post("https://api.openai.com/v1/chat/completions", data=sys.argv[2], headers=headers, timeout=60)
print(answer.json()["choices"][0]["message"]["content"])
