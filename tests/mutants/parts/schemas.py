"""Mutants of which code a schema serves, and of migrations that wait."""

from functools import partial

from tests.mutants.mutant import Mutant

COMPATIBLE = "services/test_compatible_schemas.py"
ENDED = f"{COMPATIBLE}::test_a_migration_that_ends_the_service_of_old_code_waits_for_it_by_name"
NAMED = f"{COMPATIBLE}::test_a_migration_names_who_holds_its_lock_and_nobody_waits_long_behind_it"

serving = partial(Mutant, file="unified_log/schema/serving.py")
waiting = partial(Mutant, file="migrations/waiting.py", tests=NAMED)

MUTANTS = [
    serving(
        "a newer schema serves no older code",
        "        if found.serves_from > self.revision:\n",
        "        if found.revision > self.revision:\n",
        tests=f"{COMPATIBLE}::test_processes_go_on_beside_a_newer_schema_that_serves_them",
    ),
    serving(
        "old code goes on though it is not served",
        "        if found.serves_from > self.revision:\n",
        "        if found.serves_from > self.revision + 9:\n",
        tests=ENDED,
    ),
    serving(
        "a session holds no lock for its code",
        "pg_try_advisory_lock_shared(",
        "pg_try_advisory_xact_lock_shared(",
        tests=ENDED,
    ),
    serving(
        "an older schema is taken for its own",
        "        if found.revision < self.revision:\n",
        "        if found.revision < self.revision - 1:\n",
        tests="services/test_schema.py::test_an_older_schema_is_told_with_what_upgrades_it",
    ),
    serving(
        "another schema of the same number is taken for its own",
        "        return found.revision == self.revision and found.digest != self.digest\n",
        "        return False\n",
        tests="services/test_schema.py::test_a_schema_that_was_changed_since_is_told_from_this_one",
    ),
    serving(
        "a role without rights is told to be the owner",
        "versions(connection, components[0].rights)\n",
        "versions(connection)\n",
        tests="services/test_schema.py::test_a_role_that_was_given_no_rights_is_told_what_gives_them",
    ),
    Mutant(
        "older code of the library is not waited for",
        "session.execute(EXCLUDE, [component.lock,",
        "session.execute(EXCLUDE, [APPLICATION.lock,",
        "migrations/waiting.py",
        f"{COMPATIBLE}::test_a_second_revision_of_the_library_serves_the_first_until_it_ends_that",
    ),
    waiting(
        "a migration waits for a lock as long as it takes",
        'LOCK_TIMEOUT = "300ms"\n',
        'LOCK_TIMEOUT = "0"\n',
    ),
    waiting(
        "nobody is named",
        "            self.seen = seen or self.seen\n",
        "            self.seen = seen and self.seen\n",
    ),
    Mutant(
        "a migration takes away what old code needs",
        "    if found and serves_from > found.serves_from:\n",
        "    if found and serves_from < found.serves_from:\n",
        "migrations/step.py",
        ENDED,
    ),
]
