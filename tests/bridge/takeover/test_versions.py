"""Two versions of bargein answer beside each other, and take calls from one another."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest

from bargein import App
from bargein.protocol import Resume, decode_server, encode
from bargein.server import open_server
from bargein.websocket import ConnectionClosedError, open_websocket
from tests.bridge.takeover.memory_journals import MemoryJournals, recorded


async def answer(call):
    """Answer a call with nothing."""
    call.bridge(name="agent")


@asynccontextmanager
async def two_servers():
    """Two servers of one store, and a call of the first one's: its hello, and the other's port."""
    journals = MemoryJournals()
    async with (
        open_server(App(answer), port=0, journals=recorded(journals)) as one,
        open_server(App(answer), port=0, journals=recorded(journals)) as other,
        open_websocket(f"ws://127.0.0.1:{one.port}/ws?mode=text") as line,
    ):
        hello = decode_server(await line.receive())
        yield journals, hello, f"ws://127.0.0.1:{other.port}/ws?resume={hello.call}"


async def test_a_call_of_a_newer_version_is_left_to_others():
    """Its client is told to come again, as it may reach a worker that can go on with it."""
    async with two_servers() as (journals, hello, url):
        records = journals.records[hello.call]
        began = json.loads(records["call"])
        records["call"] = json.dumps({**began, "v": began["v"] + 1})
        async with open_websocket(url) as back:
            await back.send(encode(Resume(token=hello.resume, received=0)))
            with pytest.raises(ConnectionClosedError) as closed:
                await back.receive()
        assert closed.value.code == 1013
        assert (journals.fence, journals.records[hello.call]) == (1, records)
        records["call"] = json.dumps(began)
        async with open_websocket(url) as back:
            await back.send(encode(Resume(token=hello.resume, received=0)))
            assert decode_server(await back.receive()).fresh


async def test_what_another_version_has_added_is_kept():
    """Records and fields that this version does not know are there for the next one."""
    async with two_servers() as (journals, hello, url):
        records = journals.records[hello.call]
        records["later/1"] = "a record of tomorrow"
        records["call"] = json.dumps({**json.loads(records["call"]), "later": [1]})
        async with open_websocket(url) as back:
            await back.send(encode(Resume(token=hello.resume, received=0)))
            assert decode_server(await back.receive()).fresh
            records = journals.records[hello.call]
            assert records["later/1"] == "a record of tomorrow"
            assert json.loads(records["call"])["later"] == [1]
