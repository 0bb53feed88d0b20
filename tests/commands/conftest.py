"""A data server on the loopback address, and an empty local store."""

from helpers.data_server_fixtures import server, store  # noqa: F401
