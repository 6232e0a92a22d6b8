"""The lean Flask: exact JSON, in one piece, at the same paths for every host."""

from decimal import Decimal

import pytest
from flask import Blueprint, Flask

from api.lean import LeanFlask


@pytest.fixture
def app() -> Flask:
    app = LeanFlask(__name__, static_folder=None)
    routes = Blueprint("routes", __name__)

    @routes.get("/with-headers")
    def with_headers() -> tuple[dict[str, Decimal], int, dict[str, str]]:
        return {"distance": Decimal("539.8370")}, 201, {"Location": "/rides/1"}

    @routes.get("/plain")
    def plain() -> dict[str, int]:
        return {"id": 1}

    app.register_blueprint(routes)
    return app


def test_an_answer_to_head_has_all_but_the_body(app: Flask) -> None:
    get, head = (getattr(app.test_client(), method)("/with-headers") for method in ("get", "head"))
    assert (head.status_code, head.headers) == (get.status_code, get.headers)
    assert get.data
    assert not head.data


def test_an_answer_has_its_status_and_its_headers(app: Flask) -> None:
    answer = app.test_client().get("/with-headers")
    assert (answer.status_code, answer.headers["Location"]) == (201, "/rides/1")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.data == b'{"distance":539.8370}\n'
    assert answer.headers["Content-Length"] == str(len(answer.data))


def test_the_same_path_is_known_for_every_host_and_method(app: Flask) -> None:
    client = app.test_client()
    assert client.get("/plain", base_url="http://elsewhere.example").status_code == 200
    assert client.post("/plain").status_code == 405
    assert client.get("/nowhere").status_code == 404
