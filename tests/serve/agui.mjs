// The client of AG-UI, which refuses what breaks the rules of its protocol: turns, questions, leaving, errors.
import {randomUUID} from 'node:crypto'
import {agents, call, check, equal, file, finish, load, serve} from './kit.mjs'

const {HttpAgent} = load('@ag-ui/client')
const script = file(
  'talk.yaml',
  `models:
  boss:
    - {chunks: [Good, " morning"]}
    - {text: Again.}
    - {text: I will., tool_calls: [{name: wipe, arguments: {path: /tmp/x}}]}
    - {text: It is gone.}
    - {chunks: ["This will be", {text: " long", delay_ms: 600000}]}
    - {text: After all.}
tools:
  wipe: {risk: destructive, calls: [{result: {wiped: true}}]}
  search: [{result: {}}]
`,
)
const server = await serve('agui.db', ['--schema-dir', agents(), '--script', script, '--client-grace', '0s'])

const say = (id, text, url = server.url) => {
  const agent = new HttpAgent({url: `${url}/chat/${id}`, threadId: id, headers: {'X-Agent-Schema-Name': 'boss', 'X-Session-Name': 'Talk'}})
  if (text) agent.messages = [{id: randomUUID(), role: 'user', content: text}]
  return agent
}
const end = async (agent, how = {}) => {
  let outcome
  const run = await agent.runAgent(how, {
    onRunFinishedEvent: (p) => (outcome = p.event.outcome ?? {type: 'success'}),
    onRunErrorEvent: () => (outcome = {type: 'error'}),
  })
  return {outcome, run}
}

const id = randomUUID()
const first = await end(say(id, 'hi'))
equal(first.run.newMessages.at(-1)?.content, 'Good morning', 'a turn')
check(first.outcome, 'it has an end', first.outcome)
const again = say(id, 'once more')
again.messages = [...first.run.newMessages, {id: randomUUID(), role: 'user', content: 'once more'}]
equal((await end(again)).run.newMessages.at(-1)?.content, 'Again.', 'a second one, of a client that sends its whole transcript')
const rows = (await call(server, 'GET', `/sessions/${id}/messages`)).json
equal(
  rows.map((r) => r.content),
  ['hi', 'Good morning', 'once more', 'Again.'],
  'each message is kept once',
)
equal((await call(server, 'GET', `/sessions/${id}`)).json.name, 'Talk', 'the name of the session is that of the header')

// a question, and its answer
const asks = say(id, 'wipe it')
let interrupts
await asks.runAgent({}, {onRunFinishedEvent: (p) => (interrupts = p.event?.outcome?.interrupts ?? p.interrupts)})
interrupts ??= asks.pendingInterrupts
equal(interrupts?.length, 1, 'a tool that destroys is asked for', interrupts)
const answered = await asks.runAgent({
  resume: [{interruptId: interrupts?.[0]?.id, status: 'resolved', payload: {approved: true}}],
})
equal(answered.newMessages.at(-1)?.content, 'It is gone.', 'the answer goes on with the turn')

// a client that leaves: the turn ends, and what was said is kept
const other = randomUUID()
const body = {threadId: other, runId: 'r', protocolVersion: '1.0', messages: [{id: 'm', role: 'user', content: 'go on'}]}
const leave = new AbortController()
const r = await fetch(`${server.url}/chat/${other}`, {
  method: 'POST',
  headers: {'x-agent-schema-name': 'boss'},
  body: JSON.stringify(body),
  signal: leave.signal,
})
const reader = r.body.getReader()
let seen = ''
while (!seen.includes('This will be')) seen += new TextDecoder().decode((await reader.read()).value)
const busy = await call(server, 'POST', `/chat/${other}`, {...body, runId: 'another'}, {'x-agent-schema-name': 'boss'})
equal([busy.status, busy.headers.get('x-should-retry')], [409, 'false'], 'a second turn at the same time is refused')
const quit = new AbortController()
const back = await fetch(`${server.url}/chat/${other}`, {signal: quit.signal})
equal([back.status, back.headers.get('x-run-id')], [200, r.headers.get('x-run-id')], 'and does not hide the one that is under way')
quit.abort()
leave.abort()
let partial
for (let i = 0; i < 600 && !partial; i++) {
  partial = (await call(server, 'GET', `/sessions/${other}/messages`)).json?.find?.((m) => m.status === 'cancelled' && m.content?.startsWith('This will be'))
  if (!partial) await new Promise((next) => setImmediate(next))
}
check(partial, 'what was said until its client left is kept as cancelled')

// errors before the stream, as p8 has them
const bad = await call(server, 'POST', '/chat/xyz', body)
equal([bad.status, bad.json?.detail], [400, "Invalid chat_id: must be a valid UUID, got 'xyz'"], 'an id that is none')
await call(server, 'POST', '/v1/chat/completions', {model: 'boss', messages: [{role: 'user', content: 'After all?'}]}, {'x-session-id': 'our talk'})
const ours = await call(server, 'POST', '/chat/our%20talk', body, {'x-agent-schema-name': 'boss'})
equal([ours.status, ours.headers.get('x-session-id')], [200, 'our talk'], 'but that of a session that is there')
const nobody = await call(server, 'POST', `/chat/${id}`, body, {'x-agent-schema-name': 'nobody'})
equal([nobody.status, nobody.json?.detail], [404, "Agent 'nobody' not found"], 'an agent that is not there')
equal((await call(server, 'POST', `/chat/${id}`, '{')).status, 400, 'a body that is no JSON')
const lost = await call(server, 'POST', `/chat/${id}`, {...body, messages: [], resume: [{interruptId: 'x', status: 'resolved', payload: {}}]}, {'x-agent-schema-name': 'boss'})
equal(lost.status, 409, 'an answer to nothing')

// REMLight
const rem = await fetch(`${server.url}/api/v1/chat/completions/${id}`, {
  method: 'POST',
  headers: {'X-Agent-Schema': 'boss'},
  body: JSON.stringify({messages: [{role: 'user', content: 'x'}]}),
})
const named = await rem.text()
check(/\ndata: \[DONE\]\n\n$/.test(named) && named.includes('event: done'), 'named events of REMLight', named)
equal(await server.stop(), 0, 'it ends as it should')

// drained in mid-turn: the stream has a proper end
const slow = file('slow.yaml', 'models:\n  boss:\n    - {chunks: ["This will be", {text: " long", delay_ms: 20000}]}\ntools:\n  wipe: [{result: {}}]\n  search: [{result: {}}]\n')
const drained = await serve('drained.db', ['--schema-dir', agents(), '--script', slow, '--grace', '0s']) // none, and not as much as when nothing is said
const last = say(randomUUID(), 'hi', drained.url)
let said = false
const ended = end(last).then((r) => r.outcome)
while (!said) {
  const runs = (await call(drained, 'GET', '/runs')).json
  said = runs[0]?.status === 'running'
}
equal(await drained.stop(), 0, 'a server with a turn under way ends as it should')
equal((await ended)?.type, 'cancelled', 'and the turn with it')
finish('agui')
