"""The figures of a hub for Prometheus."""

import re
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from agent_logger.hub.metrics import CONTENT_TYPE, LABELS, METRICS, OTHER, PREFIX, HubMetrics
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.hub.hubs import push, running_hub

LINE = re.compile(r'(?P<name>[a-z_]+)(\{(?P<labels>[a-z_]+="[a-z0-9_]*"(,[a-z_]+="[a-z0-9_]*")*)\})? (?P<value>\S+)')


def samples(text: str) -> dict[str, float]:
    """Read the text as Prometheus does: samples follow the lines about their metric."""
    assert text.endswith("\n")
    about: tuple[str, str] | None = None
    result: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            _, word, name, rest = line.split(" ", 3)
            assert word in ("HELP", "TYPE")
            about = (name, rest)
            continue
        match = LINE.fullmatch(line)
        assert match, line
        assert about
        assert match["name"] == about[0], "samples of a metric stand together"
        assert about[1] in ("counter", "gauge")
        assert (about[1] == "counter") == match["name"].endswith("_total")
        assert line.rpartition(" ")[0] not in result, "each sample is there once"
        result[line.rpartition(" ")[0]] = float(match["value"])
    return result


def test_counters_add_up_and_gauges_are_set() -> None:
    metrics = HubMetrics()
    for status in ("200", "200", "409"):
        metrics.add("requests_total", request="ranges", status=status)
    metrics.add("received_bytes_total", 1.5e15)
    metrics.add("received_bytes_total", 1)
    metrics.set("devices", 3)
    metrics.set("devices", 2)
    assert samples(metrics.text()) == {
        f'{PREFIX}_requests_total{{request="ranges",status="200"}}': 2,
        f'{PREFIX}_requests_total{{request="ranges",status="409"}}': 1,
        f"{PREFIX}_received_bytes_total": 1.5e15 + 1,
        f"{PREFIX}_devices": 2,
        f"{PREFIX}_ranges_in_memory": 0,
    }


def test_every_metric_is_described_before_it_has_a_value() -> None:
    text = HubMetrics().text()
    for name, metric in METRICS.items():
        assert f"# TYPE {PREFIX}_{name} {metric.kind}\n" in text


@given(value=st.text(), amount=st.floats(0, 1e300))
def test_no_text_from_outside_becomes_a_label(value: str, amount: float) -> None:
    metrics = HubMetrics()
    metrics.add("requests_total", amount, request=value, status=value)
    request = value if value in LABELS["request"] else OTHER
    status = value if value in LABELS["status"] else OTHER
    read = samples(metrics.text())
    assert read[f'{PREFIX}_requests_total{{request="{request}",status="{status}"}}'] == amount


@pytest.mark.parametrize("labels", [{}, {"request": "join"}, {"request": "join", "status": "200", "person": "ana"}])
def test_labels_that_a_metric_does_not_have_are_refused(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="labels of requests_total"):
        HubMetrics().add("requests_total", 1, **labels)


def test_threads_lose_no_count() -> None:
    metrics = HubMetrics()

    def count(_: int) -> None:
        for _ in range(1000):
            metrics.add("received_bytes_total", 1)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, range(8)))
    assert samples(metrics.text())[f"{PREFIX}_received_bytes_total"] == 8000


def test_a_hub_tells_its_figures_and_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ann"))
    claude_file(tmp_path / "ann", ID.format(3), [user(1, "hi", ID.format(3)), assistant(2, "ho", ID.format(3))])
    with running_hub(tmp_path / "hub") as hub:
        home = tmp_path / "ann/.agent-logger"
        hub.join(home, "ann", "laptop")
        push(home)
        wrong = urllib.request.Request(f"{hub.url}/push/v1/device", headers={"Authorization": "Bearer wrong"})
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(wrong)
        with urllib.request.urlopen(f"{hub.url}/metrics") as response:
            assert response.headers["Content-Type"] == CONTENT_TYPE
            text = response.read().decode()
    read = samples(text)
    assert read[f"{PREFIX}_devices"] == 1
    assert read[f'{PREFIX}_requests_total{{request="join",status="200"}}'] == 1
    assert read[f'{PREFIX}_requests_total{{request="device",status="401"}}'] == 1
    assert read[f'{PREFIX}_requests_total{{request="ranges",status="200"}}'] >= 1
    assert read[f"{PREFIX}_received_bytes_total"] > 100
    for name in ("ann", "laptop", ID.format(3)):
        assert name not in text
