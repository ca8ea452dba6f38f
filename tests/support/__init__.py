"""The harness of the end-to-end tests: cgroups, servers, clients, tacho itself, and what a scrape says.

Everything is a context manager, listens on 127.0.0.1 only, and ends only what it started.
"""
