"""A decimal that goes to a client keeps all of its digits."""

from decimal import Decimal

from flask import Flask

from api.exact_json import ExactJson


def test_a_decimal_is_a_number_with_all_of_its_digits() -> None:
    app = Flask(__name__, static_folder=None)
    app.json = ExactJson(app)
    digits = "99999999999999999999999999999999999.830"
    app.add_url_rule("/", view_func=lambda: ({"distance": Decimal(digits)}, 201))
    answer = app.test_client().get("/")
    assert (answer.status_code, answer.content_type) == (201, "application/json")
    assert answer.text == f'{{"distance":{digits}}}\n'
