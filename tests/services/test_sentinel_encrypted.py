"""Sentinels and Redis over TLS, with users of their own that have the page's rights alone."""

from pathlib import Path

import pytest
import redis
import trustme

from demo.embedded import stock
from demo.embedded.servers import Postgres, Redis
from demo.embedded.stream_servers import REDIS
from lab.chaos.redis_pair import client
from tests.support.clusters import fresh_world
from tests.support.folders import short_folder
from tests.support.secure import PASSWORD, SENTINELS_USER, let_in, private_file, system_programs
from tests.support.sentinels import HOST, watched
from tests.support.world import eventually
from unified_log.log import Log


def test_a_fail_over_over_tls_is_followed_by_users_with_the_pages_rights(
    postgres: Postgres, redis: Redis, tmp_path: Path
) -> None:
    programs = stock.named(stock.REDIS) or system_programs("redis-server")
    authority, other = trustme.CA(), trustme.CA()
    certificate = authority.issue_cert(HOST)
    with short_folder() as folder, fresh_world(postgres, redis, tmp_path) as world:
        at = {
            "tls-ca-cert-file": authority.cert_pem.bytes(),
            "tls-cert-file": certificate.cert_chain_pems[0].bytes(),
            "tls-key-file": certificate.private_key_pem.bytes(),
        }
        files = {name: private_file(folder / name, content) for name, content in at.items()}
        tls = {**files, "port": "0", "tls-auth-clients": "no", "tls-replication": "yes"}
        (tmp_path / "other.pem").write_bytes(other.cert_pem.bytes())
        with watched(sentinels=1, tls=tls, kind=REDIS, programs=programs) as servers:
            for server in servers.servers:
                with client(server) as control:
                    let_in(control, "rides", world.stream)
            with client(servers.sentinels[0]) as control:
                rights = SENTINELS_USER.replace("PASSWORD", PASSWORD).split()
                control.execute_command("ACL", "SETUSER", "rides", "reset", *rights)

            def url(authority: Path | str) -> str:
                own = f"?sentinel_username=rides&sentinel_password={PASSWORD}"
                return servers.url(f"rides:{PASSWORD}@", options=f"{own}&ssl_ca_certs={authority}")

            through = {"REDIS_URL": url(files["tls-ca-cert-file"])}
            world.service("streamer", **through)
            world.service("consumers.totals", "consumer0", **through)
            world.take(1, 2)
            eventually(lambda: world.standing() == world.truth)
            old = servers.primary
            old.kill()
            servers.until_replaced(old)
            world.take(3, 4)
            eventually(lambda: world.standing() == world.truth)
            distrusting(url(tmp_path / "other.pem"))


def distrusting(url: str) -> None:
    """Neither is talked to whose certificate is signed by somebody else."""
    with pytest.raises(redis.ConnectionError, match="certificate verify failed"):
        Log(url, "log")
