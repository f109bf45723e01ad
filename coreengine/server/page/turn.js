// One turn of a conversation: what the user said, and what followed. It is told the events of AG-UI, or the rows of a
// session that was kept; both make the same elements.
import {actionEl, Block} from './cards.js'
import {fill, h, icon} from './dom.js'
import {attached, markdown} from './md.js'

// The result of a call that is an action for the page, as its event told it; else null.
function markedAction(content) {
  try {
    const value = JSON.parse(content)
    return value?._action_event === true ? value : null
  } catch {
    return null
  }
}

export class Turn {
  constructor({agent = '', text = null, files = null, ask = () => {}} = {}) {
    this.ask = ask
    this.agent = agent
    this.question = text
    this.run = ''
    this.calls = new Map()
    this.owners = new Map() // id of an asked agent -> its block
    this.interrupts = []
    this.usage = []
    this.root = new Block(agent)
    this.status = h('p', {class: 'status'})
    this.foot = h('div', {class: 'turn-foot'})
    this.user = text === null ? null : h('div', {class: 'user'}, h('div', {class: 'bubble md'}, markdown(text), attached(files)))
    this.answer = h(
      'div',
      {class: 'answer', 'aria-busy': 'false'},
      h('div', {class: 'speaker'}, h('span', {class: 'avatar', 'aria-hidden': 'true'}, icon('agents')), (this.speaker = h('span', null, agent))),
      this.root.el,
      this.status,
      this.foot,
    )
    this.el = h('article', {class: 'turn', 'aria-label': 'Turn'}, this.user, this.answer)
  }

  setAgent(agent) {
    if (!agent || this.agent) return
    this.agent = agent
    this.speaker.textContent = agent
  }
  setRun(run) {
    this.run = run ?? ''
    this.el.dataset.run = this.run
  }
  state(text, kind = '') {
    this.status.className = `status ${kind}`
    fill(this.status, kind === 'busy' ? h('span', {class: 'dots', 'aria-hidden': 'true'}, h('i'), h('i'), h('i')) : null, text ? h('span', null, text) : null)
    this.answer.setAttribute('aria-busy', kind === 'busy' ? 'true' : 'false')
  }

  // --- the events of AG-UI

  block(event) {
    return this.owners.get(event.subagentRunId) ?? this.root
  }
  on(event) {
    const id = event.messageId
    switch (event.type) {
      case 'TEXT_MESSAGE_START':
        return void this.block(event).begin(id)
      case 'TEXT_MESSAGE_CONTENT':
        return this.block(event).text(id, String(event.delta ?? ''))
      case 'TEXT_MESSAGE_END':
        return this.block(event).endText(id)
      case 'REASONING_MESSAGE_CONTENT':
        return this.block(event).think(id, String(event.delta ?? ''))
      case 'TOOL_CALL_START':
        return void this.call(event.toolCallId, event.toolCallName, this.block(event))
      case 'TOOL_CALL_ARGS':
        return this.calls.get(event.toolCallId)?.addArguments(String(event.delta ?? ''))
      case 'TOOL_CALL_END':
        return this.calls.get(event.toolCallId)?.setArguments()
      case 'TOOL_CALL_RESULT':
        return this.calls.get(event.toolCallId)?.result(typeof event.content === 'string' ? event.content : JSON.stringify(event.content))
      case 'SUBAGENT_STARTED':
        return void this.owners.set(event.subagentRunId, this.asked(event.parentToolCallId, event.name, this.owners.get(event.parentSubagentRunId)))
      case 'SUBAGENT_ERROR':
        return this.owners.get(event.subagentRunId)?.note(String(event.message ?? 'the agent failed'), 'bad')
      case 'SUBAGENT_FINISHED':
        return this.agentOver(event)
      case 'CUSTOM':
        return this.custom(event)
      case 'RUN_FINISHED':
        return this.over(event)
      case 'RUN_ERROR':
        return this.failed(String(event.message ?? 'the run failed'), event.code)
    }
  }
  call(id, name, block) {
    let card = this.calls.get(id)
    if (card) {
      card.args = '' // the same call again, after its question was answered
      card.to('running')
    } else {
      card = block.call(String(name))
      this.calls.set(id, card)
    }
    return card
  }
  asked(call, agent, parent) {
    const card = this.calls.get(call) ?? this.call(call, 'ask_agent', parent ?? this.root)
    return card.open(String(agent ?? 'agent'))
  }
  agentOver(event) {
    const block = this.owners.get(event.subagentRunId)
    if (block && event.result !== undefined && !block.said) block.say(typeof event.result === 'string' ? event.result : JSON.stringify(event.result))
  }
  custom(event) {
    if (event.name !== 'action') return
    const el = actionEl(event.value, this.ask)
    if (el) this.block(event).el.append(el)
    const name = event.value?.payload?.session_name
    if (event.value?.action_type === 'observation' && typeof name === 'string' && name) this.named?.(name)
  }
  over(event) {
    const outcome = event.outcome ?? {type: 'success'}
    this.ended = outcome.type
    this.usage = Array.isArray(event.usage) ? event.usage : []
    this.interrupts = outcome.type === 'interrupt' ? (outcome.interrupts ?? []) : []
    for (const q of this.interrupts) this.calls.get(q.toolCallId)?.to('waits')
    this.settle(outcome.type === 'interrupt' ? 'waits' : 'stopped')
    this.state(outcome.type === 'cancelled' ? 'Stopped.' : '')
  }
  failed(message) {
    this.ended = 'error'
    this.settle('stopped')
    this.state('')
    this.root.note(message, 'bad')
  }
  // A question of the run, where it came up.
  asks(card) {
    this.root.el.append(card)
  }
  giveUp() {
    for (const card of this.root.el.querySelectorAll('.question:not(.answered)')) card.remove()
    for (const card of this.calls.values()) if (card.el.dataset.state === 'waits') card.to('stopped')
  }
  get waits() {
    return this.root.el.querySelector('.question:not(.answered)') !== null
  }
  settle(state) {
    for (const card of this.calls.values()) if (card.el.dataset.state === 'running') card.to(state)
    this.root.endAll()
    for (const block of this.owners.values()) block.endAll()
  }

  // --- the rows of a session

  row(m) {
    if (m.message_type === 'assistant') {
      const block = this.rowBlock(m)
      this.setAgent(m.parent_call_id ? '' : m.agent_name)
      if (m.content) block.say(m.content)
      if (!m.parent_call_id) this.message = m
      if (m.status === 'cancelled' && !m.parent_call_id) this.state('Stopped.')
      if (m.status === 'failed') block.note('This answer is not complete.', 'bad')
    } else if (m.message_type === 'tool_call' && m.tool_calls) {
      const card = this.call(m.tool_calls.id ?? m.id, m.tool_calls.name ?? '(encrypted)', this.rowBlock(m))
      card.args = JSON.stringify(m.tool_calls.arguments ?? {})
      card.setArguments()
    } else if (m.message_type === 'tool_response' && m.tool_calls) {
      this.calls.get(m.tool_calls.id)?.result(m.content ?? '')
      const el = actionEl(markedAction(m.content), this.ask)
      if (el) this.rowBlock(m).el.append(el)
    } else if (m.content) {
      this.rowBlock(m).note(`${m.message_type}: ${m.content}`)
    }
  }
  rowBlock(m) {
    if (!m.parent_call_id) return this.root
    let block = this.owners.get(m.parent_call_id)
    if (!block) {
      block = this.asked(m.parent_call_id, m.agent_name, null)
      block.el.closest('details').open = false
      this.owners.set(m.parent_call_id, block)
    }
    return block
  }
}
