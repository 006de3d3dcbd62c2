"""A Redis in memory, with the two scripts in Python, for many processes in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import trio

from bargein.bridge.takeover._journal_writer import JournalStoreError
from bargein.bridge.takeover._redis_scripts import TAKE, WRITE, digest


class FakeRedis:
    """What a Redis has, and what it was asked for.

    Attributes:
        asked: How many commands it has had, by name.
        fences: The highest fence that each call ever had, and who got it.
        is_lost: Whether nobody reaches it.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.fences: dict[bytes, tuple[int, str]] = {}
        self.is_lost = False
        self._hashes: dict[bytes, dict[str, str]] = {}
        self._until_s: dict[bytes, float] = {}
        self._channels: dict[str, Callable[[bytes], None]] = {}

    def connection_to(self, **keywords: Any) -> FakeConnection:
        """Return a connection, as ``RedisConnection`` makes one."""
        return FakeConnection(self, keywords["channel"], keywords["on_message"])

    def listen(self, channel: str, on_message: Callable[[bytes], None]) -> None:
        """Give a channel's messages to a process."""
        self._channels[channel] = on_message

    def leave(self, channel: str) -> None:
        """Give it no more."""
        self._channels.pop(channel, None)

    def saved(self) -> dict[bytes, dict[str, str]]:
        """Return what a replica has now."""
        return {key: dict(found) for key, found in self._hashes.items()}

    def fail_over(self, saved: dict[bytes, dict[str, str]]) -> None:
        """Go on with what a replica had: later writes are lost."""
        self._hashes = saved

    def do(self, name: str | bytes, *rest: Any) -> Any:
        """Do one command."""
        name = _text(name)
        self.asked[name] += 1
        match name:
            case "TIME":
                now_us = self._now_us()
                return [now_us // 1_000_000, now_us % 1_000_000]
            case "PEXPIRE" | "SET":
                key, ms = _key(rest[0]), int(rest[-1])
                known = name == "SET" or self._is_there(key)
                if known:
                    self._until_s[key] = trio.current_time() + ms / 1000
                return int(known)
            case "EXISTS":
                return int(self._is_there(_key(rest[0])))
            case "HGETALL":
                return _as_bytes(self._hashes.get(_key(rest[0]), {}))
            case "HMGET":
                found = self._hashes.get(_key(rest[0]), {})
                return [None if name not in found else found[name].encode() for name in rest[1:]]
            case "PUBLISH":
                listener = self._channels.get(rest[0])
                if listener is not None:
                    listener(rest[1])
                return int(listener is not None)
            case "EVALSHA" if rest[0] == digest(WRITE):
                return self._write(_key(rest[2]), *map(_text, rest[3:]))
            case "EVALSHA" if rest[0] == digest(TAKE):
                return self._take(_key(rest[2]), *map(_text, rest[3:]))
        raise NotImplementedError(name)

    def _is_there(self, key: bytes) -> bool:
        return trio.current_time() < self._until_s.get(key, 0.0)

    def _now_us(self) -> int:
        return round((trio.current_time() + 1_000_000.0) * 1_000_000)

    def _write(self, key: bytes, head: str, *records: str) -> list[bytes]:
        owner, fence_text, batches, _, whole, ending, count = head.split(" ")
        found, fence = self._hashes.get(key), int(fence_text)
        if fence == 0:
            if found is not None:
                return [b"fenced", b"0"]
            fence = self._now_us()
        elif found is None or fence > int(found["=fence"]):
            if whole != "1":
                return [b"lost", b"0"]
        elif fence < int(found["=fence"]) or found["=owner"] != owner:
            return [b"fenced", b"0"]
        elif found.get("=batches") != batches and whole != "1":
            return [b"lost", b"0"]
        self._note(key, fence, owner)
        if ending == "forget":
            self._hashes[key] = {"=owner": "", "=fence": str(fence), "=over": "1"}
            return [b"kept", str(fence).encode()]
        if found is None or whole == "1":
            found = self._hashes[key] = {}
        now_us = str(self._now_us())
        found |= {"=owner": owner, "=fence": str(fence), "=batches": str(int(batches) + 1)}
        found |= {"=at": now_us, "=opened": found.get("=opened", now_us)}
        puts, drops = records[: 2 * int(count)], records[2 * int(count) :]
        found |= dict(zip(puts[::2], puts[1::2], strict=True))
        for name in drops:
            found.pop(name, None)
        if ending == "free":
            found["=owner"] = ""
        return [b"kept", str(fence).encode()]

    def _take(self, key: bytes, owner: str, before: str, fence: str, _ms: str) -> Any:
        found = self._hashes.get(key)
        if found is None or found["=fence"] != fence or "=over" in found:
            return None
        if found["=owner"] not in ("", before):
            return None
        found |= {"=owner": owner, "=fence": str(max(int(fence) + 1, self._now_us()))}
        self._note(key, int(found["=fence"]), owner)
        return _as_bytes(found)

    def _note(self, key: bytes, fence: int, owner: str) -> None:
        """Look that no fence is in force but the last, and that it is one process's."""
        last = self.fences.get(key, (0, ""))
        assert fence > last[0] or (fence, owner) == last, f"{key!r}: {(fence, owner)} after {last}"
        self.fences[key] = (fence, owner)


class FakeConnection:
    """The connection of one process.

    Attributes:
        is_lost: Whether the process does not reach the Redis.
    """

    def __init__(self, redis: FakeRedis, channel: str, on_message: Callable[[bytes], None]) -> None:
        self.is_lost = False
        self._redis, self._channel, self._on_message = redis, channel, on_message

    async def run(self) -> None:
        """Listen, until cancelled; nobody listens for a process that is cut off."""
        while True:
            if self.is_lost:
                self._redis.leave(self._channel)
            else:
                self._redis.listen(self._channel, self._on_message)
            try:
                await trio.sleep(0.2)
            finally:
                self._redis.leave(self._channel)

    async def ask(self, *commands: Any) -> list[Any]:
        """Do commands after a round trip."""
        await trio.sleep(0.001)
        if self.is_lost or self._redis.is_lost:
            await trio.sleep(1.0)
            raise JournalStoreError("no answer within 1 s")
        return [self._redis.do(*command) for command in commands]


def _key(key: str | bytes) -> bytes:
    return key if isinstance(key, bytes) else key.encode()


def _text(part: object) -> str:
    return part.decode() if isinstance(part, bytes) else str(part)


def _as_bytes(found: dict[str, str]) -> dict[bytes, bytes]:
    return {key.encode(): value.encode() for key, value in found.items()}
