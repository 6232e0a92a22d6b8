"""The API as a process: its port, its workers, its end, and clients that are slow or break off."""

import json
import socket
from collections.abc import Iterator

import psutil
import pytest

from tests.support import plain_http
from tests.support.api import FORM, JSON, Api, ask, statuses
from tests.support.world import PATIENCE, World, eventually


@pytest.fixture(scope="module")
def live(module_world: World) -> Iterator[Api]:
    """One for the tests that leave it as it was."""
    api = Api(module_world)
    yield api
    api.client.close()


def test_a_client_that_breaks_off_and_still_listens_is_told_so(
    live: Api, module_world: World
) -> None:
    """And not that its distance is missing: the server hands over nothing of half a body."""
    for head, body in ((FORM, b"distance=53"), (JSON, b'{"distance": 53}')):
        half = head + b"Content-Length: 99\r\n\r\n" + body
        answer = ask(live.port, half, half_close=True)
        assert statuses(answer) == [400]
        assert b"the body is shorter than its Content-Length" in answer
    assert module_world.truth == (module_world.start, 0)


def test_a_taken_port_and_a_bad_address_are_one_clear_line(live: Api, module_world: World) -> None:
    for environment in ({"API_PORT": str(live.port)}, {"API_HOST": "192.0.2.1"}):
        second = module_world.service("api", **environment)
        assert second.ends() == 1
        [line] = second.output.read_text().splitlines()
        assert line.startswith("can't listen on ")
        assert "API_PORT" in line


def test_what_the_server_itself_says_is_an_object_on_each_line_too(world: World) -> None:
    api = Api(world, LOG_FORMAT="json")
    [worker] = psutil.Process(api.service.process.pid).children()
    worker.kill()
    output = api.service.output
    eventually(lambda: "Unexpected exit" in output.read_text(), "a word about the worker")
    eventually(api.answers, "another worker")
    assert all(json.loads(line)["message"] for line in output.read_text().splitlines())


def test_its_workers_end_with_it(world: World) -> None:
    api = Api(world, API_WORKERS="2")
    server = psutil.Process(api.service.process.pid)
    # One of them may answer before the other is there.
    eventually(lambda: len(server.children(recursive=True)) >= 2, "both workers")
    workers = server.children(recursive=True)
    api.service.process.kill()
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert alive == []


def test_idle_and_slow_clients_starve_nobody(world: World) -> None:
    # Whoever waits for the slow ones, waits in vain.
    api = Api(world, API_WORKERS="2", API_CLIENT_TIMEOUT="60")
    address = ("127.0.0.1", api.port)
    head = b"POST /rides HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n"
    form = b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    others = [socket.create_connection(address) for _ in range(180)]
    for other in others[30:60]:
        other.sendall(head)
    for other in others[60:]:
        other.sendall(head + form + b"dist")
    keep_alive = [plain_http.client(api.port) for _ in range(20)]
    for client in keep_alive:
        assert client.post("/rides", data={"distance": "5"}).status_code == 201
    assert {api.post().status_code for _ in range(50)} == {201}
    for other in others:
        other.close()
    for client in (*keep_alive, api.client):
        client.close()


def test_it_listens_on_loopback_unless_told_otherwise(live: Api) -> None:
    workers = psutil.Process(live.service.process.pid).children(recursive=True)
    sockets = [socket for worker in workers for socket in worker.net_connections("tcp")]
    listening = {socket.laddr for socket in sockets if socket.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", live.port)}
