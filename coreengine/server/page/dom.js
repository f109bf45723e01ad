// Elements, made in one way: every text becomes a text node, so that what models, tools and people wrote stays text.

const SAFE_LINK = /^(https?:|mailto:|#|\.?\/|[\w-]+(\/|$))/i
const ICONS = {
  chat: 'M4 5h16v11H9l-5 4z',
  sessions: 'M4 6h16M4 12h16M4 18h10',
  agents: 'M12 3v3M6 9a6 6 0 0 1 12 0v6a6 6 0 0 1-12 0zM9.5 11v1M14.5 11v1M9.5 16h5',
  runs: 'M5 5h5v5H5zM14 14h5v5h-5zM10 7.5h6.5V14',
  scenarios: 'M7 4h10v16l-5-3.5L7 20z',
  send: 'M5 12h13M12 5l7 7-7 7',
  stop: 'M7 7h10v10H7z',
  retry: 'M4 12a8 8 0 1 0 2.5-5.8M4 4v4.5h4.5',
  plus: 'M12 5v14M5 12h14',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  cross: 'M6 6l12 12M18 6L6 18',
  warn: 'M12 4l9 16H3zM12 10v4.5M12 17.2v.3',
  tool: 'M14.5 5.5a4.5 4.5 0 0 0-5.9 5.9L4 16l4 4 4.6-4.6a4.5 4.5 0 0 0 5.9-5.9L15.5 12 12 8.5z',
  agent: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20c1-4 4-6 7-6s6 2 7 6',
  up: 'M7 11v9H4v-9zM7 11l4-7c1.5 0 2.5 1 2.2 2.6L12.6 10H19l-1.5 8.5c-.2.9-.9 1.5-1.8 1.5H7',
  down: 'M7 13V4H4v9zM7 13l4 7c1.5 0 2.5-1 2.2-2.6L12.6 14H19l-1.5-8.5C17.3 4.6 16.6 4 15.7 4H7',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  edit: 'M4 20l1-5L16 4l4 4L9 19zM13.5 6.5l4 4',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  fork: 'M7 4v16M7 12c6 0 10-2 10-8M14.5 6.5L17 4l2.5 2.5',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5L20 20',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M5 19l1.5-1.5M17.5 6.5L19 5',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  out: 'M14 4h5v16h-5M4 12h10M10 8l4 4-4 4',
  arrow: 'M9 5l7 7-7 7',
  clip: 'M8 12.5l6.5-6.5a3 3 0 0 1 4.3 4.3l-8.3 8.2a5 5 0 0 1-7-7L11 4',
}

function set(el, name, value) {
  if (value === undefined || value === null || value === false) return
  if (typeof value === 'function') el.addEventListener(name.replace(/^on/, ''), value)
  else if (name === 'class') el.setAttribute('class', value)
  else if (name === 'href' || name === 'src') {
    if (SAFE_LINK.test(String(value))) el.setAttribute(name, value)
  } else if (name.startsWith('on') || name === 'style' || name === 'srcdoc') throw new Error(`not an attribute for h(): ${name}`)
  else el.setAttribute(name, value === true ? '' : value)
}

function add(el, child) {
  if (child === undefined || child === null || child === false) return
  if (Array.isArray(child)) for (const c of child) add(el, c)
  else el.append(child) // a string becomes a text node
}

// h('button', {class: 'primary', onclick: f}, 'Send'): attributes that are null or false are left out.
export function h(tag, attrs, ...children) {
  const el = document.createElement(tag)
  for (const name of Object.keys(attrs ?? {})) set(el, name, attrs[name])
  for (const child of children) add(el, child)
  return el
}

// The same for SVG.
export function s(tag, attrs, ...children) {
  const el = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const name of Object.keys(attrs ?? {})) set(el, name, attrs[name])
  for (const child of children) add(el, child)
  return el
}

export function icon(name) {
  return s('svg', {class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true', focusable: 'false'}, s('path', {d: ICONS[name] ?? ''}))
}

// A button with an icon; its name is for those who do not see it, and for a hint.
export function iconButton(name, label, onclick, attrs = {}) {
  return h('button', {type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick, ...attrs}, icon(name))
}

export function fill(el, ...children) {
  el.replaceChildren()
  for (const child of children) add(el, child)
  return el
}

// A short message at the edge of the page, which screen readers say, too.
export function toast(text, kind = 'info') {
  const el = h('div', {class: `toast ${kind}`}, text)
  document.getElementById('toasts').append(el)
  setTimeout(() => el.remove(), 6000)
}

// A dialog of the browser; resolves with what `build(close)` closes it with, undefined when it was left.
export function dialog(title, build) {
  return new Promise((resolve) => {
    let result
    const close = (value) => {
      result = value
      el.close()
    }
    const el = h('dialog', {'aria-label': title}, h('h2', null, title))
    add(el, build(close))
    el.addEventListener('close', () => {
      el.remove()
      resolve(result)
    })
    document.body.append(el)
    el.showModal()
  })
}

export const confirmDialog = (title, text, action) =>
  dialog(title, (close) => [
    h('p', null, text),
    h(
      'div',
      {class: 'actions'},
      h('button', {type: 'button', onclick: () => close(false)}, 'Cancel'),
      h('button', {type: 'button', class: 'danger', onclick: () => close(true)}, action),
    ),
  ])

// "3 minutes ago", from a time as text or in milliseconds.
export function ago(time) {
  const then = typeof time === 'number' ? time : Date.parse(time)
  if (!Number.isFinite(then)) return ''
  const seconds = Math.max(0, (Date.now() - then) / 1000)
  const f = new Intl.RelativeTimeFormat('en', {numeric: 'auto'})
  for (const [unit, size] of [
    ['day', 86400],
    ['hour', 3600],
    ['minute', 60],
  ])
    if (seconds >= size) return f.format(-Math.floor(seconds / size), unit)
  return 'just now'
}

export function timeEl(time) {
  const at = new Date(time)
  if (Number.isNaN(at.getTime())) return h('span', null, '')
  return h('time', {datetime: at.toISOString(), title: at.toLocaleString()}, ago(at.getTime()))
}
