// The tabs of a run: its steps in time, what came out, its journal.
import {get} from './api.js'
import {fill, h, icon} from './dom.js'
import {markdown} from './md.js'
import {badge, duration, json, money, number, textOf, tokens} from './words.js'

const PAGE = 50

// --- steps

function bar(part, whole, look) {
  const el = h('span', {class: `bar ${look}`})
  el.style.setProperty('--from', `${Math.max(0, Math.min(98, (100 * (part.start_ms - whole.from)) / whole.ms))}%`)
  el.style.setProperty('--width', `${Math.max(0.5, Math.min(100, (100 * part.duration_ms) / whole.ms))}%`)
  return h('span', {class: 'track', 'aria-hidden': 'true'}, el)
}

function callRow(call, whole) {
  const name = call.asked ? `${call.name} → ${call.asked}` : call.name
  return h(
    'tr',
    {class: 'call'},
    h('td', null),
    h('td', null, h('span', {class: 'muted'}, `${call.kind} `), call.agent ? `${call.agent}: ${name}` : name, call.attempt > 1 ? ` (attempt ${call.attempt})` : ''),
    h('td', {class: 'wide'}, bar(call, whole, call.outcome)),
    h('td', {class: 'number'}, duration(call.duration_ms)),
    h('td', {class: 'number'}, tokens(call.usage)),
    h('td', {class: 'number'}, money(call.usage)),
    h('td', null, call.outcome === 'finished' ? '' : call.outcome),
  )
}

// timelineTab({fork, output}): draw(times) shows them again; only(stage) shows the steps of one stage.
export function timelineTab({fork, output}) {
  const el = h('div', null)
  const open = new Set()
  let times = null
  let stage = null

  const stepRows = (s, whole) => {
    const key = s.step ?? `${s.stage} ${s.path ?? ''} ${s.visit}`
    const is = open.has(key)
    const toggle = () => {
      if (is) open.delete(key)
      else open.add(key)
      draw()
      el.querySelector(`[data-step="${CSS.escape(String(key))}"]`)?.focus()
    }
    const out = is ? output(s.step) : undefined
    return [
      h(
        'tr',
        {class: `step ${s.status ?? 'open'}`},
        h('td', {class: 'number'}, s.step === null ? '' : String(s.step)),
        h(
          'td',
          null,
          h('button', {type: 'button', class: 'link', 'aria-expanded': String(is), 'data-step': String(key), onclick: toggle}, icon('arrow'), s.stage),
          s.visit > 1 ? h('span', {class: 'muted small'}, ` visit ${s.visit}`) : null,
          s.path ? h('span', {class: 'muted small mono'}, ` ${s.path}`) : null,
        ),
        h('td', {class: 'wide'}, bar(s, whole, s.status ?? 'open')),
        h('td', {class: 'number'}, duration(s.duration_ms)),
        h('td', {class: 'number'}, tokens(s.usage)),
        h('td', {class: 'number'}, money(s.usage)),
        h(
          'td',
          null,
          s.status === 'error' ? badge('failed') : s.ended ? null : badge('running'),
          s.can_fork && s.step !== null ? h('button', {type: 'button', class: 'small', 'aria-label': `Fork behind step ${s.step}`, onclick: () => fork(s.step)}, icon('fork'), 'Fork') : null,
        ),
      ),
      is ? s.calls.map((c) => callRow(c, whole)) : null,
      is && (s.error || out !== undefined)
        ? h('tr', {class: 'call'}, h('td', null), h('td', {colspan: '6'}, s.error ? h('p', {class: 'error'}, s.error) : null, out !== undefined ? json(out, `Output of step ${s.step}`) : null))
        : null,
    ]
  }

  function draw() {
    const from = times.steps.length ? Math.min(...times.steps.map((s) => s.start_ms)) : 0 // it waited in the queue before
    const whole = {from, ms: Math.max(1, times.duration_ms - from)}
    const steps = stage ? times.steps.filter((s) => s.stage === stage) : times.steps
    const focus = document.activeElement?.dataset?.step
    fill(
      el,
      stage ? h('p', null, `Steps of ${stage}. `, h('button', {type: 'button', class: 'small', onclick: () => tab.only(null)}, 'Show all')) : null,
      steps.length === 0 ? h('p', {class: 'muted'}, 'No step yet.') : null,
      h(
        'div',
        {class: 'table-box', tabindex: '0', role: 'region', 'aria-label': 'Steps'},
        h(
          'table',
          {class: 'run-table times'},
          h('thead', null, h('tr', null, ['Step', 'Stage', 'When', 'Time', 'Tokens', 'Cost', ''].map((w) => h('th', {scope: 'col'}, w || h('span', {class: 'visually-hidden'}, 'Actions'))))),
          h('tbody', null, steps.flatMap((s) => stepRows(s, whole))),
        ),
      ),
      times.steps_left_out ? h('p', {class: 'muted small'}, `${number(times.steps_left_out)} further steps are not shown.`) : null,
    )
    if (focus) el.querySelector(`[data-step="${CSS.escape(focus)}"]`)?.focus()
  }

  const tab = {
    el,
    draw(next) {
      const text = JSON.stringify(next)
      if (tab.last === text) return
      tab.last = text
      times = next
      draw()
    },
    only(name) {
      stage = name
      draw()
    },
  }
  return tab
}

// --- outputs

export function outputsTab() {
  const el = h('div', null)
  return {
    el,
    draw(run) {
      const outputs = Object.entries(run.state?.outputs ?? {})
      fill(
        el,
        outputs.length ? null : h('p', {class: 'muted'}, 'Nothing came out yet.'),
        outputs.map(([key, value]) => {
          const text = textOf(value)
          const rest = text !== null && typeof value === 'object' && Object.keys(value).length > 1
          return h(
            'section',
            {class: 'output', 'aria-label': key},
            h('h3', {class: 'mono'}, key),
            text !== null ? h('div', {class: 'md'}, markdown(text)) : null,
            text === null || rest ? json(value, key) : null,
          )
        }),
        h('details', null, h('summary', null, 'The whole state'), json(run.state ?? null, 'State')),
      )
    },
  }
}

// --- the journal

const WHAT = ['event', 'do', 'name', 'tool', 'stage', 'status']

function recordItem(r) {
  const words = WHAT.map((k) => r[k]).filter((v) => typeof v === 'string')
  return h('li', null, h('details', null, h('summary', null, h('span', {class: 'number muted'}, String(r.seq)), ' ', h('strong', null, r.record), ' ', h('span', {class: 'muted'}, words.join(' · '))), json(r, `Record ${r.seq}`)))
}

export function journalTab(path) {
  const list = h('ol', {class: 'events', 'aria-label': 'Records'})
  const more = h('button', {type: 'button', onclick: () => load()}, 'Load more')
  const note = h('p', {class: 'muted small', role: 'status'})
  let next = 1
  let was = false

  async function load() {
    more.disabled = true
    try {
      const page = await get(`${path}/journal?from=${next}&limit=${PAGE}`)
      for (const r of page.records) {
        list.append(recordItem(r))
        next = r.seq + 1
      }
      more.hidden = page.next === null
      note.textContent = `${number(next - 1)} of ${number(page.of)} records`
    } catch (e) {
      note.textContent = e.detail ?? e.message
    }
    more.disabled = false
  }
  return {
    el: h('div', null, note, list, more),
    open() {
      if (was) return
      was = true
      load()
    },
    grow() {
      if (was) load()
    },
  }
}
