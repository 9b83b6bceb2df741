/** Contains the Lua scripts, which Redis runs atomically, with its own clock for all replicas. */

/** Keys: the windows. Arguments: their length in ms, the requests that the hit counts as, then the limits. Returns count and ms left of each, including this hit. */
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

/** Keys: replicas, streams of each quota. Arguments: replica, ms until dead, ms counts are kept, limits. Returns the full quota (from 1) or 0. */
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

/** Keys: the streams of a quota. Arguments: the replica, the ms after which the counts expire, and the change. */
export const ADJUST_STREAMS = `
if redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[3]) <= 0 then redis.call('HDEL', KEYS[1], ARGV[1])
else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end`

/** Keys: as `ACQUIRE_STREAM`. Arguments: replica, former name, ms until dead, ms counts are kept, streams by quota. Returns the replica count. */
export const REGISTER = `${NOW}
for i = 2, #KEYS do
  redis.call('HSET', KEYS[i], ARGV[1], ARGV[i + 3])
  redis.call('PEXPIRE', KEYS[i], ARGV[4])
end
redis.call('ZREM', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])
return redis.call('ZCARD', KEYS[1])`

/** Keys: the replicas. Arguments: the replica, and the ms after which one is dead. Returns their number; 0 if it is not registered. */
export const BEAT = `${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now, ARGV[1])
return redis.call('ZCARD', KEYS[1])`
