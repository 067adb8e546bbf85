"""Where an import came from."""

from typing import Literal

import msgspec


class ImportOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where an import came from, as `origin.json` in its folder says."""

    name: str  # of the import: its folder
    kind: Literal["bundle", "file", "home"]
    path: str  # of what was imported
    machine: str | None  # the machine on which it was recorded, if that is known
    at: str  # when it was imported
    digest: str  # shows whether the same is imported again

    @property
    def text(self) -> str:
        """Return one line: `imported from build7 (bundle session.tar.zst) as session-3f2a9c1d`."""
        source = self.path.rpartition("/")[2] if self.kind == "bundle" else self.path
        place = f"{self.machine} ({self.kind} {source})" if self.machine else f"{self.kind} {source}"
        return f"imported from {place} as {self.name}"
