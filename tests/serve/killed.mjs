// The server is killed in mid-stream, at moments that a seed chooses, and started again; its client comes back with the
// id of the last block that it has. Each block comes once, as it is stored, and no turn is lost or doubled.
// Proves p8.W21: A stream has one start and one end for each call
import {randomUUID} from 'node:crypto'
import {agents, call, check, equal, file, finish, scratch, serve} from './kit.mjs'

const times = process.env.REEVE_SOAK ? 500 : 10
let seed = Number(process.env.REEVE_SEED ?? 1)
const random = () => ((seed = (seed * 1103515245 + 12345) % 2147483648), seed / 2147483648)

const pieces = (words) => words.map((w) => `{text: "${w} ", delay_ms: 8}`).join(', ')
const script = file(
  'killed.yaml',
  `models:
  boss:
    - {chunks: [${pieces(['I', 'look', 'for', 'it', 'now'])}], tool_calls: [{name: search, arguments: {query: x}}]}
    - {chunks: [${pieces(['So', 'there', 'it', 'is']).replaceAll('text:', 'thinking:')}, ${pieces(['Here', 'it', 'is', 'in', 'many', 'small', 'words', 'to', 'the', 'end'])}]}
tools:
  wipe: [{result: {}}]
  search: [{result: {found: 1}}]
`,
)
const args = ['--schema-dir', agents(), '--script', script, '--client-grace', 'never']
const id = (block) => /\nid: (.*)$/.exec(block)?.[1]
const event = (block) => JSON.parse(/data: (.*)/.exec(block)[1])

// Reads whole blocks into got, until the end or the death of the server.
async function read(server, path, init, got) {
  const last = got.length ? {'last-event-id': id(got.at(-1))} : {}
  let rest = ''
  try {
    const r = await fetch(server.url + path, {...init, headers: {...init.headers, ...last}})
    if (r.status !== 200) return r.status
    const text = new TextDecoder()
    for await (const chunk of r.body) {
      rest += text.decode(chunk, {stream: true})
      const blocks = rest.split('\n\n')
      rest = blocks.pop()
      got.push(...blocks.filter((b) => !b.startsWith(':')))
    }
  } catch {
    return 0
  }
  return 200
}

// What a client of AG-UI keeps: messages by id, closed ones apart from open ones.
function keep(blocks, what) {
  const messages = new Map()
  const calls = new Map()
  const open = new Set()
  const thoughts = new Map()
  let over = 0
  for (const e of blocks.map(event)) {
    check(!over, `${what}: nothing follows the end`, e)
    const of = e.messageId ?? e.toolCallId
    if (e.type === 'TEXT_MESSAGE_START') check(!messages.has(of), `${what}: a message begins once`, e), messages.set(of, ''), open.add(of)
    if (e.type === 'TEXT_MESSAGE_CONTENT') check(open.has(of), `${what}: text of an open message`, e), messages.set(of, messages.get(of) + e.delta)
    if (e.type === 'TOOL_CALL_START') check(!calls.has(of), `${what}: a call begins once`, e), calls.set(of, 0), open.add(of)
    if (e.type === 'TEXT_MESSAGE_END' || e.type === 'TOOL_CALL_END') check(open.delete(of), `${what}: ends once`, e)
    if (e.type === 'REASONING_MESSAGE_START') check(!thoughts.has(of), `${what}: thinking begins once`, e), thoughts.set(of, ''), open.add(of)
    if (e.type === 'REASONING_MESSAGE_CONTENT') check(open.has(of), `${what}: of an open message`, e), thoughts.set(of, thoughts.get(of) + e.delta)
    if (e.type === 'REASONING_MESSAGE_END') check(open.delete(of), `${what}: thinking ends once`, e)
    if (e.type === 'TOOL_CALL_RESULT') calls.set(e.toolCallId, calls.get(e.toolCallId) + 1)
    if (e.type === 'RUN_FINISHED' || e.type === 'RUN_ERROR') over++
  }
  equal([over, open.size], [1, 0], `${what}: one end, and nothing is open`)
  check([...calls.values()].every((n) => n === 1), `${what}: each call has one result`, [...calls])
  // what was not stored of it when the server died is told no more: it is no part of the answer
  check([...thoughts.values()].every((t) => 'So there it is '.startsWith(t)), `${what}: thinking is whole or cut`, [...thoughts])
  return [...messages.values()]
}

let broken = 0
let server = await serve('killed.db', args)
for (let n = 0; n < times; n++) {
  const what = `kill ${n}`
  const session = randomUUID()
  const body = JSON.stringify({threadId: session, runId: randomUUID(), protocolVersion: '1.0', messages: [{id: randomUUID(), role: 'user', content: what}]})
  const post = {method: 'POST', headers: {'x-agent-schema-name': 'boss', 'content-type': 'application/json'}, body}
  const got = []
  const reading = read(server, `/chat/${session}`, post, got)
  // after so many blocks; before the first one after so many rounds of the loop
  const blocks = Math.floor(random() * 17)
  let over = false
  reading.then(() => (over = true))
  for (let i = random() * 400; i > 0 || (got.length < blocks && !over); i--) await new Promise((next) => setImmediate(next))
  await server.kill()
  await reading
  const seen = got.length
  broken += got.length > 0 && event(got.at(-1)).type !== 'RUN_FINISHED'
  server = await serve('killed.db', args)
  // half of the clients send the request again, the others ask for the stream by the run's id
  const run = (await call(server, 'GET', `/runs?session=${session}`)).json[0]?.id
  let status = 200
  if (!got.length || event(got.at(-1)).type !== 'RUN_FINISHED')
    status = run && random() < 0.5 ? await read(server, `/runs/${run}/stream`, {headers: {}}, got) : await read(server, `/chat/${session}`, post, got)
  if (process.env.REEVE_SHOW) console.log(what, blocks, seen, got.length, Math.round(performance.now()))
  equal(status, 200, `${what}: the client comes back`)
  const ids = got.map(id)
  equal(new Set(ids).size, ids.length, `${what}: each block once`)
  const texts = keep(got, what)
  check(texts.at(-1) === 'Here it is in many small words to the end ', `${what}: the answer is whole`, texts)
  const runs = (await call(server, 'GET', `/runs?session=${session}`)).json
  equal(runs.map((r) => r.status), ['completed'], `${what}: one run`)
  const stored = []
  await read(server, `/runs/${runs[0].id}/stream`, {headers: {}}, stored)
  equal(got, stored, `${what}: what was seen is what is stored`)
  const rows = (await call(server, 'GET', `/sessions/${session}/messages`)).json
  equal(rows.filter((m) => m.message_type === 'user').map((m) => m.content), [what], `${what}: one message of the user`)
  equal(rows.filter((m) => m.status === 'cancelled').length, 0, `${what}: nothing is cancelled`)
}
check(broken > times / 4, 'some of them were cut off in mid-stream', String(broken))
equal(await server.stop(), 0, 'it ends as it should')
console.log(`${broken} of ${times} streams were cut off`)
finish('killed')
