/** Contains the Lua scripts, which Redis runs atomically and with its own clock. */

/**
 * KEYS: the windows. ARGV: window length in ms, requests charged by the hit, one limit per window. Returns
 * each window's count, including this hit, and remaining ms.
 */
export const HIT = `
local windows, isFull = {}, false
for i, key in ipairs(KEYS) do
  local count, left = tonumber(redis.call('GET', key) or 0), redis.call('PTTL', key)
  if left <= 0 then count, left = 0, tonumber(ARGV[1]) end
  windows[2 * i - 1], windows[2 * i] = count + tonumber(ARGV[2]), left
  if windows[2 * i - 1] > tonumber(ARGV[i + 2]) then isFull = true end
end
if not isFull then
  for i, key in ipairs(KEYS) do
    redis.call('SET', key, windows[2 * i - 1], 'PX', windows[2 * i])
  end
end
return windows`

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/**
 * KEYS: replicas, then each quota's streams. ARGV: replica, ms until a replica is dead, ms until counts
 * expire, limits. Returns the full quota's index (from 1), or 0.
 */
export const ACQUIRE_STREAM = `${NOW}
for i = 2, #KEYS do
  local open, slots = 0, redis.call('HGETALL', KEYS[i])
  for at = 1, #slots, 2 do
    local seen = redis.call('ZSCORE', KEYS[1], slots[at])
    if slots[at] == ARGV[1] or (seen and tonumber(seen) > now - ARGV[2]) then open = open + slots[at + 1]
    else redis.call('HDEL', KEYS[i], slots[at]) end
  end
  if open >= tonumber(ARGV[i + 2]) then return i - 1 end
end
for i = 2, #KEYS do
  redis.call('HINCRBY', KEYS[i], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[i], ARGV[3])
end
return 0`

/** KEYS: a quota's streams. ARGV: replica, ms until counts expire, change. */
export const ADJUST_STREAMS = `
if redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[3]) <= 0 then redis.call('HDEL', KEYS[1], ARGV[1])
else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end`

/**
 * KEYS: as in `ACQUIRE_STREAM`. ARGV: replica, former name, ms until a replica is dead, ms until counts
 * expire, streams per quota. Returns the number of replicas.
 */
export const REGISTER = `${NOW}
for i = 2, #KEYS do
  redis.call('HSET', KEYS[i], ARGV[1], ARGV[i + 3])
  redis.call('PEXPIRE', KEYS[i], ARGV[4])
end
redis.call('ZREM', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])
return redis.call('ZCARD', KEYS[1])`

/**
 * KEYS: replicas. ARGV: replica, ms until a replica is dead. Returns the number of replicas, or 0 if this one
 * is not registered.
 */
export const BEAT = `${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now, ARGV[1])
return redis.call('ZCARD', KEYS[1])`
