// A conversation: its turns, the one that is under way, and the way back to it when the connection broke. It goes on
// while another view is shown.
import {ApiError, get, send, stream} from './api.js'
import {h, iconButton, fill, toast, dialog} from './dom.js'
import {questionCard, questionOf} from './questions.js'
import {Turn} from './turn.js'

const MAX_ROWS = 5000 // of a conversation that is shown: its last ones
const MOST_ROWS = 100000 // that the server gives
const RETRY_MS = [250, 500, 1000, 2000, 4000, 8000]

export const naming = new Set() // requests under way that name a session; a list that is read behind them has the names

export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID()
  const b = crypto.getRandomValues(new Uint8Array(16))
  b[6] = (b[6] & 15) | 64
  b[8] = (b[8] & 63) | 128
  const x = [...b].map((n) => n.toString(16).padStart(2, '0')).join('')
  return `${x.slice(0, 8)}-${x.slice(8, 12)}-${x.slice(12, 16)}-${x.slice(16, 20)}-${x.slice(20)}`
}

export class Talk extends EventTarget {
  constructor(id, agent) {
    super()
    this.id = id
    this.agent = agent
    this.name = ''
    this.busy = false
    this.turns = []
    this.log = h('div', {class: 'log', role: 'log', 'aria-live': 'polite', 'aria-relevant': 'additions', 'aria-label': 'Conversation'})
  }
  changed() {
    this.dispatchEvent(new Event('change'))
  }

  // --- what was kept

  async load() {
    const {session, rows} = await this.last(true)
    this.name = session.name ?? ''
    this.agent = session.agent_name || this.agent
    this.log.replaceChildren(...(session.messages > MAX_ROWS ? [h('p', {class: 'muted small'}, 'Earlier messages are not shown.')] : []))
    this.turns = []
    let turn = null
    for (const m of rows) {
      if (m.message_type === 'user' && !m.parent_call_id) turn = this.add(new Turn({text: m.content ?? '', files: m.metadata?.attachments, ask: (t) => this.say(t)}), m.run_id)
      else if (!turn || (m.run_id && turn.run && m.run_id !== turn.run)) turn = this.add(new Turn({ask: (t) => this.say(t)}), m.run_id)
      if (m.message_type !== 'user') turn.row(m)
    }
    for (const t of this.turns) {
      t.settle('stopped')
      this.finish(t)
    }
    await this.findOpen()
    this.changed()
  }
  async last(children) {
    const path = `/sessions/${encodeURIComponent(this.id)}`
    const session = await get(path)
    const from = Math.max(1, session.messages - MAX_ROWS + 1)
    return {session, rows: await get(`${path}/messages?children=${children}&from=${from}&limit=${MOST_ROWS}`)}
  }
  add(turn, run) {
    if (run) turn.setRun(run)
    turn.named = (name) => {
      this.name = name
      this.changed()
    }
    this.turns.push(turn)
    this.log.append(turn.el)
    return turn
  }

  // A run of the session that waits for an answer, or that is under way elsewhere. Its rows come with its end.
  async findOpen() {
    let runs = []
    try {
      runs = await get(`/runs?session=${encodeURIComponent(this.id)}&limit=5`)
    } catch {
      return // a key without runs:read
    }
    const run = runs[0]
    if (!run || !['running', 'interrupted', 'queued', 'created'].includes(run.status)) return
    const whole = await get(`/runs/${encodeURIComponent(run.id)}`)
    let turn = this.turns.find((t) => t.run === run.id)
    if (!turn) turn = this.add(new Turn({agent: run.pipeline, text: whole.state?.raw_input ?? null, ask: (t) => this.say(t)}), run.id)
    if (run.status === 'interrupted') this.askOf(turn, whole.pending ?? [])
    else this.watch(turn)
  }

  // --- a turn

  say(text) {
    if (this.busy || !text.trim()) return
    const turn = this.add(new Turn({agent: this.agent, text, ask: (t) => this.say(t)}))
    for (const old of this.turns.slice(0, -1)) old.giveUp()
    return this.perform(turn, {messages: [{id: uuid(), role: 'user', content: text}]})
  }
  // A session has the first words of its user as its name, unless its agent or its user named it.
  nameIt() {
    const words = this.turns[0]?.question?.trim().replace(/\s+/g, ' ')
    if (this.name || !words) return
    const name = words.length > 60 ? `${words.slice(0, 59)}…` : words
    const sent = send('PATCH', `/sessions/${encodeURIComponent(this.id)}`, {name})
      .then(() => {
        this.name ||= name
        this.changed()
      })
      .catch(() => {}) // a key without sessions:write
      .finally(() => naming.delete(sent))
    naming.add(sent)
    return sent
  }
  async perform(turn, more) {
    this.busy = true
    this.turn = turn
    turn.ended = ''
    turn.foot.replaceChildren()
    turn.state('Thinking', 'busy')
    this.changed()
    const began = performance.now()
    try {
      await this.hear(turn, more)
    } catch (e) {
      await this.broke(turn, e)
    }
    turn.took ??= performance.now() - began
    this.busy = false
    this.turn = null
    this.finish(turn)
    this.changed()
    if (turn.run && turn.ended !== 'error') await this.nameIt()
  }
  async hear(turn, more) {
    this.abort = new AbortController()
    const body = {threadId: this.id, runId: uuid(), protocolVersion: '1.0', state: {}, tools: [], context: [], forwardedProps: {}, messages: [], ...more}
    turn.heard = false
    await stream('POST', `/chat/${encodeURIComponent(this.id)}`, {
      body,
      headers: this.agent ? {'x-agent-schema-name': this.agent} : {},
      signal: this.abort.signal,
      on_open: (response) => {
        turn.heard = true
        turn.setRun(response.headers.get('x-run-id'))
      },
      on_event: (e) => this.take(turn, e),
    })
    if (!turn.ended) throw new ApiError(0, 'cut', 'the stream had no end', '')
  }
  take(turn, e) {
    let event
    try {
      event = JSON.parse(e.data)
    } catch {
      return
    }
    if (e.id) turn.last = e.id
    turn.on(event)
    if (turn.answer.getAttribute('aria-busy') === 'true' && /^(TEXT_MESSAGE_CONTENT|TOOL_CALL_START)$/.test(event.type)) turn.state('', 'busy')
    this.dispatchEvent(new Event('grow'))
  }

  // --- when the connection broke

  async broke(turn, e) {
    if (e.name === 'AbortError') return turn.failed('Left before its end.')
    const answered = e instanceof ApiError && e.status > 0
    if (answered || !turn.heard || !turn.run) return turn.failed([e.detail ?? e.message, e.hint].filter(Boolean).join(': '))
    turn.state('The connection broke. Connecting again', 'busy')
    await this.rejoin(turn)
  }
  // The stream of the turn goes on behind its last event, also in another process; from its beginning if none came. When
  // nothing is kept of the stream, or nothing follows, the session says how the turn ended.
  async rejoin(turn) {
    for (let n = 0; !turn.ended; n++) {
      try {
        const response = await stream('GET', `/runs/${encodeURIComponent(turn.run)}/stream`, {
          last_event_id: turn.last,
          signal: (this.abort = new AbortController()).signal,
          on_open: () => turn.state('', 'busy'),
          on_event: (e) => this.take(turn, e),
        })
        if (response.status === 204) return await this.reload(turn)
        n = 0
      } catch (e) {
        if (e.status === 404) return await this.reload(turn)
        if (e.status > 0 && e.status < 500 && e.status !== 429) return turn.failed(e.detail)
        turn.state('The server does not answer. Trying again', 'busy')
      }
      if (!turn.ended) await new Promise((next) => setTimeout(next, RETRY_MS[Math.min(n, RETRY_MS.length - 1)]))
    }
  }
  async watch(turn) {
    this.busy = true
    this.turn = turn
    turn.state('Thinking', 'busy')
    this.changed()
    await this.rejoin(turn)
    this.busy = false
    this.turn = null
    if (turn.ended !== 'reloaded') this.finish(turn)
    this.changed()
  }
  async reload(turn) {
    turn.ended = 'reloaded'
    turn.state('')
    await this.load()
    this.dispatchEvent(new Event('grow'))
  }

  // --- stopping

  async stop() {
    const turn = this.turn
    if (!turn) return
    turn.state('Stopping', 'busy')
    try {
      if (!turn.run) throw new Error('not begun')
      await send('POST', `/runs/${encodeURIComponent(turn.run)}/cancel`)
    } catch {
      this.abort?.abort() // a client that leaves ends its turn, too
    }
  }

  // --- questions

  askOf(turn, questions) {
    const answers = []
    for (const q of questions)
      turn.asks(
        questionCard(q, async ({id, payload}) => {
          if (payload.arguments) turn.calls.get(questionOf(q).call)?.replaceArguments(payload.arguments)
          answers.push({interruptId: id, status: 'resolved', payload})
          if (answers.length < questions.length) return
          await this.answer(turn, answers)
        }),
      )
    this.dispatchEvent(new Event('grow'))
  }
  async answer(turn, answers) {
    if (this.busy) throw new ApiError(0, 'busy', 'another turn is under way', '')
    try {
      // resolves at the beginning of what follows, so that the card can say that it was answered
      await new Promise((begun, failed) => {
        const once = () => begun()
        this.addEventListener('grow', once, {once: true})
        this.perform(turn, {messages: [], resume: answers, agent: undefined}, failed).then(once, failed)
      })
    } finally {
      this.changed()
    }
  }

  // --- below an answer

  finish(turn) {
    if (turn.interrupts.length) this.askOf(turn, turn.interrupts)
    turn.interrupts = []
    const failed = turn.ended === 'error'
    const facts = []
    const m = turn.message
    const ms = turn.took ?? m?.latency_ms
    if (ms > 0) facts.push(ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`)
    const input = turn.usage.reduce((n, u) => n + (u.inputTokens ?? 0), 0) || m?.input_tokens
    const output = turn.usage.reduce((n, u) => n + (u.outputTokens ?? 0), 0) || m?.output_tokens
    if (input || output) facts.push(`${(input ?? 0).toLocaleString()} + ${(output ?? 0).toLocaleString()} tokens`)
    const copy = iconButton('copy', 'Copy the answer', async () => {
      await navigator.clipboard?.writeText(turn.root.said.trim())
      copy.classList.add('done')
    })
    fill(
      turn.foot,
      turn.root.said && !failed && !turn.waits ? [this.thumb(turn, 1), this.thumb(turn, 0), copy] : null,
      turn.question && (failed || turn.ended === 'cancelled') ? h('button', {type: 'button', class: 'retry', onclick: () => this.say(turn.question)}, 'Try again') : null,
      facts.length ? h('span', {class: 'facts muted small'}, facts.join(' · ')) : null,
    )
  }
  thumb(turn, score) {
    const button = iconButton(score ? 'up' : 'down', score ? 'A good answer' : 'A bad answer', () => this.rate(turn, score, button), {'aria-pressed': 'false'})
    return button
  }
  async rate(turn, score, button) {
    const said = await dialog(score ? 'What was good?' : 'What was wrong?', (close) => {
      const label = h(
        'select',
        {id: 'rate-label'},
        ['', ...(score ? ['Helpful', 'Accurate', 'Clear', 'Relevant'] : ['Not helpful', 'Not accurate', 'Not clear', 'Not relevant'])].map((w) => h('option', {value: w}, w || 'No category')),
      )
      const comment = h('textarea', {id: 'rate-comment', rows: '3', maxlength: '4000'})
      const form = h(
        'form',
        null,
        h('div', {class: 'field'}, h('label', {for: 'rate-label'}, 'Category'), label),
        h('div', {class: 'field'}, h('label', {for: 'rate-comment'}, 'Comment'), comment),
        h('div', {class: 'actions'}, h('button', {type: 'button', onclick: () => close()}, 'Cancel'), h('button', {type: 'submit', class: 'primary'}, 'Send')),
      )
      form.addEventListener('submit', (e) => {
        e.preventDefault()
        close({label: label.value, comment: comment.value.trim()})
      })
      return form
    })
    if (!said) return
    try {
      const rows = turn.message ? [turn.message] : (await this.last(false)).rows
      const m = rows.filter((r) => r.run_id === turn.run && r.message_type === 'assistant').at(-1)
      const body = {session_id: this.id, message_id: m?.id, trace_id: m?.trace_id, span_id: m?.span_id, name: 'user_feedback', score, source: 'user'}
      for (const key of ['label', 'comment']) if (said[key]) body[key] = said[key]
      for (const key of Object.keys(body)) if (body[key] === undefined || body[key] === null) delete body[key]
      await send('POST', '/feedback', body)
      for (const b of button.parentElement.querySelectorAll('[aria-pressed]')) b.setAttribute('aria-pressed', String(b === button))
      toast('Thank you: your feedback was kept.')
    } catch (e) {
      toast(e.detail ?? e.message, 'bad')
    }
  }
}
