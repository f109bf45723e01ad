// Markdown as elements. marked says what a text consists of, and each part becomes an element here: no text is ever parsed
// as HTML, so nothing that a model or a tool writes can become a script, a form or a style. Of tags within Markdown a few
// that only change the look are known; all others are shown as the text that they are.
import {lexer} from './marked.js'
import {h, icon, iconButton} from './dom.js'

const MAX_TEXT = 300000 // characters; a longer text is shown as it is
const MAX_DEPTH = 60
const PLAIN_TAGS = new Set(['b', 'code', 'del', 'em', 'i', 'ins', 'kbd', 'mark', 'q', 's', 'samp', 'small', 'strong', 'sub', 'sup', 'u', 'var'])
const ENTITIES = {amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©', reg: '®', trade: '™', hellip: '…', mdash: '—', ndash: '–', laquo: '«', raquo: '»', times: '×', deg: '°', euro: '€', rarr: '→', larr: '←', bull: '•', middot: '·'}
const LANGUAGE = /^[a-z0-9+#._-]{1,30}$/i

// marked escapes some texts for HTML: back to what was written, with the names of characters replaced.
export function unescape(text) {
  return String(text).replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi, (whole, dec, hex, name) => {
    if (name) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : whole
    const code = dec ? Number(dec) : parseInt(hex, 16)
    return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : whole
  })
}

// An address that a link may have; null: none.
export function linkAddress(text) {
  const trimmed = String(text).trim()
  if (!/^(https?:\/\/|mailto:)/i.test(trimmed)) return null
  try {
    const url = new URL(trimmed)
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null
  } catch {
    return null
  }
}

function link(href, title, children) {
  const address = linkAddress(href)
  if (!address) return h('span', {class: 'no-link', title: title || null}, children)
  return h('a', {href: address, title: title || null, rel: 'noopener noreferrer nofollow', target: '_blank'}, children)
}

// Pictures of other places would tell them who reads this: those are links.
function picture(src, alt, title) {
  if (/^data:image\/(png|jpeg|gif|webp);base64,[a-z0-9+/=\s]+$/i.test(src)) {
    const img = h('img', {alt, title: title || null})
    img.src = src
    return img
  }
  return link(src, title, alt || src)
}

// What went with a message: pictures are shown, other files are named.
export function attached(list) {
  if (!Array.isArray(list) || list.length === 0) return null
  const one = (a) => {
    const name = String(a.name || a.url || a.type || 'file')
    const src = a.data ? `data:${a.media_type};base64,${a.data}` : String(a.url ?? '')
    if (a.type === 'image' || src.startsWith('http')) return picture(src, name, name)
    return h('span', null, icon('clip'), [name, a.media_type].filter(Boolean).join(', '))
  }
  return h('div', {class: 'attached'}, list.map(one))
}

export function codeBox(language, text) {
  const known = LANGUAGE.test(language) ? language.toLowerCase() : ''
  const pre = h('pre', {tabindex: '0'}, h('code', known ? {class: `language-${known}`} : null, text))
  const copy = iconButton('copy', 'Copy the code', async () => {
    await navigator.clipboard?.writeText(text)
    copy.classList.add('done')
  })
  return h('div', {class: 'code'}, h('div', {class: 'code-head'}, h('span', null, known || 'text'), copy), pre)
}

// --- within a line

// A tag without attributes that only changes the look opens or closes an element; false: it is text.
function tag(raw, stack) {
  const [, slash, name, attributes] = /^<(\/?)([a-z]+)([^>]*)>$/i.exec(raw.trim()) ?? []
  const low = name?.toLowerCase()
  if (!low || !/^\s*\/?$/.test(attributes)) return false
  if (low === 'br') {
    stack.at(-1).append(h('br'))
    return true
  }
  if (!PLAIN_TAGS.has(low)) return false
  if (!slash) {
    if (stack.length > 8) return false
    const el = h(low)
    stack.at(-1).append(el)
    stack.push(el)
    return true
  }
  if (stack.length < 2 || stack.at(-1).localName !== low) return false
  stack.pop()
  return true
}

const EMPHASIS = {strong: 'strong', em: 'em', del: 'del'}

function inline(tokens, depth) {
  const base = document.createDocumentFragment()
  const stack = [base]
  for (const t of tokens ?? []) {
    const to = stack.at(-1)
    if (depth > MAX_DEPTH) to.append(t.raw)
    else if (EMPHASIS[t.type]) to.append(h(EMPHASIS[t.type], null, inline(t.tokens, depth + 1)))
    else if (t.type === 'codespan') to.append(h('code', null, unescape(t.text)))
    else if (t.type === 'br') to.append(h('br'))
    else if (t.type === 'link') to.append(link(unescape(t.href), t.title && unescape(t.title), inline(t.tokens, depth + 1)))
    else if (t.type === 'image') to.append(picture(unescape(t.href), unescape(t.text), t.title && unescape(t.title)))
    else if (t.type === 'html') tag(t.raw, stack) || to.append(t.raw)
    else if (t.type === 'escape') to.append(unescape(t.text))
    else if (t.type === 'text' && t.tokens) to.append(inline(t.tokens, depth + 1))
    else to.append(unescape(t.raw))
  }
  return base
}

// --- blocks

function tableEl(t, depth) {
  const cell = (name, c, i) => h(name, {class: t.align[i] ? `to-${t.align[i]}` : null, scope: name === 'th' ? 'col' : null}, inline(c.tokens, depth + 1))
  const head = h('thead', null, h('tr', null, t.header.map((c, i) => cell('th', c, i))))
  const body = h('tbody', null, t.rows.map((row) => h('tr', null, row.map((c, i) => cell('td', c, i)))))
  return h('div', {class: 'table-box', tabindex: '0', role: 'group', 'aria-label': 'Table'}, h('table', null, head, body))
}

function listEl(t, depth) {
  const el = h(t.ordered ? 'ol' : 'ul', t.ordered && Number.isInteger(t.start) && t.start !== 1 ? {start: t.start} : null)
  for (const item of t.items) {
    const box = item.task ? h('input', {type: 'checkbox', disabled: true, checked: item.checked, 'aria-label': item.checked ? 'done' : 'to do'}) : null
    el.append(h('li', item.task ? {class: 'task'} : null, box, blocks(item.tokens, depth + 1, !item.loose)))
  }
  return el
}

function block(t, depth, tight) {
  if (depth > MAX_DEPTH) return t.raw
  switch (t.type) {
    case 'space':
    case 'def':
      return null
    case 'code':
      return codeBox((t.lang ?? '').split(/\s/)[0], t.text)
    case 'heading':
      return h(`h${Math.min(6, t.depth + 2)}`, {class: `h${t.depth}`}, inline(t.tokens, depth + 1))
    case 'table':
      return tableEl(t, depth)
    case 'hr':
      return h('hr')
    case 'blockquote':
      return h('blockquote', null, blocks(t.tokens, depth + 1))
    case 'list':
      return listEl(t, depth)
    case 'paragraph':
      return h('p', null, inline(t.tokens, depth + 1))
    case 'text': {
      const words = t.tokens ? inline(t.tokens, depth + 1) : unescape(t.raw)
      return tight ? words : h('p', null, words)
    }
    default: // HTML: lines of text
      return h('p', {class: 'as-text'}, t.raw.trimEnd())
  }
}

function blocks(tokens, depth, tight = false) {
  const fragment = document.createDocumentFragment()
  for (const t of tokens ?? []) {
    const made = block(t, depth, tight)
    if (made !== null) fragment.append(made)
  }
  return fragment
}

function asText(text) {
  const fragment = document.createDocumentFragment()
  fragment.append(h('p', {class: 'as-text'}, text))
  return fragment
}

// The answer of a structured agent is JSON: it is shown as such.
function jsonOf(text) {
  const trimmed = text.trim()
  if (!/^[{[]/.test(trimmed) || !/[}\]]$/.test(trimmed)) return null
  try {
    const fragment = document.createDocumentFragment()
    fragment.append(codeBox('json', JSON.stringify(JSON.parse(trimmed), null, 2)))
    return fragment
  } catch {
    return null
  }
}

// The elements of a text. It never throws: what cannot be read is shown as it is.
export function markdown(value) {
  const text = String(value)
  const json = jsonOf(text)
  if (json) return json
  if (text.length > MAX_TEXT) return asText(text)
  try {
    return blocks(lexer(text, {gfm: true, breaks: false}), 0)
  } catch {
    return asText(text)
  }
}

// --- colours of code

// The highlighter gives spans with classes around escaped text: those, and nothing else, become elements.
function spans(html) {
  const base = document.createDocumentFragment()
  const stack = [base]
  for (const [part] of html.matchAll(/<span class="[a-z0-9_ -]*">|<\/span>|[^<]+|</gi)) {
    const name = /^<span class="([a-z0-9_ -]*)">$/i.exec(part)?.[1]
    if (name !== undefined) {
      const el = h('span', {class: name})
      stack.at(-1).append(el)
      if (stack.length < MAX_DEPTH) stack.push(el)
    } else if (part === '</span>') {
      if (stack.length > 1) stack.pop()
    } else stack.at(-1).append(unescape(part))
  }
  return base
}

// Colours for the code blocks below an element; the highlighter is large and is fetched when it is first needed.
export async function highlight(el) {
  const found = [...el.querySelectorAll('pre > code[class^=language-]:not([data-lit])')].filter((b) => b.textContent.length < 100000)
  if (found.length === 0) return
  await import('./highlight.js')
  for (const code of found) {
    const language = code.className.slice('language-'.length)
    code.dataset.lit = ''
    if (!window.hljs.getLanguage(language)) continue
    const lit = spans(window.hljs.highlight(language, code.textContent, true).value)
    if (lit.textContent === code.textContent) code.replaceChildren(lit)
  }
}

// --- Markdown that grows

// Whole paragraphs are made once, only what follows the last of them again with each piece; everything again at the end.
export class LiveMarkdown {
  constructor(el) {
    this.el = el
    this.text = ''
    this.done = 0 // characters whose elements stay
    this.tail = []
    this.frame = 0
    this.isOver = false
  }
  push(delta) {
    this.text += delta
    this.isOver = false
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw())
  }
  draw() {
    this.frame = 0
    const cut = lastBreak(this.text, this.done)
    for (const node of this.tail) node.remove()
    if (cut > this.done) {
      this.el.append(markdown(this.text.slice(this.done, cut)))
      this.done = cut
    }
    const rest = markdown(this.text.slice(this.done))
    this.tail = [...rest.childNodes]
    this.el.append(rest)
  }
  end() {
    if (this.isOver) return
    this.isOver = true
    if (this.frame) cancelAnimationFrame(this.frame)
    this.frame = 0
    this.tail = []
    this.el.replaceChildren(markdown(this.text))
    highlight(this.el).catch(() => {})
  }
}

// Behind the last empty line that is not within a fence.
function lastBreak(text, from) {
  let cut = from
  let fence = ''
  let at = from
  while (at < text.length) {
    const end = text.indexOf('\n', at)
    if (end < 0) break
    const line = text.slice(at, end).trim()
    const mark = /^(```+|~~~+)/.exec(line)?.[1]
    if (mark && !fence) fence = mark
    else if (mark && mark.startsWith(fence) && line === mark) fence = ''
    else if (!line && !fence) cut = end + 1
    at = end + 1
  }
  return cut
}
