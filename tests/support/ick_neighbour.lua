-- An Ick as somebody else would write it who only knows the gem's protocol: one member at a time.
-- KEYS: the version, the producer set, the consumer set. ARGV: the operation, and what it takes.

local version, pset, cset = KEYS[1], KEYS[2], KEYS[3]

local found = redis.call('GET', version)
if found and found ~= 'ick.v1' then
  return redis.error_reply('ERR unknown version ' .. found)
end

-- Put a member into a set, unless it is there with a score that is as low.
local function fold(set, score, member)
  local known = redis.call('ZSCORE', set, member)
  if known and tonumber(known) <= tonumber(score) then
    return 'kept'
  end
  redis.call('ZADD', set, score, member)
  return known and 'lowered' or 'new'
end

local operations = {}

function operations.add()
  local count = { new = 0, lowered = 0, kept = 0 }
  for i = 2, #ARGV, 2 do
    local how = fold(pset, ARGV[i], ARGV[i + 1])
    count[how] = count[how] + 1
  end
  redis.call('SETNX', version, 'ick.v1')
  return { count.new, count.lowered }
end

-- The size, 'backwash' or nothing, the members to commit.
function operations.exchange()
  local committed = 0
  for i = 4, #ARGV do
    committed = committed + redis.call('ZREM', cset, ARGV[i])
  end
  if ARGV[3] == 'backwash' then
    local all = redis.call('ZRANGE', cset, 0, -1, 'WITHSCORES')
    for i = 1, #all, 2 do
      fold(pset, all[i + 1], all[i])
    end
    redis.call('DEL', cset)
  end
  local size = tonumber(ARGV[2])
  while redis.call('ZCARD', cset) < size do
    local lowest = redis.call('ZRANGE', pset, 0, 0, 'WITHSCORES')
    if not lowest[1] then
      break
    end
    redis.call('ZREM', pset, lowest[1])
    fold(cset, lowest[2], lowest[1])
  end
  redis.call('SETNX', version, 'ick.v1')
  return { committed, size > 0 and redis.call('ZRANGE', cset, 0, size - 1, 'WITHSCORES') or {} }
end

function operations.sizes()
  return { redis.call('ZCARD', pset), redis.call('ZCARD', cset) }
end

return operations[ARGV[1]]()
