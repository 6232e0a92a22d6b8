"""What a URL of Sentinels says, in URLs of redis-py's."""

import pytest

from unified_log.sentinel_urls import FORM, SentinelUrl, parse


@pytest.mark.parametrize("places", ["", ",", "a:1,", ",a:1"])
def test_a_place_without_a_name_is_not_taken_for_this_host(places: str) -> None:
    with pytest.raises(ValueError, match=FORM):
        parse(f"redis+sentinel://{places}/n")


def test_another_url_is_none_of_sentinels() -> None:
    assert parse("redis://h/0") is None


def test_redis_user_and_options_are_not_the_sentinels() -> None:
    assert parse("redis+sentinel://u:p%40@a:1,b/a%2Fb/3?client_name=x") == SentinelUrl(
        "a/b", ["redis://a:1", "redis://b:26379"], "redis://u:p%40@/3?client_name=x"
    )


def test_the_sentinels_own_options_are_named_so() -> None:
    own = "sentinel_username=me&sentinel_password=%23&sentinel_ssl_keyfile=k&ssl_keyfile=j"
    assert parse(f"rediss+sentinel://[::1]/n?{own}") == SentinelUrl(
        "n", ["rediss://me:%23@[::1]:26379?ssl_keyfile=k"], "rediss:///?ssl_keyfile=j"
    )


def test_what_tls_needs_is_for_both() -> None:
    found = parse("rediss+sentinel://a:1/n?ssl_ca_certs=/x.pem")
    assert found
    assert found.sentinels == ["rediss://a:1?ssl_ca_certs=%2Fx.pem"]
    assert found.server == "rediss:///?ssl_ca_certs=%2Fx.pem"
