// Requests that are made from the server's own description: fitting ones, nearly fitting ones and hostile ones, for each
// route. Each answer is one that the description has, and fits its schema; none is a fault of the server (502 is one of the script,
// which stands in the place of models).
// REEVE_SEED begins elsewhere, REEVE_SOAK=1 makes 20,000 requests, REEVE_SHOW=1 tells each.
import {randomUUID} from 'node:crypto'
import {readFileSync} from 'node:fs'
import {Agent, request} from 'node:http'
import {agents, call, check, equal, file, finish, load, serve} from './kit.mjs'

const times = Number(process.env.REEVE_TIMES ?? (process.env.REEVE_SOAK ? 20000 : 400))
const MAX_GROWTH_KB = 64 << 10 // of the memory of the server, behind its first requests
const MAX_MS = 60000 // for one answer: far more than any takes
const firstSeed = Number(process.env.REEVE_SEED ?? 1)
let seed = firstSeed
const random = () => ((seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0), seed / 4294967296)
const below = (n) => Math.floor(random() * n)
const pick = (list) => list[below(list.length)]

// --- the server, and what its description says
const script = file('fuzz.yaml', 'models:\n  boss: [{text: Good morning.}, {text: Again., tool_calls: [{name: wipe, arguments: {path: x}}]}, {error: no}]\n  general: [{text: Yes.}]\ntools:\n  wipe: {risk: destructive, calls: [{result: {}}]}\n  search: [{result: {}}]\n')
const server = await serve('fuzz.db', ['--schema-dir', agents(), '--script', script, '--pipelines', 'pipelines', '--client-grace', '0s'])
const api = (await call(server, 'GET', '/openapi.json')).json
const ajv = new (load('ajv/dist/2020').default)({strict: false, allErrors: false, validateFormats: false})
// An answer has no member that its schema does not have, unless the schema says that there may be others.
const closed = structuredClone(api.components)
for (const [name, schema] of Object.entries(closed.schemas)) if (schema.properties && name !== 'Problem') schema.additionalProperties ??= false
ajv.addSchema({$id: 'api', components: closed})
const fitting = new Map()
const fits = (schema, value) => {
  const text = JSON.stringify(schema).replaceAll('"#/', '"api#/')
  if (!fitting.has(text)) fitting.set(text, ajv.compile(JSON.parse(text)))
  const f = fitting.get(text)
  return f(value) ? '' : ajv.errorsText(f.errors)
}
const lookUp = (x) => (x?.$ref ? x.$ref.slice(2).split('/').reduce((at, key) => at[key], api) : x)
const routes = Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({path, method: method.toUpperCase(), operation})))

// --- values
const pools = {} // by the name of a parameter or member: values that the server knows
const know = (name, value) => {
  const pool = (pools[name] ??= [])
  if (typeof value !== 'string' || value.length > 200 || pool.includes(value)) return
  if (pool.length < 30) pool.push(value)
  else pool[below(30)] = value
}
const sameAs = {session: 'session_id', chat_id: 'session_id', with: 'run_id', run: 'run_id', threadId: 'session_id', interruptId: 'interrupt_id', key: 'name', agent: 'name', agent_name: 'name'}
for (const kind of (await call(server, 'GET', '/entities')).json) know('kind', kind.name ?? kind)
for (const name of ['boss', 'general', 'hooks']) know('name', name), know('model', name)
know('pipeline', 'hooks')

const raw = (text) => ({raw: text}) // stands in a body as it is
const hostileTexts = ['', ' ', '\0', 'a\0b', '\ud800', '\u202e\u0301', '💥'.repeat(40), "'; DROP TABLE sessions; --", '../../../etc/passwd', '%s%n%x', '{{state}}', '${file:/etc/passwd}', '\r\nX-Evil: 1', 'null', 'NaN', '-1', '99999999999999999999', 'x'.repeat(300), 'y'.repeat(70000), '%', '_', '"', '\\', '*', '[', '(((((', 'LOOKUP "', 'SELECT * FROM messages', 'SEARCH x FROM nothing', 'FUZZY a THRESHOLD 9', 'TRAVERSE a DEPTH 99999', '1970-01-01T00:00:00Z', '9999-99-99', 'ſ', 'İ', '\ufeffbom', 'default', '__proto__', 'rv_0000000000000000_x', 'data:;base64,', 'file:///etc/passwd']
const hostileNumbers = [-1, 0, 1, 0.5, -0.0, 100, 1000, 1001, 2147483648, 4294967296, 9007199254740993, raw('9223372036854775807'), raw('9223372036854775808'), raw('-9223372036854775809'), raw('1e308'), raw('1e999'), raw('-1e-999'), raw('-0')]
const deep = (n) => raw('['.repeat(n) + ']'.repeat(n))
const hostileValues = [null, true, false, [], {}, [[]], [null], {a: {b: {c: null}}}, [1, 'x', {}], deep(40), deep(70), deep(3000), {'': ''}, {__proto__: 1}, {user_id: 'ada', tenant_id: 'other', id: 'x'}]
const hostile = () => (random() < 0.5 ? pick(hostileTexts) : random() < 0.5 ? pick(hostileNumbers) : pick(hostileValues))
const words = ['hello', 'boss', 'general', 'completed', 'dentist', 'search', 'Good', 'a name', 'user', 'assistant', '1', '2024-01-01T00:00:00Z', 'approved']

function textFor(name) {
  const pool = pools[sameAs[name] ?? name] ?? (/(^|_)id$/i.test(name) ? pools.id : undefined)
  return pool?.length && random() < 0.8 ? pick(pool) : random() < 0.3 ? randomUUID() : pick(words)
}

// A value that fits the schema. What a schema leaves open is filled with what clients send there.
function good(schema, name, depth = 0) {
  schema = lookUp(schema)
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return pick(schema.enum)
  const type = Array.isArray(schema.type) ? pick(schema.type) : schema.type
  if (type === 'string') return textFor(name)
  if (type === 'integer') return pick([0, 1, 2, 5, 10])
  if (type === 'number') return pick([0, 0.5, 1])
  if (type === 'boolean') return random() < 0.5
  if (type === 'array') return Array.from({length: below(3) + (name === 'messages' ? 1 : 0)}, () => (name === 'messages' ? {id: randomUUID(), role: pick(['user', 'user', 'user', 'assistant', 'system', 'tool']), content: pick(words)} : name === 'resume' ? {interruptId: textFor('interruptId'), status: pick(['resolved', 'cancelled']), payload: {approved: random() < 0.5}} : schema.items ? good(schema.items, name, depth + 1) : pick(words)))
  if (type !== 'object' && name !== 'body') return pick(['text', {text: 'x'}, [{role: 'user', content: 'x'}], 1])
  const made = {}
  for (const [key, member] of Object.entries(schema.properties ?? {})) if (schema.required?.includes(key) || random() < 0.4) made[key] = good(member, key, depth + 1)
  if (!schema.properties && random() < 0.8) for (const key of ['name', 'content', 'tags', 'id', 'metadata', 'session_id']) if (random() < 0.5) made[key] = key === 'tags' ? ['a'] : key === 'metadata' ? {k: 1} : textFor(key)
  return made
}

// Changes one place of it.
function spoil(value) {
  if (value === null || typeof value !== 'object' || value.raw !== undefined || random() < 0.1) return hostile()
  const keys = Object.keys(value)
  if (!keys.length || random() < 0.15) return Array.isArray(value) ? [...value, hostile()] : {...value, [pick(['x', '', 'id', 'user_id', 'limit', 'z'.repeat(300), '\0', ...words])]: hostile()}
  const key = pick(keys)
  const copy = Array.isArray(value) ? [...value] : {...value}
  if (random() < 0.2) Array.isArray(copy) ? copy.splice(key, 1) : delete copy[key]
  else copy[key] = spoil(value[key])
  return copy
}

const write = (v) => (v === null || typeof v !== 'object' ? JSON.stringify(v) : v.raw !== undefined ? v.raw : Array.isArray(v) ? `[${v.map(write)}]` : `{${Object.entries(v).map(([k, x]) => `${JSON.stringify(k)}:${write(x)}`)}}`)
function spoilText(text) {
  const bytes = Buffer.from(text)
  const at = below(bytes.length + 1)
  const odd = [() => bytes.subarray(0, at), () => Buffer.concat([bytes.subarray(0, at), Buffer.from([pick([0, 0x80, 0xff, 0xc0, 0xed, 0x0a])]), bytes.subarray(at)]), () => Buffer.concat([bytes, bytes]), () => Buffer.from(text.replace('{', '{"id":1,"id":2,')), () => Buffer.alloc(0), () => Buffer.from('\ufeff' + text)]
  return pick(odd)()
}

const hostileSegments = ['%00', '%', '%zz', '..', '%2e%2e', '%2f', 'a%2fb', '%c0%ae', '%ff', '%F0%9F%92%A5', '.', '', 'x'.repeat(4000), '*', '~', ';', 'a;b=c', "'", '-1', 'null', 'none', '%0d%0aX:1', 'a%20b', '__proto__']
const segment = (name, bad) => (bad ? (random() < 0.5 ? pick(hostileSegments) : encodeURIComponent(pick(hostileTexts).toWellFormed()).slice(0, 3000)) : encodeURIComponent(textFor(name)))
const headerValues = {
  'x-agent-schema-name': ['boss', 'boss', 'boss', 'general', 'nobody', '../x', 'a'.repeat(500), '\u00ff'],
  'x-session-id': [randomUUID(), 'x', "'", 'a'.repeat(500)],
  'x-session-name': ['Talk', '\u00e9', 'a'.repeat(2000)],
  accept: ['*/*', 'application/json', 'application/x-ndjson', 'text/event-stream', 'application/openmetrics-text', 'x', ';;;q=9'],
  'content-type': ['application/json', 'text/plain', 'application/yaml', 'multipart/form-data', 'x'],
  'last-event-id': ['1', '1-1', '1-99999999999999999999', 'x', '1-2.3', '-', ''],
  'x-run-id': ['run_1', '..', randomUUID()],
  'idempotency-key': ['k1', 'k2', 'a'.repeat(300)],
  'x-user-id': ['ada', randomUUID()],
  'x-tenant-id': ['other', '..', 'default'],
  traceparent: ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'x'],
  authorization: ['Bearer x', 'Basic eDp5', 'Bearer rv_0000000000000000_' + 'a'.repeat(43)],
  cookie: ['__Host-reeve=x', 'a=b; c', '='],
  origin: ['https://evil.example.com', 'null'],
}

function make(route) {
  const how = pick(['good', 'good', 'good', 'near', 'near', 'bad']) // fits; one place does not; most do not
  const bad = (share) => how === 'bad' && random() < share
  let path = route.path.replace(/\{([a-z_]+)\}/g, (_, name) => segment(name === 'id' ? poolOf(route.path) : route.path.startsWith('/pipelines') ? 'pipeline' : name, bad(0.5) || (how === 'near' && random() < 0.15)))
  if (route.path !== '/') path = path.replace(/\/+$/, (m) => m + '~') // without it, it would be the path above
  const query = []
  for (const p of route.operation.parameters ?? []) if (p.in === 'query' && random() < 0.4) query.push(`${p.name}=${how === 'good' || random() < 0.5 ? encodeURIComponent(['limit', 'offset', 'from', 'children', 'follow'].includes(p.name) ? pick(['1', '2', '5']) : textFor(p.name)) : random() < 0.5 ? encodeURIComponent(pick(hostileTexts).toWellFormed()).slice(0, 2000) : pick(['%', '%00', '-1', '1e9', '0x10', '%ff', '', '9223372036854775808'])}`)
  if (bad(0.1)) query.push('&&=&x', '%')
  if (query.length) path += '?' + query.join('&')
  const headers = {}
  for (const [name, values] of Object.entries(headerValues)) if (random() < (how === 'bad' ? 0.1 : name === 'x-agent-schema-name' ? 0.6 : 0.01)) headers[name] = how === 'bad' ? pick(values) : values[0]
  let body
  const takes = route.operation.requestBody?.content?.['application/json']?.schema
  if (takes && random() < 0.97) {
    let value = good(takes, 'body')
    for (let i = how === 'good' ? 0 : how === 'near' ? 1 : 1 + below(4); i > 0; i--) value = spoil(value)
    body = write(value)
    if (bad(0.3)) body = spoilText(body)
  } else if (bad(0.1)) body = '{}'
  return {method: route.method, path, headers, body}
}
const poolOf = (path) => ({sessions: 'session_id', runs: 'run_id', tasks: 'task_id', scenarios: 'scenario_id', collections: 'collection_id', schedules: 'schedule_id'})[path.split('/')[1]] ?? 'id'

// --- one request; a stream that goes on is left behind its first bytes
const agent = new Agent({keepAlive: true, maxSockets: 1})
const url = new URL(server.url)
const send = (r) =>
  new Promise((resolve) => {
    const req = request({host: url.hostname, port: url.port, agent, method: r.method, path: r.path, headers: r.body === undefined ? r.headers : {'content-type': 'application/json', ...r.headers, 'content-length': Buffer.byteLength(r.body)}, timeout: MAX_MS})
    const parts = []
    const done = (res, is_cut) => resolve({status: res.statusCode, headers: res.headers, bytes: Buffer.concat(parts), is_cut})
    req.on('response', (res) => {
      const goesOn = r.method === 'GET' && /event-stream|ndjson/.test(res.headers['content-type'] ?? '')
      res.on('data', (part) => (parts.push(part), goesOn && (res.destroy(), done(res, true))))
      res.on('end', () => done(res, false))
      res.on('error', (e) => resolve({error: String(e)}))
    })
    req.on('timeout', () => req.destroy(new Error('no answer')))
    req.on('error', (e) => resolve({error: String(e)}))
    req.end(r.body)
  })

function learn(route, value, depth = 0) {
  if (value === null || typeof value !== 'object' || depth > 4) return
  for (const [key, member] of Object.entries(value)) {
    if (key === 'id') know(poolOf(route.path), member), know('id', member)
    else if (key === 'new_session_id') know('session_id', member)
    else if (/_id$|^name$|^status$|^type$/.test(key)) know(key, member)
    else if (typeof member === 'object') learn(route, member, depth + 1)
  }
}

const decoder = new TextDecoder('utf-8', {fatal: true, ignoreBOM: true})
function judge(route, a) {
  if (a.error) return `no answer: ${a.error}`
  if (a.status >= 500 && a.status !== 502) return `status ${a.status}`
  const is_target = a.status === 404 || a.status === 405 // the path was another one: then it is an answer of no route
  const answer = lookUp(route.operation.responses[a.status])
  if (!answer && !(is_target && a.bytes.includes('path'))) return `status ${a.status} is not in the description`
  if (!a.headers['x-request-id']) return 'no X-Request-Id'
  let text
  try {
    text = decoder.decode(a.bytes)
  } catch {
    return a.is_cut ? '' : 'it is not UTF-8'
  }
  const type = (a.headers['content-type'] ?? '').split(';')[0]
  if (!answer?.content && !is_target) return text ? `a body of ${a.status}, of which there is none in the description` : ''
  const content = (answer ?? lookUp(api.components.responses?.Problem))?.content?.[type]
  if (!content) return is_target && type === 'application/problem+json' ? '' : `type ${type} is not in the description of ${a.status}`
  if (type === 'text/event-stream') {
    for (const block of a.is_cut ? [] : text.split('\n\n').filter(Boolean))
      for (const line of block.split('\n')) {
        if (!/^(data: |id: |event: |:|retry: )/.test(line)) return `a line of the stream: ${line.slice(0, 200)}`
        if (line.startsWith('data: ') && line !== 'data: [DONE]')
          try {
            JSON.parse(line.slice(6))
          } catch {
            return `data of the stream: ${line.slice(0, 200)}`
          }
      }
    return ''
  }
  if (!/json$/.test(type)) return ''
  let json
  try {
    json = JSON.parse(text)
  } catch {
    return 'it is not JSON'
  }
  if (a.status >= 400 && type === 'application/problem+json' && (json.status !== a.status || json.request_id !== a.headers['x-request-id'])) return 'status and request_id of the body are others'
  if (a.status < 400) learn(route, json)
  const faults = fits(content.schema, json)
  return faults ? `it does not fit ${JSON.stringify(content.schema)}: ${faults}` : ''
}

// --- all of it
const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1])
const session = randomUUID()
await call(server, 'POST', `/chat/${session}`, {threadId: session, runId: 'r', messages: [{id: 'm', role: 'user', content: 'hello'}]}, {'x-agent-schema-name': 'boss'})
know('session_id', session)
const run = (await call(server, 'POST', '/runs', {pipeline: 'hooks', input: 'hi', wait: true})).json
know('run_id', run.id)
// what chance rarely makes
const fixed = [
  ['GET', '/pipelines/{name}', '/pipelines/hooks'],
  ['POST', '/schedules', '/schedules', {name: 'hourly', cron: '0 * * * *', pipeline: 'hooks', input: 'hi'}],
  ['GET', '/schedules/{id}', '/schedules/hourly'],
  ['GET', '/schedules', '/schedules'],
  ['GET', '/runs/{id}', `/runs/${run.id}`],
  ['POST', '/runs/{id}/replay', `/runs/${run.id}/replay`],
  ['GET', '/runs/{id}/diff', `/runs/${run.id}/diff?with=${run.id}`],
  ['GET', '/agents/{name}', '/agents/boss'],
  ['POST', '/query/raw', '/query/raw', {query: 'SQL SELECT * FROM messages'}],
]
for (const [method, path, target, body] of fixed) {
  const a = await send({method, path: target, headers: {}, body: body && write(body)})
  const what = judge(routes.find((r) => r.method === method && r.path === path), a)
  check(a.status < 300 && !what, `${method} ${target}`, String(a.status), what, String(a.bytes).slice(0, 1000))
}
const seen = new Map()
const faults = new Map()
let warm = 0
let order = []
for (let n = 0; n < times; n++) {
  if (!order.length) order = routes.map((r) => [random(), r]).sort((a, b) => a[0] - b[0]).map((x) => x[1])
  const route = order.pop()
  const r = make(route)
  const a = await send(r)
  const what = judge(route, a)
  if (process.env.REEVE_SHOW) console.log(n, r.method, r.path.slice(0, 100), String(r.body ?? '').slice(0, 200), a.status, what)
  seen.set(a.status, (seen.get(a.status) ?? 0) + 1)
  const key = `${route.method} ${route.path}: ${what.slice(0, 150)}`
  if (what && !faults.has(key)) faults.set(key, [`request ${n} of seed ${firstSeed}: ${r.method} ${r.path.slice(0, 500)} ${JSON.stringify(r.headers).slice(0, 500)}`, String(r.body ?? '').slice(0, 1000), String(a.bytes ?? '').slice(0, 600)])
  check(!what || faults.size > 100, key, ...(faults.get(key) ?? []))
  if (a.error && (await Promise.race([server.end, Promise.resolve(null)])) !== null) break
  if (n === Math.floor(times / 4)) warm = memory()
}
agent.destroy()
const after = memory()
check(after - warm < MAX_GROWTH_KB, `its memory grows by less than ${MAX_GROWTH_KB} KB`, `${warm} KB, then ${after} KB`)
equal((await call(server, 'GET', '/healthz')).status, 200, 'it lives')
check((seen.get(200) ?? 0) > times / 8 && (seen.get(400) ?? 0) > times / 20, 'both good and bad ones were among them', JSON.stringify([...seen]))
equal(await server.stop(), 0, 'it ends as it should')
console.log(`${times} requests for ${routes.length} routes: ${[...seen].sort((a, b) => a[0] - b[0]).map(([s, n]) => `${s}: ${n}`).join(', ')}; ${warm} KB, then ${after} KB`)
finish('fuzz')
