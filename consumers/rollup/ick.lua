-- The operations of an Ick; ick.py says what they mean. One call is one atomic step.
-- KEYS: the version key, the producer set, the consumer set.
-- ARGV: the operation, 'create' or 'there' (whether it makes the Ick), and what it takes.
-- Scores pass through as the strings that Redis writes: Lua's own would have 14 digits.

local VERSION = 'ick.v1'
local LIMIT = 4000 -- arguments to one command, an even number; `unpack` fails near 8,000

local version_key, pset, cset = KEYS[1], KEYS[2], KEYS[3]
local call, min = redis.call, math.min

local function type_of(key)
  return call('TYPE', key).ok
end

-- What keeps the keys from being an Ick, or nil; and whether there is one. Writes nothing.
local function look()
  local version_type, pset_type, cset_type = type_of(version_key), type_of(pset), type_of(cset)
  if pset_type ~= 'none' and pset_type ~= 'zset' then
    return 'its producer set is a ' .. pset_type
  elseif cset_type ~= 'none' and cset_type ~= 'zset' then
    return 'its consumer set is a ' .. cset_type
  elseif version_type == 'none' then
    if pset_type ~= 'none' or cset_type ~= 'none' then
      return 'there are sets, but no version'
    end
    return nil, false
  elseif version_type ~= 'string' then
    return 'its version is a ' .. version_type
  elseif call('GET', version_key) ~= VERSION then
    return 'its version is not ' .. VERSION
  end
  return nil, true
end

-- Move the lowest of one set into another until that has `size` members. One that is in both keeps
-- its lower score, and fills nothing. Takes before it puts, so that a full Redis permits it.
local function move(from, to, size)
  while true do
    local count = min(size - call('ZCARD', to), LIMIT / 2)
    local taken = count > 0 and call('ZPOPMIN', from, count) or {}
    if #taken == 0 then
      return
    end
    for i = 1, #taken, 2 do -- member, score: ZADD wants the score first
      taken[i], taken[i + 1] = taken[i + 1], taken[i]
    end
    call('ZADD', to, 'LT', unpack(taken))
  end
end

-- Pairs of score and member from ARGV[3] on. Returns how many are new and how many became lower.
local function add()
  local before, touched = call('ZCARD', pset), 0
  for i = 3, #ARGV, LIMIT do
    touched = touched + call('ZADD', pset, 'LT', 'CH', unpack(ARGV, i, min(i + LIMIT - 1, #ARGV)))
  end
  local added = call('ZCARD', pset) - before
  return { added, touched - added }
end

-- Commit the members from ARGV[5] on; reserve up to ARGV[3], after a backwash if ARGV[4] says so.
-- Returns how many were committed, and the reservation.
local function exchange()
  local size, committed = tonumber(ARGV[3]), 0
  for i = 5, #ARGV, LIMIT do
    committed = committed + call('ZREM', cset, unpack(ARGV, i, min(i + LIMIT - 1, #ARGV)))
  end
  if ARGV[4] == 'backwash' then
    move(cset, pset, math.huge)
  end
  move(pset, cset, size)
  local last = min(size, call('ZCARD', cset)) - 1
  return { committed, last < 0 and {} or call('ZRANGE', cset, 0, last, 'WITHSCORES') }
end

-- A set's size and, unless it is empty, its lowest and its highest score.
local function measure(set)
  local lowest = call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
  return { call('ZCARD', set), lowest, lowest and call('ZRANGE', set, -1, -1, 'WITHSCORES')[2] }
end

local function refused(reason)
  return redis.error_reply('ERR no Ick at ' .. version_key .. ': ' .. reason)
end

local operation, create = ARGV[1], ARGV[2] == 'create'
local wrong, there = look()
if wrong then
  return refused(wrong)
end

if operation == 'stats' then
  return there and { VERSION, measure(pset), measure(cset) }
elseif operation == 'DEL' or operation == 'UNLINK' then
  return call(operation, version_key, pset, cset)
end

if not there then
  if not create then
    return refused('nothing is there')
  end
  call('SET', version_key, VERSION)
end
if operation == 'add' then
  return add()
end
return exchange()
