// Scenarios: sessions that are kept under a name to be tried again; and collections, which are groups of sessions.
import {get, send} from '../api.js'
import {confirmDialog, dialog, fill, h, icon, iconButton, timeEl, toast} from '../dom.js'
import {place} from '../app.js'

export const title = 'Scenarios'
const STATUSES = ['active', 'draft', 'done', 'archived']
const fault = (e) => toast([e.detail ?? e.message, e.hint].filter(Boolean).join(' '), 'bad')
const listOf = (text) => text.split(',').map((t) => t.trim()).filter(Boolean)

function field(id, label, input) {
  input.id = id
  return h('div', {class: 'field'}, h('label', {for: id}, label), input)
}

// A row that is made or changed: what is typed, undefined when it was left.
function ask(heading, row, {session, status}) {
  return dialog(heading, (close) => {
    const name = h('input', {type: 'text', required: true, maxlength: '200', value: row.name ?? ''})
    const about = h('textarea', {rows: '3'})
    about.value = row.description ?? ''
    const tags = h('input', {type: 'text', value: (row.tags ?? []).join(', ')})
    const of = h('input', {type: 'text', value: row.session_id ?? '', spellcheck: 'false'})
    const state = h('select', null, [...new Set([...STATUSES, ...(row.status ? [row.status] : [])])].map((s) => h('option', {value: s, selected: s === row.status}, s)))
    const done = (e) => {
      e.preventDefault()
      close({
        name: name.value.trim(),
        description: about.value,
        tags: listOf(tags.value),
        ...(session && of.value.trim() ? {session_id: of.value.trim()} : {}),
        ...(status ? {status: state.value} : {}),
      })
    }
    return h(
      'form',
      {onsubmit: done},
      field('row-name', 'Name', name),
      field('row-about', 'Description', about),
      field('row-tags', 'Tags, separated by commas', tags),
      session ? field('row-session', 'Id of its session', of) : null,
      status ? field('row-status', 'Status', state) : null,
      h('div', {class: 'actions'}, h('button', {type: 'button', onclick: () => close()}, 'Cancel'), h('button', {type: 'submit', class: 'primary'}, 'Keep')),
    )
  })
}

const badges = (row) => [row.status ? h('span', {class: 'badge'}, row.status) : null, (row.tags ?? []).map((t) => h('span', {class: 'badge tag'}, t))]

async function remove(kind, row, again) {
  if (!(await confirmDialog(`Delete ${row.name}?`, 'Sessions stay.', 'Delete'))) return
  await send('DELETE', `/${kind}/${encodeURIComponent(row.id)}`).then(again, fault)
}

async function change(kind, row, opts, again) {
  const said = await ask(`Change ${row.name}`, row, opts)
  if (said) await send('PATCH', `/${kind}/${encodeURIComponent(row.id)}`, said).then(again, fault)
}

// --- scenarios

function scenario(row, again) {
  return h(
    'li',
    {class: 'agent-card'},
    h('h2', null, row.name ?? 'Without a name'),
    row.description ? h('p', null, row.description) : null,
    h('p', {class: 'badges'}, badges(row)),
    h('p', {class: 'muted small'}, [row.agent_name, ' '], row.created_at ? timeEl(row.created_at) : null),
    h(
      'div',
      {class: 'actions'},
      iconButton('trash', `Delete ${row.name}`, () => remove('scenarios', row, again)),
      iconButton('edit', `Change ${row.name}`, () => change('scenarios', row, {session: true, status: true}, again)),
      row.session_id ? h('a', {class: 'button', href: `#/chat/${encodeURIComponent(row.session_id)}`}, icon('chat'), 'Open') : null,
    ),
  )
}

// --- collections

async function openCollection(row) {
  const path = `/collections/${encodeURIComponent(row.id)}`
  const list = h('ul', {class: 'tree'})
  const id = h('input', {type: 'text', placeholder: 'id of a session', 'aria-label': 'Id of a session', spellcheck: 'false'})
  const load = async () => {
    const sessions = await get(`${path}/sessions?limit=200`)
    fill(
      list,
      sessions.length ? null : h('li', {class: 'muted'}, 'No session is in it.'),
      sessions.map((s) =>
        h('li', {class: 'property-row'}, h('a', {href: `#/chat/${encodeURIComponent(s.id)}`}, s.name || s.id), iconButton('cross', `Take ${s.name || s.id} out`, () => send('DELETE', `${path}/sessions/${encodeURIComponent(s.id)}`).then(load, fault))),
      ),
    )
  }
  const add = (e) => {
    e.preventDefault()
    send('POST', `${path}/sessions`, {session_id: id.value.trim()}).then(() => {
      id.value = ''
      return load()
    }, fault)
  }
  await load()
  await dialog(row.name, (close) => [
    list,
    h('form', {class: 'add-field', onsubmit: add}, id, h('button', {type: 'submit', class: 'small'}, icon('plus'), 'Put in')),
    h('div', {class: 'actions'}, h('button', {type: 'button', onclick: () => close()}, 'Close')),
  ])
}

async function exportCollection(row) {
  try {
    const text = JSON.stringify(await get(`/collections/${encodeURIComponent(row.id)}/export`), null, 2)
    const url = URL.createObjectURL(new Blob([text], {type: 'application/json'}))
    const a = h('a')
    a.href = url
    a.download = `${row.name}.json`
    a.click()
    setTimeout(() => URL.revokeObjectURL(url), 1000)
  } catch (e) {
    fault(e)
  }
}

function collection(row, again) {
  return h(
    'li',
    {class: 'agent-card'},
    h('h2', null, row.name),
    row.description ? h('p', null, row.description) : null,
    h('p', {class: 'badges'}, badges(row)),
    h(
      'div',
      {class: 'actions'},
      iconButton('trash', `Delete ${row.name}`, () => remove('collections', row, again)),
      iconButton('download', `Export ${row.name}`, () => exportCollection(row)),
      iconButton('edit', `Change ${row.name}`, () => change('collections', row, {}, again)),
      h('button', {type: 'button', onclick: () => openCollection(row).catch(fault)}, 'Sessions'),
    ),
  )
}

// --- both

// A search by a part of the name; words behind "#" are tags; a question mark at the end looks for the meaning.
function searchBody(text) {
  const tags = [...text.matchAll(/#(\S+)/g)].map((m) => m[1])
  const words = text.replace(/#\S+/g, '').trim()
  const body = {limit: 100, ...(tags.length ? {tags} : {})}
  if (words.endsWith('?')) body.query = words.slice(0, -1).trim()
  else if (words) body.name_contains = words
  return body
}

async function panel(kind, heading, draw, opts, first) {
  const list = h('ul', {class: 'agent-cards', 'aria-label': heading})
  const search = h('input', {type: 'search', placeholder: 'Name, #tag, or a meaning?', 'aria-label': `Search ${kind}`})
  let turn = 0
  const load = async () => {
    const mine = ++turn
    try {
      const rows = search.value.trim() ? (await send('POST', `/${kind}/search`, searchBody(search.value))).results : await get(`/${kind}?limit=100`)
      if (mine !== turn) return
      fill(list, rows.length ? rows.map((r) => draw(r, load)) : h('li', {class: 'muted'}, 'There is none.'))
    } catch (e) {
      if (mine === turn) fill(list, h('li', {class: 'error'}, e.detail ?? e.message))
    }
  }
  search.addEventListener('change', load)
  search.addEventListener('input', () => search.value.endsWith('?') || load())
  const add = async (row = {}) => {
    const said = await ask(`New ${kind.slice(0, -1)}`, {status: 'active', ...row}, opts)
    if (said) await send('POST', `/${kind}`, said).then(load, fault)
  }
  await load()
  const el = h('section', {'aria-label': heading, class: 'rows-panel'}, h('div', {class: 'panel-head'}, h('h2', {class: 'grow'}, heading), search, h('button', {type: 'button', onclick: () => add()}, icon('plus'), `New ${kind.slice(0, -1)}`)), list)
  if (first) add(first)
  return el
}

export async function show(main) {
  const session = place().query.get('session')
  const opts = {session: true, status: true}
  const [scenarios, collections] = await Promise.all([
    panel('scenarios', 'Scenarios', scenario, opts, session ? {session_id: session, name: place().query.get('name') ?? ''} : null),
    panel('collections', 'Collections', collection, {}, null),
  ])
  fill(main, h('div', {class: 'head'}, h('h1', null, 'Scenarios')), h('div', {class: 'body wide-body'}, scenarios, collections))
}
