# A program that works on the same Icks. Each line of its input is a JSON list: the Ick's key, the
# operation, and what ick_neighbour.lua takes; each line that it prints is the reply.
# Usage: ruby ick_neighbour.rb SOCKET

require 'json'
require 'redis'

script = File.read(File.join(__dir__, 'ick_neighbour.lua'))
redis = Redis.new(path: ARGV.fetch(0), reconnect_attempts: 0)
$stdout.sync = true

$stdin.each_line do |line|
  key, *words = JSON.parse(line)
  keys = [key, "#{key}/ick/{#{key}}/pset", "#{key}/ick/{#{key}}/cset"]
  puts JSON.generate(redis.eval(script, keys: keys, argv: words))
end
