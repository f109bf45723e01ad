// A new run: which pipeline, drawn with its limits, and what it is given.
import {go} from './app.js'
import {get, send} from './api.js'
import {fill, h, icon} from './dom.js'
import {drawGraph} from './graph.js'
import {number} from './words.js'

const fact = (word, value) => (value ? h('div', {class: 'fact'}, h('dt', null, word), h('dd', null, value)) : null)

function facts(p) {
  const {bounds = {}, limits = {}} = p
  return h(
    'dl',
    {class: 'facts'},
    fact('mode', p.mode),
    fact('visits of stages', bounds.max_visits ? `at most ${number(bounds.max_visits)}` : ''),
    fact('model calls', bounds.max_llm_calls ? `at most ${number(bounds.max_llm_calls)}` : 'none'),
    fact('questions', bounds.max_questions ? `at most ${number(bounds.max_questions)}` : ''),
    fact('budget', limits.budget_micro_usd ? `$${limits.budget_micro_usd / 1e6}` : ''),
  )
}

function form(name) {
  const input = h('textarea', {id: 'run-input', rows: 4})
  const mode = h('select', {id: 'run-mode'}, ['', 'sequential', 'parallel'].map((m) => h('option', {value: m}, m || 'as the pipeline says')))
  const fault = h('p', {class: 'error', role: 'alert', hidden: true})
  const start = h('button', {type: 'submit', class: 'primary'}, icon('arrow'), 'Start')
  const onsubmit = async (e) => {
    e.preventDefault()
    start.disabled = true
    fault.hidden = true
    try {
      const {id} = await send('POST', '/runs', {pipeline: name, input: input.value, ...(mode.value ? {mode: mode.value} : {})})
      go(`#/runs/${encodeURIComponent(id)}`)
    } catch (e2) {
      fault.textContent = [e2.detail ?? e2.message, e2.hint].filter(Boolean).join(' ')
      fault.hidden = false
      start.disabled = false
    }
  }
  return h(
    'form',
    {onsubmit},
    h('div', {class: 'field'}, h('label', {for: 'run-input'}, 'Input'), input),
    h('div', {class: 'field'}, h('label', {for: 'run-mode'}, 'Mode'), mode),
    fault,
    h('div', {class: 'actions'}, start),
  )
}

async function showPipeline(el, name) {
  const p = await get(`/pipelines/${encodeURIComponent(name)}`)
  if (!p.valid)
    return void fill(el, h('h2', null, name), h('p', {class: 'error', role: 'alert'}, 'This pipeline has errors and cannot be run; `reeve lint` says which.'))
  fill(
    el,
    h('h2', null, p.name),
    p.description ? h('p', null, p.description) : null,
    facts(p),
    h('div', {class: 'side-by-side'}, drawGraph(p.graph, {label: `The stages of ${p.name}`}).el, form(name)),
  )
}

export async function showNew(main, name) {
  const names = await get('/pipelines')
  const chosen = h('section', {class: 'grow', 'aria-label': 'Pipeline'})
  fill(
    main,
    h('div', {class: 'head'}, h('a', {href: '#/runs'}, 'Runs'), h('h1', null, 'New run')),
    h(
      'div',
      {class: 'body wide-body columns'},
      h(
        'nav',
        {class: 'list', 'aria-label': 'Pipelines'},
        names.map((n) => h('a', {href: `#/runs/new/${encodeURIComponent(n)}`, ...(n === name ? {'aria-current': 'true'} : {})}, n)),
      ),
      chosen,
    ),
  )
  if (name) await showPipeline(chosen, name)
  else fill(chosen, h('p', {class: 'muted'}, names.length ? 'Choose a pipeline.' : 'This server has no pipelines: start it with --pipelines DIR.'))
}
