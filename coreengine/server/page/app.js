// The frame of the page: which view is shown, by the part of the address behind `#`, and who is logged in.
import {get, send} from './api.js'
import {fill, h, icon, iconButton, toast} from './dom.js'

// Name of a module below views/, word in the list of views, icon.
const VIEWS = [
  ['chat', 'Chat', 'chat'],
  ['sessions', 'Sessions', 'sessions'],
  ['agents', 'Agents', 'agents'],
  ['runs', 'Runs', 'runs'],
  ['scenarios', 'Scenarios', 'scenarios'],
]

const main = document.getElementById('main')
const nav = document.getElementById('nav')
const foot = document.getElementById('rail-foot')
let close = null
let turn = 0 // counts views, so that one that came late does not replace a later one
let login = false

// `#/chat/ID` is the view "chat" with the parameters ["ID"]; behind `?` there may be a query.
export function place() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?')
  const [name, ...params] = path.split('/').map((part) => {
    try {
      return decodeURIComponent(part)
    } catch {
      return part
    }
  })
  return {name: name || 'chat', params: params.filter(Boolean), query: new URLSearchParams(query ?? '')}
}

function mark(name) {
  for (const a of nav.querySelectorAll('a'))
    if (a.dataset.view === name) a.setAttribute('aria-current', 'page')
    else a.removeAttribute('aria-current')
}

async function leave() {
  const f = close
  close = null
  try {
    await f?.()
  } catch (e) {
    console.error(e)
  }
}

export function failure(e) {
  return h(
    'div',
    {class: 'empty', role: 'alert'},
    icon('warn'),
    h('h1', null, e.status === 404 ? 'Not found' : e.status === 403 ? 'Not allowed' : 'This did not work'),
    h('p', null, e.detail ?? e.message),
    e.hint ? h('p', {class: 'muted'}, e.hint) : null,
    h('button', {type: 'button', onclick: () => route()}, 'Try again'),
  )
}

async function show(name, params, query) {
  const mine = ++turn
  await leave()
  mark(name)
  fill(main)
  main.className = `view-${name}`
  try {
    const view = await import(`./views/${name}.js`)
    if (mine !== turn) return
    document.title = view.title ? `${view.title} · reeve` : 'reeve'
    const done = await view.show(main, params, query)
    if (mine === turn) close = done ?? null
    else await done?.()
  } catch (e) {
    if (mine === turn) fill(main, failure(e))
  }
}

async function route() {
  const {name, params, query} = place()
  if (login) return show('login', [])
  if (!/^[a-z]+$/.test(name) || !VIEWS.some(([view]) => view === name)) return show('chat', [])
  return show(name, params, query)
}

// Go to another place; `replace` leaves none behind for the button "back".
export function go(hash, {replace = false, quiet = false} = {}) {
  if (replace || quiet) history.replaceState(null, '', hash)
  else location.hash = hash
  if (replace && !quiet) route()
}

// --- who is logged in

export async function loggedIn() {
  login = false
  await drawFoot()
  return route()
}

async function logOut() {
  try {
    await send('POST', '/logout')
  } catch (e) {
    toast(e.detail ?? e.message, 'bad')
    return
  }
  login = true
  await drawFoot()
  await route()
}

function themeButton() {
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark'
  const button = iconButton(dark() ? 'sun' : 'moon', 'Change between light and dark', () => {
    const theme = dark() ? 'light' : 'dark'
    document.documentElement.dataset.theme = theme
    localStorage.setItem('reeve.theme', theme)
    fill(button, icon(theme === 'dark' ? 'sun' : 'moon'))
  })
  return button
}

async function drawFoot() {
  let who = null
  try {
    who = login ? null : await get('/login')
  } catch {}
  fill(
    foot,
    who?.name ? h('span', {class: 'who', title: who.level}, who.name) : null,
    themeButton(),
    who?.login ? iconButton('out', 'Log out', logOut) : null,
  )
}

// --- the beginning

for (const [name, word, sign] of VIEWS) nav.append(h('a', {href: `#/${name}`, 'data-view': name}, icon(sign), h('span', null, word)))
document.querySelector('.skip').addEventListener('click', (e) => {
  e.preventDefault()
  main.focus()
})
addEventListener('hashchange', route)
addEventListener('reeve-login', () => {
  if (login) return
  login = true
  drawFoot()
  route()
})
drawFoot()
route()
