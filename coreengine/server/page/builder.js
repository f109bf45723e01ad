// The builder: the draft of an agent with what is wrong with it, beside a conversation with the agent that helps.
import {go} from './app.js'
import {get} from './api.js'
import {AgentForm} from './agentform.js'
import {dialog, fill, h, icon, iconButton, timeEl, toast} from './dom.js'
import {Draft, EMPTY} from './draft.js'
import {Talk, uuid} from './talk.js'
import {Turn} from './turn.js'
import {json} from './words.js'
import {toYaml} from './yaml.js'

const HELPER = 'agent-builder'
const left = new Map() // drafts that were left without being saved, until the page is closed

// Each message begins with the draft; only what the person wrote is shown.
class BuilderTalk extends Talk {
  constructor(draft, act) {
    super(uuid(), HELPER)
    this.draft = draft
    this.act = act
  }
  say(text) {
    if (this.busy || !text.trim()) return
    const turn = this.add(new Turn({agent: HELPER, text, ask: (t) => this.say(t)}))
    return this.perform(turn, {messages: [{id: uuid(), role: 'user', content: `<draft>\n${this.draft.text}\n</draft>\n\n${text}`}]})
  }
  take(turn, e) {
    super.take(turn, e)
    let event
    try {
      event = JSON.parse(e.data)
    } catch {
      return
    }
    if (event.type !== 'CUSTOM' || event.name !== 'action' || event.subagentRunId) return
    const payload = event.value?.payload
    this.act(event.value?.action_type, payload !== null && typeof payload === 'object' ? payload : {})
  }
}

class Builder {
  constructor(main, doc, tools, isNew) {
    this.isNew = isNew
    this.draft = new Draft(doc)
    this.form = new AgentForm(this.draft, tools)
    this.talk = new BuilderTalk(this.draft, (type, payload) => this.act(type, payload))
    this.title = h('h1', {class: 'grow clip'})
    this.state = h('span', {class: 'small muted', role: 'status'})
    this.findings = h('ul', {class: 'findings', 'aria-live': 'polite', 'aria-label': 'Findings'})
    this.saveButton = h('button', {type: 'button', class: 'primary', onclick: () => this.save()}, icon('check'), 'Save')
    this.undoButton = iconButton('retry', 'Undo the last change', () => this.draft.undo())
    this.area = h('textarea', {id: 'builder-message', rows: '2', placeholder: 'What should the agent do?', 'aria-label': 'Message'})
    this.sendButton = h('button', {type: 'submit', class: 'primary', 'aria-label': 'Send'}, icon('send'))
    this.scroller = h('div', {class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'Messages'}, this.talk.log)
    fill(
      main,
      h(
        'div',
        {class: 'head'},
        h('a', {href: '#/agents'}, 'Agents'),
        this.title,
        this.state,
        this.undoButton,
        iconButton('sessions', 'Earlier versions', () => this.versions()),
        iconButton('copy', 'Copy as YAML', () => this.copy()),
        iconButton('download', 'Download as YAML', () => this.download()),
        this.saveButton,
      ),
      h(
        'div',
        {class: 'builder'},
        h('div', {class: 'builder-preview', tabindex: '0', role: 'region', 'aria-label': 'Draft'}, this.findings, this.form.el),
        h(
          'div',
          {class: 'builder-chat'},
          h('p', {class: 'muted small builder-hello'}, `Tell ${HELPER} what the agent is for; it changes the draft.`),
          this.scroller,
          h('form', {class: 'composer', onsubmit: (e) => this.send(e)}, this.area, this.sendButton),
        ),
      ),
    )
    this.area.addEventListener('keydown', (e) => {
      if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) this.send(e)
    })
    this.keys = (e) => {
      if ((e.metaKey || e.ctrlKey) && (e.key === 'Enter' || e.key === 's') && this.form.el.contains(document.activeElement)) {
        e.preventDefault()
        this.save()
      }
    }
    addEventListener('keydown', this.keys)
    this.draft.addEventListener('change', (e) => {
      if (e.detail === 'agent' || e.detail === 'undo') this.form.draw()
      this.draw()
    })
    this.draft.addEventListener('checked', () => this.draw())
    this.talk.addEventListener('change', () => this.draw())
    this.talk.addEventListener('grow', () => this.scroller.scrollTo({top: this.scroller.scrollHeight}))
    this.draft.validate()
    this.draw()
  }

  draw() {
    const {draft} = this
    this.title.textContent = draft.doc.name || 'A new agent'
    const errors = draft.findings.filter((f) => f.severity === 'error').length
    this.state.textContent = draft.valid === null ? '' : errors ? `${errors} ${errors === 1 ? 'error' : 'errors'}` : draft.isChanged || this.isNew ? 'valid, not saved' : 'saved'
    this.saveButton.disabled = errors > 0 || draft.valid === null || !(draft.isChanged || this.isNew)
    this.undoButton.disabled = draft.before.length === 0
    this.sendButton.setAttribute('aria-label', this.talk.busy ? 'Stop' : 'Send')
    fill(this.sendButton, icon(this.talk.busy ? 'stop' : 'send'))
    const text = JSON.stringify(draft.findings)
    if (text === this.shown) return
    this.shown = text
    fill(
      this.findings,
      draft.findings.map((f) => h('li', {class: f.severity}, h('strong', null, f.severity), ' ', f.message, f.hint ? h('span', {class: 'muted'}, ` (${f.hint})`) : null)),
    )
  }

  send(e) {
    e.preventDefault()
    if (this.talk.busy) return void this.talk.stop()
    const text = this.area.value
    if (!text.trim()) return
    this.area.value = ''
    this.talk.say(text)
  }

  // What the helper does to the draft. A change that does not fit is said, and the draft stays.
  act(type, payload) {
    try {
      if (type === 'patch_schema') this.draft.patch(payload.patches)
      else if (type === 'schema_focus') this.form.focus(payload.section, payload.property_path, payload.message)
      else if (type === 'trigger_save') this.trigger(payload)
    } catch (e) {
      toast(`A change by the agent did not fit: ${e.message}`, 'bad')
    }
  }
  trigger(payload) {
    if (typeof payload.name === 'string' && payload.name) this.draft.patch([{op: 'replace', path: '/name', value: payload.name}])
    return this.save()
  }

  async save() {
    try {
      const {name, changed} = await this.draft.save()
      toast(changed ? `Saved ${name}.` : `${name} was saved already.`)
      this.isNew = false
      this.key = name
      go(`#/agents/${encodeURIComponent(name)}`, {quiet: true})
      this.draw()
    } catch (e) {
      toast([e.detail ?? e.message, e.hint].filter(Boolean).join(' '), 'bad')
    }
  }
  async copy() {
    await navigator.clipboard?.writeText(toYaml(this.draft.doc))
    toast('Copied.')
  }
  download() {
    const url = URL.createObjectURL(new Blob([toYaml(this.draft.doc)], {type: 'application/yaml'}))
    const a = document.createElement('a')
    a.href = url
    a.download = `${this.draft.doc.name || 'agent'}.yaml`
    a.click()
    setTimeout(() => URL.revokeObjectURL(url), 1000)
  }
  async versions() {
    let list = []
    try {
      list = await get(`/agents/${encodeURIComponent(this.draft.doc.name)}/versions`)
    } catch {} // it was never saved
    const chosen = await dialog('Earlier versions', (close) => [
      list.length ? null : h('p', null, 'There are none.'),
      list.map((v) => h('details', null, h('summary', null, `${v.change_type} ${v.version ?? ''} `, timeEl(v.created_at)), json(v.content ?? '', 'Document'), h('button', {type: 'button', class: 'small', onclick: () => close(v)}, 'Take it into the draft'))),
      h('div', {class: 'actions'}, h('button', {type: 'button', onclick: () => close()}, 'Close')),
    ])
    if (!chosen) return
    try {
      const doc = JSON.parse(chosen.content)
      this.draft.set(doc, 'agent')
    } catch {
      toast('This version is not in the form that the page can take; copy its text.', 'bad')
    }
  }
  close() {
    removeEventListener('keydown', this.keys)
    this.draft.close()
    if (this.talk.busy) this.talk.stop()
  }
}

export async function showBuilder(main, name) {
  const [doc, tools] = await Promise.all([name ? get(`/agents/${encodeURIComponent(name)}`) : EMPTY, get('/tools')])
  const builder = new Builder(main, doc, tools, !name)
  builder.key = name
  const kept = left.get(name)
  if (kept) builder.draft.set(kept, 'agent')
  left.delete(name)
  return () => {
    builder.close()
    if (!builder.draft.isChanged) return
    left.set(builder.key, builder.draft.doc)
    toast(`The draft of ${builder.draft.doc.name} is not saved; it waits here until the page is closed.`)
  }
}
