#!/bin/sh
# Starts the server that the arguments name, with the users of users.acl. Each has the password in
# the variable of that name, of which the file then holds the hash.
set -eu
umask 077
users=${TMPDIR:-/tmp}/users.acl
edits="/^#/d; s|rocket-rides-log|${STREAM_NAME:-rocket-rides-log}|g"
for name in STREAMER TOTALS ROLLUP RECEIPTS ONLOOKER LOG; do
    eval "password=\${${name}_PASSWORD:?is not set: deploy/secrets makes it}"
    edits="$edits; s|>${name}_PASSWORD|#$(printf %s "$password" | sha256sum | cut -c 1-64)|"
done
sed "$edits" "${DEPLOY:-/deploy}/redis/users.acl" > "$users"
server=$1
shift
exec "$server" "$@" --aclfile "$users" # a configuration file comes first
