// One run: its drawing while it goes on, its times, its journal, what it waits for; ending, replaying and forking it.
import {go} from './app.js'
import {ApiError, get, send, stream} from './api.js'
import {confirmDialog, dialog, fill, h, icon, timeEl, toast} from './dom.js'
import {drawGraph} from './graph.js'
import {questionForm} from './runquestion.js'
import {journalTab, outputsTab, timelineTab} from './runtabs.js'
import {badge, calmly, duration, isOver, json, money, number, tokens} from './words.js'

const MAX_EVENTS = 300 // lines of the list of events
const DRAW_MS = 300
const ENDS = {success: 'completed', error: 'failed', skipped: 'skipped'}

const fact = (word, value) => h('div', {class: 'fact'}, h('dt', null, word), h('dd', null, value || '–'))

class Run {
  constructor(main, id) {
    this.main = main
    this.id = id
    this.path = `/runs/${encodeURIComponent(id)}`
    this.stages = new Map()
    this.stop = new AbortController()
    this.whole = false // its outputs have changed
    this.look = calmly(() => {
      const whole = this.whole
      this.whole = false
      this.refresh(whole).catch(() => {})
    }, DRAW_MS)
    this.status = h('span', {role: 'status', 'aria-live': 'polite'})
    this.facts = h('dl', {class: 'facts'})
    this.actions = h('div', {class: 'actions'})
    this.banner = h('div', {'aria-live': 'polite'})
    this.questions = h('div', {'aria-live': 'polite'})
    this.events = h('ol', {class: 'events', 'aria-label': 'Events'})
    this.panel = h('div', {class: 'panel', role: 'tabpanel', tabindex: '0', id: 'run-panel'})
  }

  async open() {
    // The row comes last: what the drawing has already is not told again, and the row must not be older than that.
    const graph = await get(`${this.path}/graph`)
    const [run, times] = await Promise.all([get(this.path), get(`${this.path}/timeline`)])
    this.run = run
    this.times = times
    this.next = graph.next_event
    this.drawing = drawGraph(graph.graph, {label: `The stages of ${run.pipeline}`, pick: (stage) => this.pick(stage)})
    for (const s of graph.stages) {
      this.stages.set(s.stage, s)
      this.drawing.stage(s.stage, s.state, s.visits)
    }
    for (const m of graph.moves) this.drawing.move(m.from, m.to)
    this.timeline = timelineTab({fork: (step) => this.fork(step), output: (step) => this.output(step)})
    this.journal = journalTab(this.path)
    this.outputs = outputsTab()
    this.tabs = {
      timeline: ['Steps', this.timeline.el],
      outputs: ['Outputs', this.outputs.el],
      journal: ['Journal', this.journal.el],
      events: ['Events', this.events],
    }
    this.draw()
    this.choose('timeline')
    this.update()
    this.follow()
    this.clock = setInterval(() => isOver(this.run.status) || this.run.status === 'interrupted' || this.drawFacts(), 1000)
  }

  draw() {
    const {run} = this
    this.tabBar = h('div', {class: 'tabs', role: 'tablist', 'aria-label': 'What is shown'})
    for (const [name, [word]] of Object.entries(this.tabs))
      this.tabBar.append(
        h('button', {type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': 'run-panel', onclick: () => this.choose(name), onkeydown: (e) => this.step(e, name)}, word),
      )
    fill(
      this.main,
      h('div', {class: 'head'}, h('a', {href: '#/runs'}, 'Runs'), h('h1', null, run.pipeline), this.status, h('span', {class: 'mono small muted grow'}, run.id), this.actions),
      h(
        'div',
        {class: 'body wide-body'},
        this.facts,
        run.parent
          ? h(
              'p',
              {class: 'muted small'},
              'Forked from ',
              h('a', {href: `#/runs/${encodeURIComponent(run.parent)}`}, run.parent),
              ` behind record ${run.parent_seq}. `,
              h('a', {href: `#/runs/${encodeURIComponent(run.parent)}/diff/${encodeURIComponent(run.id)}`}, 'Compare the two'),
            )
          : null,
        this.banner,
        this.questions,
        h('div', {class: 'run-columns'}, this.drawing.el, h('div', {class: 'grow'}, this.tabBar, this.panel)),
      ),
    )
  }

  choose(name) {
    this.tab = name
    for (const b of this.tabBar.children) {
      const mine = b.id === `tab-${name}`
      b.setAttribute('aria-selected', String(mine))
      b.setAttribute('tabindex', mine ? '0' : '-1')
    }
    this.panel.setAttribute('aria-labelledby', `tab-${name}`)
    fill(this.panel, this.tabs[name][1])
    if (name === 'journal') this.journal.open()
    if (name === 'outputs') this.outputs.draw(this.run)
  }

  // The arrow keys go from tab to tab.
  step(e, name) {
    const names = Object.keys(this.tabs)
    const by = {ArrowRight: 1, ArrowLeft: -1}[e.key]
    if (!by) return
    e.preventDefault()
    const next = names[(names.indexOf(name) + by + names.length) % names.length]
    this.choose(next)
    document.getElementById(`tab-${next}`).focus()
  }

  pick(stage) {
    this.choose('timeline')
    this.timeline.only(stage)
  }

  drawFacts() {
    const {run, times} = this
    const going = !isOver(run.status) && run.status !== 'interrupted'
    const steps = times.steps.length + times.steps_left_out
    const calls = times.steps.reduce((n, s) => n + s.calls.filter((c) => c.kind === 'model').length, 0)
    fill(
      this.facts,
      fact('time', duration(going ? Date.now() - Date.parse(run.created_at) : Date.parse(run.updated_at) - Date.parse(run.created_at))),
      fact('steps', number(steps)),
      fact('model calls', number(calls)),
      fact('tokens', tokens(times.usage)),
      fact('cost', money(times.usage)),
      fact('started', timeEl(run.created_at)),
      run.session ? fact('session', h('a', {href: `#/runs?session=${encodeURIComponent(run.session)}`}, run.session)) : null,
    )
  }

  // What follows from the row of the run: its status, what may be done, what it waits for.
  update() {
    const {run} = this
    if (this.shown !== run.status) {
      this.shown = run.status
      fill(this.status, badge(run.status))
      document.title = `${run.pipeline}: ${run.status} · reeve`
    }
    this.drawFacts()
    this.timeline.draw(this.times)
    if (this.tab === 'outputs') this.outputs.draw(run)
    const button = (word, sign, f, look) => h('button', {type: 'button', class: look, onclick: f}, icon(sign), word)
    fill(
      this.actions,
      isOver(run.status) ? null : button('Cancel', 'stop', () => this.cancel(), 'danger'),
      button('Replay', 'retry', () => this.replay()),
      button('Fork', 'fork', () => this.fork(0)),
      button('Compare', 'sessions', () => this.compare()),
    )
    const open = new Map((run.pending ?? []).map((p) => [p.id, p]))
    for (const el of [...this.questions.children]) if (!open.has(el.dataset.interrupt) || isOver(run.status)) el.remove()
    const there = new Set([...this.questions.children].map((el) => el.dataset.interrupt))
    if (!isOver(run.status)) for (const p of open.values()) if (!there.has(p.id)) this.questions.append(questionForm(p, (body) => this.answer(p, body)))
  }

  async refresh(whole = false) {
    const mine = (this.turn = (this.turn ?? 0) + 1)
    const [run, times] = await Promise.all([whole ? get(this.path) : null, get(`${this.path}/timeline`)])
    if (whole ? mine < (this.newest ?? 0) : mine !== this.turn) return // a later answer came first
    if (whole) this.newest = mine
    if (run) this.run = run
    this.times = times
    this.update()
  }

  // --- while it goes on

  async follow() {
    let wait = 500
    while (!this.stop.signal.aborted) {
      try {
        const r = await stream('GET', `${this.path}/events?from=${this.next}`, {
          signal: this.stop.signal,
          on_event: (e) => {
            wait = 500
            this.take(JSON.parse(e.data))
          },
        })
        if (r.status === 204 || isOver(this.run.status)) return
      } catch (e) {
        if (e.name === 'AbortError') return
        if (!(e instanceof ApiError) || (e.status > 0 && e.status < 500)) return void toast(e.detail ?? e.message, 'bad')
      }
      await new Promise((done) => setTimeout(done, wait))
      wait = Math.min(wait * 2, 10000)
    }
  }

  mark(name, state, visit) {
    const s = this.stages.get(name)
    if (!s) return
    s.state = state
    s.visits += visit
    this.drawing.stage(name, s.state, s.visits)
  }

  take(event) {
    this.next = event.seq + 1
    this.list(event)
    const {type, stage} = event
    if (type === 'stage_started') this.mark(stage, 'running', 1)
    else if (type === 'stage_completed') this.mark(stage, event.status === 'skipped' && event.next_stage === stage ? 'waits' : (ENDS[event.status] ?? 'completed'), 0)
    else if (type === 'stage_skipped') this.mark(stage, 'skipped', 0)
    else if (type === 'interrupt_pending') this.mark(stage, 'waits', 0)
    else if (type === 'routing_decision') for (const to of event.to ? [event.to] : (event.branches ?? [])) this.drawing.move(event.from, to)
    if (type === 'pipeline_started') {
      this.run.status = 'running'
      this.run.pending = []
      this.update()
    }
    if (type === 'done') {
      this.run.status = event.status
      this.refresh(true).catch(() => {})
      this.journal.grow()
    } else if (/_completed$|_result$|_started$/.test(type)) {
      this.whole ||= type === 'stage_completed'
      this.look()
    }
  }

  list(event) {
    const {seq, type, time, ...rest} = event
    this.events.prepend(
      h('li', null, h('details', null, h('summary', null, h('span', {class: 'number muted'}, String(seq)), ' ', h('strong', null, type), ' ', h('span', {class: 'muted'}, [event.stage, event.tool ?? event.to, event.status].filter(Boolean).join(' · '))), json(rest, type))),
    )
    while (this.events.children.length > MAX_EVENTS) this.events.lastChild.remove()
  }

  // --- what a person does

  async answer(pending, body) {
    await send('POST', `${this.path}/answer`, body)
    toast('Answered: the run goes on.')
    this.questions.querySelector(`[data-interrupt="${CSS.escape(pending.id)}"]`)?.remove()
    this.run.pending = (this.run.pending ?? []).filter((p) => p.id !== pending.id)
    this.panel.focus()
  }

  async cancel() {
    if (!(await confirmDialog('Cancel this run?', 'Calls that are under way are given up. What was done stays.', 'Cancel the run'))) return
    try {
      await send('POST', `${this.path}/cancel`)
      toast('The run was asked to end.')
    } catch (e) {
      toast(e.detail ?? e.message, 'bad')
    }
  }

  async replay() {
    fill(this.banner, h('p', {class: 'notice'}, 'Replaying…'))
    try {
      const v = await send('POST', `${this.path}/replay`)
      fill(
        this.banner,
        h(
          'div',
          {class: `notice ${v.identical ? 'good' : 'bad'}`, id: 'verdict'},
          h('strong', null, v.identical ? 'The replay is identical' : 'The replay is different'),
          v.identical
            ? ` – ${number(v.records)} records, ${number(v.events)} events, ${v.status}.`
            : h('p', null, v.error?.message ?? v.error?.text ?? JSON.stringify(v.error)),
          v.identical ? h('p', {class: 'mono small'}, `state ${v.state_sha256}`, h('br'), `events ${v.events_sha256}`) : null,
        ),
      )
    } catch (e) {
      fill(this.banner, h('p', {class: 'error', role: 'alert'}, e.detail ?? e.message))
    }
  }

  async fork(step) {
    const text = step ? `A new run begins with the state behind step ${step}.` : 'A new run begins with what this one was given.'
    if (!(await confirmDialog('Fork this run?', `${text} This run stays as it is.`, 'Fork'))) return
    try {
      const {id} = await send('POST', `${this.path}/fork`, {step})
      go(`#/runs/${encodeURIComponent(id)}`)
    } catch (e) {
      toast(e.detail ?? e.message, 'bad')
    }
  }

  async compare() {
    const runs = (await get(`/runs?limit=50&pipeline=${encodeURIComponent(this.run.pipeline)}`)).filter((r) => r.id !== this.id)
    const other = await dialog('Compare with another run', (close) => [
      runs.length ? null : h('p', null, 'There is no other run of this pipeline.'),
      h(
        'div',
        {class: 'list'},
        runs.map((r) => h('button', {type: 'button', onclick: () => close(r.id)}, h('span', {class: 'mono small'}, r.id), badge(r.status), timeEl(r.created_at))),
      ),
      h('div', {class: 'actions'}, h('button', {type: 'button', onclick: () => close()}, 'Close')),
    ])
    if (other) go(`#/runs/${encodeURIComponent(this.id)}/diff/${encodeURIComponent(other)}`)
  }

  // What a step put out, which the timeline does not have.
  output(step) {
    return (this.run.steps ?? []).find((s) => s.step === step)?.output
  }

  close() {
    this.stop.abort()
    this.look.stop()
    clearInterval(this.clock)
  }
}

export async function showRun(main, id) {
  const run = new Run(main, id)
  await run.open()
  return () => run.close()
}
