"""Prints the OpenAPI schema of the server, from which the types of the page are made."""

from __future__ import annotations

import json

from lattend.web.app import application

print(json.dumps(application(frozenset()).openapi(), indent=1))
