// The view of all sessions: find one, go on with it, rename, copy, save as a file, delete.
import {get, raw, send} from '../api.js'
import {go} from '../app.js'
import {confirmDialog, dialog, fill, h, icon, iconButton, timeEl, toast} from '../dom.js'
import {naming} from '../talk.js'

export const title = 'Sessions'
const PAGE = 40
const WAIT_MS = 200 // behind the last key, before the server is asked

const shown = (s) => (s.name && !/^chat-[0-9a-f-]{36}$/.test(s.name) ? s.name : 'Chat')

export async function show(main, params, query) {
  const list = h('ul', {class: 'rows', 'aria-label': 'Sessions'})
  const state = h('p', {class: 'muted', role: 'status'})
  const more = h('button', {type: 'button', hidden: true}, 'Show more')
  const search = h('input', {type: 'search', id: 'search', placeholder: 'Search sessions', 'aria-label': 'Search sessions', value: query?.get('q') ?? ''})
  let timer = 0
  let asked = 0
  let n = 0

  async function load(from) {
    const mine = ++asked
    const words = search.value.trim()
    const rows = await get(`/sessions?limit=${PAGE}&offset=${from}${words ? `&search=${encodeURIComponent(words)}` : ''}`)
    if (mine !== asked) return
    if (from === 0) list.replaceChildren()
    for (const s of rows) list.append(row(s, () => load(0)))
    n = from + rows.length
    more.hidden = rows.length < PAGE
    state.textContent = n === 0 ? (words ? `No session has “${words}”.` : 'There are no sessions yet. Begin a chat.') : ''
  }
  const again = () => load(0).catch((e) => toast(e.detail ?? e.message, 'bad'))

  more.addEventListener('click', () => load(n).catch((e) => toast(e.detail ?? e.message, 'bad')))
  search.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(again, WAIT_MS)
  })
  await Promise.all(naming)
  await load(0)
  fill(
    main,
    h('div', {class: 'head'}, h('h1', {class: 'grow'}, 'Sessions'), search, h('a', {class: 'button', href: '#/chat'}, icon('plus'), 'New chat')),
    h('div', {class: 'body'}, list, state, more),
  )
  return () => clearTimeout(timer)
}

function row(s, reload) {
  const path = `/sessions/${encodeURIComponent(s.id)}`
  const act = (f) => async () => {
    try {
      await f()
    } catch (e) {
      toast(e.detail ?? e.message, 'bad')
    }
  }
  const name = shown(s)
  return h(
    'li',
    {class: 'row'},
    h(
      'a',
      {class: 'row-main', href: `#/chat/${encodeURIComponent(s.id)}`},
      h('span', {class: 'row-title clip'}, name),
      h('span', {class: 'row-facts muted small'}, s.agent_name ? h('span', {class: 'tag'}, s.agent_name) : null, `${s.messages ?? 0} messages · `, timeEl(s.updated_at)),
    ),
    h(
      'span',
      {class: 'row-actions'},
      iconButton('edit', `Rename ${name}`, act(() => rename(path, name, reload))),
      iconButton('fork', `Copy ${name}`, act(() => copy(path, name))),
      iconButton('download', `Save ${name} as a file`, act(() => save(path, s.id))),
      iconButton('trash', `Delete ${name}`, act(() => remove(path, name, reload))),
    ),
  )
}

async function rename(path, old, reload) {
  const name = await dialog('Rename the session', (close) => {
    const input = h('input', {type: 'text', id: 'new-name', maxlength: '200', required: true})
    input.value = old
    const form = h(
      'form',
      null,
      h('div', {class: 'field'}, h('label', {for: 'new-name'}, 'Name'), input),
      h('div', {class: 'actions'}, h('button', {type: 'button', onclick: () => close()}, 'Cancel'), h('button', {type: 'submit', class: 'primary'}, 'Rename')),
    )
    form.addEventListener('submit', (e) => {
      e.preventDefault()
      close(input.value.trim())
    })
    return form
  })
  if (!name) return
  await send('PATCH', path, {name})
  await reload()
}

async function copy(path, name) {
  const made = await send('POST', `${path}/clone`, {new_name: `Copy of ${name}`.slice(0, 200)})
  go(`#/chat/${encodeURIComponent(made.new_session_id)}`)
}

async function save(path, id) {
  const response = await raw('GET', `${path}/export`)
  const url = URL.createObjectURL(await response.blob())
  const a = h('a', {download: `session-${id}.json`})
  a.setAttribute('href', url)
  a.click()
  URL.revokeObjectURL(url)
}

async function remove(path, name, reload) {
  if (!(await confirmDialog('Delete the session?', `“${name}” and its messages are deleted. This cannot be undone.`, 'Delete'))) return
  await send('DELETE', path)
  await reload()
}
