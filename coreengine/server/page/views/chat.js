// The view of a conversation: which agent, what was said, and the field for the next message.
import {get} from '../api.js'
import {go} from '../app.js'
import {fill, h, icon, iconButton} from '../dom.js'
import {Talk, uuid} from '../talk.js'

export const title = 'Chat'
const DEFAULT_AGENT = 'general'
const talks = new Map() // those whose turn is under way stay when another view is shown

async function agentNames() {
  try {
    const agents = await get('/agents')
    return agents.filter((a) => a.valid && a.mode !== 'structured').concat(agents.filter((a) => a.valid && a.mode === 'structured'))
  } catch {
    const models = await get('/v1/models') // a key for chats only
    return models.data.map((m) => ({name: m.id, description: ''}))
  }
}

const wanted = () => localStorage.getItem('reeve.agent')

async function open(id, agent) {
  let talk = talks.get(id)
  if (talk) return talk
  talk = new Talk(id, agent)
  await talk.load()
  return talk
}

export async function show(main, [id], query) {
  const agents = await agentNames()
  const known = (name) => agents.some((a) => a.name === name)
  const first = [query?.get('agent'), wanted(), DEFAULT_AGENT].find((name) => name && known(name)) ?? agents[0]?.name ?? ''
  const talk = id ? await open(id, first) : new Talk(uuid(), first)
  const view = new ChatView(main, talk, agents, !id)
  return () => view.close()
}

class ChatView {
  constructor(main, talk, agents, isNew) {
    this.talk = talk
    this.agents = agents
    this.isNew = isNew
    this.title = h('h1', {class: 'grow clip'})
    this.pick = h('select', {id: 'agent', 'aria-label': 'Agent'})
    for (const a of agents) this.pick.append(h('option', {value: a.name}, a.name))
    if (talk.agent && !agents.some((a) => a.name === talk.agent)) this.pick.append(h('option', {value: talk.agent}, talk.agent))
    this.pick.value = talk.agent
    this.pick.addEventListener('change', () => this.choose())
    this.scroller = h('div', {class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'Messages'}, talk.log)
    this.area = h('textarea', {id: 'message', rows: '1', placeholder: 'Write a message', 'aria-label': 'Message', enterkeyhint: 'send'})
    this.button = h('button', {type: 'submit', class: 'primary send', 'aria-label': 'Send'}, icon('send'))
    this.form = h('form', {class: 'composer'}, this.area, this.button)
    this.hello = this.greeting()
    fill(
      main,
      h('div', {class: 'head'}, this.title, this.pick, iconButton('plus', 'New chat', () => go(location.hash === '#/chat' ? '#/chat?new' : '#/chat'))),
      this.scroller,
      h('div', {class: 'composer-box'}, this.form, h('p', {class: 'hint muted small'}, 'Enter sends, Shift and Enter begins a new line, Escape stops')),
    )
    this.listen()
    this.draw()
    this.down(true)
    if (matchMedia('(hover: hover)').matches) this.area.focus()
  }
  listen() {
    this.on = {change: () => this.draw(), grow: () => this.down(false)}
    for (const [name, f] of Object.entries(this.on)) this.talk.addEventListener(name, f)
    this.form.addEventListener('submit', (e) => {
      e.preventDefault()
      if (this.talk.busy) this.talk.stop()
      else this.send()
    })
    this.area.addEventListener('keydown', (e) => {
      if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return
      e.preventDefault()
      if (!this.talk.busy) this.send()
    })
    this.area.addEventListener('input', () => this.fit())
    this.keys = (e) => {
      if (e.key === 'Escape' && this.talk.busy && !document.querySelector('dialog[open]')) this.talk.stop()
    }
    addEventListener('keydown', this.keys)
    this.watcher = new ResizeObserver(() => this.down(false))
    this.watcher.observe(this.talk.log)
    this.scroller.addEventListener('scroll', () => {
      this.stays = this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight > 80
    })
  }
  choose() {
    this.talk.agent = this.pick.value
    localStorage.setItem('reeve.agent', this.pick.value)
    this.draw()
  }
  fit() {
    this.area.rows = Math.min(10, this.area.value.split('\n').length)
  }
  send() {
    const text = this.area.value
    if (!text.trim()) return
    this.area.value = ''
    this.fit()
    this.stays = false
    talks.set(this.talk.id, this.talk)
    if (this.isNew) {
      this.isNew = false
      go(`#/chat/${this.talk.id}`, {quiet: true})
    }
    this.talk.say(text)
    this.down(true)
  }
  greeting() {
    return h('div', {class: 'hello'}, h('h2', null, 'What can I do for you?'), (this.about = h('p', {class: 'muted'})))
  }
  draw() {
    const {talk} = this
    const agent = this.agents.find((a) => a.name === talk.agent)
    this.title.textContent = talk.name && !/^chat-[0-9a-f-]{36}$/.test(talk.name) ? talk.name : talk.turns.length ? 'Chat' : 'New chat'
    this.about.textContent = agent?.description ?? ''
    if (talk.turns.length === 0) this.scroller.prepend(this.hello)
    else this.hello.remove()
    this.button.setAttribute('aria-label', talk.busy ? 'Stop' : 'Send')
    this.button.title = talk.busy ? 'Stop' : 'Send'
    this.button.classList.toggle('stops', talk.busy)
    fill(this.button, icon(talk.busy ? 'stop' : 'send'))
  }
  // To the end of what was said, unless the reader has scrolled up.
  down(always) {
    if (!always && this.stays) return
    this.scroller.scrollTop = this.scroller.scrollHeight
  }
  close() {
    for (const [name, f] of Object.entries(this.on)) this.talk.removeEventListener(name, f)
    removeEventListener('keydown', this.keys)
    this.watcher.disconnect()
    if (!this.talk.busy) talks.delete(this.talk.id)
  }
}
