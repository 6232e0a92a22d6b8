"""Telemetry that nobody asked for imports nothing, and one without its packages says so."""

import subprocess
import sys

import pytest

from rocket_rides import telemetry
from rocket_rides.settings import Settings, load

# `redis` and `requests`' friends may be there for others; these are for exporting alone.
FOR_EXPORTING = (
    "rocket_rides.otlp",
    "rocket_rides.instrumented",
    "opentelemetry.exporter",
    "opentelemetry.instrumentation",
    "opentelemetry.sdk.trace",
    "requests",
)
PROCESSES = (
    "api.app",
    "streamer.__main__",
    "consumers.totals.__main__",
    "consumers.ratings.__main__",
    "consumers.rollup.__main__",
    "consumers.receipts.__main__",
    "watch.__main__",
    "analytics.nightly.__main__",
    "analytics.reconcile",
)
ENDPOINT = "http://127.0.0.1:4318"


def test_a_process_that_exports_nothing_imports_nothing_for_it() -> None:
    """All in one interpreter, which is soon done; the first that imports something is named."""
    program = f"""if True:
        import importlib, sys
        from rocket_rides import settings, telemetry
        from unified_log.tracing import Trace
        trace = Trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        for process in {PROCESSES}:
            importlib.import_module(process)
            telemetry.configure(settings.Settings(), "test")
            off = telemetry.NOTHING
            assert telemetry.stage("a") is telemetry.below(trace) is off
            assert telemetry.current(trace) is trace
            telemetry.measure(lambda meter: meter.create_counter("none"))
            found = [name for name in sys.modules if name.startswith({FOR_EXPORTING})]
            assert not found, (process, found)
    """
    subprocess.run([sys.executable, "-c", program], check=True, env={})


def test_without_its_packages_it_says_so_and_nothing_is_exported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A platform may set the variable for all that runs there: no ride waits for its packages."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "rocket_rides.otlp", raising=False)
    telemetry.configure(Settings(otel_exporter_otlp_endpoint=ENDPOINT), "test")
    assert not telemetry.is_on()
    [line] = caplog.messages
    assert line.startswith("OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported: ")
    assert line.endswith("requirements/telemetry.txt")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, "URL scheme should be 'http' or"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"}, "Input should be a valid URL"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://me:secret@otel.example"}, "it takes no user"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and only"),
        ({"OTEL_BSP_SCHEDULE_DELAY": "9" * 20}, "OTEL_BSP_SCHEDULE_DELAY is 1e+20, and no thread"),
        ({"OTEL_METRIC_EXPORT_INTERVAL": "nan"}, "OTEL_METRIC_EXPORT_INTERVAL is nan, and no"),
        ({"OTEL_SPAN_LINK_COUNT_LIMIT": "9" * 20}, "Python int too large to convert"),
        ({"OTEL_PYTHON_EXCLUDED_URLS": "*"}, "OTEL_PYTHON_EXCLUDED_URLS is no list of regular"),
        (
            {"OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SERVER_REQUEST": "a, *"},
            "OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SERVER_REQUEST is no list of regular",
        ),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line_and_nothing_is_exported(
    given: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The process goes on: others may have set it for their programs."""
    for name, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, **given}.items():
        monkeypatch.setenv(name, value)
    telemetry.configure(load(), "test")
    assert not telemetry.is_on()
    [line] = caplog.messages
    assert line.startswith(f"OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported: {said}")
    assert "secret" not in line


# Each variable of the SDK's by itself, in a fork, which costs no import.
EACH = """
from contextlib import suppress
from itertools import product
from opentelemetry import environment_variables as api
from opentelemetry.metrics import Observation
from opentelemetry.sdk import environment_variables as sdk
import rocket_rides.otlp, rocket_rides.instrumented
names = [name for module in (api, sdk) for name in vars(module).values() if "OTEL_" in str(name)]
others = ("LOG", "BLRP", "GRPC", "ZIPKIN", "PROMETHEUS")  # logs, and what else is not exported here
names = [name for name in names if name.isupper() and not any(part in name for part in others)]
assert len(names) > 50, names
gc.freeze()
def use():
    telemetry.configure(config, "test")
    gauge = [lambda _: [Observation(1.0, {})]]
    telemetry.measure(lambda meter: meter.create_observable_gauge("a", gauge))
    with spans.batch_sent("log", 1, [trace("a=1")]), telemetry.stage("b"):
        with telemetry.below(trace("a=1")), suppress(ZeroDivisionError), telemetry.stage("c"):
            1 / 0
for name, value in product(names, ["garbage", "9" * 20]):
    child = os.fork()
    if not child:
        os.environ[name] = value
        try:
            use()
        except BaseException as error:
            print(f"{name}={value} raised {error!r}", flush=True)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0), (name, value)
"""


def test_no_variable_of_the_sdk_fails_a_ride_or_ends_a_process_whatever_it_says() -> None:
    said = said_by(EACH).decode()
    assert "raised" not in said
    assert "Traceback" not in said


EXPORTING = """
import gc, logging, os, sys
from rocket_rides import settings, telemetry
from unified_log import spans, tracing
logging.basicConfig(stream=sys.stdout)
config = settings.Settings()
def trace(state):
    return tracing.parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", state)
"""
BEGUN = """
telemetry.configure(config, "test")
"""
LINK = """
from opentelemetry.trace import get_current_span
with spans.batch_sent("log", 1, [trace("a=1")]):
    [link] = get_current_span().links
assert link.context.trace_id and not link.context.trace_state, link
"""
# The standard lets a key begin with a digit; the SDK does not.
SPAN = """
clients = trace("0a=1")
with telemetry.below(clients), telemetry.stage("a"):
    found = telemetry.current(clients)
assert found.id == clients.id and found.parent != clients.parent, found
assert found.state == "0a=1"
"""
NOTHING = """
from opentelemetry.trace import INVALID_SPAN, get_current_span
with spans.batch_taken("log", "a", 0, []):
    assert get_current_span() is INVALID_SPAN
"""
END = """
sys.stdout.flush()
os._exit(0)
"""


def said_by(program: str) -> bytes:
    """What a process says whose spans nobody takes."""
    return subprocess.run(
        [sys.executable, "-c", EXPORTING + program + END],
        check=True,
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ).stdout


def test_a_link_has_no_state_which_would_fill_the_memory_while_nothing_can_be_exported() -> None:
    """It is not even exported."""
    said_by(BEGUN + LINK)


def test_a_state_that_only_the_sdk_finds_malformed_goes_on_and_is_no_loss() -> None:
    """Whoever read that spans are lost would look for a collector that is away."""
    assert said_by(BEGUN + SPAN) == b""


def test_a_batch_of_nothing_has_no_span() -> None:
    """Such as a reader's that held only records of types that it passes over."""
    said_by(BEGUN + NOTHING)
