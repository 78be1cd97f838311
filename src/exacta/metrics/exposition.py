"""`/metrics`: reads all metrics in turns of the event loop, and lets prometheus-client make the text on a thread.

The text has the form of Prometheus, or of OpenMetrics where the scraper asks for it. One scrape runs at a time.
prometheus client also adds what every process has (`process_cpu_seconds_total`, `process_resident_memory_bytes`).
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from prometheus_client import PROCESS_COLLECTOR
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from exacta.metrics import process, traffic, transactions
from exacta.metrics.families import MetricKind
from exacta.metrics.lag import Lags
from exacta.metrics.measured import Distribution, Measured
from exacta.metrics.sources import Sources
from exacta.ports.log import Log
from exacta.web.access import ServerRights


class Scraper:
    """Reads the metrics of one server."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._lags: Lags | None = None
        self._lags_of: Log | None = None

    async def read(self) -> list[Measured]:
        """Return all metrics that there are now, but for those of the disk."""
        sources, broker = self._sources, self._sources.broker
        measured = process.process(sources) + process.cluster(sources.progress.cluster)
        if broker is None:
            return measured
        engine, configuration = broker.engine, sources.configuration
        most = configuration.web_metrics_max_series
        if self._lags is None or self._lags_of is not engine:
            self._lags, self._lags_of = Lags(engine, most), engine
        await asyncio.sleep(0)
        measured += [*process.memory(broker.memory), *process.quotas(broker.quotas), *process.counted(engine.counts)]
        measured += traffic.requests(sources.meter)
        await asyncio.sleep(0)
        measured += traffic.topics(engine, sources.topics)
        await asyncio.sleep(0)
        measured += await transactions.measure(engine, configuration.transaction_max_timeout_ms, most)
        measured += await self._lags.measure()
        return measured


def routes(sources: Sources, access: ServerRights) -> list[Route]:
    """Return the route of `/metrics`, which names topics and groups: who asks must be allowed to see the server."""
    scraper, one_at_a_time = Scraper(sources), asyncio.Lock()

    async def metrics(http: HttpRequest) -> Response:
        async with one_at_a_time:
            measured = await scraper.read()
            accepted = http.headers.get("accept", "")
            text, media_type = await asyncio.to_thread(rendered, measured, sources.data, accepted)
        return Response(text, headers={"content-type": media_type})

    return [Route("/metrics", access.describing(metrics))]


def rendered(measured: Sequence[Measured], data: Path, accepted: str) -> tuple[bytes, str]:
    """Return the text of all metrics, those of the disk and the process included, and its media type. It may block."""
    encode, media_type = choose_encoder(accepted)
    return encode(_Collected([*measured, *process.disk(data)])), media_type


class _Collected(Collector):
    """The metrics that were read, as prometheus-client takes them."""

    def __init__(self, measured: Iterable[Measured]) -> None:
        self._measured = measured

    def collect(self) -> Iterator[Metric]:
        """Yield each metric."""
        for each in self._measured:
            yield _metric(each)
        yield from PROCESS_COLLECTOR.collect()


def _metric(measured: Measured) -> Metric:
    family = measured.family
    if family.kind is MetricKind.HISTOGRAM:
        histogram = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for labels, value in measured.values.items():
            assert isinstance(value, Distribution)
            buckets = [("+Inf" if bound == float("inf") else f"{bound:g}", count) for bound, count in value.buckets]
            histogram.add_metric(labels, buckets, value.sum)
        return histogram
    make = CounterMetricFamily if family.kind is MetricKind.COUNTER else GaugeMetricFamily
    metric = make(family.name.removesuffix("_total"), family.help, labels=family.labels)
    for labels, value in measured.values.items():
        assert not isinstance(value, Distribution)
        metric.add_metric(labels, value)
    return metric
