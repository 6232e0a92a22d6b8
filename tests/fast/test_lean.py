"""The lean Flask: what it leaves out is not looked for, and what is registered is called."""

from collections.abc import Iterator
from decimal import Decimal

import pytest
from flask import Blueprint, Flask, Response, after_this_request
from flask.signals import appcontext_tearing_down, request_tearing_down

from api.lean import LeanFlask

Called = list[str]


@pytest.fixture
def app() -> Flask:
    app = LeanFlask(__name__, static_folder=None)
    routes = Blueprint("routes", __name__)

    @routes.get("/with-headers")
    def with_headers() -> tuple[dict[str, Decimal], int, dict[str, str]]:
        return {"distance": Decimal("539.8370")}, 201, {"Location": "/rides/1"}

    @routes.get("/problem")
    def problem() -> tuple[dict[str, int], int, dict[str, str]]:
        return {"status": 400}, 400, {"content-type": "application/problem+json"}

    @routes.get("/plain")
    def plain() -> dict[str, int]:
        return {"id": 1}

    app.register_blueprint(routes)
    return app


@pytest.fixture
def called(app: Flask) -> Iterator[Called]:
    """What is called around a request, in its order."""
    names: Called = []

    def on_request_end(_: Flask, **__: object) -> None:
        names.append("request signal")

    def on_context_end(_: Flask, **__: object) -> None:
        names.append("context signal")

    @app.before_request
    def before() -> None:
        names.append("before")

    @app.after_request
    def after(response: Response) -> Response:
        names.append("after")
        return response

    @app.teardown_request
    def request_ends(_: BaseException | None) -> None:
        names.append("request ends")

    @app.teardown_appcontext
    def context_ends(_: BaseException | None) -> None:
        names.append("context ends")

    with (
        request_tearing_down.connected_to(on_request_end, app),
        appcontext_tearing_down.connected_to(on_context_end, app),
    ):
        yield names


def test_what_is_registered_is_called(app: Flask, called: Called) -> None:
    app.test_client().get("/plain")
    assert called == [
        "before",
        "after",
        "request ends",
        "request signal",
        "context ends",
        "context signal",
    ]


def test_a_signal_alone_is_sent(app: Flask) -> None:
    names: Called = []

    def on_request_end(_: Flask, **__: object) -> None:
        names.append("request")

    def on_context_end(_: Flask, **__: object) -> None:
        names.append("context")

    with (
        request_tearing_down.connected_to(on_request_end, app),
        appcontext_tearing_down.connected_to(on_context_end, app),
    ):
        app.test_client().get("/plain")
    assert names == ["request", "context"]


def test_a_function_is_called_at_the_end_though_no_signal_is_sent(app: Flask) -> None:
    names: Called = []
    app.teardown_request(lambda _: names.append("request"))
    app.teardown_appcontext(lambda _: names.append("context"))
    app.test_client().get("/plain")
    assert names == ["request", "context"]


def test_a_function_that_is_to_see_the_values_of_paths_is_called(app: Flask) -> None:
    seen = []
    app.url_value_preprocessor(lambda endpoint, values: seen.append((endpoint, values)))
    app.test_client().get("/plain")
    assert seen == [("routes.plain", {})]


def test_each_function_after_a_view_gets_what_the_one_registered_after_it_answered(
    app: Flask,
) -> None:
    def replace(response: Response) -> Response:
        return Response(response.data + b" and more")

    def close(response: Response) -> Response:
        return Response(response.data + b", no more")

    app.after_request(close)
    app.after_request(replace)
    assert app.test_client().get("/plain").data == b'{"id":1}\n and more, no more'


def test_an_answer_to_head_has_all_but_the_body(app: Flask) -> None:
    get, head = (getattr(app.test_client(), method)("/with-headers") for method in ("get", "head"))
    assert (head.status_code, head.headers) == (get.status_code, get.headers)
    assert get.data
    assert not head.data


def test_what_one_request_asks_for_is_called(app: Flask) -> None:
    """Beside what each of them asks for."""
    names: Called = []

    def note(response: Response) -> Response:
        names.append("this request")
        return response

    def before() -> None:
        after_this_request(note)

    app.before_request(before)
    app.after_request(lambda response: response)
    app.test_client().get("/plain")
    assert names == ["this request"]


def test_what_a_blueprint_asks_for_is_called(app: Flask) -> None:
    names: Called = []

    def note(response: Response) -> Response:
        names.append("blueprint")
        return response

    app.after_request(lambda response: response)
    app.after_request_funcs["routes"].append(note)
    app.test_client().get("/plain")
    assert names == ["blueprint"]


def test_what_is_to_be_called_before_a_view_can_answer(app: Flask) -> None:
    app.before_request(lambda: ({"refused": True}, 403))
    answer = app.test_client().get("/plain")
    assert (answer.status_code, answer.get_json()) == (403, {"refused": True})


def test_an_answer_has_its_status_and_its_headers(app: Flask) -> None:
    answer = app.test_client().get("/with-headers")
    assert (answer.status_code, answer.headers["Location"]) == (201, "/rides/1")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.data == b'{"distance":539.8370}\n'
    assert answer.headers["Content-Length"] == str(len(answer.data))


def test_an_answer_may_be_of_another_type(app: Flask) -> None:
    answer = app.test_client().get("/problem")
    assert answer.headers.getlist("Content-Type") == ["application/problem+json"]


def test_the_same_path_is_known_for_every_host_and_method(app: Flask) -> None:
    client = app.test_client()
    assert client.get("/plain", base_url="http://elsewhere.example").status_code == 200
    assert client.post("/plain").status_code == 405
    assert client.get("/nowhere").status_code == 404
