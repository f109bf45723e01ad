// The bytes of each protocol, block by block: the sequences that its clients know, and heads of streams.
// Proves p8.14: A turn is a stream of events for clients of AG-UI, in one order
// Proves remlight.11: Events of the server have the names that clients of REMLight know
import {randomUUID} from 'node:crypto'
import {call, check, equal, file, finish, scratch, serve} from './kit.mjs'

file('agents/depot-agent.yaml', 'kind: agent\nname: depot-agent\ndescription: Answers.\nmodel: test:model\ntools:\n  - name: search\n  - name: action\n')
file('agents/desk.yaml', 'type: object\nname: desk\ndescription: You decide.\nproperties: {agent: {type: string}}\nrequired: [agent]\nstructured_output: true\nrouting: {agents: [cook]}\n')
file('agents/cook.yaml', 'type: object\nname: cook\ndescription: You cook.\n')
const turn = `    - {tool_calls: [{id: call_0a1b2c3d, name: search, arguments: {query: LOOKUP depot-7}}]}
    - {tool_calls: [{id: call_9f, name: action, arguments: {type: observation, payload: {confidence: 0.7, sources: [depot-7]}}}]}
    - {chunks: [{thinking: Hm.}, "Depot 7", " opens at six."], usage: {input_tokens: 9, output_tokens: 4}}
`
const script = file(
  'talk.yaml',
  `models:\n  depot-agent:\n${turn.repeat(6)}    - {error: provider refused}\n    - {error: provider refused}\n    - {error: provider refused}\n    - {error: provider refused}\n  desk: [{json: {agent: cook}}]\n  cook: [{text: Leek soup.}]\ntools:\n  search: [{result: {status: success, found: true}}]\n`,
)
const server = await serve('sequences.db', ['--schema-dir', `${scratch}/agents`, '--script', script])
const ask = async (path, body, headers = {}, of = server) => {
  const r = await fetch(of.url + path, {method: 'POST', headers: {'content-type': 'application/json', ...headers}, body: JSON.stringify(body)})
  const text = await r.text()
  const blocks = text.split('\n\n').filter((b) => /^(event|data):/.test(b)).map((b) => {
    const data = /^data: (.*)$/m.exec(b)[1]
    return {event: /^event: (.*)$/m.exec(b)?.[1], data: data === '[DONE]' ? data : JSON.parse(data), text: b}
  })
  return {r, text, blocks}
}
// Pieces of one text that come together are one piece: how many there are is left open.
const joined = (list) =>
  list.reduce((out, x) => {
    const one = (d) => typeof d?.content === 'string' && Object.keys(d).length === 1
    const last = out.at(-1)
    if ((x === 'TEXT_MESSAGE_CONTENT' || x === 'response.output_text.delta') && last === x) return out
    if (one(x) && one(last)) last.content += x.content
    else if (Array.isArray(x) && Array.isArray(last) && one(x[0]) && one(last[0])) last[0].content += x[0].content
    else out.push(x)
    return out
  }, [])
const messages = [{id: 'm', role: 'user', content: 'Depot 7?'}]

// --- REMLight
const rem = await ask(`/api/v1/chat/completions/${randomUUID()}`, {model: 'p:m', messages: [{role: 'user', content: 'Depot 7?'}]}, {'X-Agent-Schema': 'depot-agent'})
const named = rem.blocks.map(({event, data}) => {
  if (data === '[DONE]') return data
  if (!event) return data.choices[0].finish_reason ?? data.choices[0].delta
  return [event, data.step ?? data.tool_name ?? data.action_type ?? data.reason ?? data.agent_schema, data.label ?? data.status].filter((x) => x !== undefined)
})
equal(
  joined(named),
  [
    ['progress', 1, 'Processing request'],
    ['tool_call', 'search', 'started'],
    ['progress', 2, 'Calling search'],
    ['tool_call', 'search', 'executing'],
    ['tool_call', 'search', 'completed'],
    ['progress', 3, 'Generating response'],
    ['tool_call', 'action', 'started'],
    ['progress', 2, 'Calling action'],
    ['tool_call', 'action', 'executing'],
    ['action', 'observation'],
    ['tool_call', 'action', 'completed'],
    ['progress', 3, 'Generating response'],
    {role: 'assistant', reasoning_content: 'Hm.'},
    {content: 'Depot 7 opens at six.'},
    'stop',
    ['metadata', 'depot-agent'],
    ['done', 'stop'],
    '[DONE]',
  ],
  'REMLight: one tool, an observation, metadata',
)
const of = (name, status) => rem.blocks.find((b) => b.data.tool_name === name && b.data.status === status)?.data
equal(of('search', 'started'), {type: 'tool_call', tool_name: 'search', tool_id: 'call_0a1b2c3d', status: 'started'}, 'a call that begins')
equal(of('search', 'executing')?.arguments, {query: 'LOOKUP depot-7'}, 'one that is made')
equal(of('search', 'completed')?.result, {status: 'success', found: true}, 'and its whole result')
const action = rem.blocks.find((b) => b.event === 'action')
equal([action.data.type, action.data.payload], ['action', {confidence: 0.7, sources: ['depot-7']}], 'an observation')
check(/^event: action\ndata: \{/.test(action.text), 'a block is the event, then one line of data', action.text)
const metadata = rem.blocks.find((b) => b.event === 'metadata').data
equal([metadata.confidence, metadata.sources, typeof metadata.latency_ms, typeof metadata.session_id], [0.7, ['depot-7'], 'number', 'string'], 'metadata')
const kept = (await call(server, 'GET', `/sessions/${metadata.session_id}/messages`)).json
equal(kept.filter((m) => m.message_type === 'assistant').map((m) => m.id), [metadata.message_id], 'which names the row of the answer')
const chunks = rem.blocks.filter((b) => b.data.object)
check(/^chatcmpl-[0-9a-f]{8}$/.test(chunks[0].data.id) && chunks.every((b) => b.data.id === chunks[0].data.id), 'one id for all chunks')
equal([chunks[0].data.object, chunks[0].data.model], ['chat.completion.chunk', 'p:m'], 'of the model that was asked for')

// --- AG-UI, older and newer
const types = (got) => joined(got.blocks.map((b) => b.data.type))
const tool = ['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END']
const text = ['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END']
const chat = randomUUID()
const old = await ask(`/chat/${chat}`, {threadId: 'th', runId: 'ru', messages}, {'x-agent-schema-name': 'depot-agent'})
equal(
  types(old),
  ['RUN_STARTED', ...tool, 'TOOL_CALL_RESULT', ...tool, 'CUSTOM', 'TOOL_CALL_RESULT', 'THINKING_START', 'THINKING_TEXT_MESSAGE_START', 'THINKING_TEXT_MESSAGE_CONTENT', 'THINKING_TEXT_MESSAGE_END', 'THINKING_END', ...text, 'RUN_FINISHED'],
  'p8: the older shape',
)
equal([old.blocks[0].data.threadId, old.blocks[0].data.runId, old.blocks.at(-1).data.runId], ['th', 'ru', 'ru'], 'threadId and runId are those of the body')
check(old.blocks.every((b) => !b.event && !/null/.test(b.text) && Number.isInteger(b.data.timestamp ?? 0)), 'no names, no null, whole timestamps')
equal(Object.keys(old.blocks[0].data).slice(0, 2), ['type', 'timestamp'], 'type and timestamp come first')
const start = old.blocks.find((b) => b.data.type === 'TOOL_CALL_START').data
equal([start.toolCallId, start.toolCallName, typeof start.parentMessageId], ['call_0a1b2c3d', 'search', 'string'], 'a call names its message')
const result = old.blocks.find((b) => b.data.type === 'TOOL_CALL_RESULT').data
equal([result.toolCallId, JSON.parse(result.content), result.role, typeof result.messageId], ['call_0a1b2c3d', {status: 'success', found: true}, 'tool', 'string'], 'a result is a message of its own')
const newer = await ask(`/chat/${chat}`, {threadId: 'th', runId: 'r2', protocolVersion: '1.0', messages}, {'x-agent-schema-name': 'depot-agent'})
equal(
  types(newer),
  ['RUN_STARTED', ...tool, 'TOOL_CALL_RESULT', ...tool, 'CUSTOM', 'TOOL_CALL_RESULT', 'REASONING_START', 'REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END', 'REASONING_END', ...text, 'RUN_FINISHED'],
  'AG-UI 1.0',
)
const finished = newer.blocks.at(-1).data
equal([newer.blocks[0].data.protocolVersion, finished.outcome, finished.usage?.[0]?.inputTokens], ['1.0', {type: 'success'}, 9], 'its version, outcome and usage')
for (const {r} of [rem, old, newer]) {
  equal(
    [r.status, r.headers.get('content-type'), r.headers.get('cache-control'), r.headers.get('x-accel-buffering'), r.headers.get('content-length')],
    [200, 'text/event-stream; charset=utf-8', 'no-cache, no-transform', 'no', null],
    'the head of a stream',
  )
  check(r.headers.get('x-session-id') && r.headers.get('x-run-id') && r.headers.get('x-request-id'), 'with the ids of session, run and request')
}
check(!/\r/.test(rem.text + old.text + newer.text), 'lines end in LF')

// --- OpenAI
const open = await ask('/v1/chat/completions', {model: 'depot-agent', stream: true, stream_options: {include_usage: true}, messages: [{role: 'user', content: 'Depot 7?'}]})
const deltas = open.blocks.slice(0, -1).map((b) => (b.data.choices.length ? [b.data.choices[0].delta, b.data.choices[0].finish_reason] : b.data.usage.total_tokens))
equal(joined(deltas), [[{role: 'assistant', reasoning_content: 'Hm.'}, null], [{content: 'Depot 7 opens at six.'}, null], [{}, 'stop'], 13], 'Chat Completions: role first, an empty delta last, then the usage')
equal(open.blocks.at(-1).data, '[DONE]', 'and [DONE]')
const withEvents = await ask('/v1/chat/completions', {model: 'depot-agent', stream: true, messages: [{role: 'user', content: 'Depot 7?'}]}, {'X-Reeve-Events': '1'})
check(withEvents.blocks.some((b) => b.data.reeve_event?.type === 'tool_call' && b.data.choices.length === 0), 'on request events in chunks without choices', withEvents.text)
const responses = await ask('/v1/responses', {model: 'depot-agent', stream: true, input: 'Depot 7?'})
equal(
  types(responses).filter((t) => !t.startsWith('response.in_progress')),
  ['response.created', 'response.output_item.added', 'response.content_part.added', 'response.output_text.delta', 'response.output_text.done', 'response.content_part.done', 'response.output_item.done', 'response.completed'],
  'Responses',
)
equal(responses.blocks.map((b) => b.data.sequence_number), responses.blocks.map((_, i) => responses.blocks[0].data.sequence_number + i), 'numbered')
check(responses.blocks.every((b) => b.event === b.data.type), 'the name of an event is its type')

// --- an agent that asks another one
// Proves remlight.10, p8.W41
file('agents/lead.yaml', 'kind: agent\nname: lead\ndescription: Answers.\nmodel: test:model\ntools:\n  - name: ask_agent\n')
file('agents/finder.yaml', 'kind: agent\nname: finder\ndescription: Finds.\nmodel: test:model\ntools:\n  - name: search\n')
const lead = `    - {tool_calls: [{id: ask, name: ask_agent, arguments: {agent_name: finder, input_text: find it}}]}\n    - {text: The finder has it.}\n`
const finder = `    - {tool_calls: [{id: look, name: search, arguments: {query: x}}]}\n    - {chunks: ["Found: ", forty, "-two."]}\n`
const asking = await serve('asking.db', ['--schema-dir', `${scratch}/agents`, '--script', file('ask.yaml', `models:\n  lead:\n${lead.repeat(3)}  finder:\n${finder.repeat(3)}tools:\n  search: [{result: {hits: 1}}]\n`)])
const asked = (path, body, headers = {}) => ask(path, body, {...headers, 'x-agent-schema-name': 'lead'}, asking)
const nested = await asked(`/chat/${randomUUID()}`, {protocolVersion: '1.0', messages})
const subagent = ['SUBAGENT_STARTED', ...tool, 'TOOL_CALL_RESULT', ...text, 'SUBAGENT_FINISHED']
equal(types(nested), ['RUN_STARTED', ...tool, ...subagent, 'TOOL_CALL_RESULT', ...text, 'RUN_FINISHED'], 'AG-UI 1.0: an asked agent')
const tags = nested.blocks.map((b) => b.data).filter((d) => d.subagentRunId)
equal([tags[0].parentToolCallId, tags[0].name, [...new Set(tags.map((d) => d.subagentRunId))].length, tags.at(-1).outcome], ['ask', 'finder', 1, {type: 'success'}], 'which belongs to its call')
const custom = (await asked(`/chat/${randomUUID()}`, {messages})).blocks.map((b) => b.data)
equal(joined(custom.map((d) => (d.type === 'CUSTOM' ? d.name : d.type))).filter((t, i, all) => t !== all[i - 1]), ['RUN_STARTED', ...tool, 'child_tool_start', 'child_tool_result', 'child_content', 'TOOL_CALL_RESULT', ...text, 'RUN_FINISHED'], 'p8: an asked agent')
const children = custom.filter((d) => d.type === 'CUSTOM').map((d) => d.value)
equal([children[0].agent_name, children[0].tool_name, children[0].tool_call_id, JSON.parse(children[0].arguments)], ['finder', 'search', 'look', {query: 'x'}], 'its call')
equal(JSON.parse(children[1].result), {hits: 1}, 'its result')
equal(children.slice(2).map((d) => d.content).join(''), 'Found: forty-two.', 'and its words')
const muted = await asked(`/api/v1/chat/completions/${randomUUID()}`, {messages: [{role: 'user', content: 'x'}]})
equal(
  muted.blocks.filter((b) => b.event === 'tool_call').map((b) => `${b.data.tool_name} ${b.data.status}`),
  ['ask_agent started', 'ask_agent executing', 'finder:search started', 'finder:search completed', 'ask_agent completed'],
  'REMLight: calls of an asked agent',
)
equal(muted.blocks.map((b) => b.data.choices?.[0].delta.content ?? '').join(''), 'Found: forty-two.', 'whose words are the answer: the asking agent repeats nothing')
equal(muted.blocks.find((b) => b.event === 'metadata').data.responding_agent, 'finder', 'as the metadata says')
equal(await asking.stop(), 0, 'it ends as it should')

// --- an answer that is an object, calls side by side, a question as an action, an agent that is not there
file('agents/clerk.yaml', JSON.stringify({kind: 'agent', name: 'clerk', description: 'Answers.', model: 'test:model', structured_output: true, properties: {city: {type: 'string', description: 'where'}}, required: ['city']}))
file('agents/many.yaml', 'kind: agent\nname: many\ndescription: Answers.\nmodel: test:model\ntools:\n  - name: search\n  - name: action\n  - name: ask_agent\n')
const calls = (...list) => `    - {tool_calls: [${list.join(', ')}]}\n`
const elicit = {question: 'Which?', options: ['a', 'b']}
const several = `models:\n  clerk:\n${'    - {json: {city: Bonn}}\n'.repeat(3)}  many:\n${calls('{id: a, name: search, arguments: {query: x}}', '{id: b, name: search, arguments: {query: y}}')}    - {text: Both.}\n${calls(`{id: e, name: action, arguments: {type: elicit, payload: ${JSON.stringify(elicit)}}}`)}    - {text: Well.}\n${calls('{id: u, name: ask_agent, arguments: {agent_name: nobody, input_text: x}}')}    - {text: Alone.}\ntools:\n  search: [{result: {n: 1}}, {result: {n: 2}}]\n`
const shapes = await serve('shapes.db', ['--schema-dir', `${scratch}/agents`, '--script', file('shapes.yaml', several)])
const of_shape = (path, body, agent) => ask(path, body, {'x-agent-schema-name': agent}, shapes)
const there = randomUUID()
const object = await of_shape(`/chat/${there}`, {thread_id: 'T', run_id: 'R', messages}, 'clerk')
equal(types(object), ['RUN_STARTED', ...tool, 'TOOL_CALL_RESULT', 'RUN_FINISHED'], 'p8: an object is the call of final_result, without a text')
equal([object.blocks[1].data.toolCallName, object.blocks[2].data.delta, object.blocks[4].data.content], ['final_result', '{"city":"Bonn"}', 'Final result processed.'], 'with its words')
equal([object.blocks[0].data.threadId, object.blocks[0].data.runId], [there, 'R'], 'run_id is honoured, and the path beats thread_id')
equal((await of_shape(`/chat/${randomUUID()}`, {protocolVersion: '1.0', messages}, 'clerk')).blocks.at(-1).data.result, {city: 'Bonn'}, 'AG-UI 1.0: it is the result of the run')
equal(joined((await of_shape(`/api/v1/chat/completions/${randomUUID()}`, {messages}, 'clerk')).blocks.filter((b) => b.data.choices).map((b) => b.data.choices[0].delta)), [{role: 'assistant', content: '{"city":"Bonn"}'}, {}], 'REMLight: it is a text')
const both = (await of_shape(`/chat/${randomUUID()}`, {messages}, 'many')).blocks.map((b) => b.data)
equal(both.filter((d) => d.toolCallId).map((d) => `${d.type.slice(10)} ${d.toolCallId}`), ['START a', 'ARGS a', 'END a', 'START b', 'ARGS b', 'END b', 'RESULT a', 'RESULT b'], 'calls side by side, each with one start, end and result')
const asks = await of_shape(`/api/v1/chat/completions/${randomUUID()}`, {messages}, 'many')
equal(asks.blocks.filter((b) => b.event === 'action').map((b) => b.data), [{type: 'action', action_type: 'elicit', payload: elicit}], 'REMLight: a question is an action')
const nobody = (await of_shape(`/api/v1/chat/completions/${randomUUID()}`, {messages}, 'many')).blocks.find((b) => b.data.tool_name === 'ask_agent' && b.data.status === 'completed').data
equal([nobody.result.status, nobody.result.agent_schema, nobody.result.error, nobody.error], ['error', 'nobody', "Agent 'nobody' not found", "Agent 'nobody' not found"], 'an agent that is not there is a result')
equal(await shapes.stop(), 0, 'it ends as it should')

// --- failures of a stream
const failed = await ask(`/api/v1/chat/completions/${randomUUID()}`, {messages: [{role: 'user', content: 'x'}]}, {'X-Agent-Schema': 'depot-agent'})
equal(failed.blocks.slice(-3).map((b) => b.event ?? b.data), ['error', 'done', '[DONE]'], 'REMLight: error, done, [DONE]')
equal([failed.blocks.at(-3).data.type, failed.blocks.at(-2).data.reason, failed.blocks.some((b) => b.data.choices?.[0]?.finish_reason)], ['error', 'error', false], 'and no stop chunk')
const broken = await ask(`/chat/${randomUUID()}`, {protocolVersion: '1.0', messages}, {'x-agent-schema-name': 'depot-agent'})
equal([types(broken)[0], types(broken).at(-1), typeof broken.blocks.at(-1).data.code], ['RUN_STARTED', 'RUN_ERROR', 'string'], 'AG-UI: RUN_ERROR is the end, with a code')

// --- a failure of the server's own: its client gets a code, its meaning and a run, the log the rest
// Proves p8.W22: A code and a safe message in the place of an internal one
const lost = await serve('lost.db', ['--schema-dir', `${scratch}/agents`, '--model', 'openai:gpt-4.1'], {OPENAI_API_KEY: 'sk-none', OPENAI_BASE_URL: 'http://127.0.0.1:9/v1'})
const told = []
for (const [path, body, headers] of [
  [`/chat/${randomUUID()}`, {protocolVersion: '1.0', messages}, {'x-agent-schema-name': 'depot-agent'}],
  [`/chat/${randomUUID()}`, {messages}, {'x-agent-schema-name': 'depot-agent'}],
  [`/api/v1/chat/completions/${randomUUID()}`, {messages: [{role: 'user', content: 'x'}]}, {'X-Agent-Schema': 'depot-agent'}],
  ['/v1/chat/completions', {model: 'depot-agent', messages: [{role: 'user', content: 'x'}]}, {}],
  ['/v1/chat/completions', {model: 'depot-agent', stream: true, messages: [{role: 'user', content: 'x'}]}, {}],
  ['/v1/responses', {model: 'depot-agent', stream: true, input: 'x'}, {}],
]) {
  const {text} = await call(lost, 'POST', path, body, headers)
  const run = /under ([\w-]+)/.exec(text)?.[1]
  // after some of them the provider counts as failing, and is not asked
  check(/(no connection to the provider, or it broke|the provider is overloaded or has a fault); the log/.test(text) && run, `${path}: what it means, and a run`, text)
  check(!text.includes('127.0.0.1') && !text.includes('onnect to'), `${path}: and no more`, text)
  told.push(run)
}
await lost.stop()
for (const run of told) check(lost.err().split('\n').some((line) => line.includes('turn.failed') && line.includes(run) && line.includes('openai')), 'the log says which provider, and why', run, lost.err())
check(lost.err().includes('127.0.0.1:9'), 'and where it was looked for')

// --- what a router replies is not told
for (const [path, body, headers] of [
  [`/chat/${randomUUID()}`, {protocolVersion: '1.0', messages}, {'x-agent-schema-name': 'desk'}],
  [`/api/v1/chat/completions/${randomUUID()}`, {messages: [{role: 'user', content: 'x'}]}, {'X-Agent-Schema': 'desk'}],
  ['/v1/chat/completions', {model: 'desk', stream: true, messages: [{role: 'user', content: 'x'}]}, {}],
  ['/v1/responses', {model: 'desk', stream: true, input: 'x'}, {}],
]) {
  const {text, blocks} = await ask(path, body, headers)
  const said = blocks.map(({data}) => data.choices?.[0]?.delta?.content ?? (/CONTENT|text\.delta/.test(data.type) ? data.delta : '')).join('')
  equal([said, text.includes('\\"agent\\"')], ['Leek soup.', false], `${path.slice(0, 15)}: the words of the agent that it chose`)
}

// --- errors before a stream
for (const [path, headers, body, status, detail] of [
  ['/chat/x', {}, {messages}, 400, "Invalid chat_id: must be a valid UUID, got 'x'"],
  [`/chat/${randomUUID()}`, {'x-agent-schema-name': 'none'}, {messages}, 404, "Agent 'none' not found"],
  [`/chat/${randomUUID()}`, {}, {messages: [{id: 'm', role: 'king', content: 'x'}]}, 400],
  [`/chat/${randomUUID()}`, {}, {messages: [{role: 'user', content: 'x'}]}, 400],
  [`/chat/${randomUUID()}`, {}, [], 400],
  ['/v1/chat/completions', {}, {model: 'none', messages: [{role: 'user', content: 'x'}]}, 404],
  ['/api/v1/chat/completions', {}, {messages: []}, 400],
]) {
  const got = await call(server, 'POST', path, body, headers)
  equal([got.status, got.headers.get('content-type'), got.json?.error?.message === got.json?.detail, got.json?.status], [status, 'application/json', true, status], `${path} ${JSON.stringify(body).slice(0, 40)}: one body for all clients`)
  if (detail) equal(got.json?.detail, detail, 'in the words of p8')
}
equal(await server.stop(), 0, 'it ends as it should')
finish('sequences')
