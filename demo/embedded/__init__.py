"""Postgres and Valkey from PyPI wheels, for machines that have neither."""
