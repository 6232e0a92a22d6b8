#!/bin/sh
# Run by Postgres' image when it creates the database: the roles, and their passwords, each from the
# variable of its name.
set -eu
roles="rides api streamer totals rollup receipts onlooker reconciler"

sql() {
    psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 \
        --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" "$@"
}

variable() {
    echo "$1_PASSWORD" | tr a-z A-Z
}

for role in $roles; do # before anything is done
    eval ": \${$(variable "$role"):?is not set: deploy/secrets makes it}"
done
sql --file="${DEPLOY:-/deploy}/postgres/roles.sql"
for role in $roles; do
    eval "password=\$$(variable "$role")"
    echo "ALTER ROLE $role PASSWORD :'password'" | sql --set=password="$password"
done
