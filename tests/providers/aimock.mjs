// node aimock.mjs REEVE: pipelines on a mock of the vendors that other people wrote, on the wires of OpenAI, Anthropic and
// Ollama: text, tools in parallel, structured output, what was used, errors with their status, chats with declared agents,
// and vectors of texts.
import {writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {Chat} from './chat.mjs'
import {check, equal, eventsOf, finish, pipelineFile, run, scratch} from './kit.mjs'
import {load} from './packages.mjs'
import {wires} from './wires/wires.mjs'

const [reeve] = process.argv.slice(2)
const {LLMock} = load('@copilotkit/aimock')

const mock = new LLMock({port: 0, host: '127.0.0.1', logLevel: 'silent'})
const usage = {prompt_tokens: 42, completion_tokens: 7, input_tokens: 42, output_tokens: 7}
const SURVEY = '{"verdict":"seaworthy","hull":{"state":"sound"}}'
const TEXT = 'Wood floats, and so does cork: it is lighter than water. Ünïcödé too. 🪵'
mock.on({userMessage: /What floats/}, {content: TEXT, usage}, {chunkSize: 3})
mock.on(
  {userMessage: /warmer/, hasToolResult: false},
  {
    toolCalls: [
      {name: 'weather', arguments: '{"city":"Oslo"}'},
      {name: 'weather', arguments: '{"city":"Bern"}'},
    ],
    usage,
  },
  {chunkSize: 4},
)
mock.on({userMessage: /warmer/, hasToolResult: true}, {content: 'In Bern.', usage})
mock.on({userMessage: /by native/}, {content: '{"verdict":"yes","score":7}', usage}, {chunkSize: 5})
mock.on(
  {userMessage: /by prompt/},
  {content: 'Sure:\n```json\n{"verdict":"yes","score":7}\n```', usage},
  {chunkSize: 5},
)
mock.on(
  {userMessage: /by tool/, toolName: 'final_result'},
  {toolCalls: [{name: 'final_result', arguments: '{"verdict":"yes","score":7}'}], usage},
)
for (const status of [400, 401, 404, 429, 500, 503])
  mock.on({userMessage: `status ${status}.`}, {error: {message: `mocked ${status}`, type: 'mocked_error'}, status})
mock.on({userMessage: /cut short/}, {content: TEXT, usage}, {chunkSize: 3, truncateAfterChunks: 4})
mock.on(
  {userMessage: /What should I cook/, hasToolResult: false},
  {toolCalls: [{name: 'action', arguments: '{"type":"observation","payload":{"confidence":0.8}}'}], usage},
)
mock.on({userMessage: /What should I cook/, hasToolResult: true}, {content: 'Leek soup.', usage}, {chunkSize: 3})
const task = '{"agent_name":"sample-agent","input_text":"Write a haiku."}'
mock.on(
  {userMessage: /Have a haiku written/, sequenceIndex: 0},
  {toolCalls: [{name: 'ask_agent', arguments: task}], usage},
  {chunkSize: 4},
)
mock.on({userMessage: /Have a haiku written/}, {content: 'There it is.', usage})
mock.on({userMessage: /Write a haiku/}, {content: 'one pot / half an hour', usage}, {chunkSize: 3})
mock.on({userMessage: /Is she fine/}, {toolCalls: [{name: 'final_result', arguments: SURVEY}], usage}, {chunkSize: 5})
await mock.start()

const tools = join(scratch, 'tools.yaml')
writeFileSync(
  tools,
  JSON.stringify({
    tools: {
      weather: {
        description: 'The weather of a city.',
        input_schema: {
          type: 'object',
          properties: {city: {type: 'string'}},
          required: ['city'],
          additionalProperties: false,
        },
        calls: [
          {contains: 'Oslo', result: {degrees: -3}},
          {contains: 'Bern', result: {degrees: 11}},
        ],
      },
    },
  }),
)

async function ask(wire, pipeline, input, args = []) {
  const base = {openai: `${mock.url}/v1`, anthropic: mock.url, ollama: mock.url}[wire.name]
  const ran = await run(reeve, ['run', pipeline, '--events', '--quiet', '--no-store', '--input', input, ...args], {
    env: {PEER_MODEL: wire.model, PEER_URL: base, PEER_KEY: 'peer'},
  })
  const events = eventsOf(ran.out)
  const of = (type) => events.filter((e) => e.type === type)
  return {
    status: ran.status,
    of,
    output: of('stage_completed').at(-1)?.output,
    result: of('llm_result').at(-1),
    seen: [ran.err.slice(0, 800), ran.out.slice(-1200)],
  }
}
const chat = pipelineFile('chat.yaml', 'chat')
const withTools = pipelineFile('tools.yaml', 'with-tools', {TOOLS: '[weather]'})

for (const wire of Object.values(wires)) {
  const what = (text) => `${wire.name}: ${text}`
  const counts = wire.name !== 'ollama' // this mock counts nothing on that wire

  const text = await ask(wire, chat, 'What floats?')
  equal([text.status, text.output], [0, {response: TEXT}], what('a text'))
  if (counts) equal([text.result?.input_tokens, text.result?.output_tokens], [42, 7], what('tokens are in the event'))

  const called = await ask(wire, withTools, 'Where is it warmer?', ['--script', tools])
  check(
    called.status === 0 && called.output?.response === 'In Bern.',
    what('an answer after two tools'),
    ...called.seen,
  )
  equal(
    called.of('tool_result').map((e) => [e.tool, e.status]),
    [
      ['weather', 'success'],
      ['weather', 'success'],
    ],
    what('both tools were called'),
  )
  equal(called.of('llm_result').length, 2, what('in two requests'))

  for (const via of ['native', 'prompt', 'tool']) {
    const file = pipelineFile('verdict.yaml', `verdict-${via}`, {VIA: via})
    const verdict = await ask(wire, file, `Does wood float, by ${via}?`)
    check(verdict.status === 0, what(`structured output by ${via}`), ...verdict.seen)
    equal(verdict.output, {verdict: 'yes', score: 7}, what(`structured output by ${via}, its value`))
  }

  const kinds = {
    400: 'bad_request',
    401: 'auth',
    404: 'bad_request',
    429: 'rate_limited',
    500: 'overloaded',
    503: 'overloaded',
  }
  for (const [status, kind] of Object.entries(kinds)) {
    const failed = await ask(wire, chat, `Please fail with status ${status}.`)
    equal([failed.status, failed.result?.error_kind], [1, kind], what(`status ${status}`))
    check(
      failed.result?.error?.includes(`mocked ${status}`),
      what(`status ${status}, in the mock's own words`),
      ...failed.seen,
    )
  }

  const cut = await ask(wire, chat, 'Be cut short.')
  check(
    cut.status === 1 && ['connection', 'protocol'].includes(cut.result?.error_kind),
    what('a stream that is cut is no answer'),
    ...cut.seen,
  )
}
// Turns of a session: a call, an agent that is asked, an output; and what the mock was told of the earlier ones.
for (const wire of Object.values(wires)) {
  const what = (text) => `${wire.name}, a chat: ${text}`
  const chat = new Chat(reeve, `aimock-${wire.name}`, {wire, url: mock.url, agent: 'general'})
  const turns = []
  mock.clearRequests()
  mock.resetMatchCounts()
  for (const text of ['What should I cook?', 'Have a haiku written.']) turns.push(await chat.say(text))
  chat.agent = 'surveyor'
  turns.push(await chat.say('Is she fine?'))
  equal(
    turns.map((t) => [t.status, t.text]),
    [
      ['completed', 'Leek soup.'],
      ['completed', 'There it is.'],
      ['completed', SURVEY],
    ],
    what('each turn has its answer'),
  )
  equal(
    (await chat.rows()).map((r) => r.message_type).join(' '),
    'user tool_call tool_response assistant user tool_call assistant tool_response assistant' +
      ' user tool_call tool_response assistant',
    what('its rows'),
  )
  const told = mock.getRequests().map((r) => r.body.messages.filter((m) => m.role !== 'system'))
  equal(told.length, 6, what('so many requests'))
  check(JSON.stringify(told.at(-1)).includes('one pot / half an hour'), what('the last one tells of the turn before'))
}

// Texts as vectors, beside what the vendor's own client gets.
{
  const texts = ['a rope', 'a knot', 'Ünïcödé 🪵']
  const OpenAI = load('openai').default
  const client = new OpenAI({baseURL: `${mock.url}/v1`, apiKey: 'peer'})
  const theirs = await client.embeddings.create({model: 'text-embedding-3-small', input: texts, dimensions: 64})
  const args = [
    'embed',
    '--model',
    'openai:text-embedding-3-small',
    '--base-url',
    `${mock.url}/v1`,
    '--dimensions',
    '64',
    '--json',
  ]
  const ran = await run(reeve, [...args, ...texts], {env: {OPENAI_API_KEY: 'peer'}})
  const ours = ran.status === 0 ? JSON.parse(ran.out) : {embeddings: []}
  check(ours.embeddings.length === texts.length && ours.dimensions === 64, 'a vector for each text', ran.err)
  const off = ours.embeddings.flatMap((v, i) => v.map((x, k) => Math.abs(x - theirs.data[i].embedding[k])))
  check(Math.max(...off) < 1e-6, "the vendor's client gets the same vectors", `off by ${Math.max(...off)}`)
}
await mock.stop()
finish('aimock')
