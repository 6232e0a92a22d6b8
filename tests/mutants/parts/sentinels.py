"""Mutants of following the primary that Sentinels name."""

from functools import partial

from tests.mutants.mutant import Mutant

LEAVES = (
    "services/test_sentinel.py::test_whoever_is_connected_to_a_server_that_was_replaced_leaves_it"
)
WORDS = "services/test_sentinel_words.py"
sentinels = partial(Mutant, file="unified_log/log/sentinels.py", tests=WORDS)

MUTANTS = [
    sentinels(
        "whoever is connected stays with an old primary",
        "if (host, port) != ours:",
        "if False:",
        tests=LEAVES,
    ),
    sentinels(
        "a reader heals what an old primary does not have, again and again",
        "                self._log.require_primary()  # else",
        "                pass  # else",
        file="unified_log/readers/reader.py",
        tests=LEAVES,
    ),
    sentinels(
        "the streamer goes on to send to an old primary",
        "            self._log.require_primary()  # who",
        "            pass  # who",
        file="unified_log/streamer/upkeep.py",
        tests=LEAVES,
    ),
    sentinels(
        "a group's member waits at an old primary",
        "        if not reply:\n            self.log.require_primary()\n",
        "",
        file="consumers/receipts/group.py",
        tests=LEAVES,
    ),
    sentinels(
        "a replica is taken for the primary",
        'if b"master" not in connection.read_response():',
        "if not connection.read_response():",
    ),
    sentinels(
        "a Sentinel that is away ends the search",
        "except redis.RedisError as error:",
        "except redis.ResponseError as error:",
    ),
    sentinels(
        "each silent Sentinel costs a second",
        "min(timeout, TIMEOUT) / len(places)",
        "min(timeout, TIMEOUT)",
    ),
    sentinels(
        "the Sentinels are told Redis' password",
        '[f"{scheme}://{login}{place}',
        "[f\"{scheme}://{parts['login'] or ''}{place}",
        file="unified_log/sentinel_urls.py",
        tests="fast/test_sentinel_urls.py",
    ),
]
