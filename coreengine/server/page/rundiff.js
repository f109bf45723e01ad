// Two runs beside each other: where their journals part, and their steps.
import {get} from './api.js'
import {fill, h} from './dom.js'
import {badge, duration, json, money, number, tokens} from './words.js'

const MAX_LINES = 1500 // longer records are shown without marks

// Which lines of a are not in b and the other way, by the longest common part.
function marks(a, b) {
  const lengths = Array.from({length: a.length + 1}, () => new Uint16Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--)
    for (let k = b.length - 1; k >= 0; k--) lengths[i][k] = a[i] === b[k] ? lengths[i + 1][k + 1] + 1 : Math.max(lengths[i + 1][k], lengths[i][k + 1])
  const only = [new Set(), new Set()]
  let i = 0
  let k = 0
  while (i < a.length || k < b.length) {
    if (i < a.length && k < b.length && a[i] === b[k]) {
      i++
      k++
    } else if (k >= b.length || (i < a.length && lengths[i + 1][k] >= lengths[i][k + 1])) only[0].add(i++)
    else only[1].add(k++)
  }
  return only
}

function record(value, other, word) {
  if (value === null || value === undefined) return h('p', {class: 'muted'}, 'The run was over here.')
  const a = JSON.stringify(value, null, 2).split('\n')
  const b = other ? JSON.stringify(other, null, 2).split('\n') : []
  if (!other || a.length > MAX_LINES || b.length > MAX_LINES) return json(value, word)
  const [mine] = marks(a, b)
  return h(
    'pre',
    {class: 'json diff', tabindex: '0', role: 'region', 'aria-label': word},
    a.map((line, i) => (mine.has(i) ? h('mark', null, `${line}\n`) : h('span', null, `${line}\n`))),
  )
}

function stepCells(s) {
  if (!s) return [h('td', {colspan: '4', class: 'muted'}, '–')]
  return [
    h('td', null, s.stage, s.visit > 1 ? h('span', {class: 'muted small'}, ` visit ${s.visit}`) : null),
    h('td', null, s.status ?? 'open'),
    h('td', {class: 'number'}, duration(s.duration_ms)),
    h('td', {class: 'number'}, tokens(s.usage), s.usage ? ` ${money(s.usage)}` : ''),
  ]
}

function steps(a, b) {
  const n = Math.max(a.steps.length, b.steps.length)
  const heads = ['Stage', 'Ended', 'Time', 'Tokens']
  return h(
    'div',
    {class: 'table-box', tabindex: '0', role: 'region', 'aria-label': 'Steps of both'},
    h(
      'table',
      {class: 'run-table'},
      h('thead', null, h('tr', null, h('th', {scope: 'col'}, 'Step'), [...heads, ...heads].map((w) => h('th', {scope: 'col'}, w)))),
      h(
        'tbody',
        null,
        Array.from({length: n}, (_, i) => {
          const [x, y] = [a.steps[i], b.steps[i]]
          const same = x && y && x.stage === y.stage && x.status === y.status && x.next_stage === y.next_stage
          return h('tr', {class: same ? '' : 'differs'}, h('td', {class: 'number'}, `${i + 1}${same ? '' : ' ≠'}`), stepCells(x), stepCells(y))
        }),
      ),
    ),
  )
}

const head = (word, run) =>
  h('div', {class: 'side'}, h('span', {class: 'muted'}, word), ' ', h('a', {href: `#/runs/${encodeURIComponent(run.id)}`, class: 'mono small'}, run.id), ' ', badge(run.status), ` ${run.pipeline}, ${number(run.records)} records`)

export async function showDiff(main, id, other) {
  const path = (run) => `/runs/${encodeURIComponent(run)}`
  const [diff, a, b, times_a, times_b] = await Promise.all([
    get(`${path(id)}/diff?with=${encodeURIComponent(other)}`),
    get(path(id)),
    get(path(other)),
    get(`${path(id)}/timeline`),
    get(`${path(other)}/timeline`),
  ])
  const verdict = diff.equal
    ? `They are equal: ${number(diff.same_records)} records.`
    : diff.a_record === undefined
      ? `They were told the same, ${number(diff.same_records)} records, by other files.`
      : `${diff.same_records ? `${number(diff.same_records)} records are the same, then they part` : 'They part at their beginning'}${diff.path ? `, at ${diff.path}` : ''}.`
  fill(
    main,
    h('div', {class: 'head'}, h('a', {href: '#/runs'}, 'Runs'), h('h1', null, 'Two runs compared')),
    h(
      'div',
      {class: 'body wide-body'},
      h('div', {class: 'columns even'}, head('the first', a), head('the second', b)),
      h('p', {class: `notice ${diff.equal ? 'good' : ''}`, id: 'verdict'}, h('strong', null, verdict)),
      diff.bundle.length ? h('div', null, h('h2', null, 'What they were started with differs in'), h('ul', null, diff.bundle.map((line) => h('li', {class: 'mono'}, line)))) : null,
      diff.a_record !== undefined
        ? h(
            'div',
            {class: 'columns even'},
            h('section', {'aria-label': 'Of the first'}, h('h2', null, diff.a_seq ? `Record ${diff.a_seq} of the first` : 'The first'), record(diff.a_record, diff.b_record, 'Record of the first run')),
            h('section', {'aria-label': 'Of the second'}, h('h2', null, diff.b_seq ? `Record ${diff.b_seq} of the second` : 'The second'), record(diff.b_record, diff.a_record, 'Record of the second run')),
          )
        : null,
      h('h2', null, 'Their steps'),
      steps(times_a, times_b),
    ),
  )
}
