"""Figures of a hub in the text format of Prometheus. They name no person, machine, project or session: a label has one
of the values that are listed here, or `other`."""

import threading
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

PREFIX = "agent_logger_hub"
OTHER = "other"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

LABELS: Mapping[str, frozenset[str]] = {
    "request": frozenset({"join", "device", "leave", "withdrawals", "sessions", "objects", "ranges"}),
    "status": frozenset({"200", "400", "401", "404", "409", "410", "413", "429", "503"}),
}


class Metric(NamedTuple):
    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...] = ()


METRICS: Mapping[str, Metric] = {
    "requests_total": Metric("counter", "Requests of machines that were answered.", ("request", "status")),
    "request_seconds_total": Metric("counter", "Seconds that these requests took.", ("request",)),
    "received_bytes_total": Metric("counter", "Bytes of the bodies of these requests."),
    "ranges_in_memory": Metric("gauge", "Ranges that are being stored now."),
    "devices": Metric("gauge", "Machines that have pushed something."),
}


class HubMetrics:
    """The figures of a process. Several threads may use them."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, tuple[str, ...]], float] = {}
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Raise a counter."""
        key = _key(name, labels)
        with self._lock:
            self._values[key] = self._values.get(key, 0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[_key(name, labels)] = value

    def text(self) -> str:
        with self._lock:
            values = sorted(self._values.items())
        return "".join(_lines(values))


def _key(name: str, labels: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Raises `ValueError` for labels that the metric does not have."""
    names = METRICS[name].labels
    if set(labels) != set(names):
        raise ValueError(f"the labels of {name} are {names}")
    return name, tuple(labels[label] if labels[label] in LABELS[label] else OTHER for label in names)


def _lines(values: list[tuple[tuple[str, tuple[str, ...]], float]]) -> Iterator[str]:
    for name, metric in METRICS.items():
        samples = [(labels, value) for (of, labels), value in values if of == name]
        if not samples and not metric.labels:
            samples = [((), 0.0)]
        yield f"# HELP {PREFIX}_{name} {metric.help}\n# TYPE {PREFIX}_{name} {metric.kind}\n"
        for labels, value in samples:
            pairs = ",".join(f'{label}="{text}"' for label, text in zip(metric.labels, labels, strict=True))
            yield f"{PREFIX}_{name}{f'{{{pairs}}}' if pairs else ''} {value:.17g}\n"
