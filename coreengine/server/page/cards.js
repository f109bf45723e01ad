// What a turn consists of: texts, thoughts and calls of tools, in the order in which they came. An agent that was asked
// has a block of its own within the card of the call that asked it.
import {fill, h, icon} from './dom.js'
import {highlight, LiveMarkdown, markdown} from './md.js'

const MAX_SHOWN = 20000 // characters of arguments or a result; the rest is shown when it is asked for

// JSON as it is easy to read; any other text as it is.
export function readable(text) {
  const trimmed = String(text ?? '').trim()
  if (/^[[{]/.test(trimmed))
    try {
      return JSON.stringify(JSON.parse(trimmed), null, 2)
    } catch {}
  return trimmed
}

function longText(text) {
  const pre = h('pre', {tabindex: '0'}, text.slice(0, MAX_SHOWN))
  if (text.length <= MAX_SHOWN) return pre
  const more = h(
    'button',
    {
      type: 'button',
      onclick: () => {
        pre.textContent = text
        more.remove()
      },
    },
    `Show all ${text.length.toLocaleString()} characters`,
  )
  return h('div', null, pre, more)
}

const STATES = {running: 'running', done: 'done', failed: 'failed', waits: 'waits for you', stopped: 'stopped'}

export class ToolCard {
  constructor(name) {
    this.name = name
    this.args = ''
    this.sign = h('span', {class: 'tool-sign', 'aria-hidden': 'true'}, icon('tool'))
    this.title = h('span', {class: 'tool-name'}, name)
    this.brief = h('span', {class: 'tool-brief'})
    this.state = h('span', {class: 'tool-state'})
    this.argsBox = h('div', {class: 'tool-part', hidden: true})
    this.children = h('div', {class: 'tool-agents'})
    this.resultBox = h('div', {class: 'tool-part', hidden: true})
    this.el = h(
      'details',
      {class: 'tool'},
      h('summary', null, this.sign, this.title, this.brief, this.state),
      h('div', {class: 'tool-body'}, this.argsBox, this.children, this.resultBox),
    )
    this.to('running')
  }
  to(state) {
    this.el.dataset.state = state
    this.state.textContent = STATES[state] ?? state
  }
  addArguments(delta) {
    this.args += delta
  }
  replaceArguments(value) {
    this.args = JSON.stringify(value)
    this.setArguments()
  }
  setArguments() {
    const text = readable(this.args)
    let given = null
    try {
      given = JSON.parse(this.args)
    } catch {}
    if (this.name === 'ask_agent' && typeof given?.agent_name === 'string') this.asks(given.agent_name)
    const first = given && typeof given === 'object' ? Object.entries(given).filter(([key]) => key !== 'agent_name')[0] : null
    this.brief.textContent = first ? `${first[0]}: ${typeof first[1] === 'string' ? first[1] : JSON.stringify(first[1])}`.slice(0, 120) : ''
    if (!text || text === '{}') return
    this.argsBox.hidden = false
    fill(this.argsBox, h('h4', null, 'Arguments'), longText(text))
  }
  asks(agent) {
    if (this.agent) return
    this.agent = agent
    this.title.textContent = agent
    fill(this.sign, icon('agent'))
    this.el.classList.add('asks')
  }
  // The block of the agent that this call asks.
  open(agent) {
    this.asks(agent)
    const block = new Block(agent)
    this.children.append(block.el)
    this.el.open = true
    return block
  }
  result(content) {
    const text = readable(content)
    let failed = false
    try {
      const value = JSON.parse(content)
      failed = value?.status === 'error' || (value?.error !== undefined && value?.error !== null && value?.error !== false && value?.status !== 'success')
    } catch {}
    this.to(failed ? 'failed' : 'done')
    this.resultBox.hidden = false
    // What an asked agent said is to be read above already.
    const said = this.children.childElementCount > 0
    fill(this.resultBox, said && !failed ? null : h('h4', null, 'Result'), said && !failed ? h('details', {class: 'raw'}, h('summary', null, 'Result'), longText(text)) : longText(text))
  }
}

// A text that was told before is told again: by a call of a model that was made again, as its process had died, or at
// the end of a turn that went on behind a question.
const isAgain = (other, old, id, text) => (id.endsWith('-answer') && old === text) || (id.startsWith(`${other}-`) && old !== '' && text.startsWith(old))

// One speaker: the agent of the turn, or one that it asked.
export class Block {
  constructor(agent) {
    this.agent = agent
    this.el = h('div', {class: 'block'})
    this.texts = new Map()
    this.thoughts = new Map()
    this.said = ''
  }
  begin(id) {
    if (this.texts.has(id)) return this.texts.get(id)
    const el = h('div', {class: 'md'})
    const live = new LiveMarkdown(el)
    this.texts.set(id, live)
    this.el.append(el)
    return live
  }
  text(id, delta) {
    this.begin(id).push(delta)
    this.said += delta
  }
  endText(id) {
    const live = this.texts.get(id)
    for (const [other, was] of this.texts) if (live && other !== id && isAgain(other, was.text, id, live.text)) this.drop(other, was)
    live?.end()
    if (this.said && !this.said.endsWith('\n')) this.said += '\n\n'
  }
  drop(id, live) {
    live.el.remove()
    this.texts.delete(id)
    this.said = this.said.replace(live.text, '').trimStart()
  }
  say(content) {
    const el = h('div', {class: 'md'})
    el.append(markdown(content))
    highlight(el).catch(() => {})
    this.el.append(el)
    this.said += `${content}\n\n`
  }
  think(id, delta) {
    let thought = this.thoughts.get(id)
    if (!thought) {
      thought = h('div', {class: 'thought-text'})
      this.thoughts.set(id, thought)
      this.el.append(h('details', {class: 'thought'}, h('summary', null, 'Thoughts'), thought))
    }
    thought.append(delta)
  }
  call(name) {
    const card = new ToolCard(name)
    this.el.append(card.el)
    return card
  }
  note(text, kind = 'info') {
    this.el.append(h('p', {class: `note ${kind}`}, icon(kind === 'bad' ? 'warn' : 'check'), h('span', null, text)))
  }
  endAll() {
    for (const live of this.texts.values()) live.end()
  }
}

const percent = (n) => `${Math.round(n * 100)} %`

// An event of the tool `action`: what it says about an answer, or a question that the next message answers.
export function actionEl(value, ask) {
  if (!value) return null
  const payload = value?.payload && typeof value.payload === 'object' ? value.payload : {}
  const type = String(value?.action_type ?? 'action')
  if (type === 'elicit') {
    const options = Array.isArray(payload.options) ? payload.options.slice(0, 20) : []
    return h(
      'div',
      {class: 'elicit'},
      h('p', null, String(payload.question ?? '')),
      h('div', {class: 'actions choices'}, options.map((o) => h('button', {type: 'button', onclick: () => ask(String(o))}, String(o)))),
    )
  }
  const chips = []
  if (type === 'observation') {
    if (typeof payload.confidence === 'number') chips.push(`confidence ${percent(payload.confidence)}`)
    if (payload.risk_level) chips.push(`risk ${String(payload.risk_level)}`)
    for (const source of Array.isArray(payload.sources) ? payload.sources.slice(0, 12) : []) chips.push(typeof source === 'string' ? source : JSON.stringify(source))
    for (const flag of Array.isArray(payload.flags) ? payload.flags.slice(0, 6) : []) chips.push(String(flag))
  } else chips.push(type)
  if (chips.length === 0) return null
  return h('ul', {class: 'chips', 'aria-label': 'About this answer'}, chips.map((c) => h('li', null, c.slice(0, 120))))
}
