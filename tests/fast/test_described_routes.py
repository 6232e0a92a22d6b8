"""The API's description of itself has every route, and the limits that hold."""

import json
import re

from flask import Flask
from werkzeug.exceptions import NotFound

from api.parameters import KEY_LENGTH
from api.problems import _refused
from api.views import DESCRIPTION, routes
from consumers.receipts.verdict import GONE, TRY_AGAIN


def test_every_route_is_described_and_nothing_else() -> None:
    app = Flask("test", static_folder=None)
    app.register_blueprint(routes)
    served = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}  # Flask adds these two
    }
    paths = json.loads(DESCRIPTION)["paths"]
    described = {(path, method.upper()) for path in paths for method in paths[path]}
    assert served == described
    app.register_error_handler(NotFound, _refused)
    hint = app.test_client().get("/nowhere").text
    plain = {path for path in paths if "{" not in path and not path.endswith("z")}
    assert {*re.findall(r"/[a-z.]+", hint)} >= plain


def test_no_name_in_it_is_there_twice() -> None:
    """The later one would take the place of the first."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len(dict(pairs)) == len(pairs), pairs
        return dict(pairs)

    json.loads(DESCRIPTION, object_pairs_hook=once)


def test_the_limits_it_names_are_the_applications() -> None:
    assert f"{{1,{KEY_LENGTH}}}$" in DESCRIPTION.decode()


def test_the_answers_to_a_receipt_that_it_names_are_those_that_mean_something() -> None:
    told = json.loads(DESCRIPTION)["webhooks"]["ride.receipt"]["post"]["responses"]
    assert told.keys() == {"2XX", "5XX", str(GONE), *map(str, TRY_AGAIN)}
