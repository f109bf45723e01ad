// Tools that clients call themselves, by both clients: offered, called, answered, and what is refused of them.
// Proves p8.W30: A client sends neither system messages nor tools, unless the agent takes its tools
import {randomUUID} from 'node:crypto'
import {call, check, equal, file, finish, load, scratch, serve} from './kit.mjs'

const {HttpAgent} = load('@ag-ui/client')
const OpenAI = load('openai').default
file('agents/guide.yaml', 'kind: agent\nname: guide\ndescription: Answers.\nmodel: test:model\nclient_tools: true\ntools:\n  - name: search\n')
file('agents/plain.yaml', 'kind: agent\nname: plain\ndescription: Answers.\nmodel: test:model\n')
const script = file(
  'talk.yaml',
  `models:
  guide:
    - {text: Look., tool_calls: [{id: m1, name: show_map, arguments: {at: Bonn}}]}
    - {text: There it is.}
    - {tool_calls: [{id: x1, name: show_map, arguments: {at: A}}, {id: x2, name: search, arguments: {query: me}}, {id: x3, name: locate, arguments: {}}]}
    - {text: All done.}
    - {tool_calls: [{id: w1, name: get_weather, arguments: {city: Bonn}}]}
    - {chunks: [It is, " warm."]}
    - {tool_calls: [{id: v1, name: get_weather, arguments: {city: Köln}}]}
    - {text: Cold there.}
    - {tool_calls: [{id: n1, name: get_weather, arguments: {city: Ulm}}]}
    - {text: Never mind.}
tools:
  search: [{result: {found: 1}}]
`,
)
const server = await serve('client.db', ['--schema-dir', `${scratch}/agents`, '--script', script])

// --- AG-UI
const id = randomUUID()
const tools = [
  {name: 'show_map', description: 'Shows a place.', parameters: {type: 'object', properties: {at: {type: 'string'}}, required: ['at']}},
  {name: 'locate', description: 'Where the person is.', parameters: {type: 'object', properties: {}}},
]
const agent = new HttpAgent({url: `${server.url}/chat/${id}`, threadId: id, headers: {'X-Agent-Schema-Name': 'guide'}})
const run = async (messages, how = {}) => {
  let outcome
  let types = []
  agent.messages = [...agent.messages, ...messages]
  const r = await agent.runAgent({tools, ...how}, {
    onEvent: (p) => void types.push(p.event.type),
    onRunFinishedEvent: (p) => void (outcome = p.event.outcome),
    onRunErrorEvent: (p) => void (outcome = {type: 'error', message: p.event.message}),
  })
  return {outcome, types, new: r.newMessages}
}
const first = await run([{id: randomUUID(), role: 'user', content: 'Where is Bonn?'}])
equal(first.outcome, {type: 'success', pendingToolCallIds: ['m1']}, 'a call of the client ends the run, and waits')
equal(first.types.filter((t) => t.startsWith('TOOL')), ['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END'], 'it is told, without a result')
equal(JSON.parse(agent.messages.at(-1).toolCalls[0].function.arguments), {at: 'Bonn'}, 'with its arguments')
const second = await run([{id: randomUUID(), role: 'tool', toolCallId: 'm1', content: 'shown'}])
equal(second.new.at(-1)?.content, 'There it is.', 'its result goes on with the turn')
equal(second.types.includes('TOOL_CALL_RESULT'), false, 'and is not told back')
const rows = (await call(server, 'GET', `/sessions/${id}/messages`)).json
equal(
  rows.map((r) => [r.message_type, r.content]),
  [['user', 'Where is Bonn?'], ['assistant', 'Look.'], ['tool_call', null], ['tool_response', '{"result":"shown"}'], ['assistant', 'There it is.']],
  'the turn is kept once, each call with its result',
)
const mixed = await run([{id: randomUUID(), role: 'user', content: 'And me?'}])
equal(mixed.outcome?.pendingToolCallIds, ['x1', 'x3'], "the server's own call is made, those of the client wait")
equal(mixed.types.filter((t) => t === 'TOOL_CALL_RESULT').length, 1, 'the own call has its result')
const done = await run([
  {id: randomUUID(), role: 'tool', toolCallId: 'x1', content: '{"ok":true}'},
  {id: randomUUID(), role: 'tool', toolCallId: 'x3', content: '', error: 'no permission'},
])
equal(done.new.at(-1)?.content, 'All done.', 'results and errors go on with it')
const after = (await call(server, 'GET', `/sessions/${id}/messages`)).json.filter((r) => r.message_type === 'tool_response')
equal(after.map((r) => r.content).slice(1), ['{"ok":true}', '{"found":1}', '{"error":{"type":"ToolError","message":"no permission"}}'], 'in the order of the calls')

// --- OpenAI, whose client keeps the conversation and names no session
const client = new OpenAI({baseURL: server.url + '/v1', apiKey: 'none', maxRetries: 0})
const weather = [{type: 'function', function: {name: 'get_weather', description: 'The weather.', parameters: {type: 'object', properties: {city: {type: 'string'}}}}}]
const talk = [{role: 'user', content: 'Is it warm in Bonn?'}]
const asked = await client.chat.completions.create({model: 'guide', messages: talk, tools: weather})
equal([asked.choices[0].finish_reason, asked.choices[0].message.tool_calls?.[0]?.function?.name], ['tool_calls', 'get_weather'], 'finish_reason tool_calls')
equal(JSON.parse(asked.choices[0].message.tool_calls[0].function.arguments), {city: 'Bonn'}, 'with the arguments')
talk.push(asked.choices[0].message, {role: 'tool', tool_call_id: asked.choices[0].message.tool_calls[0].id, content: '25 degrees'})
const told = await client.chat.completions.create({model: 'guide', messages: talk, tools: weather})
equal([told.choices[0].finish_reason, told.choices[0].message.content], ['stop', 'It is warm.'], 'its result goes on with the turn')
const stream = client.chat.completions.stream({model: 'guide', messages: [{role: 'user', content: 'And Köln?'}], tools: weather})
const streamed = await stream.finalChatCompletion()
equal([streamed.choices[0].finish_reason, streamed.choices[0].message.tool_calls?.[0]?.function?.arguments], ['tool_calls', '{"city":"Köln"}'], 'as a stream')
const runner = await client.chat.completions
  .stream({model: 'guide', tools: weather, messages: [{role: 'user', content: 'And Köln?'}, streamed.choices[0].message, {role: 'tool', tool_call_id: 'v1', content: '2'}]})
  .finalContent()
equal(runner, 'Cold there.', 'and goes on as one')
// a message alone: the calls were not made
const unmade = await client.chat.completions.create({model: 'guide', messages: [{role: 'user', content: 'Ulm?'}], tools: weather}).withResponse()
const session = unmade.response.headers.get('x-session-id')
const never = await client.chat.completions.create({model: 'guide', messages: [{role: 'user', content: 'Leave it.'}], tools: weather}, {headers: {'X-Session-Id': session}})
equal(never.choices[0].message.content, 'Never mind.', 'a message alone gives the calls up')

// --- what is refused
const refused = async (body, how) => {
  try {
    await client.chat.completions.create({model: 'guide', messages: [{role: 'user', content: 'hi'}], ...body}, how)
  } catch (e) {
    return [e.status, e.param, e.message]
  }
}
const starts = (got, status, param, words, what) => check(got && got[0] === status && got[1] === param && got[2].includes(words), what, got)
starts(await refused({model: 'plain', tools: weather}), 400, 'tools', 'takes no tools of clients', 'an agent that takes none')
starts(await refused({tools: [{type: 'function', function: {name: 'search'}}]}), 400, 'tools[0]', 'already', 'a tool that is called like one of the agent')
starts(await refused({tools: [{type: 'function', function: {name: 'ask_agent'}}]}), 400, 'tools[0]', 'already', 'or of the engine')
starts(await refused({tools: [{type: 'function', function: {name: 'f', parameters: {type: 'object', properties: {x: {type: 'nonsense'}}}}}]}), 400, 'tools[0]', 'nonsense', 'parameters that are no schema')
starts(await refused({messages: [...talk.slice(0, 2), {role: 'tool', tool_call_id: 'w1', content: 'again'}]}), 409, null, 'waits for these results', 'results that nobody waits for')
equal(await server.stop(), 0, 'it ends as it should')

// --- the process that asked is gone: another one takes the results from the store, with a session and without one
const again = file(
  'again.yaml',
  `models:
  guide:
    - {tool_calls: [{id: b1, name: show_map, arguments: {at: Bonn}}]}
    - {text: Back again.}
`,
)
const opts = ['--schema-dir', `${scratch}/agents`, '--script', again]
const messages = [{id: randomUUID(), role: 'user', content: 'Where?'}]
const bring = async (at, path, body, headers = {}) => {
  const r = await fetch(at.url + path, {method: 'POST', headers: {'content-type': 'application/json', ...headers}, body: JSON.stringify(body)})
  return {status: r.status, text: await r.text()}
}
const chat = randomUUID()
const ask = (rows) => ({threadId: chat, runId: randomUUID(), protocolVersion: '1.0', tools, messages: rows})
const guide = {'x-agent-schema-name': 'guide'}
let other = await serve('again.db', opts)
check((await bring(other, `/chat/${chat}`, ask(messages), guide)).text.includes('"pendingToolCallIds":["b1"]'), 'a turn waits for the client')
await other.kill()
other = await serve('again.db', opts)
const back = await bring(other, `/chat/${chat}`, ask([...messages, {id: randomUUID(), role: 'tool', toolCallId: 'b1', content: 'shown'}]), guide)
check(back.status === 200 && back.text.includes('Back again.') && !back.text.includes('TOOL_CALL_'), 'and another process goes on with it', back)
const late = await bring(other, `/chat/${chat}`, ask([...messages, {id: randomUUID(), role: 'tool', toolCallId: 'b1', content: 'shown'}]), guide)
check(late.status === 409 && late.text.includes('POST /chat/ID') && !late.text.includes('X-Session-Id'), 'results that come too late are told what AG-UI has', late)
const where = [{role: 'user', content: 'And where?'}]
const map = [{type: 'function', function: {name: 'show_map', parameters: {type: 'object', properties: {at: {type: 'string'}}}}}]
const model = {model: 'guide', tools: map}
const waits = JSON.parse((await bring(other, '/v1/chat/completions', {...model, messages: where})).text)
equal(waits.choices[0].finish_reason, 'tool_calls', 'of Chat Completions, too')
await other.kill()
other = await serve('again.db', opts)
const results = [waits.choices[0].message, {role: 'tool', tool_call_id: 'b1', content: 'shown'}]
equal((await bring(other, '/v1/chat/completions', {...model, messages: [{role: 'user', content: 'Else?'}, ...results]})).status, 409, 'not to what others had said')
const went = await bring(other, '/v1/chat/completions', {...model, messages: [...where, ...results]})
equal(went.status === 200 && JSON.parse(went.text).choices[0].message.content, 'Back again.', 'which names no session')
equal(await other.stop(), 0, 'it ends as it should')

// --- each answer of a talk has an id of its own, and the words that were said in it alone, whole and as a stream
const maps = `
    - {text: Look., tool_calls: [{id: m1, name: show_map, arguments: {at: Bonn}}]}
    - {text: Again., tool_calls: [{id: m2, name: show_map, arguments: {at: Ulm}}]}
    - {text: There it is.}`
const words = file('words.yaml', `models:\n  guide:${maps.repeat(4)}\n`)
const twice = await serve('words.db', ['--schema-dir', `${scratch}/agents`, '--script', words])
const reader = new OpenAI({baseURL: twice.url + '/v1', apiKey: 'none', maxRetries: 0})
const create = async (how, whole) => {
  if (whole) return reader.responses.create(how)
  return reader.responses.stream(how).finalResponse()
}
const chunks = async (how, whole) => (whole ? reader.chat.completions.create(how) : reader.chat.completions.stream(how).finalChatCompletion())
for (const whole of [true, false]) {
  const what = whole ? 'whole' : 'as a stream'
  const heard = []
  let asks = [{role: 'user', content: `Where, ${what}?`}]
  for (let i = 0; i < 3; i++) {
    const r = await chunks({...model, messages: asks}, whole)
    heard.push([r.id.replace(/^chatcmpl-env_[0-9a-f]+/, ''), r.choices[0].message.content])
    asks = [...asks, r.choices[0].message, ...(r.choices[0].message.tool_calls ?? []).map((c) => ({role: 'tool', tool_call_id: c.id, content: 'shown'}))]
  }
  equal(heard, [['', 'Look.'], ['~2', 'Again.'], ['~3', 'There it is.']], `completions ${what}`)
}
for (const whole of [true, false]) {
  const what = whole ? 'whole' : 'as a stream'
  const heard = []
  let previous, input = 'Where?'
  for (let i = 0; i < 3; i++) {
    const r = await create({model: 'guide', tools: map.map((t) => ({type: 'function', ...t.function})), input, previous_response_id: previous}, whole)
    heard.push([r.id.replace(/^resp_env_[0-9a-f]+/, ''), r.output[0].id.replace(/^msg_env_[0-9a-f]+/, ''), r.output_text])
    previous = i === 1 ? r.id.replace(/~2$/, '') : r.id // as ids were before
    input = r.output.filter((o) => o.type === 'function_call').map((o) => ({type: 'function_call_output', call_id: o.call_id, output: 'shown'}))
  }
  equal(heard, [['', '_0', 'Look.'], ['~2', '~2_0', 'Again.'], ['~3', '~3_0', 'There it is.']], `responses ${what}`)
}
equal(await twice.stop(), 0, 'it ends as it should')
finish('client_tools')
