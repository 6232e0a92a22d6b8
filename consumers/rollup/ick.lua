-- The operations of an Ick; ick.py says what they mean. One call is one atomic step.
-- KEYS: the version, the producer set, the consumer set; for an owned Ick, the count of writes.
-- ARGV: the operation, the state in which an owned Ick must be, and what the operation takes.
-- Returns the operation's result, and the state that it leaves.
-- Scores stay the strings that Redis writes, which are exact; Lua would print 14 digits.

local VERSION = 'ick.v1'
local LIMIT = 4000 -- arguments to one command, an even number; `unpack` fails near 8,000

local version_key, pset, cset, writes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, min = redis.call, math.min
local wrote = false

-- Why the keys are no Ick, or nil.
local function fault()
  local version, producers, consumers =
    call('TYPE', version_key).ok, call('TYPE', pset).ok, call('TYPE', cset).ok
  if producers ~= 'none' and producers ~= 'zset' then
    return 'its producer set is a ' .. producers
  elseif consumers ~= 'none' and consumers ~= 'zset' then
    return 'its consumer set is a ' .. consumers
  elseif version == 'none' then
    return (producers ~= 'none' or consumers ~= 'none') and 'there are sets, but no version' or nil
  elseif version ~= 'string' then
    return 'its version is a ' .. version
  end
  return call('GET', version_key) ~= VERSION and 'its version is not ' .. VERSION or nil
end

-- The version, how many operations have written, and the sets' sizes. An older state that was
-- restored has another count, and one that lost a set another size: neither alone shows both.
local function state()
  local version = call('GET', version_key) or 'none'
  local count = writes and call('GET', writes) or '0'
  return table.concat({ version, count, call('ZCARD', pset), call('ZCARD', cset) }, ' ')
end

-- Move the lowest of one set into the other until that has `size` members. One that is in both
-- keeps its lower score, and adds nothing to the size. It takes before it puts: once a script has
-- written, a full Redis permits what follows.
local function move(from, to, size)
  while true do
    local count = min(size - call('ZCARD', to), LIMIT / 2)
    local taken = count > 0 and call('ZPOPMIN', from, count) or {}
    if #taken == 0 then
      return
    end
    for i = 1, #taken, 2 do -- member, score; ZADD wants the score first
      taken[i], taken[i + 1] = taken[i + 1], taken[i]
    end
    call('ZADD', to, 'LT', unpack(taken))
    wrote = true
  end
end

local function make()
  if not call('GET', version_key) then
    call('SET', version_key, VERSION)
    wrote = true
  end
end

local operations = {}

-- Takes pairs of score and member. Returns how many members are new, and how many scores lower.
function operations.add()
  make()
  local before, changed = call('ZCARD', pset), 0
  for i = 3, #ARGV, LIMIT do
    local last = min(i + LIMIT - 1, #ARGV)
    changed = changed + call('ZADD', pset, 'LT', 'CH', unpack(ARGV, i, last))
  end
  wrote = wrote or changed > 0
  local added = call('ZCARD', pset) - before
  return { added, changed - added }
end

-- Takes a size, 'backwash' or 'keep', and the members to commit. Commits them, then reserves.
-- Returns how many were committed, and the reservation.
function operations.exchange()
  make()
  local size, committed = tonumber(ARGV[3]), 0
  for i = 5, #ARGV, LIMIT do
    committed = committed + call('ZREM', cset, unpack(ARGV, i, min(i + LIMIT - 1, #ARGV)))
  end
  wrote = wrote or committed > 0
  if ARGV[4] == 'backwash' then
    move(cset, pset, math.huge)
  end
  move(pset, cset, size)
  local last = min(size, call('ZCARD', cset)) - 1
  return { committed, last < 0 and {} or call('ZRANGE', cset, 0, last, 'WITHSCORES') }
end

-- Returns the size of each set and, unless it is empty, its lowest and its highest score.
function operations.stats()
  local function measure(set)
    local lowest = call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
    return { call('ZCARD', set), lowest, lowest and call('ZRANGE', set, -1, -1, 'WITHSCORES')[2] }
  end
  return call('GET', version_key) and { measure(pset), measure(cset) }
end

function operations.delete()
  return call('UNLINK', unpack(KEYS))
end

local operation, expected = ARGV[1], ARGV[2]
if not (writes and operation == 'delete') then
  local wrong = fault()
  if writes and (wrong or state() ~= expected) then
    return redis.error_reply('ICKLOST ' .. version_key)
  elseif wrong then
    return redis.error_reply('ERR no Ick at ' .. version_key .. ': ' .. wrong)
  end
end
local result = operations[operation]()
if wrote and writes then
  call('INCR', writes)
end
return { result, state() }
