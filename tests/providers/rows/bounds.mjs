// Models that never come to an end, as rows like those of rows.mjs. `agent`, `pipeline` are further keys; want.bound is
// what the run comes to: [status, terminal reason, exit status]; `says` stands in its last error, which must name the
// bound, so that whoever reads it knows what to raise.
import {random} from '../random.mjs'
import {wires} from '../wires/wires.mjs'

const usage = {input: 12, output: 4}
const say = (reply) => (x) =>
  x.send(
    200,
    {'content-type': wires[x.wire].contentType},
    wires[x.wire].stream({usage, ...reply}, random(x.attempt), x.attempt, x.body),
  )
const call = (name, args) => ({name, arguments: args})
const calls = (...list) => say({calls: list, finish: 'tool_calls'})
const failed = ['failed', 'llm_failed_fatally', 1]
const schema = {
  type: 'object',
  properties: {verdict: {type: 'string', enum: ['yes', 'no']}},
  required: ['verdict'],
  additionalProperties: false,
}
const oslo = call('weather', '{"city":"Oslo"}')
const forEver = {max_llm_calls: 1000}

export const bounds = [
  {
    name: 'no-money',
    pipeline: {budget: {usd: 0.000001}},
    knobs: {price: {input: 3, output: 15}},
    serve: say({text: 'Wood.', finish: 'stop'}),
    want: {bound: ['terminated', 'budget_exceeded', 4], requests: 0, says: ['budget']},
  },
  {
    name: 'money-for-one-round',
    tools: true,
    pipeline: {budget: {usd: 0.004}},
    agent: {max_tokens: 100},
    knobs: {price: {input: 1, output: 10}},
    serve: say({calls: [oslo], finish: 'tool_calls', usage: {input: 1000, output: 90}}),
    want: {bound: ['terminated', 'budget_exceeded', 4], requests: 1, says: ['budget']},
  },
  {
    name: 'cancelled',
    signal: 'SIGINT',
    serve: (x) => x.untilClosed(),
    want: {bound: ['cancelled', 'user_cancelled', 130], requests: 1, says: []},
  },

  {
    name: 'tools-for-ever',
    tools: true,
    pipeline: forEver,
    serve: calls(oslo),
    want: {bound: failed, requests: 11, says: ['max_rounds', '10']},
  },
  {
    name: 'tools-for-three-rounds',
    tools: true,
    pipeline: forEver,
    agent: {max_rounds: 3},
    serve: calls(oslo),
    want: {bound: failed, requests: 4, says: ['max_rounds', '3']},
  },
  {
    name: 'tools-for-ever-anthropic',
    wire: 'anthropic',
    tools: true,
    pipeline: forEver,
    serve: calls(oslo),
    want: {bound: failed, requests: 11, says: ['max_rounds']},
  },
  {
    name: 'tools-for-ever-ollama',
    wire: 'ollama',
    tools: true,
    pipeline: forEver,
    serve: calls(oslo),
    want: {bound: failed, requests: 11, says: ['max_rounds']},
  },
  {
    name: 'tools-past-max-llm-calls',
    tools: true,
    pipeline: {max_llm_calls: 4},
    serve: calls(oslo),
    want: {bound: ['terminated', 'max_llm_calls_exceeded', 4], requests: 4, says: ['max_llm_calls']},
  },
  {
    name: 'request-limit',
    tools: true,
    pipeline: forEver,
    agent: {limits: {request_limit: 2}},
    serve: calls(oslo),
    want: {bound: failed, requests: 2, says: ['request_limit']},
  },
  {
    name: 'tool-calls-limit',
    tools: true,
    pipeline: forEver,
    agent: {limits: {tool_calls_limit: 5}},
    serve: calls(oslo, oslo),
    want: {bound: failed, requests: 3, says: ['tool_calls_limit']},
  },
  {
    name: 'total-tokens-limit',
    tools: true,
    pipeline: forEver,
    agent: {limits: {total_tokens_limit: 40}},
    serve: calls(oslo),
    want: {bound: failed, requests: 3, says: ['total_tokens_limit']},
  },
  {
    name: 'unknown-tools-for-ever',
    tools: true,
    pipeline: forEver,
    serve: calls(call('wether', '{}')),
    want: {bound: failed, requests: 4, says: ['max_bad_calls']},
  },
  {
    name: 'bad-arguments-for-ever',
    tools: true,
    pipeline: forEver,
    serve: calls(call('weather', '{"city":')),
    want: {bound: failed, requests: 4, says: ['max_bad_calls']},
  },
  {
    name: 'garbage-for-ever',
    pipeline: forEver,
    agent: {output_schema: schema, max_repairs: 3, output_mode: 'json'},
    serve: say({text: 'Perhaps.', finish: 'stop'}),
    want: {bound: failed, requests: 4, says: ['max_repairs']},
  },
  {
    name: 'wrong-output-for-ever',
    pipeline: forEver,
    agent: {output_schema: schema, output_mode: 'json'},
    serve: say({text: '{"verdict":"perhaps"}', finish: 'stop'}),
    want: {bound: failed, requests: 2, says: ['max_repairs', 'verdict']},
  },
  {
    name: 'silence',
    pipeline: {default_timeout_seconds: 4},
    serve: (x) => x.untilClosed(),
    want: {bound: failed, requests: 1, says: []},
  },
  {
    name: 'a-word-a-second',
    agent: {timeout_seconds: 4},
    serve: async (x) => {
      x.head(200, {'content-type': 'text/event-stream'})
      await x.everyWhile(100, ': thinking\n\n')
    },
    want: {bound: failed, requests: 1, says: []},
  },
  {
    name: 'retries-of-the-stage',
    agent: {max_retries: 2},
    knobs: {max_attempts: 1},
    serve: (x) => x.send(503, {}, ''),
    want: {bound: failed, requests: 3, says: []},
  },
]
