#!/bin/sh
# Creates the secrets for compose.yaml in the folder `secrets`. Does not replace existing secrets.
# Only the owner can open the folder. The files are readable by all users, because the containers run as different users.
set -eu
cd "$(dirname "$0")/.."
umask 022
mkdir -p secrets
chmod 700 secrets

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
make() { [ -s "secrets/$1" ] || printf '%s\n' "$2" > "secrets/$1"; }

make postgres_password "$(random)"
make database_url "postgres://parley:$(cat secrets/postgres_password)@postgres:5432/parley"
make redis_password "$(random)"
make redis_url "redis://:$(cat secrets/redis_password)@redis:6379/0"
make s3_secret_key "$(random)"
make parley_secret "$(random)"
# `parley keys generate` writes this file later; see docs/deploy.md.
[ -e secrets/parent_key ] || : > secrets/parent_key
