// Chats by the program: one turn a process, or a process for many; and what the store has of them then.
import {join} from 'node:path'
import {check, eventsOf, here, run, scratch} from './kit.mjs'

export const KEY = 'peer-secret'
const agents = join(here, 'agents')

// Providers as people have them set up, by their variables; no model is named in a document.
export const envOf = (url) => ({
  OPENAI_BASE_URL: `${url}/v1`,
  OPENAI_API_KEY: KEY,
  ANTHROPIC_BASE_URL: url,
  ANTHROPIC_API_KEY: KEY,
  OLLAMA_HOST: url.replace(/^http:\/\//, ''),
})

export class Chat {
  // name: of the store, which a session has to itself. wire: whose model is asked; of a script, it only names it.
  constructor(reeve, name, {wire, url, agent, env = {}}) {
    Object.assign(this, {reeve, agent, model: wire.model})
    this.session = 'peers'
    this.env = {
      ...(url ? envOf(url) : {}),
      REEVE_STORE: join(scratch, `${name}.db`),
      REEVE_SYNC: 'off',
      TZ: 'UTC',
      ...env,
    }
  }

  start(args, options = {}) {
    const all = ['chat', '--session', this.session, '--agent', this.agent, '--model', this.model]
    all.push('--schema-dir', agents, ...(options.terminal ? [] : ['--quiet']), ...args)
    const quoted = [this.reeve, ...all].map((a) => `'${a.replaceAll("'", "'\\''")}'`).join(' ')
    const [program, list] = options.terminal ? ['script', ['-qfec', quoted, '/dev/null']] : [this.reeve, all]
    return run(program, list, {env: this.env, ...options})
  }

  // One turn; what --json tells of it, with the exit status.
  async say(message, args = []) {
    const ran = await this.start(['--message', message, '--json', ...args])
    return {...asJson(ran.out), exit: ran.status, err: ran.err}
  }

  // All of them in one process; what --json tells, a turn a line.
  async tell(messages, args = []) {
    const ran = await this.start(['--json', ...args], {input: messages.map((m) => m + '\n').join('')})
    return eventsOf(ran.out).map((turn) => ({...turn, exit: ran.status, err: ran.err}))
  }

  async rows() {
    const ran = await run(this.reeve, ['sessions', 'messages', this.session, '--children'], {env: this.env})
    return eventsOf(ran.out)
  }

  // The state that each run of the session ended with, oldest first.
  async envelopes() {
    const ids = [...new Set((await this.rows()).map((row) => row.run_id))]
    const out = []
    for (const id of ids) out.push(asJson((await run(this.reeve, ['runs', 'show', id, '--json'], {env: this.env})).out))
    return out
  }

  async prompt(agent, args = []) {
    const ran = await run(this.reeve, ['agents', 'prompt', agent, '--schema-dir', agents, ...args], {env: this.env})
    return ran.out
  }
}

function asJson(text) {
  try {
    return JSON.parse(text)
  } catch {
    return {unreadable: text}
  }
}

// What differs from run to run and from provider to provider: ids, times, who answered, what it cost. Ids of calls keep
// what they say: which call a result or a row belongs to.
const volatile =
  /^(id|run_id|envelope_id|request_id|message_id|trace_id|span_id|interrupt_id|model|bundle|owner)$|_at$|_ms$|cost|^(time|timestamp|err|records|steps)$/
export function settled(value, ids = new Map()) {
  if (Array.isArray(value)) return value.map((v) => settled(v, ids))
  if (value === null || typeof value !== 'object') return value
  const name = (id) => {
    if (!ids.has(id)) ids.set(id, `call ${ids.size + 1}`)
    return ids.get(id)
  }
  const out = {}
  for (const [key, v] of Object.entries(value)) {
    if (key === 'tool_calls' && v?.id !== undefined) out[key] = {...v, id: name(v.id)}
    else if (key === 'parent_call_id' && v !== null) out[key] = name(v)
    else if (!volatile.test(key)) out[key] = settled(v, ids)
  }
  return out
}

// As equal(), for what is too large to be read: the first places that differ.
export function same(got, want, what) {
  const places = []
  const walk = (a, b, at) => {
    if (places.length >= 4) return
    const both = [a, b].every((v) => v !== null && typeof v === 'object')
    if (!both) {
      if (a !== b) places.push(`${at}: ${brief(a)}, not ${brief(b)}`)
      return
    }
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) walk(a[key], b[key], `${at}.${key}`)
  }
  walk(got, want, '')
  return check(places.length === 0, what, ...places)
}
const brief = (value) => (JSON.stringify(value) ?? 'nothing').slice(0, 300)
