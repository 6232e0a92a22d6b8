# A reader that knows nothing of this project but contracts/log.asyncapi.json, and what that refers
# to. It adds up one member of all records of one type. For each line of its input it reads to the
# end of the log, and prints a line of JSON: where it stands, the total, and the gaps it has met.
# Usage: ruby log_reader.rb CONTRACT STREAM SOCKET PSQL DATABASE_URL POSITION TYPE MEMBER

require 'bigdecimal'
require 'json'
require 'open3'
require 'redis'

class Reader
  COUNT = 3

  def initialize(contract, stream, socket, psql, url, position, type, member)
    document = JSON.parse(File.read(contract))
    @follow = document['operations']['follow']
    message = document['components']['messages'].fetch(type)
    payload = File.join(File.dirname(contract), message['payload']['$ref'])
    described = JSON.parse(File.read(payload))['properties'].fetch(member)
    abort "#{member} is no number" unless described['type'] == 'number'
    entry = document['components']['messageTraits']['entry']
    @field, headers = entry['x-payload-field'], entry['headers']
    @required = headers['required'] + [@field]
    fields = headers['properties'].select { |_, field| field.key?('pattern') }
    @patterns = fields.transform_values { |field| Regexp.new(field['pattern']) }
    @redis = Redis.new(path: socket)
    @stream, @psql, @type, @member = stream, [psql, '-XAtq', '-F', "\t", url], message['name'], member
    @place, @position, @known, @total = '0-0', Integer(position), 0, BigDecimal(0)
  end

  def catch_up
    @gaps, idle = [], 0
    while idle < 2
      was = [@place, @position]
      read
      idle = was == [@place, @position] ? idle + 1 : 0
    end
    { position: @position, total: @total.to_s('F'), gaps: @gaps }
  end

  private

  def read
    entries = @redis.xread(@stream, @place, count: COUNT).fetch(@stream, [])
    rows = ask('x-terms')
    terms = rows.to_h { |_, term, _, after, upto| [term, Integer(after) + 1..Integer(upto)] }
    last_sent = Integer(rows.last.first)
    entries.each do |place, fields|
      id = fields['id'].to_i
      if record?(fields) && terms[fields.fetch('term', '')]&.cover?(id)
        break if id > last_sent

        if id > @position
          heal(fields['prev'].to_i)
          take(fields['type'], fields[@field])
          @position = id
        end
      end
      @place = place
    end
    heal([@known, last_sent].min) if entries.size < COUNT
    @place = '0-0' if entries.empty? && (numbers(newest) <=> numbers(@place)) < 0
    @known = last_sent
  end

  def record?(fields)
    @required.all? { |name| fields.key?(name) } &&
      fields.all? { |name, value| !@patterns[name] || value.b[@patterns[name]] == value.b } &&
      fields['prev'].to_i < fields['id'].to_i && (fields['type'] != @type || fits?(fields))
  end

  def fits?(fields)
    payload = JSON.parse(fields[@field], decimal_class: BigDecimal)
    payload.is_a?(Hash) && payload['id'] == fields['id'].to_i && payload[@member].is_a?(Numeric)
  rescue JSON::ParserError
    false
  end

  def heal(upto)
    return if upto <= @position

    @gaps << [@position, upto]
    ask('x-heal', after: @position, upto: upto).each { |_, type, data| take(type, data) }
    @position = upto
  end

  def take(type, data)
    @total += JSON.parse(data, decimal_class: BigDecimal).fetch(@member) if type == @type
  end

  def ask(statement, **values)
    set = values.map { |name, value| "\\set #{name} #{value}\n" }.join
    out, status = Open3.capture2(*@psql, stdin_data: "#{set}#{@follow.fetch(statement)};")
    abort 'Postgres does not answer' unless status.success?
    out.lines(chomp: true).map { |line| line.split("\t", -1) }
  end

  def newest
    @redis.exists?(@stream) ? @redis.xinfo(:stream, @stream)['last-generated-id'] : '0-0'
  end

  def numbers(place)
    place.split('-').map(&:to_i)
  end
end

reader = Reader.new(*ARGV)
$stdout.sync = true
$stdin.each_line { puts JSON.generate(reader.catch_up) }
