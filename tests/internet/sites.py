"""Hosts that serve files: a git repository, a package index."""

from pathlib import Path

from agent_logger.demo.http import DemoRequest, LoopbackServer, Reply


class Site(LoopbackServer):
    """Serves the files below a folder; a folder by its `index.html`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.requests: list[DemoRequest] = []

    async def handle(self, request: DemoRequest, reply: Reply) -> None:
        self.requests.append(request)
        path = self.folder / request.path.lstrip("/")
        if path.is_dir():
            path /= "index.html"
        if not path.is_file() or ".." in request.path:
            await reply.send(404, [("content-type", "text/plain")], b"no such page\n")
            return
        kind = {".html": "text/html", ".json": "application/json"}.get(path.suffix, "application/octet-stream")
        await reply.send(200, [("content-type", kind)], path.read_bytes())
