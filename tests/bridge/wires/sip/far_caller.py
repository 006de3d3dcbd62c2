"""A caller in a process of its own: dials, sends a tone, counts what it hears, and hangs up.

Its arguments are PORT OWN_PORT SECONDS TALKS_AFTER_SECONDS [KEY]; it prints JSON.
"""

import asyncio
import json
import math
import struct
import sys

import baresip

TONE = struct.pack("<160h", *(int(8000 * math.sin(math.tau * i / 20)) for i in range(160)))
LOUD = 1_000


async def main(port, own, lasts_s, talks_after_s, key):
    runtime = baresip.Runtime()
    listens = f"sip_listen 127.0.0.1:{own}\n"
    config = baresip.Config(
        net_interface="127.0.0.1", native_log_level="error", extra_config_text=listens
    )
    await runtime.start(config)
    account = baresip.Account("caller", f"127.0.0.1:{own}", "", reg_interval=0)
    agent = await baresip.UserAgent.create(runtime, account)
    # Before dialling: the library's own call misses an answer that comes within milliseconds.
    changed, seen = asyncio.Event(), []

    def listen(event):
        if event.event in (baresip.Event.CALL_ESTABLISHED, baresip.Event.CALL_CLOSED):
            seen.append(event.event)
            changed.set()

    runtime.subscribe(listen)
    told = {"loud": 0, "loud_until_s": 0.0, "error": ""}
    try:
        call = await agent.dial(f"sip:agent@127.0.0.1:{port}")
        await asyncio.wait_for(changed.wait(), 10)
        if baresip.Event.CALL_CLOSED in seen:
            raise baresip.CallBusy("it was refused")
        began_s = asyncio.get_running_loop().time()
        if key:
            await asyncio.sleep(0.3)  # a switch may swallow a key right after the answer
            await call.send_dtmf(key)
        while (now_s := asyncio.get_running_loop().time() - began_s) < lasts_s:
            await asyncio.sleep(0.02)
            if baresip.Event.CALL_CLOSED in seen:
                break
            if now_s > talks_after_s and call.audio.info().tx_buffered < 3 * len(TONE):
                call.audio.write(TONE)
            heard = struct.iter_unpack("<h", call.audio.read(16_000))
            loud = sum(abs(sample) > LOUD for (sample,) in heard)
            told["loud"] += loud
            told["loud_until_s"] = now_s if loud else told["loud_until_s"]
        await call.hangup()
    except baresip.BaresipError as error:
        told["error"] = type(error).__name__
    await asyncio.sleep(0.1)
    await runtime.close()
    print(json.dumps(told))


if __name__ == "__main__":
    ports, seconds = map(int, sys.argv[1:3]), map(float, sys.argv[3:5])
    asyncio.run(main(*ports, *seconds, *sys.argv[5:] or [""]))
