"""A tool's input, read by any of the names that agents have for its fields."""

from collections.abc import Mapping
from typing import Any

from agent_logger.model.session import PATH_KEYS


class Fields:
    """The fields of a JSON value from outside: a field that is missing, or of another type, is empty."""

    def __init__(self, value: Any) -> None:
        self._fields: Mapping[Any, Any] = value if isinstance(value, Mapping) else {}

    def text(self, *names: str) -> str:
        """The first of these fields that is text."""
        return next((value for name in names if isinstance(value := self._fields.get(name), str)), "")

    def number(self, *names: str) -> int | None:
        values = (self._fields.get(name) for name in names)
        return next((number for number in values if isinstance(number, int) and not isinstance(number, bool)), None)

    def texts(self, *names: str) -> list[str]:
        return [value for value in self._list(names) if isinstance(value, str)]

    def objects(self, *names: str) -> list["Fields"]:
        return [Fields(value) for value in self._list(names) if isinstance(value, Mapping)]

    def _list(self, names: tuple[str, ...]) -> list[Any]:
        return next((value for name in names if isinstance(value := self._fields.get(name), list)), [])

    @property
    def path(self) -> str:
        return self.text(*PATH_KEYS, "dir_path", "file")
