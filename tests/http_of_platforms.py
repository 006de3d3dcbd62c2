"""Requests over HTTP, as platforms send them to a server in memory."""

from bargein.nodes.fakes.platforms import request_json


async def asked_json(door, method, path, content=None, headers=None):
    """Send a request, and return the JSON of its answer; raises ``HttpRefusedError``."""
    return await request_json(await door.dial(), method, path, content, headers)
