"""What psycopg and libpq say about hosts that let nobody in, in one line."""

import pytest
from psycopg import OperationalError

from unified_log.unreachable import hosts, why

TWO = "postgresql://u:secret@one:5433,two:5433/rides"
LISTED = """connection failed: connection to server at "10.0.0.2", port 5433 failed: session is read-only
Multiple connection attempts failed. All failures were:
- host: 'one', port: '5433', hostaddr: '10.0.0.1': connection timeout expired
- host: 'two', port: '5433', hostaddr: '10.0.0.2': connection failed: connection to server at "10.0.0.2", port 5433 failed: session is read-only
"""  # noqa: E501
WITHOUT_TLS = """connection failed: connection to server at "10.0.0.1", port 5432 failed: FATAL:  password authentication failed for user "u"
connection to server at "10.0.0.1", port 5432 failed: FATAL:  no pg_hba.conf entry for host "10.0.0.9", user "u", database "rides", no encryption
"""  # noqa: E501
REFUSED = """connection failed: connection to server at "::1", port 5433 failed: Connection refused
\tIs the server running on that host and accepting TCP/IP connections?"""


@pytest.mark.parametrize(
    ("url", "message", "said"),
    [
        (TWO, LISTED, "one:5433: connection timeout expired; two:5433: session is read-only"),
        (
            "postgresql://one/rides",
            WITHOUT_TLS,
            'one:5432: password authentication failed for user "u", and no pg_hba.conf entry for'
            ' host "10.0.0.9", user "u", database "rides", no encryption',
        ),
        ("postgresql://one:5433", REFUSED, "one:5433: Connection refused"),
        ("postgresql://[::1]:5433", REFUSED, "[::1]:5433: Connection refused"),
        ("postgresql:///rides?host=/run/x", REFUSED, "/run/x/.s.PGSQL.5432: Connection refused"),
        (
            "postgresql://one,two,three/x",
            LISTED.replace("5433", "5432"),
            "one:5432: connection timeout expired; two:5432: session is read-only;"
            " three:5432: its name can't be resolved",
        ),
        (
            TWO,
            "failed to resolve host 'two': [Errno -2] Name or service not known",
            "one:5433: its name can't be resolved; two:5433: its name can't be resolved",
        ),
        ("postgresql:///rides", "failed to resolve host 'x': no", "failed to resolve host 'x': no"),
        (TWO, "the connection is lost\nmore", "the connection is lost more"),
    ],
)
def test_each_host_is_named_with_its_reason(url: str, message: str, said: str) -> None:
    assert why(OperationalError(message), url) == said


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (TWO, [("one", "5433"), ("two", "5433")]),
        ("postgresql://a:1,b:2/x", [("a", "1"), ("b", "2")]),
        ("postgresql:///x", [("", "")]),
    ],
)
def test_a_url_may_name_several_hosts(url: str, found: list[tuple[str, str]]) -> None:
    assert hosts(url) == found
