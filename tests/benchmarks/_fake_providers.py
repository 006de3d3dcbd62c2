"""Serves a fake ear and a fake voice on real sockets in a process; prints their two ports.

``_fake_providers 3 FOLDER`` speaks at three times real time, over TLS with a certificate signed by
FOLDER/ca.pem.
"""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import trio
import trustme

from bargein.fakes import FakeCartesiaVoice, FakeDeepgramFlux


def _tls(folder: str) -> ssl.SSLContext:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(Path(folder) / "ca.pem"))
    return context


async def _serve(speed: str = "10", *folder: str) -> None:
    tls = _tls(*folder) if folder else None
    speaker = FakeCartesiaVoice()
    speaker.speed = float(speed)
    async with (
        FakeDeepgramFlux().serve(ssl_context=tls) as ear,
        speaker.serve(ssl_context=tls) as voice,
    ):
        print(ear, voice, flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(_serve, *sys.argv[1:])
