// Runs: the list of them, a new one, one of them, two compared.
import {go, place} from '../app.js'
import {get} from '../api.js'
import {fill, h, icon, timeEl} from '../dom.js'
import {badge, duration} from '../words.js'
import {showDiff} from '../rundiff.js'
import {showNew} from '../runnew.js'
import {showRun} from '../run.js'

export const title = 'Runs'
const STATUSES = ['completed', 'failed', 'interrupted', 'running', 'terminated', 'cancelled']
const LOOK_MS = 4000

function select(label, values, value, onchange) {
  return h(
    'label',
    {class: 'filter'},
    h('span', null, label),
    h('select', {onchange: (e) => onchange(e.target.value)}, h('option', {value: ''}, 'any'), values.map((v) => h('option', {value: v, selected: v === value}, v))),
  )
}

function row(run) {
  const ended = Date.parse(run.updated_at) - Date.parse(run.created_at)
  return h(
    'tr',
    null,
    h('td', null, h('a', {href: `#/runs/${encodeURIComponent(run.id)}`}, h('strong', null, run.pipeline), ' ', h('span', {class: 'mono small muted'}, run.id))),
    h('td', null, badge(run.status)),
    h('td', null, run.stage === 'end' ? '' : run.stage),
    h('td', {class: 'number'}, duration(ended)),
    h('td', null, timeEl(run.created_at)),
    h('td', {class: 'wide'}, run.pending?.length ? (run.pending[0].question ?? run.pending[0].message) : run.parent ? h('span', {class: 'muted'}, `forked from ${run.parent}`) : ''),
  )
}

function table(runs) {
  if (!runs.length) return h('div', {class: 'empty'}, icon('runs'), h('p', null, 'No run is like that.'), h('a', {class: 'button', href: '#/runs/new'}, 'Start a run'))
  const heads = ['Run', 'Status', 'Stage', 'Time', 'Started', 'Waits for']
  return h(
    'div',
    {class: 'table-box', tabindex: '0', role: 'region', 'aria-label': 'Runs'},
    h('table', {class: 'run-table'}, h('thead', null, h('tr', null, heads.map((w) => h('th', {scope: 'col'}, w)))), h('tbody', null, runs.map(row))),
  )
}

async function showList(main) {
  const wanted = Object.fromEntries(['status', 'pipeline', 'session'].map((k) => [k, place().query.get(k) ?? '']))
  const list = h('div', null)
  const note = h('p', {class: 'muted small', role: 'status'})
  const pipelines = await get('/pipelines')
  let last = ''
  const draw = async () => {
    const query = new URLSearchParams(Object.entries(wanted).filter(([, v]) => v))
    query.set('limit', '100')
    const runs = await get(`/runs?${query}`)
    const text = JSON.stringify(runs)
    if (text === last) return
    last = text
    const focus = document.activeElement?.getAttribute?.('href')
    fill(list, table(runs))
    if (focus) [...list.querySelectorAll('a')].find((a) => a.getAttribute('href') === focus)?.focus()
    note.textContent = runs.length === 100 ? 'The newest 100.' : `${runs.length} ${runs.length === 1 ? 'run' : 'runs'}.`
  }
  const change = (key) => (value) => {
    wanted[key] = value
    const query = new URLSearchParams(Object.entries(wanted).filter(([, v]) => v))
    go(`#/runs${query.size ? `?${query}` : ''}`, {quiet: true})
    draw().catch((e) => fill(list, h('p', {class: 'error', role: 'alert'}, e.detail ?? e.message)))
  }
  fill(
    main,
    h(
      'div',
      {class: 'head'},
      h('h1', null, 'Runs'),
      h('div', {class: 'grow'}),
      select('Status', STATUSES, wanted.status, change('status')),
      select('Pipeline', pipelines, wanted.pipeline, change('pipeline')),
      wanted.session ? h('span', {class: 'muted small'}, `of session ${wanted.session}`) : null,
      h('a', {class: 'button primary', href: '#/runs/new'}, icon('plus'), 'New run'),
    ),
    h('div', {class: 'body wide-body'}, note, list),
  )
  await draw()
  const timer = setInterval(() => document.visibilityState === 'visible' && draw().catch(() => {}), LOOK_MS)
  return () => clearInterval(timer)
}

export function show(main, params) {
  if (params[0] === 'new') return showNew(main, params[1])
  if (params[0] && params[1] === 'diff' && params[2]) return showDiff(main, params[0], params[2])
  return params[0] ? showRun(main, params[0]) : showList(main)
}
