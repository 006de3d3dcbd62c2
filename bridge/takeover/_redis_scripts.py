"""The two scripts by which Redis changes the journal of a call.

Rule 1. A call is one hash: its records, and beside them ``=owner``, ``=fence``, ``=batches`` (how
many batches it has), ``=opened`` and ``=at`` (when the first and the last came).  No other clock
than that of Redis counts.
Rule 2. The fence is the time in microseconds, or one more than the last if that is higher: also a
store that has lost its last writes, or all of them, never gives the same fence to two.
Rule 3. Whoever has the higher fence owns a call, whatever the store remembers.
Rule 4. What is over leaves its fence behind for a while, so that nobody makes it again.
"""

from __future__ import annotations

import hashlib

WRITE = """
local key = KEYS[1]
local owner, fence, batches, keep_ms, whole, ending, count =
  string.match(ARGV[1], '^(%S+) (%d+) (%d+) (%d+) (%d) (%a*) (%d+)$')
local is_whole, last = whole == '1', 1 + 2 * count
fence = tonumber(fence)
local held = redis.call('HMGET', key, '=owner', '=fence', '=batches')
local now = redis.call('TIME')
local at = now[1] * 1000000 + now[2]
if fence == 0 then
  if held[2] then return {'fenced', '0'} end
  fence = at
elseif not held[2] or fence > tonumber(held[2]) then
  if not is_whole then return {'lost', '0'} end
elseif fence < tonumber(held[2]) or held[1] ~= owner then
  return {'fenced', '0'}
elseif held[3] ~= batches and not is_whole then
  return {'lost', '0'}
end
local as_text = string.format('%.0f', fence)
if ending == 'forget' then
  redis.call('DEL', key)
  redis.call('HSET', key, '=owner', '', '=fence', as_text, '=over', '1')
  redis.call('PEXPIRE', key, keep_ms)
  return {'kept', as_text}
end
if is_whole and held[2] then redis.call('DEL', key) end
redis.call('HSET', key, '=owner', owner, '=fence', as_text, '=batches', batches + 1,
  '=at', string.format('%.0f', at))
redis.call('HSETNX', key, '=opened', string.format('%.0f', at))
for first = 2, last, 1000 do
  redis.call('HSET', key, unpack(ARGV, first, math.min(first + 999, last)))
end
for index = last + 1, #ARGV do redis.call('HDEL', key, ARGV[index]) end
if ending == 'free' then redis.call('HSET', key, '=owner', '') end
redis.call('PEXPIRE', key, keep_ms)
return {'kept', as_text}
"""
"""Writes a batch; its answer is what became of it, and the fence.  With the fence 0 it begins a
call.  A full store refuses it as a whole, unless it ends the call.

Arguments: in one, since each costs time, the owner, the fence, how many batches there are, for how
many milliseconds the journal is kept, whether the batch has all records, the ending, and the number
of records to put; then these, and the names of those to drop.
"""

TAKE = """#!lua flags=allow-oom
local key, owner, before, fence = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local held = redis.call('HMGET', key, '=owner', '=fence', '=over')
if held[2] ~= fence or held[3] or (held[1] ~= '' and held[1] ~= before) then return false end
local now = redis.call('TIME')
local at = now[1] * 1000000 + now[2]
local next = string.format('%.0f', math.max(tonumber(fence) + 1, at))
redis.call('HSET', key, '=owner', owner, '=fence', next)
redis.call('PEXPIRE', key, ARGV[4])
return redis.call('HGETALL', key)
"""
"""Takes a call, also from a full store; its answer is the whole hash, or nothing.

Arguments: who takes it, its owner if that is known to be dead or empty, the fence that was read,
and for how many milliseconds the journal is kept.
"""


def digest(script: str) -> str:
    """Return the name by which a Redis that has loaded a script knows it."""
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
