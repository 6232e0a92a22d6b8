# Starts Postgres with the user, the password and the database that its own image would make.
set -e
export PGDATA=/var/lib/postgresql/data
if [ ! -e "$PGDATA" ]; then
    echo "$POSTGRES_PASSWORD" > /tmp/password
    initdb --auth=scram-sha-256 --username="$POSTGRES_USER" --pwfile=/tmp/password --locale=C.UTF-8
    echo "CREATE DATABASE $POSTGRES_DB" | postgres --single postgres
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
fi
exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp
