// The client of OpenAI: completions and responses, whole and as streams; models; errors.
// Proves p8.W29: Of the transcript of a known session only the new message is taken
import {join} from 'node:path'
import {agents, call, check, equal, file, finish, load, scratch, serve} from './kit.mjs'

const OpenAI = load('openai').default
const script = file(
  'talk.yaml',
  `models:
  boss:
    - {chunks: [Good, " morning"], usage: {input_tokens: 9, output_tokens: 2}}
    - {text: Once.}
    - {text: Second.}
    - {chunks: [Thi, rd.], usage: {input_tokens: 5, output_tokens: 1}}
    - {chunks: [Fou, rth.]}
    - {text: Goes on.}
    - {text: Fifth.}
    - {text: Sixth.}
    - {error: "no line"}
    - {error: "no line"}
tools:
  wipe: {risk: destructive, calls: [{result: {}}]}
  search: [{result: {}}]
`,
)
const server = await serve('openai.db', ['--schema-dir', agents(), '--script', script])
const client = new OpenAI({baseURL: server.url + '/v1', apiKey: 'none', maxRetries: 0})
const ask = {model: 'boss', messages: [{role: 'user', content: 'hi'}]}

const models = []
for await (const m of await client.models.list()) models.push(m.id)
check(models.includes('boss') && models.includes('general'), 'agents are models', models)
equal((await client.models.retrieve('boss')).id, 'boss', 'one model')

const whole = await client.chat.completions.create(ask)
equal(whole.choices[0].message.content, 'Good morning', 'a whole answer')
equal(whole.choices[0].finish_reason, 'stop', 'its end')
equal(whole.usage.prompt_tokens, 9, 'its usage')

// a client that repeats a request whose answer was lost gets that answer, and its history begins one session
const repeated = {...ask, messages: [{role: 'user', content: 'before'}, {role: 'assistant', content: 'yes'}, {role: 'user', content: 'hi'}]}
const sessions = async () => (await call(server, 'GET', '/sessions')).json.length
const before = await sessions()
const answers = []
for (let i = 0; i < 3; i++) answers.push((await client.chat.completions.create(repeated, {headers: {'Idempotency-Key': 'again'}})).choices[0].message.content)
equal(answers, ['Once.', 'Once.', 'Once.'], 'a repetition is not another turn')
equal((await sessions()) - before, 1, 'and begins no other session')

let said = ''
let last
for await (const chunk of await client.chat.completions.create({...ask, stream: true})) {
  said += chunk.choices[0].delta.content ?? ''
  last = chunk.choices[0].finish_reason
}
equal([said, last], ['Second.', 'stop'], 'a stream')

const final = await client.chat.completions
  .stream({...ask, stream_options: {include_usage: true}})
  .finalChatCompletion()
equal(final.choices[0].message.content, 'Third.', 'the helper of streams takes it')
equal(final.usage?.completion_tokens, 1, 'the usage is told when it is asked for')

const response = await client.responses.stream({model: 'boss', input: 'hi'}).finalResponse()
equal([response.status, response.output_text], ['completed', 'Fourth.'], 'responses as a stream')

// the session of a response goes on, though the client names none; an unknown response is refused
const next = await client.responses.create({model: 'boss', input: 'and?', previous_response_id: response.id}).withResponse()
const heard = (await call(server, 'GET', `/sessions/${next.response.headers.get('x-session-id')}/messages`)).json
equal(
  heard.map((r) => [r.message_type, r.content]),
  [['user', 'hi'], ['assistant', 'Fourth.'], ['user', 'and?'], ['assistant', 'Goes on.']],
  'previous_response_id goes on with its session',
)
for (const id of ['resp_env_none', 'resp_', response.id.slice(5), 'resp_' + 'x'.repeat(100), 'resp_\u00e9 /', response.id + '~2', response.id + '~1', response.id + '~0'])
  equal(
    await client.responses.create({model: 'boss', input: 'x', previous_response_id: id}).catch((e) => [e.status, e.code, e.param]),
    [400, 'previous_response_not_found', 'previous_response_id'],
    `no response has the id ${id.slice(0, 20)} ${id.slice(-2)}`,
  )
equal(
  await client.responses
    .create({model: 'boss', input: 'x', previous_response_id: response.id}, {headers: {'X-Session-Id': '00000000-0000-4000-8000-000000000000'}})
    .catch((e) => [e.status, e.param]),
  [400, 'previous_response_id'],
  'a response of another session than that of the header',
)

// a client that keeps the conversation: it becomes a session of its own
const {data, response: raw} = await client.chat.completions
  .create({model: 'boss', messages: [{role: 'system', content: 'Be brief.'}, {role: 'user', content: 'one'}, {role: 'assistant', content: 'two'}, {role: 'user', content: 'three'}]})
  .withResponse()
equal(data.choices[0].message.content, 'Fifth.', 'a whole transcript')
const session = raw.headers.get('x-session-id')
const rows = (await call(server, 'GET', `/sessions/${session}/messages`)).json
equal(
  rows.map((r) => [r.message_type, r.content]),
  [['user', 'one'], ['assistant', 'two'], ['user', 'three'], ['assistant', 'Fifth.']],
  'what came before is kept, and the message of the system is not',
)
// and one that names a session
await client.chat.completions.create(ask, {headers: {'X-Session-Id': session}})
equal((await call(server, 'GET', `/sessions/${session}`)).json.messages, 6, 'the session goes on')

// errors
const wrong = (body, headers) => client.responses.create({model: 'boss', input: 'x', ...body}, {headers}).catch((e) => [e.status, e.param, e.message])
const long = await wrong({}, {'X-Session-Id': 'x'.repeat(2000)})
check(long[0] === 400 && long[2].includes('X-Session-Id has 2000 bytes'), 'a session id that is too long', long)
equal((await wrong({text: {format: {type: 'json_schema', name: 'n', schema: {type: 'array'}}}})).slice(0, 2), [400, 'text.format'], 'the parameter as Responses calls it')
const unknown = await wrong({model: 'zzzzzzzz'})
check(unknown[0] === 404 && unknown[2].includes('GET /v1/models') && !unknown[2].includes('reeve agents'), 'a client of HTTP is told of a route, not of a command', unknown)
const fails = async (body) => {
  try {
    await client.chat.completions.create(body)
  } catch (e) {
    return [e.status, e.code, Boolean(e.requestID), e.message.includes('{')]
  }
}
equal(await fails({...ask, model: 'nobody'}), [404, 'not_found', true, false], 'a model that does not exist')
equal((await fails({...ask, messages: 'x'}))[0], 400, 'messages that are none')
equal((await fails({model: 'boss', messages: []}))[0], 400, 'nothing is asked')
const broken = await fails(ask)
check(broken?.[0] >= 500, 'a model that fails is an error', broken)
let thrown
try {
  for await (const chunk of await client.chat.completions.create({...ask, stream: true})) check(chunk.choices, 'a chunk')
} catch (e) {
  thrown = e
}
check(thrown, 'and one of the stream')
equal(await server.stop(), 0, 'it ends as it should')
check(server.log().some((l) => l.route === '/v1/chat/completions' && l.status === 200 && l.request_id), 'the access log')

// Capabilities of chats are added to the built-in one: its agents stay.
const more = await serve('more.db', ['--capability', 'files', '--script', script])
const ids = (await (await fetch(`${more.url}/v1/models`)).json()).data.map((m) => m.id)
check(ids.includes('general'), 'the built-in agents are there beside a capability', ids)
const near = await fetch(`${more.url}/v1/chat/completions`, {method: 'POST', body: '{"model":"generl","messages":[{"role":"user","content":"x"}]}'})
const missing = await near.text()
check(near.status === 404 && missing.includes('did you mean \\"general\\"'), 'the nearest model is named', missing)
await more.stop()

// --- pipelines are models, too
const runs = await serve('models.db', ['--pipelines', 'pipelines', '--scripts', 'pipelines/scripts'])
const other = new OpenAI({baseURL: runs.url + '/v1', apiKey: 'none', maxRetries: 0})
const names = []
for await (const m of await other.models.list()) names.push(m.id)
check(names.includes('pipeline:loop') && names.includes('general'), 'they are listed', names)
equal((await other.models.retrieve('pipeline:loop')).id, 'pipeline:loop', 'and found')
const looped = {model: 'pipeline:loop', messages: [{role: 'user', content: 'hi'}]}
const plain = (await call(runs, 'POST', '/runs', {pipeline: 'loop', input: 'hi', wait: true})).json
const run = await other.chat.completions.create(looped).withResponse()
equal(run.data.choices[0].finish_reason, 'stop', 'a run as a whole answer')
equal(run.data.choices[0].message.content, plain.result?.response, 'with the response of the run', plain)
check(run.data.usage, 'and its usage')
equal((await call(runs, 'GET', `/runs/${run.response.headers.get('x-run-id')}`)).json.status, 'completed', 'it is a run like any other')
const piped = await other.chat.completions.stream({...looped, stream_options: {include_usage: true}}).finalChatCompletion()
equal([piped.choices[0].finish_reason, piped.choices[0].message.content], ['stop', run.data.choices[0].message.content], 'as a stream')
const question = await other.chat.completions.create({model: 'pipeline:clarify', messages: [{role: 'user', content: 'x'}]})
check(question.choices[0].message.content.includes('Which database?'), 'a question of the run is the answer', question)
for (const [more, status, param] of [
  [{temperature: 1}, 400, 'temperature'],
  [{tools: [{type: 'function', function: {name: 'f'}}]}, 400, 'tools'],
  [{model: 'pipeline:none'}, 404, null],
]) {
  let no
  try {
    await other.chat.completions.create({...looped, ...more})
  } catch (e) {
    no = [e.status, e.param]
  }
  equal(no, [status, param], `what a pipeline does not take: ${param}`)
}
equal(await runs.stop(), 0, 'it ends as it should')

// A run that failed is not begun again by a client that repeats its request; an equal one later is another run.
file('p/bad.yaml', 'name: bad\nmodels: {m: scripted:any}\nagents: [{name: a, has_llm: true, model_role: m, prompt_key: p}]\nprompts: {p: x}\n')
file('p/spin.yaml', 'name: spin\nagents: [{name: a, default_next: a}]\n')
file('s/bad.yaml', 'models: {a: [{error: {kind: bad_request, status: 400}}]}\n')
const bad = await serve('bad.db', ['--pipelines', join(scratch, 'p'), '--scripts', join(scratch, 's')])
const failing = {model: 'pipeline:bad', messages: [{role: 'user', content: 'hi'}]}
const patient = new OpenAI({baseURL: bad.url + '/v1', apiKey: 'none', maxRetries: 2})
equal(await patient.chat.completions.create(failing).catch((e) => [e.status, e.headers.get('x-should-retry')]), [502, 'false'], 'the run failed')
const reason = async (sent) => (await call(bad, 'POST', '/v1/chat/completions', sent)).json.error
const blamed = await reason({...failing, user: 'why'})
equal([blamed.code, /^the provider refused the request as wrong; GET \/runs\/env_[0-9a-f]+ says more$/.test(blamed.message)], ['model_bad_request', true], 'it says what failed, and where more is told')
equal((await reason({...failing, model: 'pipeline:spin'})).message, 'the run looped back more often than max_iterations (3) allows', 'and which bound stopped it')
const repeats = async (n) => (await call(bad, 'POST', '/v1/chat/completions', failing, {'x-stainless-retry-count': n})).headers.get('x-run-id')
const one = await repeats('0')
equal([await repeats('1'), await repeats('2')], [one, one], 'a repetition is of the same run')
equal((await call(bad, 'GET', '/runs')).json.length, 4, 'one run for each request')
equal((await call(bad, 'POST', '/v1/chat/completions', {...failing, user: 'x'}, {'x-stainless-retry-count': '1'})).headers.get('x-run-id') === one, false, 'another request')
equal(await bad.stop(), 0, 'it ends as it should')
finish('openai')
